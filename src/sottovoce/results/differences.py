"""Differences of shares: between two groups, or between two waves of a survey."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Noise
from sottovoce.results.averages import Ends
from sottovoce.results.cells import Floats, Total, quantile
from sottovoce.results.estimate import Table
from sottovoce.results.groups import (
    GroupSums,
    Ratio,
    check_known,
    covariances,
    group_cells,
    share_error_of,
    sums_of,
    told_of,
)

if TYPE_CHECKING:
    from sottovoce.results.group_answers import Group
    from sottovoce.results.groups import Marginal


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Table):
    """How much larger each share is on one side than on the other: from -1 to 1.

    It is a table as any other, whose values are differences; ``sampling`` is the variance that a
    sample of people adds to each, for ``interval(population=True)``.
    """

    sampling: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    def interval(self, level: float = 0.95, *, population: bool = False) -> tuple[Floats, Floats]:
        """(low, high) per difference; ``population``: both sides are samples of people."""
        low, high = super().interval(level)
        if population:
            drawn = quantile(level) * np.sqrt(self.sampling)
            low = np.maximum(self.values - np.hypot(self.values - low, drawn), -1)
            high = np.minimum(self.values + np.hypot(high - self.values, drawn), 1)
        return low, high

    def at(self, places: Any) -> Differences:
        """Some of its values, in the order given."""
        part = super().at(places)
        assert isinstance(part, Differences)
        return replace(part, sampling=self.sampling[places])


@dataclass(frozen=True, eq=False)
class DifferenceSpread:
    """The errors of the differences of two sides' shares.

    Attributes:
        sides: for any set of values the shares on both sides, and the covariance of their errors;
            None where it is not known.
        size: how many values there are.
    """

    sides: Callable[[Sequence[int]], tuple[Side, Side, float | None]]
    size: int

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """(low, high) of every value."""
        places = range(self.size)
        ends = np.array([difference_ends(*self.sides([place]), level) for place in places])
        return ends[:, 0], ends[:, 1]

    def total(self, places: Sequence[int], value: float) -> Total:
        """The difference of the shares of some values together."""
        one, other, covariance = self.sides(places)
        ends = partial(difference_ends, one, other, covariance)
        error = difference_error(one, other, covariance)
        return Total(value, error, covariance is None, ends)


@dataclass(frozen=True)
class Side:
    """One of the two shares: its value, its error, and its interval at any level."""

    value: float
    std_error: float
    ends: Ends

    @classmethod
    def of_ratio(cls, ratio: Ratio) -> Side:
        """A share within a group."""
        return cls(ratio.value, ratio.std_error, ratio.interval)


def difference_error(one: Side, other: Side, covariance: float | None) -> float:
    """The standard error of a difference; the largest there can be if the covariance is unknown."""
    if covariance is None:
        return one.std_error + other.std_error
    return sqrt(max(one.std_error**2 + other.std_error**2 - 2 * covariance, 0.0))


def difference_ends(
    one: Side, other: Side, covariance: float | None, level: float
) -> tuple[float, float]:
    """The interval of a difference, made of those of its sides, which need not be symmetric.

    Each end moves by the reaches of the two sides on that side, as errors of these sizes and this
    correlation add up (the method of variance estimates recovery).
    """
    (low, high), (other_low, other_high) = one.ends(level), other.ends(level)
    value = one.value - other.value
    product = one.std_error * other.std_error
    # not known: they may err in opposite ways
    correlation = -1.0 if covariance is None else covariance / product if product > 0 else 0.0
    correlation = min(max(correlation, -1.0), 1.0)
    below = _together(one.value - low, other_high - other.value, correlation)
    above = _together(high - one.value, other.value - other_low, correlation)
    return max(value - below, -1.0), min(value + above, 1.0)


def _together(one: float, other: float, correlation: float) -> float:
    """The reach of a difference, from those of its sides."""
    if not np.isfinite(one) or not np.isfinite(other):
        return np.inf
    return sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))


def group_differences(marginal: Marginal, attribute: str, one: Group, other: Group) -> Differences:
    """Differences between two groups, see :meth:`Estimate.compare`."""
    if not one or not other:
        raise InvalidInput("group must name an attribute and its values, on both sides")
    table, answers, (first, second) = group_cells(marginal, attribute, [one, other])
    if {place for each in first for place in each} & {place for each in second for place in each}:
        raise InvalidInput("groups must not share people: name values of which nobody has both")
    sides = [
        sums_of(table, places, share_error_of(marginal, group, table, places))
        for group, places in ((one, first), (other, second))
    ]
    for sums, group in zip(sides, (one, other), strict=True):
        check_known(sums, group)
    covariance, _ = covariances(table, [*first, *second])
    both = None if covariance is None else covariance[: len(answers), len(answers) :]
    spread = DifferenceSpread(partial(_group_sides, sides[0], sides[1], both), len(answers))
    ratios = [sums.shares for sums in sides]
    values = np.array([a.value - b.value for a, b in zip(*ratios, strict=True)])
    errors = [difference_error(*spread.sides([place])) for place in range(len(answers))]
    sampling = sum(_sampling(sums) for sums in sides)
    remark = "; less those ".join(
        told_of(group, sums) for sums, group in zip(sides, (one, other), strict=True)
    )
    return differences_like(
        table, (attribute,), answers, values, np.array(errors) ** 2, spread, sampling, remark
    )


def wave_differences(before: Table, after: Table) -> Differences:
    """What changed from one wave's table to another's, see :meth:`Estimate.change_since`."""
    if list(before.labels) != list(after.labels):
        raise InvalidInput(
            f"change: the values of {', '.join(after.attributes)} are not the same in both waves"
        )
    for table in (before, after):
        if table.unasked:
            raise InvalidInput(f"change: {table.unasked}")
    variances = after.variances + before.variances
    spread = DifferenceSpread(partial(_wave_sides, before, after), len(after))
    sampling = sum(
        np.clip(table.values, 0, 1) * (1 - np.clip(table.values, 0, 1)) / table.people
        for table in (before, after)
    )
    remark = f"{after.people:,} people now, {before.people:,} before"
    names, labels, values = after.attributes, list(after.labels), after.values - before.values
    return differences_like(after, names, labels, values, variances, spread, sampling, remark)


def _wave_sides(
    before: Table, after: Table, places: Sequence[int]
) -> tuple[Side, Side, float | None]:
    """The shares of some values in both waves; coins are independent, so errors are too."""
    totals = [table.total([table.labels[place] for place in places]) for table in (after, before)]
    now, then = (Side(float(total), total.std_error, total.interval) for total in totals)
    return now, then, 0.0


def differences_like(
    table: Table,
    attributes: tuple[str, ...],
    labels: Sequence[Any],
    values: Floats,
    variances: Floats,
    spread: DifferenceSpread,
    sampling: Any,
    remark: str,
) -> Differences:
    """Differences, marked as the table that they come from is."""
    return Differences(
        attributes,
        labels,
        values,
        variances,
        table.people,
        Noise(float(variances.mean()), 0.0),
        is_unbiased=False,
        method=table.method,
        is_complete=False,  # they do not add up to one
        is_reconstructed=table.is_reconstructed,
        errors=table.errors,
        never_asked=table.never_asked,
        partly_heard=table.partly_heard,
        remark=remark,
        spread=spread,
        sampling=np.asarray(sampling),
    )


def _group_sides(
    one: GroupSums, other: GroupSums, crossed: Floats | None, places: Sequence[int]
) -> tuple[Side, Side, float | None]:
    """The shares of some answers in both groups, and how they err together."""
    weights = np.zeros(len(one.values))
    weights[list(places)] = 1.0
    ratios = (one.ratio(weights), other.ratio(weights))
    covariance = None
    if crossed is not None:
        # to first order  r = sum_j (w_j - r) A_j / G  on both sides
        parts = [weights - ratio.value for ratio in ratios]
        covariance = float(parts[0] @ crossed @ parts[1]) / (one.share * other.share)
    return Side.of_ratio(ratios[0]), Side.of_ratio(ratios[1]), covariance


def _sampling(sums: GroupSums) -> Floats:
    """What a sample of people adds to the variance of each share in a group."""
    # f (1 - f) / n, of the people in the group
    shares = np.clip([ratio.value for ratio in sums.shares], 0, 1)
    return np.asarray(shares * (1 - shares) / max(1.0, sums.share * sums.people))
