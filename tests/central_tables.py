"""Tables of a trusted curator for tests: people drawn with a seed, whose true counts are known."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.accounting import Ledger
from sottovoce.central.method import MemoryTable, ReleaseTerms


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
