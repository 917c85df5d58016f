"""People whose dimensions and public numbers are known, and selections drawn at random."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.measure.populations import Column, plain_column, read_arrow
from sottovoce.measure.runs import seeded
from sottovoce.questions.queries.fitted import Term
from sottovoce.questions.queries.target import MAX_DIMENSION, Target
from sottovoce.schema import Attribute, Categorical, Number, Ordinal, Schema

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

MAX_PLAIN_RANGE = 1 << 12  # values of a column of whole numbers that is taken as it is
MAX_TRUTH_CELLS = 1 << 22  # of a table from which the truth is read, if all fit into it
MEASURE_STEPS = 1 << 20  # a measure is rounded to so many steps of its largest absolute value
PEOPLE_DRAWS, QUERY_DRAWS, WHISPER_DRAWS = range(3)  # what a seed is for


@dataclass(frozen=True, eq=False)
class QueryPopulation:
    """People by the codes of their dimensions, with a public number beside if one was asked for.

    Attributes:
        source: a name, which is part of every seed: two sources never share their noise.
        columns: by dimension what it is and everybody's code.
        measure: a number for each row, or None.
        counts: how many people each row stands for; one by default.

    >>> ages = Column(Ordinal(0, 3), np.array([0, 1, 1, 3]))
    >>> QueryPopulation("ages", {"age": ages}).people
    4
    """

    source: str
    columns: Mapping[str, Column]
    measure: Floats | None = None
    counts: Whole | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidInput("dimensions must name one column or more")
        lengths = {len(column.codes) for column in self.columns.values()}
        for other in (self.measure, self.counts):
            if other is not None:
                lengths.add(len(other))
        if len(lengths) > 1 or not lengths.pop():
            raise InvalidInput("table: columns must have equal lengths, and at least one row")

    @property
    def people(self) -> int:
        """How many the table holds."""
        first = next(iter(self.columns.values()))
        return len(first.codes) if self.counts is None else int(self.counts.sum())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @cached_property
    def schema(self) -> Schema:
        """The dimensions, and the measure in whole steps; it is called as :attr:`measured` says."""
        attributes: dict[str, Attribute] = {
            name: column.attribute for name, column in self.columns.items()
        }
        if self.measure is not None:
            attributes[self.measured] = Number(
                -MEASURE_STEPS, MEASURE_STEPS, step=1, sensitive=False
            )
        return Schema(**attributes)

    @property
    def measured(self) -> str:
        """What the measure is called in a plan: no dimension has this name."""
        name = "measure"
        while name in self.columns:
            name += "_"
        return name

    def sampled(self, people: int, seed: int, run: int) -> QueryCrowd:
        """People drawn with replacement."""
        draws = seeded(seed, run, PEOPLE_DRAWS, zlib.crc32(self.source.encode()))
        if self.counts is None:
            rows = draws.integers(0, self.people, people)
        else:
            times = draws.multinomial(people, self.counts / self.counts.sum())
            rows = np.repeat(np.arange(len(times)), times)
        columns = {name: column.codes[rows] for name, column in self.columns.items()}
        steps = None
        if self.measure is not None:
            largest = float(np.abs(self.measure).max())
            scale = MEASURE_STEPS / largest if largest else 1.0
            steps = np.rint(self.measure[rows] * scale).astype(np.int64)
        sizes = tuple(column.attribute.size for column in self.columns.values())
        return QueryCrowd(columns, steps, sizes)


@dataclass(frozen=True, eq=False)
class QueryCrowd:
    """The people of one run: their codes, and their measure in whole steps if there is one."""

    columns: Mapping[str, Whole]
    measure: Whole | None
    sizes: tuple[int, ...]  # how many codes each dimension has

    def table(self, measured: str) -> dict[str, Any]:
        """As a simulation reads it."""
        own = {} if self.measure is None else {measured: self.measure}
        return {**self.columns, **own}

    def truth(self, terms: Sequence[Term]) -> Floats:
        """The true share of each selection: of people, or of the measure's absolute total."""
        codes = list(self.columns.values())
        weights = np.ones(len(codes[0])) if self.measure is None else self.measure.astype(float)
        total = float(np.abs(weights).sum()) or 1.0
        if prod(self.sizes) <= MAX_TRUTH_CELLS:
            cells = np.ravel_multi_index(tuple(codes), self.sizes)
            flat = np.asarray(np.bincount(cells, weights, prod(self.sizes)), np.float64)
            table = flat.reshape(self.sizes)
            return np.array([_selected(table, term) for term in terms]) / total
        found = []
        for term in terms:
            inside = weights
            for axis, chosen in term.items():
                inside = inside * chosen[codes[axis]]
            found.append(float(inside.sum()))
        return np.array(found) / total


