"""Methods as they are typed in comparisons: a name, with options if there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sottovoce.ground.errors import InvalidInput


@dataclass(frozen=True)
class MethodChoice:
    """A method as it was typed: ``pem``, or with options ``pem:queries=1048576``.

    >>> MethodChoice.parse("pem:queries=1048576:scramble=true").options
    {'queries': 1048576, 'scramble': True}
    """

    text: str
    method: str
    options: Mapping[str, Any] = field(hash=False)

    @classmethod
    def parse(cls, text: str) -> MethodChoice:
        name, *parts = (part.strip() for part in text.split(":"))
        if not name or not all("=" in part for part in parts):
            raise InvalidInput(
                f"methods ({text}) must be names, or names with options, such as "
                "pem:queries=1048576"
            )
        pairs = (part.partition("=") for part in parts)
        return cls(text, name, {key.strip(): _value(value.strip()) for key, _, value in pairs})


def _value(text: str) -> Any:
    """An option as a plan may hold it: a truth value, a whole number or text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text
