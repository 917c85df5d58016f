"""Shares within a group: ratios of sums of cells, with intervals that know how these err together.

Of A people with an answer among G in the group (shares of all people) the ratio is r = A/G. It errs
by about (dA - r dG)/G, and its interval holds all r whose A - r G is no further from 0 than its
own error allows (Fieller): it grows as G nears the noise, and never ends too early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import parts
from sottovoce.oracles import Noise
from sottovoce.results.cells import CellLabel, Floats, Total, bounded_interval, quantile
from sottovoce.schema import Label

if TYPE_CHECKING:
    from sottovoce.results.estimate import Table
    from sottovoce.results.group_answers import Group

LEAST_SURE = 2.0  # standard errors that a group's own share must be from 0
SURE = 5.0  # below which a reader is warned that the group is hardly known
MAX_GROUP_VALUES = 200  # of an attribute: all pairs of sums are looked at
HALVINGS_OF_ENDS = 60  # of a range that holds an end of an interval

Marginal = Callable[..., "Table"]


@dataclass(frozen=True, eq=False)
class GroupSums:
    """The shares of all people that are in a group and gave each answer, and how these err.

    Attributes:
        values: of each answer, (answers,).
        std_errors: theirs, (answers,).
        covariance: how they err together, (answers, answers); None where only the most that they
            can err is known.
        share_error: the standard error of the group's own share.
        people: how many were heard, in the group and outside.
    """

    values: Floats
    std_errors: Floats
    covariance: Floats | None
    share_error: float
    people: int

    @property
    def share(self) -> float:
        """The group's own share of all people."""
        return float(self.values.sum())

    @property
    def is_bound(self) -> bool:
        """Whether errors are the largest there can be, since it is not known how cells err
        together.
        """
        return self.covariance is None

    def ratio(self, weights: Floats) -> Ratio:
        """The mean weight of the people in the group; of weights 1 and 0 a share."""
        return Ratio(self, weights)

    @cached_property
    def shares(self) -> list[Ratio]:
        """The share of each answer in the group."""
        return [self.ratio(unit) for unit in np.eye(len(self.values))]


@dataclass(frozen=True, eq=False)
class Ratio:
    """A weighted sum of a group's answers over the group's own share."""

    sums: GroupSums
    weights: Floats  # of each answer, (answers,)

    @property
    def value(self) -> float:
        return float(self.weights @ self.sums.values) / self.sums.share

    @property
    def std_error(self) -> float:
        """To first order."""
        return self.error_at(self.value) / abs(self.sums.share)

    def error_at(self, ratio: float) -> float:
        """The standard error of  sum_j (w_j - r) A_j,  or the most that it can be."""
        parts = self.weights - ratio
        if self.sums.covariance is not None:
            return sqrt(max(float(parts @ self.sums.covariance @ parts), 0.0))
        # |Cov| <= product of standard errors; any t may be taken off, for the group's own error
        #   sum_j |w_j - r - t| s_j + |t| s_G,  least where t is one of the parts
        tried = np.unique(np.append(parts, 0.0))
        apart = np.abs(parts[None] - tried[:, None]) @ self.sums.std_errors
        return float((apart + np.abs(tried) * self.sums.share_error).min())

    def interval(self, level: float) -> tuple[float, float]:
        """(low, high), which may be infinite where the group is hardly known."""
        reach = quantile(level)
        share = self.sums.share
        if share <= reach * self.sums.share_error:
            return -inf, inf
        if self.sums.covariance is None:
            return self._end(reach, -1), self._end(reach, 1)
        # (N - r G)^2 <= z^2 (s_NN - 2 r s_NG + r^2 s_GG)
        ones = np.ones(len(self.weights))
        crossed = self.sums.covariance @ ones
        top = float(self.weights @ self.sums.values)
        a = share**2 - reach**2 * float(ones @ crossed)
        b = top * share - reach**2 * float(self.weights @ crossed)
        own = float(self.weights @ self.sums.covariance @ self.weights)
        c = top**2 - reach**2 * own
        root = sqrt(max(b**2 - a * c, 0.0))
        return (b - root) / a, (b + root) / a

    def _end(self, reach: float, sign: int) -> float:
        """The end on one side, where no formula has it: by halving."""
        value, share = self.value, self.sums.share

        def is_inside(ratio: float) -> bool:
            return abs(value - ratio) * share <= reach * self.error_at(ratio)

        step = max(self.std_error, 1e-12)
        while is_inside(value + sign * step):
            step *= 2
            if step > 1e12:
                return sign * inf
        inside, outside = 0.0, step
        for _ in range(HALVINGS_OF_ENDS):
            middle = (inside + outside) / 2
            if is_inside(value + sign * middle):
                inside = middle
            else:
                outside = middle
        return value + sign * outside


