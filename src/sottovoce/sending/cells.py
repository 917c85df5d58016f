"""Cells of people's files as answers: numbers as spreadsheets write them, and cells without one.

Each rule is one of reading files. A device reads its person's record as it is.
"""

from __future__ import annotations

import re
from math import floor, isfinite
from typing import Any

from sottovoce.ground.extras import imported
from sottovoce.schema import Attribute, Boolean, Categorical, FixedPoint, Integer, Label, Ordinal
from sottovoce.schema.attribute import Single

YES_NO = {"yes": "1", "true": "1", "1": "1", "no": "0", "false": "0", "0": "0"}
_NUMBER = re.compile(r"\s*([+-]?)([0-9]{1,40})(?:[.,]([0-9]*))?\s*", re.ASCII)


def settled_column(
    attribute: Attribute, column: Any, *, decimal_commas: bool, takes_other: bool
) -> Any:
    """An Arrow column whose cells the attribute can read, where there is a rule for that.

    Args:
        attribute: whose values they are.
        column: text of a CSV file, or any of a Parquet file.
        decimal_commas: whether 12,5 is 12.5.
        takes_other: whether what the attribute does not have is its ``other``.
    """
    pa = imported("pyarrow")

    other = getattr(attribute, "other", None) if isinstance(attribute, Single) else None
    other = other if takes_other else None
    if not _has_rule(attribute, column, other):
        return column
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    encoded = column.dictionary_encode(null_encoding="encode")
    found = [
        settled(attribute, value, other, decimal_commas) for value in encoded.dictionary.to_pylist()
    ]
    return pa.array(found, pa.string()).take(encoded.indices)


def settled(
    attribute: Attribute, value: Any, other: Label | None, decimal_commas: bool
) -> str | None:
    """One cell as text that the attribute reads; as it is where no rule says how."""
    number = _whole_text(attribute, value, decimal_commas)
    text = None if value is None else str(value)
    if text is not None and _has_yes_and_no(attribute):
        text = YES_NO.get(text.strip().lower(), text)
    if number is not None:
        text = number
    if other is None:
        return text
    try:
        if text is None or not (text.strip() or isinstance(attribute, Categorical)):
            raise ValueError
        attribute.code(text)
    except (ValueError, TypeError, KeyError, OverflowError):
        return YES_NO[str(other).lower()] if _is_yes_or_no(attribute, other) else str(other)
    return text


def _has_rule(attribute: Attribute, column: Any, other: Label | None) -> bool:
    """Whether any cell may be read otherwise than as it is."""
    pa, compute = imported("pyarrow"), imported("pyarrow.compute")

    if not isinstance(attribute, Boolean | Categorical | FixedPoint | Integer | Ordinal):
        return False
    if other is not None:
        return True
    if _has_yes_and_no(attribute):
        return False
    if pa.types.is_floating(column.type):
        return not isinstance(attribute, FixedPoint)
    if not pa.types.is_string(column.type) or isinstance(attribute, Categorical):
        return pa.types.is_string(column.type) and _is_numeric(attribute)
    return bool(compute.any(compute.match_substring_regex(column, "[.,]")).as_py())


def _has_yes_and_no(attribute: Attribute) -> bool:
    """Whether it is a list with yes or no in it, which files write as words."""
    return isinstance(attribute, Categorical) and any(
        isinstance(label, bool) for label in attribute.values[:2]
    )


def _is_yes_or_no(attribute: Attribute, label: Label) -> bool:
    return _has_yes_and_no(attribute) and isinstance(label, bool)


def _is_numeric(attribute: Attribute) -> bool:
    if isinstance(attribute, Categorical):
        return isinstance(attribute.values, range) or all(
            isinstance(label, int) for label in attribute.values
        )
    return isinstance(attribute, Boolean | Integer | Ordinal)


def _whole_text(attribute: Attribute, value: Any, decimal_commas: bool) -> str | None:
    """A number as the attribute reads it: 22.0 is 22, and 22.5 is in the bin of 22."""
    if isinstance(value, float):
        if not isfinite(value):
            return None
        value = str(int(value)) if value.is_integer() else repr(value)
    if not isinstance(value, str) or (not decimal_commas and "," in value):
        return None
    parts = _NUMBER.fullmatch(value)
    if parts is None:
        return None
    sign, whole, fraction = parts[1], parts[2], parts[3] or ""
    if isinstance(attribute, FixedPoint):
        return f"{sign}{whole}.{fraction or 0}"
    if not _is_numeric(attribute):
        return None
    if not fraction.strip("0"):
        return sign + whole
    if isinstance(attribute, Ordinal) and attribute.bins is not None:
        return str(floor(int(whole)) if sign != "-" else -int(whole) - 1)
    return None
