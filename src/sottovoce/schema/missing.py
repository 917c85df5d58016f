"""The answer of people who give none, added to an attribute: so that a question can be left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.schema.attribute import Attribute, Single
from sottovoce.schema.lists import Boolean, Categorical
from sottovoce.schema.numbers import Ordinal

YES_OR_NO = ("yes", "true", "1", "no", "false", "0")  # as files write them


def with_missing(attribute: Attribute, missing: Any) -> Attribute:
    """The attribute with one more value, which is reported for whoever gives no answer.

    Args:
        attribute: a list, yes or no, or whole numbers, without an ``other`` yet.
        missing: of a list a text; of numbers the one below the lowest or above the highest, which
            gets a bin of its own.

    >>> with_missing(Boolean(), "prefer not to say").labels()
    (True, False, 'prefer not to say')
    >>> with_missing(Ordinal(18, 97, bins=2), 98).labels()
    ['18 to 57', '58 to 97', '98']
    """
    if isinstance(attribute, Single) and attribute.other is not None:
        raise InvalidInput("missing and other say the same; give one of them")
    if isinstance(attribute, Ordinal):
        return _numbers(attribute, missing)
    if not isinstance(attribute, Boolean | Categorical):
        raise InvalidInput(
            f"missing: an attribute of kind {attribute.kind} cannot have one; leave it out"
        )
    if not isinstance(missing, str) or not missing.strip():
        raise InvalidInput(f"missing ({missing}) must be a text, such as 'prefer not to say'")
    if isinstance(attribute, Boolean) and missing.strip().lower() in YES_OR_NO:
        raise InvalidInput(f"missing ({missing}) must not be a word for yes or no")
    values = (True, False) if isinstance(attribute, Boolean) else tuple(attribute.values)
    listed = values if missing in values else (*values, missing)
    return Categorical(listed, other=missing, sensitive=attribute.sensitive)


def _numbers(attribute: Ordinal, missing: Any) -> Ordinal:
    low, high = attribute.low, attribute.high
    if isinstance(missing, bool) or missing not in (low - 1, high + 1):
        raise InvalidInput(
            f"missing ({missing}) must be {low - 1} or {high + 1}: a number beside the others"
        )
    starts = list(attribute.starts) if attribute.bins is not None else None
    if missing < low:
        bins = None if starts is None else [missing, *starts]
        return replace(attribute, low=missing, bins=bins, other=missing)
    bins = None if starts is None else [*starts, missing]
    return replace(attribute, high=missing, bins=bins, other=missing)
