"""The estimate of a queries question: the count of any selection, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.aggregation.aggregate import fold
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Noise
from sottovoce.protocol.reports import Reports
from sottovoce.questions.method import Options
from sottovoce.questions.queries.evidence import Floats, cohort_squares, evidence_of
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.method import QueryMethod
from sottovoce.questions.queries.spreads import JointSpread
from sottovoce.questions.queries.target import Dimension, Target
from sottovoce.results.estimate import Estimate, Table
from sottovoce.results.words import CLOSED_FORM
from sottovoce.schema import Attribute, Integer, Ordinal, Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.protocol.plan import Plan

MAX_SHOWN_CELLS = 1 << 12  # of a table that is shown, whose covariances are all computed

__all__ = ["CountAnswer", "QueryEstimate", "evidence_of"]


@dataclass(frozen=True, eq=False)
class CountAnswer:
    """An estimated number, its standard error, and intervals of any level.

    >>> answer = CountAnswer(Joint(np.array([120.0]), np.array([[100.0]])))
    >>> answer.value, answer.std_error
    (120.0, 10.0)
    >>> [round(end, 1) for end in answer.interval(0.95)]
    [100.4, 139.6]
    """

    joint: Joint  # of one term

    @property
    def value(self) -> float:
        """The estimate."""
        return float(self.joint.values[0])

    @property
    def std_error(self) -> float:
        """How far it is off, on average."""
        return float(self.joint.std_errors[0])

    def __float__(self) -> float:
        return self.value

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """(low, high), as :meth:`Joint.interval` has them."""
        low, high = self.joint.interval(level)
        return float(low[0]), float(high[0])

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:,.1f} ± {self.std_error:,.1f} [{low:,.1f}, {high:,.1f}]"


class _DimensionTables(Mapping[tuple[str, ...], Table]):
    """The tables that are shown when nobody asks: each dimension by itself, made when looked at."""

    def __init__(self, estimate: QueryEstimate) -> None:
        self._estimate = estimate

    def __getitem__(self, names: tuple[str, ...]) -> Table:
        if names not in set(self):
            raise KeyError(names)
        return self._estimate.marginal(*names)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        dimensions = self._estimate.target.dimensions
        return iter((each.name,) for each in dimensions if each.size <= MAX_SHOWN_CELLS)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, eq=False, repr=False)
class QueryEstimate(Estimate):
    """What the crowd said about all dimensions together.

    ``tables`` lists the dimensions one by one; :meth:`count` answers any selection, and
    ``fitted`` any weighted one, with covariances.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(age=sv.Ordinal(18, 81), state=sv.Categorical(["NY", "WA"]))
    >>> question = sv.Queries(["age", "state"], method="tree")
    >>> plan = sv.plan(schema, question, epsilon=4.0, people=4000)
    >>> people = {"age": [20, 40, 60, 41] * 1000, "state": ["NY", "WA"] * 2000}
    >>> estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    >>> answer = estimate.count(age=(30, 50), state="WA")
    >>> bool(abs(answer.value - 2000) < 4 * answer.std_error)
    True
    """

    apart: ClassVar[str] = "answers selections, and tests nothing: count(...) or a query says more"

    target: Target  # what was asked for
    method: QueryMethod  # that made it
    options: Options  # of the method
    schema: Schema = field(repr=False, kw_only=True)
    plan: Plan  # whose reports were heard
    fitted: FittedTable  # any weighted selection, with covariances

    @classmethod
    def of(
        cls, target: Target, method: QueryMethod, aggregate: Aggregate, options: Options
    ) -> QueryEstimate:
        """What an aggregate without weights says.

        Args:
            target: what was asked for.
            method: that makes the estimate.
            aggregate: what the reports add up to.
            options: of the method.
        """
        made = cls(
            {},
            aggregate.people,
            target=target,
            method=method,
            options=options,
            schema=aggregate.plan.schema,
            plan=aggregate.plan,
            fitted=method.fit(target, aggregate, options),
        )
        object.__setattr__(made, "tables", _DimensionTables(made))
        return made

    @property
    def is_unbiased(self) -> bool:
        return self.fitted.is_unbiased

    # -- one answer

    def count(self, **selection: Any) -> CountAnswer:
        """How many of the people who answered are in a selection.

        Args:
            selection: by dimension a range ``(first, last)``, ends included, a value, a list of
                values, or a mask with a truth value for each code.
        """
        return self.answer(self.term(**selection))

    def term(self, **selection: Any) -> Term:
        """A selection as weights of codes, see :meth:`count`.

        Args:
            selection: as of :meth:`count`.
        """
        found = {}
        for name, part in selection.items():
            if name not in self.target.names:
                known = ", ".join(self.target.names)
                raise InvalidInput(f"dimension {name!r} must be one of {known}")
            axis = self.target.names.index(name)
            found[axis] = selected(self.target.dimensions[axis], self.schema[name], part)
        return found

    def answer(self, term: Term, scale: float | None = None) -> CountAnswer:
        """How many people are in a weighted selection, or how much of a weight is.

        Args:
            term: the selection.
            scale: how much the weight is in all; the people by default.
        """
        times = self.people if scale is None else scale
        return CountAnswer(self.fitted.joint([term]).scaled(times))

    # -- weights

    def weighted(self, reports: Reports, weights: Any) -> FittedTable:
        """The table of the weight: shares of it instead of shares of people.

        Args:
            reports: those of this estimate, or some of them, such as a group.
            weights: an integer beside each, in fixed point, none negative.
        """
        column = np.asarray(weights)
        weighed = fold(self.plan, reports, column)
        squares = cohort_squares(reports.cohorts, column, len(self.plan.cohorts))
        return self.fit_weights(weighed, squares)

    def fit_weights(self, weighed: Aggregate, squares: Floats | None) -> FittedTable:
        """The same of reports that were folded.

        Args:
            weighed: the reports with their weights, added up.
            squares: their squared weights' sums, one for each cohort, or None if every report
                counts once.
        """
        if weighed.people <= 0:
            raise InvalidInput("weights must add up to more than 0")
        return self.method.fit(self.target, weighed, self.options, squares, self.fitted)

    # -- tables

    def marginal(self, *attributes: str) -> Table:
        """All combinations of the values of some dimensions, if they are not too many."""
        names = self.target.names
        for place, name in enumerate(attributes):
            if name not in names or name in attributes[:place]:
                raise InvalidInput(
                    f"marginal ({', '.join(attributes)}) must be different dimensions of "
                    f"{', '.join(names)}"
                )
        sizes = [self.target.sizes[names.index(name)] for name in attributes]
        if not attributes or prod(sizes) > MAX_SHOWN_CELLS:
            raise InvalidInput(
                f"marginal ({', '.join(attributes)}) has {prod(sizes):,} cells, more than "
                f"{MAX_SHOWN_CELLS:,}: count(...) answers selections of them"
            )
        units = [list(np.eye(size)) for size in sizes]
        axes = [names.index(name) for name in attributes]
        joint = self.fitted.joint([dict(zip(axes, each, strict=True)) for each in product(*units)])
        labels = [self.schema[name].labels() for name in attributes]
        variances = joint.std_errors**2
        return Table(
            attributes,
            tuple(labels[0]) if len(labels) == 1 else tuple(product(*labels)),
            joint.values,
            variances,
            self.people,
            Noise(float(variances.min()), 0.0),
            is_unbiased=self.is_unbiased,
            method=self.method.name,
            errors=CLOSED_FORM if self.is_unbiased else "posterior",
            spread=JointSpread(joint),
        )


def selected(dimension: Dimension, attribute: Attribute, part: Any) -> Floats:
    """A selection of a dimension's codes as weights, (size,); see :meth:`QueryEstimate.count`.

    >>> import sottovoce as sv
    >>> selected(Dimension("age", 4, True), sv.Ordinal(20, 23), (21, 22)).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    weights = np.zeros(dimension.size)
    if isinstance(part, np.ndarray):
        if part.shape != (dimension.size,):
            raise InvalidInput(
                f"dimension {dimension.name!r}: a mask must have {dimension.size} truth values"
            )
        return part.astype(float)
    if isinstance(part, tuple):
        if not dimension.is_ordered or len(part) != 2:
            raise InvalidInput(
                f"dimension {dimension.name!r}: a range (first, last) is for numbers in order; "
                "give a list of values"
            )
        first, last = (_end(attribute, dimension, end) for end in part)
        weights[first : last + 1] = 1.0
        return weights
    listed = part if isinstance(part, list) else [part]
    for value in listed:
        weights[_code(attribute, dimension, value)] = 1.0
    return weights


def _code(attribute: Attribute, dimension: Dimension, value: Any) -> int:
    try:
        return attribute.code(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise InvalidInput(f"dimension {dimension.name!r}: {attribute.rule}") from None


def _end(attribute: Attribute, dimension: Dimension, value: Any) -> int:
    """The code of a range's end; ends outside the domain are moved to it."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if isinstance(attribute, Ordinal):
            value = min(max(int(value), attribute.low), attribute.high)
        elif isinstance(attribute, Integer):
            value = min(max(int(value), 0), attribute.size - 1)
    return _code(attribute, dimension, value)
