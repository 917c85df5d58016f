"""Weights for people who did not answer: raking on public columns, and the variance it costs.

If the young answer less often than others, shares of all answers are not shares of the population.
Where public columns travel beside the reports, and the population's shares of their values are
known, each report gets a weight so that the answers' shares agree with those. Weights make no
report more private or less: they are post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.aggregate import fold
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.oracles import Noise
from sottovoce.questions.marginals.method import Fit
from sottovoce.questions.marginals.workload import Places
from sottovoce.results.cells import Total
from sottovoce.results.estimate import Estimate, Floats, Table
from sottovoce.results.joint import JointEstimate

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.reports import Reports

Margins = Mapping[str, Mapping[Any, Any]]  # by public column the population's share of each value
WEIGHT_UNIT = 1 << 16  # the weight of a report that counts once
MAX_FITTINGS = 1000  # of fitting one column after the other
MARGIN_FITS = 1e-10  # of the largest relative error of a margin
SHARE_ROUNDING = 0.02  # that shares may be off 1, as rounded ones are


@dataclass(frozen=True, eq=False)
class Raked:
    """Reports with weights that make them look like the population.

    Attributes:
        plan: of the reports.
        reports: one row for each person.
        weights: whole numbers beside them; ``WEIGHT_UNIT`` counts once.
    """

    plan: Plan
    reports: Reports
    weights: NDArray[np.int64]

    @property
    def people(self) -> int:
        """How many answered."""
        return len(self.weights)

    @property
    def effective_people(self) -> float:
        """So many people without weights would err as much: (sum w)^2 / sum w^2."""
        weights = self.weights.astype(float)
        return float(weights.sum() ** 2 / (weights**2).sum())

    @property
    def cost(self) -> float:
        """How many times the variance is that of as many answers without weights."""
        return self.people / self.effective_people

    @property
    def largest(self) -> float:
        """How often the rarest answer counts."""
        return float(self.weights.max()) * self.people / float(self.weights.sum())

    def __str__(self) -> str:
        return (
            f"weighted: {self.people:,} answers err as {self.effective_people:,.0f} without "
            f"weights would (variances times {self.cost:.2f}); one counts up to "
            f"{self.largest:.1f} times"
        )

    def estimate(self) -> Estimate:
        """What the population says, as far as the weights make the answers like it."""
        total = fold(self.plan, self.reports, self.weights)
        found = total.estimate()
        if found.is_part or self.plan.question.answers_sql:
            raise InvalidInput(
                f"rake: weights are for shares and marginals, not for {self.plan.question.kind}"
            )
        # a variance is stated for as many people as there is weight:  times  sum w^2 / sum w
        weights = self.weights.astype(float)
        factor = float((weights**2).sum() / weights.sum())
        people = max(1, round(self.effective_people))
        if isinstance(found, JointEstimate):
            _check_unbiased(found.fit.is_unbiased((0,)), found.method)
            return found.refitted(_WeightedFit(found.fit, factor, str(self)), people)
        tables = {
            names: _weighted_table(table, factor, people, str(self))
            for names, table in found.tables.items()
        }
        return replace(found, tables=tables, people=people)


def rake(plan: Plan, reports: Reports, margins: Margins) -> Raked:
    """Weights that make the answers' shares of public columns those of the population.

    One column after the other is fitted, again and again, until all agree (raking, or iterative
    proportional fitting). Only columns that travel in clear beside the whisper can be used: of
    what is whispered nobody knows whose report is whose.

    Args:
        plan: of the reports, with public columns.
        reports: one row for each person; an aggregate no longer knows who is who.
        margins: by public column the share of each value in the population.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(tea=sv.Boolean(), state=sv.Categorical(["NY", "WA"], sensitive=False))
    >>> plan = sv.plan(schema, sv.Frequencies("tea"), epsilon=2.0, people=1000, public=["state"])
    >>> people = {"tea": [True, False] * 500, "state": ["NY"] * 800 + ["WA"] * 200}
    >>> raked = rake(plan, sv.simulate(plan, people, seed=1), {"state": {"NY": 0.5, "WA": 0.5}})
    >>> round(raked.effective_people), round(raked.cost, 2), round(raked.largest, 2)
    (640, 1.56, 2.5)
    """
    if reports.plan_id != plan.id:
        raise PlanMismatch("rake: the reports belong to another plan")
    if not plan.columns:
        raise InvalidInput(
            "rake: this plan has no public columns, and of whispers nobody knows whose is whose; "
            "name some when the survey is planned (public = [...])"
        )
    if not margins:
        raise InvalidInput("rake: margins must name a public column and the shares of its values")
    if not len(reports):
        raise InvalidInput("rake: there are no reports")
    columns = [_column(plan, reports, name, wanted) for name, wanted in margins.items()]
    weights = _fitted(columns, list(margins))
    whole = np.maximum(np.rint(weights * WEIGHT_UNIT), 0).astype(np.int64)
    return Raked(plan, reports, whole)


@dataclass(frozen=True, eq=False)
class _RakedColumn:
    """A public column: which value each person has, and the shares that are wanted."""

    places: NDArray[np.int64]  # (people,)
    wanted: Floats  # (values,)


def _column(plan: Plan, reports: Reports, name: str, wanted: Mapping[Any, Any]) -> _RakedColumn:
    if name not in plan.columns:
        raise InvalidInput(
            f"rake: {name!r} is not one of the plan's public columns ({', '.join(plan.columns)})"
        )
    attribute = plan.schema[name]
    if attribute.is_open or attribute.size > len(reports) + 1000:
        raise InvalidInput(f"rake: public column {name!r} has too many values")
    stored, owners = np.unique(reports.public[name].values, return_inverse=True)
    labels = attribute.labels()
    said = [str(labels[attribute.code(value)]) for value in stored.tolist()]
    shares = _shares(name, wanted)
    known = {str(label) for label in labels}
    for value in shares:
        if value not in known:
            raise InvalidInput(f"rake: {value!r} is no value of public column {name!r}")
    for value in said:
        if value not in shares:
            raise InvalidInput(f"rake: the share of a value of {name!r} is missing: {value}")
    for value, share in shares.items():
        if share > 0 and value not in said:
            raise InvalidInput(
                f"rake: nobody who answered has {name!r} {value!r}; merge it with another value"
            )
    values = list(shares)
    place = np.array([values.index(each) for each in said], dtype=np.int64)
    return _RakedColumn(place[owners.ravel()], np.array(list(shares.values())))


def _shares(name: str, wanted: Mapping[Any, Any]) -> dict[str, float]:
    """The shares by value, which add up to 1."""
    shares: dict[str, float] = {}
    for value, share in wanted.items():
        number = float(share)
        if not 0 <= number <= 1:
            raise InvalidInput(f"rake: share ({share}) of {name!r} must lie between 0 and 1")
        shares[str(value)] = number
    total = sum(shares.values())
    if abs(total - 1) > SHARE_ROUNDING:
        raise InvalidInput(f"rake: the shares of {name!r} add up to {total:.4g}, not to 1")
    return {value: share / total for value, share in shares.items()}


def _fitted(columns: Sequence[_RakedColumn], names: Sequence[str]) -> Floats:
    """A weight for each person, 1 on average, (people,)."""
    people = len(columns[0].places)
    weights = np.ones(people)
    off = 0.0
    for _ in range(MAX_FITTINGS):
        off = 0.0
        for column in columns:
            held = np.bincount(column.places, weights, len(column.wanted)) / weights.sum()
            factors = np.divide(
                column.wanted, held, out=np.zeros_like(held), where=held > 0
            )  # (values,)
            off = max(off, float(np.abs(held - column.wanted).max()))
            weights = weights * factors[column.places]
        if off < MARGIN_FITS:
            return np.asarray(weights * people / weights.sum())
    raise InvalidInput(
        f"rake: no weights fit {', '.join(names)} together (off by {off:.2g} after {MAX_FITTINGS} "
        "rounds); the answers lack people who have some values together"
    )


def _weighted_table(table: Table, factor: float, people: int, remark: str) -> Table:
    """A table whose errors are those of weighted reports."""
    _check_unbiased(table.is_unbiased, table.method)
    off_list = table.off_list
    if off_list is not None:
        off_list = Total(float(off_list), off_list.std_error * sqrt(factor), off_list.is_bound)
    sum_noise = table.sum_noise
    return replace(
        table,
        variances=table.variances * factor,
        noise=_times(table.noise, factor),
        sum_noise=None if sum_noise is None else lambda count: _times(sum_noise(count), factor),
        people=people,
        law=None,  # it counts reports
        off_list=off_list,
        remark="; ".join(filter(None, [remark, table.remark])),
    )


def _times(noise: Noise, factor: float) -> Noise:
    return Noise(noise.floor * factor, noise.slope * factor)


def _check_unbiased(is_unbiased: bool, method: str) -> None:
    if not is_unbiased:
        raise InvalidInput(
            f"rake: {method} takes weights for so many people, and would trust them too much; "
            "weights need frequencies or an unbiased method, such as inp-ht or efron-stein"
        )


class _WeightedFit(Fit):
    """A fit of weighted reports: its tables, and its variances times what the weights cost."""

    def __init__(self, fit: Fit, factor: float, remark: str) -> None:
        self._fit = fit
        self._factor = factor
        self._remark = remark
        self.errors = fit.errors  # type: ignore[misc]

    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        return self._fit.tables(sets)

    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        return [each * self._factor for each in self._fit.variances(sets)]

    def sum_variance(self, places: Places, cells: NDArray[np.int64]) -> float | None:
        variance = self._fit.sum_variance(places, cells)
        return None if variance is None else variance * self._factor

    def is_unbiased(self, places: Places) -> bool:
        return self._fit.is_unbiased(places)

    def is_reconstructed(self, places: Places) -> bool:
        return self._fit.is_reconstructed(places)

    def remark(self, places: Places) -> str:
        return "; ".join(filter(None, [self._remark, self._fit.remark(places)]))

    def is_heard(self, part: Places) -> bool:
        return self._fit.is_heard(part)

    def heard_share(self, part: Places) -> float:
        return self._fit.heard_share(part)