def _selected(table: Floats, term: Term) -> float:
    """What a weighted selection holds of a table over all dimensions."""
    left = table
    for axis in reversed(range(table.ndim)):  # the last one first, so that others keep their place
        chosen = term.get(axis)
        left = left.sum(axis=axis) if chosen is None else left @ chosen
    return float(left)


def random_terms(
    target: Target, order: int, volume: str, count: int, draws: np.random.Generator
) -> list[Term]:
    """``count`` selections of a volume, each of ``order`` dimensions drawn at random."""
    found = []
    for _ in range(count):
        chosen = np.sort(draws.choice(len(target), order, replace=False))
        found.append(target.selection(tuple(chosen.tolist()), volume, draws))
    return found


# -- tables


def read_query_population(
    path: Path, dimensions: Sequence[str], measure: str | None = None
) -> QueryPopulation:
    """The people of a CSV or Parquet file.

    Args:
        path: one row for each person.
        dimensions: columns, with a number of equal-width bins as in ``age:64``. Without one a
            column of text has its categories, and one of whole numbers all from its least to its
            largest.
        measure: a column of numbers that is not sensitive.
    """
    table = read_arrow(path, as_text=False)
    columns = {}
    for text in dimensions:
        name, _, size = text.partition(":")
        if name in columns:
            raise InvalidInput(f"dimensions: attribute {name!r} must be named once")
        values = plain_column(table, name)
        columns[name] = dimension_column(name, values, size or None)
    numbers = None
    if measure is not None:
        if measure in columns:
            raise InvalidInput(f"measure: attribute {measure!r} is a dimension")
        numbers = _numbers(measure, plain_column(table, measure)).astype(float)
    return QueryPopulation(path.stem, columns, numbers)


def dimension_column(name: str, values: NDArray[Any], size: str | int | None) -> Column:
    """A dimension of a column: equal-width bins, its whole numbers, or its categories.

    >>> dimension_column("x", np.array([0.0, 0.4, 1.0]), 4).codes.tolist()
    [0, 1, 3]
    >>> dimension_column("x", np.array([18, 20, 21]), None).attribute
    Ordinal(sensitive=True, low=0, high=3, bins=None)
    """
    if size is not None:
        try:
            bins = whole("bins", int(size), 2, MAX_DIMENSION)
        except ValueError as wrong:
            if isinstance(wrong, InvalidInput):
                raise
            raise InvalidInput(
                f"dimensions ({name}:{size}) must be names, or names with a number of bins, such "
                f"as {name}:64"
            ) from None
        return Column(Ordinal(0, bins - 1), equal_width(_numbers(name, values), bins), True)
    if values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if not 1 <= high - low < MAX_PLAIN_RANGE:
            raise InvalidInput(
                f"attribute {name!r} spans {high - low + 1:,} whole numbers: give a number of "
                f"bins, such as {name}:64"
            )
        return Column(Ordinal(0, high - low), values.astype(np.int64) - low)
    if values.dtype.kind == "f":
        raise InvalidInput(
            f"attribute {name!r} holds numbers: give a number of bins, such as {name}:64"
        )
    labels, codes = np.unique(values.astype(str), return_inverse=True)
    if not 2 <= len(labels) <= MAX_PLAIN_RANGE:
        raise InvalidInput(
            f"attribute {name!r} has {len(labels):,} different values, and must have 2 to "
            f"{MAX_PLAIN_RANGE:,}"
        )
    return Column(Categorical(range(len(labels))), codes.astype(np.int64))


def equal_width(values: NDArray[Any], bins: int) -> Whole:
    """The bin of each number, of ``bins`` that are equally wide from the least to the largest.

    >>> equal_width(np.array([10, 11, 12, 13]), 2).tolist()
    [0, 0, 1, 1]
    """
    low, high = values.min(), values.max()
    if values.dtype.kind in "iu":
        # whole numbers are as wide as one: low .. high has high - low + 1 of them
        return np.asarray((values.astype(np.int64) - int(low)) * bins // (int(high) - int(low) + 1))
    if high == low:
        return np.zeros(len(values), np.int64)
    place = np.floor((values - low) / (high - low) * bins).astype(np.int64)
    return np.asarray(np.minimum(place, bins - 1))


def _numbers(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """A column of finite numbers, or one clear error."""
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise InvalidInput(f"attribute {name!r}: the column must hold finite numbers")
    return values
