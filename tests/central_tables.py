"""Small tables and sets that a curator may hold, and what people hold of them by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from sottovoce.central.method import EMPTY, MemoryTable

Tuple = tuple[tuple[int, int], ...]  # (attribute, code) of each value, ascending


def sets_table(people: Sequence[Sequence[int]], items: int) -> MemoryTable:
    """Sets of items, all of which are called by their number."""
    users = np.repeat(np.arange(len(people)), [len(each) for each in people])
    codes = np.array([item for each in people for item in each], np.int64).reshape(-1, 1)
    return MemoryTable(
        ("items",), (tuple(range(items)),), (False,), codes, users, len(people), True
    )


def rows_table(
    rows: Sequence[Sequence[int]], sizes: Sequence[int], users: Sequence[int] | None = None
) -> MemoryTable:
    """Rows of codes; each row is a person's own unless users are given."""
    codes = np.array(rows, np.int64).reshape(-1, len(sizes))
    owners = np.arange(len(codes)) if users is None else np.array(users, np.int64)
    names = tuple(f"a{index}" for index in range(len(sizes)))
    values = tuple(tuple(range(size)) for size in sizes)
    people = len(np.unique(owners))
    return MemoryTable(names, values, (False,) * len(sizes), codes, owners, people)


def held(table: MemoryTable, k: int) -> list[set[Tuple]]:
    """The different k-tuples of each person."""
    people: dict[int, set[Tuple]] = {int(user): set() for user in table.users}
    if table.is_sets:
        for user in people:
            own = sorted({int(code) for code in table.codes[table.users == user, 0]})
            people[user] = {tuple((0, item) for item in some) for some in combinations(own, k)}
        return list(people.values())
    for row, user in zip(table.codes, table.users, strict=True):
        cells = [(place, int(code)) for place, code in enumerate(row) if code != EMPTY]
        people[int(user)] |= set(combinations(cells, k))
    return list(people.values())


def counted(table: MemoryTable, k: int) -> Counter[Tuple]:
    """How many people hold each k-tuple."""
    return Counter(each for own in held(table, k) for each in own)
