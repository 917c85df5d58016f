"""Oracles of other packages: each is an entry point of the group ``sottovoce.oracles``."""

from __future__ import annotations

import inspect
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.packages import Brought, is_name
from sottovoce.oracles.base import Oracle


def checked_kind(thing: Any, what: str) -> type[Oracle]:
    """``thing`` if it is the whole class of an oracle; errors call it ``what``."""
    if not (isinstance(thing, type) and issubclass(thing, Oracle)):
        raise InvalidInput(f"{what} is not an oracle: a subclass of sottovoce.oracles.Oracle")
    if inspect.isabstract(thing):
        lacking = ", ".join(sorted(thing.__abstractmethods__))
        raise InvalidInput(f"{what} is not a whole oracle: it lacks {lacking}")
    names = getattr(thing, "names", ())
    if not isinstance(names, tuple) or not names or not all(map(is_name, names)):
        raise InvalidInput(
            f"{what}: names must be a tuple of names such as ('my-oracle',), of lower-case "
            "letters, digits and hyphens"
        )
    if not isinstance(getattr(thing, "about", None), str):
        raise InvalidInput(f"{what}: about must be one line that says what it is")
    return thing


def _installed(thing: Any, what: str, name: str, package: str) -> type[Oracle]:
    kind = checked_kind(thing, what)
    if kind.names != (name,):
        raise InvalidInput(
            f"{what}: names {kind.names!r} of the class must be the entry point's name alone"
        )
    kind.package = package
    return kind


BROUGHT_ORACLES = Brought(
    "sottovoce.oracles",
    "oracle",
    _installed,
    "it decides what is private, so install it only if you trust it",
)
