"""What is asked for: the dimensions, and the selections that matter when methods are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from sottovoce.ground.arguments import share, whole, written
from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.queries.fitted import Term
from sottovoce.schema import Attribute, Boolean, Categorical, Integer, Ordinal, Schema

RANDOM = "random"  # a volume: both ends of a range are drawn
MEAN = "mean"  # in place of a volume: the mean of a dimension in order, over everybody
MAX_DIMENSION = 1 << 20  # values of one dimension
MAX_QUERY_DIMENSIONS = 16
TERMS_EACH = 48  # selections that stand for all of one volume and one number of dimensions
WORKLOAD_SEED = 7_13  # so that one workload is the same list for everybody


@dataclass(frozen=True)
class Dimension:
    """A whispered column: its name, how many codes it has, and whether they have an order."""

    name: str
    size: int
    is_ordered: bool

    @classmethod
    def of(cls, name: str, attribute: Attribute) -> Dimension:
        """The dimension of an attribute, if it can be one."""
        if not attribute.sensitive:
            raise InvalidInput(
                f"dimensions: attribute {name!r} is public, and needs no whisper: name it in public"
            )
        if not isinstance(attribute, Ordinal | Integer | Categorical | Boolean):
            raise InvalidInput(
                f"dimensions: attribute {name!r} must be ordinal, integer, categorical or boolean"
            )
        if attribute.size > MAX_DIMENSION:
            raise InvalidInput(
                f"dimensions: attribute {name!r} has {attribute.size:,} values, more than "
                f"{MAX_DIMENSION:,}: give it bins"
            )
        if attribute.size < 2:
            raise InvalidInput(f"dimensions: attribute {name!r} must have two values or more")
        return cls(name, attribute.size, isinstance(attribute, Ordinal | Integer))


@dataclass(frozen=True)
class QueryWorkload:
    """The selections that matter: ranges of these volumes, over so many dimensions at once.

    A volume is the share of all combinations of codes that a selection holds, or ``random`` for
    ranges whose ends are drawn. Of a dimension without an order one value is selected. ``mean``
    among the volumes says that means of dimensions matter too: coarse cells tell most of them.

    >>> QueryWorkload.of({"volumes": ["0.10", "random"], "dimensions": [1]}).to_json()
    {'volumes': ['0.1', 'random'], 'dimensions': [1]}
    """

    volumes: tuple[str, ...] = (RANDOM, MEAN)
    orders: tuple[int, ...] = (1, 2)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> QueryWorkload:
        """As a person, a survey or a plan writes it."""
        if not isinstance(given, Mapping) or not set(given) <= {"volumes", "dimensions"}:
            raise InvalidInput("workload must hold volumes and dimensions, and nothing else")
        volumes = given.get("volumes", cls.volumes)
        orders = given.get("dimensions", cls.orders)
        for part, listed in (("volumes", volumes), ("dimensions", orders)):
            if isinstance(listed, str) or not isinstance(listed, Sequence) or not listed:
                raise InvalidInput(f"workload: {part} must be a list that is not empty")
        return cls(
            tuple(_volume(each) for each in volumes),
            tuple(whole("workload: dimensions", each, 1, MAX_QUERY_DIMENSIONS) for each in orders),
        )

    @property
    def ranges(self) -> tuple[str, ...]:
        """The volumes of ranges; by errors of ranges methods are compared."""
        return tuple(each for each in self.volumes if each != MEAN) or (RANDOM,)

    @property
    def has_mean(self) -> bool:
        """Whether means of dimensions matter."""
        return MEAN in self.volumes

    def to_json(self) -> dict[str, Any]:
        """The inverse of :meth:`of`."""
        return {"volumes": list(self.volumes), "dimensions": list(self.orders)}

    def __str__(self) -> str:
        parts = " and ".join(str(order) for order in self.orders)
        volumes = ", ".join(
            "random ranges" if each == RANDOM else f"ranges of volume {each}"
            for each in self.ranges
        )
        means = "; means" if self.has_mean else ""
        return f"{volumes} over {parts} dimension{'s' if self.orders != (1,) else ''}{means}"


def _volume(given: Any) -> str:
    """A volume as a plan writes it."""
    if given in (RANDOM, MEAN):
        return str(given)
    found = share("workload: a volume", given)
    if found == 0:
        raise InvalidInput("workload: a volume (0) must be greater than 0")
    return str(written(found))


@dataclass(frozen=True)
class Target:
    """The dimensions of a question, and its workload."""

    dimensions: tuple[Dimension, ...]
    workload: QueryWorkload = QueryWorkload()

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], workload: QueryWorkload | None) -> Target:
        """The target of these attributes of a schema."""
        if not names:
            raise InvalidInput("dimensions must name one attribute or more")
        if len(names) > MAX_QUERY_DIMENSIONS:
            raise InvalidInput(f"dimensions ({len(names)}) must be at most {MAX_QUERY_DIMENSIONS}")
        for place, name in enumerate(names):
            if name in names[:place]:
                raise InvalidInput(f"dimensions: attribute {name!r} must be named once")
        dimensions = tuple(Dimension.of(name, schema[name]) for name in names)
        return cls(dimensions, QueryWorkload() if workload is None else workload)

    def __len__(self) -> int:
        return len(self.dimensions)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the dimensions, in order."""
        return tuple(each.name for each in self.dimensions)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each dimension has."""
        return tuple(each.size for each in self.dimensions)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Selections that stand for the workload, always the same ones."""
        draws = np.random.default_rng([WORKLOAD_SEED, *self.sizes])
        found: list[Term] = []
        orders = sorted({min(order, len(self)) for order in self.workload.orders})
        for order in orders:
            sets = list(combinations(range(len(self)), order))
            for volume in self.workload.ranges:
                for place in range(TERMS_EACH):
                    # every set of dimensions in turn
                    chosen = sets[place % len(sets)]
                    found.append(self.selection(chosen, volume, draws))
        return tuple(found)

    def selection(self, places: tuple[int, ...], volume: str, draws: np.random.Generator) -> Term:
        """A drawn range along each of some dimensions, or a drawn value."""
        # each of k ordered dimensions is cut to volume^(1/k)
        ordered = [place for place in places if self.dimensions[place].is_ordered]
        selection = {}
        for place in places:
            size = self.dimensions[place].size
            weights = np.zeros(size)
            if place not in ordered:
                weights[draws.integers(size)] = 1.0
            elif volume == RANDOM:
                first, last = np.sort(draws.integers(0, size, 2))
                weights[first : last + 1] = 1.0
            else:
                part = float(volume) ** (1 / len(ordered))
                length = min(max(round(size * part), 1), size)
                first = draws.integers(0, size - length + 1)
                weights[first : first + length] = 1.0
            selection[place] = weights
        return selection


def volume_of(term: Term) -> float:
    """The share of all combinations of codes that a selection holds; the mean of its weights."""
    return float(np.prod([np.mean(weights) for weights in term.values()]))
