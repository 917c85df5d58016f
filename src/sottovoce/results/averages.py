"""Means and medians of numbers, of everybody or of a group, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.results.cells import quantile
from sottovoce.results.groups import (
    GroupSums,
    check_known,
    group_cells,
    share_error_of,
    sums_of,
    written_group,
)
from sottovoce.schema.attribute import Attribute, Single

if TYPE_CHECKING:
    from sottovoce.results.cells import Floats
    from sottovoce.results.group_answers import Group
    from sottovoce.results.groups import Marginal

Spans = Sequence[tuple[float, float]]  # of each value its smallest and its largest number
Ends = Callable[[float], tuple[float, float]]  # the interval of a level
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Average:
    """A mean or a median: a number with its error and intervals.

    >>> average = Average("mean", "age", {}, 41.5, 0.5, lambda level: (40.5, 42.5), 1000)
    >>> float(average), average.interval(0.95)
    (41.5, (40.5, 42.5))
    >>> print(average)
    mean age of everybody: 41.5 (40.5 to 42.5)
    """

    kind: str
    attribute: str
    group: Group
    value: float
    std_error: float
    ends: Ends = field(repr=False)
    people: int
    even_ends: Ends | None = field(default=None, repr=False)  # of numbers that are told in bins
    is_bound: bool = False  # whether errors are the largest there can be
    without: float | None = None  # whoever said so is left out

    def __float__(self) -> float:
        return self.value

    def interval(self, level: float = 0.95, *, evenly: bool = False) -> tuple[float, float]:
        """(low, high) of the true average of the people who answered.

        Of numbers that are told in bins it holds wherever in their bins people are, and is at least
        as wide as a bin; ``evenly`` takes them to be spread evenly inside.
        """
        return self.even_ends(level) if evenly and self.even_ends else self.ends(level)

    @property
    def is_binned(self) -> bool:
        """Whether numbers are told in bins."""
        return self.even_ends is not None

    @property
    def of(self) -> str:
        """Whose average it is, in words."""
        whose = written_group(self.group) if self.group else "everybody"
        return whose if self.without is None else f"{whose}, without {self.without:g}"

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        """Ready for JSON."""
        low, high = self.interval(level)
        even = self.interval(level, evenly=True)
        return {
            "average": self.kind,
            "attribute": self.attribute,
            "group": dict(self.group),
            **({} if self.without is None else {"without": self.without}),
            "value": self.value,
            "std_error": self.std_error,
            "low": low,
            "high": high,
            "is_bound": self.is_bound,
            "is_binned": self.is_binned,
            **({"even_low": even[0], "even_high": even[1]} if self.is_binned else {}),
        }

    def __str__(self) -> str:
        reach = span_text(self.interval())
        if self.is_binned:
            even = span_text(self.interval(evenly=True))
            reach += f", or {even} if people are spread evenly inside their bins"
        return f"{self.kind} {self.attribute} of {self.of}: {self.value:.4g} ({reach})"


def silent_number(attribute: Attribute) -> int | None:
    """The number that people without an answer report, if it has a bin of its own.

    >>> from sottovoce.schema import Ordinal
    >>> silent_number(Ordinal(-1, 97, bins=[-1, 0, 50], other=-1))
    -1
    """
    if not isinstance(attribute, Single):
        return None
    spans, other = attribute.spans() or (), attribute.other
    if not isinstance(other, int) or (other, other) not in spans:
        return None
    return other


def span_text(ends: tuple[float, float]) -> str:
    """An interval of numbers, in words."""
    return f"{ends[0]:.4g} to {ends[1]:.4g}"


def _group_sums(
    marginal: Marginal, attribute: str, spans: Spans, group: Group, without: int | None
) -> tuple[GroupSums, Spans]:
    """The shares of an attribute's values in a group, or of everybody, and their numbers.

    ``without``: the place of a value whose people are not in the group.
    """
    table, answers, (places,) = group_cells(marginal, attribute, [group])
    if without is None:
        sums = sums_of(table, places, share_error_of(marginal, group, table, places))
        if group:
            check_known(sums, group)
        return sums, spans
    kept = [place for place in range(len(places)) if place != without]
    places = [places[place] for place in kept]
    # no table but this one holds the group that is left
    sums = sums_of(table, places, share_error_of(marginal, {}, table, places))
    check_known(sums, {**group, attribute: [answers[place] for place in kept]})
    return sums, [spans[place] for place in kept]


@dataclass(frozen=True, eq=False)
class _Answers:
    """What an average is of: each number's share in a group, and its smallest and largest value.

    Attributes:
        sums: the shares, (values,).
        low: the smallest number of each value, (values,).
        high: the largest.
    """

    attribute: str
    group: Group
    sums: GroupSums
    low: Floats
    high: Floats
    without: float | None  # whoever said so is left out

    @classmethod
    def of(
        cls, marginal: Marginal, attribute: str, spans: Spans, group: Group, without: int | None
    ) -> _Answers:
        """Those of a group, or of everybody; ``without`` is the place of a value left out."""
        left_out = None if without is None else spans[without][0]
        sums, spans = _group_sums(marginal, attribute, spans, group, without)
        if len(spans) != len(sums.values):
            raise InvalidInput("attribute: the table does not list all its values")
        low, high = np.array(spans, dtype=float).T
        return cls(attribute, group, sums, low, high, left_out)

    def average(
        self, kind: str, value: float, std_error: float, ends: Ends, even_ends: Ends | None = None
    ) -> Average:
        """An average of these people."""
        return Average(
            kind,
            self.attribute,
            self.group,
            value,
            std_error,
            ends,
            self.sums.people,
            even_ends,
            self.sums.is_bound,
            self.without,
        )


def mean_of(
    marginal: Marginal, attribute: str, spans: Spans, group: Group, without: int | None = None
) -> Average:
    """The mean of an attribute's numbers, see :meth:`Estimate.mean`."""
    told = _Answers.of(marginal, attribute, spans, group, without)
    low, high = told.low, told.high
    middle = told.sums.ratio((low + high) / 2)
    lowest, highest = told.sums.ratio(low), told.sums.ratio(high)

    def ends(level: float) -> tuple[float, float]:
        # wherever in their bins people are; no mean lies outside all numbers
        bottom, top = lowest.interval(level)[0], highest.interval(level)[1]
        return max(bottom, float(low.min())), min(top, float(high.max()))

    even_ends = middle.interval if (low < high).any() else None
    return told.average("mean", middle.value, middle.std_error, ends, even_ends)