@dataclass(frozen=True, eq=False)
class GroupSpread:
    """The spread of the shares within a group, which lie in [0, 1]."""

    sums: GroupSums

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """(low, high) of every answer's share."""
        ends = np.array([ratio.interval(level) for ratio in self.sums.shares])  # (answers, 2)
        return share_ends(ends[:, 0], ends[:, 1], level)

    def total(self, places: Sequence[int], value: float) -> Total:
        """The share of some answers together."""
        weights = np.zeros(len(self.sums.values))
        weights[list(places)] = 1.0
        ratio = self.sums.ratio(weights)

        def ends(level: float) -> tuple[float, float]:
            low, high = ratio.interval(level)
            bottom, top = share_ends(np.array(low), np.array(high), level)
            return float(bottom), float(top)

        return Total(value, ratio.std_error, self.sums.is_bound, ends)


def share_ends(low: Any, high: Any, level: float) -> tuple[Floats, Floats]:
    """Intervals of shares, those that reach everywhere included.

    >>> low, high = share_ends(np.array([-np.inf, 0.25]), np.array([np.inf, 0.5]), 0.95)
    >>> low.tolist(), high.tolist()
    ([0.0, 0.25], [1.0, 0.5])
    """
    return bounded_interval(np.clip(low, -9.0, 9.0), np.clip(high, -9.0, 9.0), level)


def group_table(marginal: Marginal, attribute: str, group: Group) -> Table:
    """The shares of an attribute's values within a group, see :meth:`Estimate.within`."""
    if not group:
        raise InvalidInput("group must name an attribute and its values; or ask for the marginal")
    table, labels, (places,) = group_cells(marginal, attribute, [group])
    sums = sums_of(table, places, share_error_of(marginal, group, table, places))
    check_known(sums, group)
    values = np.array([ratio.value for ratio in sums.shares])
    errors = np.array([ratio.std_error for ratio in sums.shares])
    return shown_as(table, attribute, labels, values, errors**2, sums, told_of(group, sums))


def shown_as(
    table: Table,
    attribute: str,
    labels: Sequence[Label],
    values: Floats,
    variances: Floats,
    sums: GroupSums,
    remark: str,
) -> Table:
    """The table of a group's answers, made like the table that holds the group."""
    return replace(
        table,
        attributes=(attribute,),
        labels=labels,
        values=values,
        variances=variances,
        people=max(1, round(sums.share * sums.people)),
        noise=Noise(float(variances.mean()), 0.0),
        is_unbiased=False,
        is_complete=True,
        law=None,
        sum_noise=None,
        spread=GroupSpread(sums),
        bias=None,
        off_list=None,
        remark="; ".join(filter(None, [remark, table.remark])),
    )


def told_of(group: Group, sums: GroupSums) -> str:
    """Who is in the group, how many, and whether that is known well."""
    sure = sums.share / max(sums.share_error, 1e-300)
    notes = [
        f"among {written_group(group)}, {sums.share:.1%} ± {sums.share_error:.1%} of "
        f"{sums.people:,} people"
    ]
    if sure < SURE:
        notes.append("the group is hardly larger than the noise")
    if sums.is_bound:
        notes.append("errors are the largest there can be")
    return "; ".join(notes)


def written_group(group: Group) -> str:
    """A group in words.

    >>> written_group({"smoker": True, "drinks": ["weekly", "daily"]})
    'smoker: yes, drinks: weekly or daily'
    """
    return ", ".join(
        f"{parts(name)[0]}: {' or '.join(parts(value)[0] for value in listed_values(values))}"
        for name, values in group.items()
    )


def listed_values(values: Any) -> list[Label]:
    """The values of a group, one or several."""
    return list(values) if isinstance(values, list | tuple | range) else [values]


def check_known(sums: GroupSums, group: Group) -> None:
    """Refuse a group whose own share cannot be told from noise: ratios would mean nothing."""
    if sums.share <= LEAST_SURE * sums.share_error:
        raise InvalidInput(
            f"group ({written_group(group)}) is too small to be told from noise: its share is "
            f"{sums.share:.2%} ± {sums.share_error:.2%} of the people"
        )


