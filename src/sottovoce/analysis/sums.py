"""Sums over sets of values, and groups, as the command line and the studio ask for them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.schema.numbers import Ordinal

if TYPE_CHECKING:
    from sottovoce.results.cells import CellLabel, Total
    from sottovoce.results.estimate import Estimate, Table
    from sottovoce.schema import Label, Schema

FORM = "'attribute:value,value' or 'attribute:low..high', several with ';' between"


@dataclass(frozen=True)
class Sum:
    """A sum that was asked for, and what the crowd said of it."""

    asked: str
    attributes: tuple[str, ...]
    labels: Sequence[CellLabel]
    total: Total

    def to_json(self, level: float) -> dict[str, Any]:
        """Ready for JSON."""
        low, high = self.total.interval(level)
        return {
            "sum": self.asked,
            "attributes": list(self.attributes),
            "values": list(self.labels),
            "frequency": float(self.total),
            "std_error": self.total.std_error,
            "is_bound": self.total.is_bound,
            "low": low,
            "high": high,
        }


def asked_sums(schema: Schema, found: Estimate, asked: Sequence[str], repair: str) -> list[Sum]:
    """The sums of an estimate that were asked for, of tables that are repaired first."""
    from sottovoce.postprocessing import postprocess

    sums = []
    for text in asked:
        table = postprocess(found.marginal(*attributes_in(schema, text)), repair)
        sums.append(sum_of(schema, table, text))
    return sums


def attributes_in(schema: Schema, text: str) -> tuple[str, ...]:
    """The attributes that a sum, as it was typed, is about.

    >>> from sottovoce.schema import Categorical, Schema
    >>> attributes_in(Schema(pet=Categorical(["cat", "dog"])), "pet:cat,dog")
    ('pet',)
    """
    names = tuple(_part(schema, part)[0] for part in text.split(";"))
    if len(set(names)) < len(names):
        raise InvalidInput(f"sum ({text}): an attribute is named twice")
    return names


def sum_of(schema: Schema, table: Table, text: str) -> Sum:
    """The sum, as it was typed, over values of the table of its attributes."""
    parts = [_part(schema, part) for part in text.split(";")]
    chosen = [
        _chosen(schema, _labels(table, place), *part, what="sum")
        for place, part in enumerate(parts)
    ]
    labels: list[CellLabel] = list(chosen[0]) if len(chosen) == 1 else list(product(*chosen))
    return Sum(text, table.attributes, labels, table.total(labels))


def group_in(schema: Schema, text: str) -> dict[str, list[Label]]:
    """The group of people that a text names in the form of a sum, as estimates take it.

    >>> from sottovoce.schema import Boolean, Ordinal, Schema
    >>> group_in(Schema(tea=Boolean(), age=Ordinal(18, 97, bins=4)), "tea:yes; age:18..57")
    {'tea': [True], 'age': ['18 to 37', '38 to 57']}
    >>> from sottovoce.schema import Categorical
    >>> group_in(Schema(tea=Categorical([True, False, "none"])), "tea:no,none")
    {'tea': [False, 'none']}
    """
    found: dict[str, list[Label]] = {}
    for part in text.split(";"):
        name, values = _part(schema, part, "group")
        if name in found:
            raise InvalidInput(f"group ({text}): an attribute is named twice")
        found[name] = _chosen(schema, schema[name].labels(), name, values, what="group")
    return found


def _part(schema: Schema, text: str, what: str = "sum") -> tuple[str, str]:
    """The name of an attribute, and its values as they were typed."""
    name, colon, values = text.strip().partition(":")
    if not colon or not values.strip():
        raise InvalidInput(f"{what} ({text}) must be {FORM}")
    if name not in schema:
        raise InvalidInput(f"{what}: attribute {name!r} is not in the schema")
    return name, values


def _chosen(
    schema: Schema, labels: Sequence[Label], name: str, values: str, what: str
) -> list[Label]:
    """Those labels of an attribute that a list of values and ranges names."""
    by_text = {str(label): label for label in labels}
    words = {"yes": True, "no": False}
    by_text |= {
        word: label for word, label in words.items() if any(each is label for each in labels)
    }
    found: dict[Label, None] = {}
    for typed in next(csv.reader([values], skipinitialspace=True)):
        word = typed.strip()
        if word in by_text:
            found[by_text[word]] = None
            continue
        low, dots, high = word.partition("..")
        first = _code(schema, name, low, is_first=True, what=what)
        last = _code(schema, name, high if dots else low, is_first=False, what=what)
        if first > last:
            raise InvalidInput(f"{what}: range ({word}) of {name!r} must not end before it starts")
        known = schema[name].labels()
        for code in range(first, last + 1):
            if str(known[code]) not in by_text:
                raise InvalidInput(f"{what}: a value of {name!r} is not in the table")
            found[known[code]] = None
    return list(found)


def _labels(table: Table, place: int) -> list[Label]:
    """The labels of one attribute of a table."""
    if len(table.attributes) == 1:
        return list(table.labels)  # type: ignore[arg-type]
    several = [label for label in table.labels if isinstance(label, tuple)]
    return list(dict.fromkeys(label[place] for label in several))


def _code(schema: Schema, name: str, typed: str, *, is_first: bool, what: str) -> int:
    """The code of a value; of a number in bins, of the bin that starts, or ends, with it."""
    attribute = schema[name]
    code = schema.code(name, typed)
    if isinstance(attribute, Ordinal) and attribute.bins is not None:
        number = int(typed)
        beside = number - 1 if is_first else number + 1
        is_inside = attribute.low <= beside <= attribute.high
        if is_inside and attribute.code(beside) == code:
            edge = "start" if is_first else "end"
            raise InvalidInput(
                f"{what}: {name!r} is told in bins, and none {edge}s with {number} "
                f"(that of {number} is {attribute.labels()[code]})"
            )
    return code
