"""What people hold, as ascending lists of values: rows of a table, or sets of items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.central.method import EMPTY_CODE, CentralTable, Integers, RowBatch
from sottovoce.ground.entropy import Entropy

ABSENT = -1  # the number of a value that is left out


@dataclass(frozen=True, eq=False)
class HeldValues:
    """Some people's rows. Of sets, a person has one row, which is her set.

    Person i has the rows ``people[i]`` to ``people[i + 1]``, and row r the values
    ``values[rows[r]:rows[r + 1]]``, ascending and all different.
    """

    people: Integers  # (people + 1,)
    rows: Integers  # (rows + 1,)
    values: Integers


def first_values(table: CentralTable) -> Integers:
    """Where the values of each attribute begin, if those of all are numbered through.

    Returns:
        One number more than attributes; the last is how many values there are.
    """
    sizes = [len(values) for values in table.values]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def each_value(table: CentralTable) -> tuple[Integers, Integers]:
    """The attribute and the code of each value, numbered through."""
    first = first_values(table)
    attributes = np.repeat(np.arange(len(table.columns)), np.diff(first))
    codes = np.arange(first[-1]) - first[attributes]
    return attributes, codes


def records(table: CentralTable, numbers: Integers) -> Iterator[HeldValues]:
    """The table's rows, batch after batch.

    Args:
        table: what the curator holds.
        numbers: the new number of each value, numbered through as in :func:`each_value`, ascending
            where it is not ABSENT; those are left out.
    """
    first = first_values(table)
    for batch in table.batches():
        if len(batch.codes):
            yield _of_sets(batch, numbers) if table.is_sets else _of_rows(batch, numbers, first)


def all_records(table: CentralTable, numbers: Integers) -> HeldValues:
    """The rows of all batches together."""
    parts = list(records(table, numbers))
    if not parts:
        none = np.zeros(1, np.int64)
        return HeldValues(none, none, np.zeros(0, np.int64))
    if len(parts) == 1:
        return parts[0]
    return HeldValues(
        _joined_starts([part.people for part in parts]),
        _joined_starts([part.rows for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _joined_starts(parts: list[Integers]) -> Integers:
    sizes = np.concatenate([np.diff(part) for part in parts])
    return starts_of(sizes)


def starts_of(sizes: NDArray[Any]) -> Integers:
    """Where groups of given sizes begin, and the end of the last."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _of_rows(batch: RowBatch, numbers: Integers, first: Integers) -> HeldValues:
    # an empty cell looks up the last number, ABSENT, which is there even if nobody has any value
    padded = np.append(numbers, ABSENT)
    through = np.where(batch.codes == EMPTY_CODE, len(numbers), batch.codes + first[:-1])
    named = padded[through]  # (rows, attributes)
    is_kept = named != ABSENT
    return HeldValues(
        starts_of(_run_lengths(batch.users)), starts_of(is_kept.sum(axis=1)), named[is_kept]
    )


def _of_sets(batch: RowBatch, numbers: Integers) -> HeldValues:
    items = batch.codes[:, 0]
    lengths = _run_lengths(batch.users)
    person = np.repeat(np.arange(len(lengths)), lengths)
    named = np.where(items == EMPTY_CODE, ABSENT, numbers[np.where(items == EMPTY_CODE, 0, items)])
    is_kept = named != ABSENT
    person, named = person[is_kept], named[is_kept]
    order = np.lexsort((named, person))
    person, named = person[order], named[order]
    is_first = np.ones(len(named), bool)  # of equal items of a person
    is_first[1:] = (person[1:] != person[:-1]) | (named[1:] != named[:-1])
    sizes = np.bincount(person[is_first], minlength=len(lengths))
    return HeldValues(np.arange(len(lengths) + 1), starts_of(sizes), named[is_first])


def _run_lengths(users: Integers) -> Integers:
    """How many rows each user has; a user's rows stand one after another."""
    begins = np.flatnonzero(np.diff(users, prepend=users[0] - 1))
    return np.diff(begins, append=len(users))


def shuffled(count: int, entropy: Entropy) -> Integers:
    """A uniform order of ``range(count)``, drawn; it depends on nothing else.

    An order by a hash of people's positions would not do: without one person, all who come after
    her have other positions, and so another order.
    """
    while True:
        words = entropy.words(count)
        order = np.argsort(words, kind="stable")
        if not (np.diff(words[order]) == 0).any():  # else some orders would be more likely
            return order.astype(np.int64)
