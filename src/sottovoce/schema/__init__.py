"""What a person may answer, and the integers that stand for it."""

from __future__ import annotations

from sottovoce.schema.attribute import (
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
from sottovoce.schema.fixed import FixedPoint, Number
from sottovoce.schema.lists import Boolean, Categorical
from sottovoce.schema.numbers import Integer, Ordinal
from sottovoce.schema.schema import ATTRIBUTES, Schema
from sottovoce.schema.sets import Items
from sottovoce.schema.text import Text

__all__ = [
    "ATTRIBUTES", "CODE", "FORMS", "MEMBERS", "MOST_SPELLED", "OPEN", "SPELLING", "Attribute",
    "Boolean", "Categorical", "Codes", "FixedPoint", "Integer", "Items", "Label", "Number",
    "Ordinal", "Schema", "Sets", "Text", "Words",
]  # fmt: skip
