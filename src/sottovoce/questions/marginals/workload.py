"""What a marginals question asks for: the attributes, their sizes, and the tables that matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.schema import Items, Schema

Integers = NDArray[np.int64]
Places = tuple[int, ...]  # a set of attributes, by their places in the workload, increasing
MOST_SAMPLED = 2000  # tables that stand for a workload that has more


@dataclass(frozen=True)
class Workload:
    """Tables over the attributes ``names`` of ``sizes``: ``sets``, or all of ``order`` attributes.

    >>> Workload(("a", "b", "c"), (2, 2, 3), 2).count
    3
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    order: int
    sets: tuple[Places, ...] | None = None

    @classmethod
    def of(
        cls,
        schema: Schema,
        names: Sequence[str] | None,
        order: int,
        sets: Sequence[Sequence[str]] | None = None,
    ) -> Workload:
        """The workload of some attributes of a schema; all that can be whispered by default."""
        if names is None:
            chosen = tuple(
                name
                for name, each in schema.items()
                if each.sensitive and not each.is_open and not isinstance(each, Items)
            )
        else:
            chosen = tuple(names)
        if len(set(chosen)) < len(chosen) or not chosen:
            raise InvalidInput("attributes must be one or more different names")
        for name in chosen:
            _check(schema, name)
        if order > len(chosen):
            raise InvalidInput(
                f"up_to ({order}) must be at most the number of attributes ({len(chosen)})"
            )
        places = {name: place for place, name in enumerate(chosen)}
        listed = None
        if sets is not None:
            unknown = [name for each in sets for name in each if name not in places]
            if unknown:
                raise InvalidInput(
                    f"workload: attribute {unknown[0]!r} is not one of the question's"
                )
            listed = tuple(
                dict.fromkeys(tuple(sorted({places[name] for name in each})) for each in sets)
            )
            if not listed or any(not 1 <= len(each) <= order for each in listed):
                raise InvalidInput(f"workload must be sets of 1 to {order} attributes")
        return cls(chosen, tuple(schema[name].size for name in chosen), order, listed)

    @property
    def count(self) -> int:
        """How many tables there are."""
        return comb(len(self.names), self.order) if self.sets is None else len(self.sets)

    @cached_property
    def sample(self) -> tuple[Places, ...]:
        """All tables, or some drawn from too many to list; the same ones every time."""
        if self.sets is not None:
            return self.sets
        every = range(len(self.names))
        if self.count <= MOST_SAMPLED:
            return tuple(combinations(every, self.order))
        draws = np.random.Generator(np.random.PCG64(self.order))
        sets = random_sets(len(every), self.order, MOST_SAMPLED, draws)
        return tuple(tuple(places) for places in sets.tolist())

    @cached_property
    def sample_cells(self) -> tuple[int, ...]:
        """How many cells each table of the sample has."""
        return tuple(self.cells(each) for each in self.sample)

    @cached_property
    def mean_cells(self) -> float:
        """How many cells a table has, on average."""
        return sum(self.sample_cells) / len(self.sample)

    @cached_property
    def parts(self) -> tuple[Places, ...]:
        """The attributes inside the tables, then the pairs of attributes inside them.

        >>> Workload(("a", "b", "c"), (2, 2, 3), 2, ((0, 2), (1,))).parts
        ((0,), (1,), (2,), (0, 2))
        """
        tables = self.sets
        if tables is None:
            everything = tuple(range(len(self.names)))
            tables = (everything,) if self.order > 1 else tuple((place,) for place in everything)
        singles = {(place,) for table in tables for place in table}
        pairs = {pair for table in tables for pair in combinations(table, 2)}
        return (*sorted(singles), *sorted(pairs))

    def all_sets(self, order: int, most: int) -> tuple[Places, ...]:
        """Every set of so many attributes; refused beyond ``most`` of them."""
        if comb(len(self.names), order) > most:
            raise InvalidInput(
                f"there are {comb(len(self.names), order)} sets of {order} attributes, more than "
                f"{most}"
            )
        return tuple(islice(combinations(range(len(self.names)), order), most))

    def shape(self, places: Places) -> tuple[int, ...]:
        return tuple(self.sizes[place] for place in places)

    def cells(self, places: Places) -> int:
        return prod(self.shape(places))

    def attributes(self, places: Places) -> tuple[str, ...]:
        return tuple(self.names[place] for place in places)

    def places(self, names: Sequence[str]) -> Places:
        """The places of some attributes, in the order given."""
        known = {name: place for place, name in enumerate(self.names)}
        for name in names:
            if name not in known:
                raise InvalidInput(
                    f"attribute {name!r} is not in the plan (it has: {', '.join(self.names)})"
                )
        if not names or len(set(names)) < len(names):
            raise InvalidInput("a marginal must have one or more different attributes")
        return tuple(known[name] for name in names)


def random_sets(points: int, size: int, count: int, draws: np.random.Generator) -> Integers:
    """Random sets of ``size`` points, some of them perhaps alike.

    The same sets, and the same generator afterwards, as by ``count`` calls of
    ``draws.choice(points, size, replace=False)``, in a fraction of the time.

    Returns:
        Increasing points, (count, size).
    """
    # Floyd's algorithm: the j-th point is drawn from 0 ... v - s + j; if it is there already, the
    # last of these numbers is taken, which cannot be there yet
    last = np.arange(points - size, points)
    order = np.arange(size - 1, 0, -1)  # ``choice`` draws the order as well, which sets have not
    limits = np.broadcast_to(np.concatenate([last, order]), (count, 2 * size - 1))
    numbers = draws.integers(0, limits, endpoint=True)
    members = numbers[:, :size]
    for column in range(1, size):
        before = members[:, :column]
        is_there = (before == members[:, column, None]).any(axis=1)
        members[is_there, column] = last[column]
    return np.sort(members, axis=1)


def _check(schema: Schema, name: str) -> None:
    attribute = schema[name]
    if isinstance(attribute, Items):
        raise InvalidInput(
            f"attribute {name!r} is a set of items; Marginals takes attributes of a single value"
        )
    if attribute.is_open:
        raise InvalidInput(
            f"attribute {name!r} is an open alphabet; Marginals takes attributes whose values are "
            "known"
        )
    if not attribute.sensitive:
        raise InvalidInput(f"attribute {name!r} is public; only sensitive attributes are whispered")