def median_of(
    marginal: Marginal, attribute: str, spans: Spans, group: Group, without: int | None = None
) -> Average:
    """The median of an attribute's numbers, see :meth:`Estimate.median`."""
    told = _Answers.of(marginal, attribute, spans, group, without)
    order = np.argsort(told.low, kind="stable")
    low, high = told.low[order], told.high[order]
    # the share of the people up to each value, (values,)
    below = []
    for place in range(len(order)):
        weights = np.zeros(len(order))
        weights[order[: place + 1]] = 1.0
        below.append(told.sums.ratio(weights))
    shares = np.array([ratio.value for ratio in below])
    place = int(np.argmax(shares >= HALF)) if (shares >= HALF).any() else len(shares) - 1

    def ends(level: float) -> tuple[float, float]:
        # values that may hold the half: fewer than it before them, not fewer with them
        bounds = np.array([ratio.interval(level) for ratio in below[:-1]])  # (values - 1, 2)
        may_be_below = np.append(True, bounds[:, 0] < HALF)
        may_reach = np.append(bounds[:, 1] >= HALF, True)
        held = np.flatnonzero(may_be_below & may_reach)
        first, last = min(int(held.min()), place), max(int(held.max()), place)
        return float(low[first]), float(high[last])

    bottom, top = ends(0.95)
    std_error = (top - bottom) / (2 * quantile(0.95))
    value = _inside(low[place], high[place], shares, place)
    return told.average("median", value, std_error, ends)


def _inside(low: float, high: float, shares: Any, place: int) -> float:
    """Where in its bin the half falls, if people are even there."""
    before = float(shares[place - 1]) if place else 0.0
    held = float(shares[place]) - before
    part = min(max((HALF - before) / held, 0.0), 1.0) if held > 0 and not isinf(held) else HALF
    return float(low + part * (high - low))
