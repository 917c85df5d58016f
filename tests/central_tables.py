"""Tables of a trusted curator for tests: people drawn with a seed, whose true counts are known; and
small tables and sets, and what people hold of them by brute force.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.accounting import Ledger
from sottovoce.central.method import EMPTY_CODE, MemoryTable, ReleaseTerms

Tuple = tuple[tuple[int, int], ...]  # (attribute, code) of each value, ascending


def tied_codes(sizes: Sequence[int], people: int, seed: int) -> NDArray[np.int64]:
    """People whose attributes go together: each looks at the one before in half of the cases."""
    draws = np.random.default_rng(seed)
    columns = [draws.integers(0, sizes[0], people)]
    for size in sizes[1:]:
        follows = draws.random(people) < 0.5
        own = np.minimum(draws.geometric(0.5, people) - 1, size - 1)
        columns.append(np.where(follows, columns[-1] % size, own))
    return np.stack(columns, axis=1)


def known_table(sizes: Sequence[int], codes: NDArray[np.int64]) -> MemoryTable:
    """A table whose attributes have public values, a row for each person."""
    names = tuple(f"a{place}" for place in range(len(sizes)))
    values = tuple(tuple(f"v{code}" for code in range(size)) for size in sizes)
    people = len(codes)
    return MemoryTable(names, values, (True,) * len(sizes), codes, np.arange(people), people)


def true_table(
    codes: NDArray[np.int64], sizes: Sequence[int], places: Sequence[int]
) -> NDArray[np.float64]:
    """The counts of some attributes, an axis for each."""
    shape = [sizes[place] for place in places]
    cells = np.ravel_multi_index([codes[:, place] for place in places], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)


def terms_of(epsilon: Any, up_to: int, delta: Any = "1e-6", **rest: Any) -> ReleaseTerms:
    """Terms as a person would type them."""
    neighbours = rest.pop("neighbours", "add-remove")
    return ReleaseTerms(Decimal(str(epsilon)), Decimal(str(delta)), up_to, neighbours, rest)


def ledger_of(terms: ReleaseTerms) -> Ledger:
    """A ledger with the budget of the terms."""
    return Ledger(terms.neighbours, epsilon=terms.epsilon, delta=terms.delta)


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
    is_known = (False,) * len(sizes)
    has_users = users is not None
    return MemoryTable(names, values, is_known, codes, owners, people, has_user_column=has_users)


def held(table: MemoryTable, k: int) -> list[set[Tuple]]:
    """The different k-tuples of each person."""
    people: dict[int, set[Tuple]] = {int(user): set() for user in table.users}
    if table.is_sets:
        for user in people:
            own = sorted({int(code) for code in table.codes[table.users == user, 0]})
            people[user] = {tuple((0, item) for item in some) for some in combinations(own, k)}
        return list(people.values())
    for row, user in zip(table.codes, table.users, strict=True):
        cells = [(place, int(code)) for place, code in enumerate(row) if code != EMPTY_CODE]
        people[int(user)] |= set(combinations(cells, k))
    return list(people.values())


def counted(table: MemoryTable, k: int) -> Counter[Tuple]:
    """How many people hold each k-tuple."""
    return Counter(each for own in held(table, k) for each in own)