def group_cells(
    marginal: Marginal, attribute: str, groups: Sequence[Group]
) -> tuple[Table, list[Label], list[list[list[int]]]]:
    """The table that holds groups and answers, the answers, and the cells of each.

    Returns:
        (table, answers, cells): ``cells[g][j]`` are the places in the table of the people of group
        ``g`` who gave answer ``j``.
    """
    names = list(dict.fromkeys(name for group in groups for name in group))
    if attribute in names:
        raise InvalidInput(f"group: {attribute!r} is what is counted, and cannot make the group")
    table = marginal(*names, attribute)
    if table.unasked:
        raise InvalidInput(f"group: {table.unasked}")
    cells: list[tuple[Label, ...]] = [
        label if isinstance(label, tuple) and names else (label,)  # type: ignore[misc]
        for label in table.labels
    ]
    sides = [list(dict.fromkeys(side)) for side in zip(*cells, strict=True)]
    answers = sides[-1]
    if len(answers) > MAX_GROUP_VALUES:
        raise InvalidInput(
            f"attribute {attribute!r} has {len(answers):,} values, more than "
            f"{MAX_GROUP_VALUES}: bins would make them fewer"
        )
    place_of: dict[CellLabel, int] = {cell: place for place, cell in enumerate(cells)}
    found = []
    for group in groups:
        chosen = [_chosen(name, side, group) for name, side in zip(names, sides[:-1], strict=True)]
        found.append(
            [[place_of[(*cell, answer)] for cell in product(*chosen)] for answer in answers]
        )
    return table, answers, found


def _chosen(name: str, known: Sequence[Label], group: Group) -> list[Label]:
    """The values of one attribute that a group takes; all if it does not name the attribute."""
    if name not in group:
        return list(known)
    values = list(dict.fromkeys(listed_values(group[name])))
    for value in values:
        if value not in known:
            raise InvalidInput(f"group: a value of {name!r} is not in the table")
    if not values:
        raise InvalidInput(f"group: {name!r} must name a value")
    return values


def share_error_of(
    marginal: Marginal, group: Group, table: Table, places: Sequence[Sequence[int]]
) -> float:
    """The standard error of a group's own share, by the smallest table that holds it.

    Where cells' errors together are not known, that table knows more than the larger one.
    """
    everything = [place for answer in places for place in answer]
    together = table.total([table.labels[place] for place in everything])
    if not together.is_bound or not group:
        return together.std_error
    own = marginal(*group)
    chosen = [listed_values(values) for values in group.values()]
    labels: list[Any] = list(chosen[0]) if len(group) == 1 else list(product(*chosen))
    return min(together.std_error, own.total(labels).std_error)


def sums_of(table: Table, places: Sequence[Sequence[int]], share_error: float) -> GroupSums:
    """The sums of some sets of a table's cells, and how they err together."""
    values = np.array([table.values[list(each)].sum() for each in places])
    covariance, errors = covariances(table, places)
    if covariance is None and len(places) == 2:
        covariance = _of_two(errors, share_error)
    if covariance is not None:
        share_error = sqrt(max(float(covariance.sum()), 0.0))
    return GroupSums(values, errors, covariance, share_error, table.people)


def _of_two(errors: Floats, together: float) -> Floats:
    """How two sums err together, if it is known how each errs, and both in one."""
    # Var[a + b] = Var[a] + Var[b] + 2 Cov[a, b]
    most = float(errors[0] * errors[1])
    crossed = (together**2 - float((errors**2).sum())) / 2
    crossed = min(max(crossed, -most), most)
    return np.array([[errors[0] ** 2, crossed], [crossed, errors[1] ** 2]])


def covariances(table: Table, places: Sequence[Sequence[int]]) -> tuple[Floats | None, Floats]:
    """How sums over sets of cells, no cell in two of them, err together.

    Returns:
        (covariance, standard errors): (sets, sets), or None if it is not known; and (sets,).
    """
    labels = [[table.labels[place] for place in each] for each in places]
    alone = [table.total(each) for each in labels]
    errors = np.array([total.std_error for total in alone])
    is_bound = any(total.is_bound for total in alone)
    covariance = np.diag(errors**2)
    for one in range(len(labels)):
        for other in range(one):
            both = table.total(labels[one] + labels[other])
            if is_bound or both.is_bound:
                return None, errors
            # Cov[a, b] = (Var[a + b] - Var[a] - Var[b]) / 2
            crossed = (both.std_error**2 - errors[one] ** 2 - errors[other] ** 2) / 2
            covariance[one, other] = covariance[other, one] = crossed
    return covariance, errors
