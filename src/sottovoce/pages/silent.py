"""Numbers that stand for no answer, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sottovoce.results.averages import silent_number

if TYPE_CHECKING:
    from sottovoce.results.estimate import Table
    from sottovoce.schema import Schema

SILENT = "no answer"


def said(schema: Schema | None, name: str, label: Any) -> Any:
    """A label as a page shows it.

    >>> from sottovoce.schema import Ordinal, Schema
    >>> schema = Schema(age=Ordinal(17, 97, bins=[17, 18, 50], other=17))
    >>> said(schema, "age", "17"), said(schema, "age", "18 to 49")
    ('no answer', '18 to 49')
    """
    return SILENT if label is not None and label == _silent_label(schema, name) else label


def in_words(table: Table, schema: Schema | None) -> Table:
    """A table with these numbers in words, to be shown."""
    names = table.attributes
    silent = [_silent_label(schema, name) for name in names]
    if all(label is None for label in silent):
        return table
    if len(names) == 1:
        return replace(table, labels=_replaced(table.labels, silent[0]))
    rows = [label for label in table.labels if isinstance(label, tuple)]
    columns = zip(*rows, strict=True)
    shown = [_replaced(column, label) for column, label in zip(columns, silent, strict=True)]
    return replace(table, labels=list(zip(*shown, strict=True)))


def _silent_label(schema: Schema | None, name: str) -> Any:
    """The label of the number that stands for no answer; None if there is none."""
    if schema is None or name not in schema:
        return None
    number = silent_number(schema[name])
    return None if number is None else schema[name].labels()[schema[name].code(number)]


def _replaced(labels: Sequence[Any], silent: Any) -> list[Any]:
    return [SILENT if silent is not None and label == silent else label for label in labels]
