"""Attributes: what a person may answer, and the integers that stand for it."""

from __future__ import annotations

from sottovoce.attributes.base import (
    CODE,
    FORMS,
    MEMBERS,
    MOST_SPELLED,
    OPEN,
    SPELLING,
    Attribute,
    Codes,
    Label,
    Sets,
    Words,
)
from sottovoce.attributes.lists import Boolean, Categorical
from sottovoce.attributes.numbers import Integer, Ordinal
from sottovoce.attributes.sets import Items
from sottovoce.attributes.text import Text

__all__ = [
    "ATTRIBUTES", "CODE", "FORMS", "MEMBERS", "MOST_SPELLED", "OPEN", "SPELLING", "Attribute", "Boolean", "Categorical",
    "Codes", "Integer", "Items", "Label", "Ordinal", "Sets", "Text", "Words",
]  # fmt: skip

# Every attribute there is. A new one is a class in a file of this folder, a line here, and its kind in docs/wire.md.
ATTRIBUTES: tuple[type[Attribute], ...] = (Boolean, Categorical, Ordinal, Integer, Text, Items)
