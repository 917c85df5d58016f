"""The question: tables of how attributes go together."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from sottovoce.ground.arguments import plain_options, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question, are_names, predicted, round_terms
from sottovoce.questions.marginals.coverage import Coverage, explained, parts_outside
from sottovoce.questions.marginals.estimate import MAX_TABLE_CELLS, MarginalEstimate
from sottovoce.questions.marginals.figures import predicted_figures
from sottovoce.questions.marginals.method import MarginalMethod
from sottovoce.questions.marginals.methods import METHODS, method, require_method
from sottovoce.questions.marginals.planner import (
    BASELINES,
    CHOOSABLE,
    Choice,
    best_of,
    ranking,
    ranks_of,
    searched,
)
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import AUTO, Options, given
from sottovoce.questions.prediction import DoesNotFit, Prediction, Rank
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate


@dataclass(frozen=True, init=False)
class Marginals(Question):
    """Tables of any ``up_to`` attributes together, with intervals.

    What is not given, the method chooses; an option that it does not take is refused.

    Args:
        up_to: how many attributes a table may have.
        attributes: those asked about, by default every sensitive one with known values.
        workload: the sets that matter, by default every set of ``up_to`` attributes.
        method: a name, or ``auto``, which predicts every method's error and takes the best.
        theta: calm, calm+, calm-binary, joint: the error that noise or sampling alone may bring.
        views: of the same: lists of attributes' places, to choose them by hand.
        size: calm, calm+, calm-binary, joint: attributes of a view, to draw them.
        count: of the same: how many views are drawn.
        hashes: inp-htcms: how many hash functions, a power of two.
        width: inp-htcms: how many values each of them has, a power of two.
        salt: inp-htcms: of the hash functions.
        coins: inp-rr, marg-rr: sue, or oue with which cormode2018marginal experiments.
        tolerance: inp-em, em: the change of a cell at which it stops, by default 1e-5.
        options: of a method of another package, by name.

    >>> import sottovoce as sv
    >>> region = sv.Categorical(["N", "S", "W"])
    >>> schema = sv.Schema(smoker=sv.Boolean(), drinker=sv.Boolean(), region=region)
    >>> plan = sv.plan(schema, sv.Marginals(up_to=2), epsilon=1.0, people=10_000)
    >>> people = {"smoker": [True, False] * 500, "drinker": [True, False] * 500}
    >>> people["region"] = ["N", "S"] * 500
    >>> estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    >>> estimate.marginal("smoker", "drinker").labels
    ((False, False), (False, True), (True, False), (True, True))
    """

    kind: ClassVar[str] = "marginals"
    is_joint: ClassVar[bool] = True
    # a method's choices follow from its options, and go into the cohorts
    resettles: ClassVar[bool] = False
    up_to: int
    attributes: tuple[str, ...] | None
    workload: tuple[tuple[str, ...], ...] | None
    method: str
    options: Mapping[str, Any] = field(hash=False)
    # once computed
    _rankings: dict[tuple[Workload, Terms, bool], list[Choice]] = field(compare=False, repr=False)
    _errors: dict[tuple[Workload, Terms], float] = field(compare=False, repr=False)
    _searched: dict[tuple[Workload, Terms], list[Choice]] = field(compare=False, repr=False)

    def __init__(
        self,
        up_to: int,
        attributes: Sequence[str] | None = None,
        workload: Sequence[Sequence[str]] | None = None,
        method: str = AUTO,
        *,
        theta: Any = None,
        views: Sequence[Sequence[int]] | None = None,
        size: int | None = None,
        count: int | None = None,
        hashes: int | None = None,
        width: int | None = None,
        salt: int | str | None = None,
        coins: str | None = None,
        tolerance: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        for part, names in (("attributes", attributes), ("workload", workload)):
            if names is not None and (isinstance(names, str) or not isinstance(names, Sequence)):
                raise InvalidInput(f"{part} must be a list of names")
        if workload is not None and any(
            isinstance(each, str) or not isinstance(each, Sequence) for each in workload
        ):
            raise InvalidInput("workload must be a list of lists of names")
        if not isinstance(method, str):
            raise InvalidInput(f"method ({method}) must be a name")
        named = given(
            theta=theta,
            views=views,
            size=size,
            count=count,
            hashes=hashes,
            width=width,
            salt=salt,
            coins=coins,
            tolerance=tolerance,
        )
        parts: dict[str, Any] = {
            "up_to": whole("up_to", up_to, 1, 64),
            "attributes": None if attributes is None else tuple(attributes),
            "workload": None if workload is None else tuple(tuple(each) for each in workload),
            "method": method,
            "options": {**plain_options(options or {}), **named},
            "_rankings": {},
            "_errors": {},
            "_searched": {},
        }
        for part, value in parts.items():
            object.__setattr__(self, part, value)

    def _settled_as(self, names: Sequence[str], method: str, options: Options) -> Marginals:
        """The same tables of these attributes by a method whose options are settled."""
        made = Marginals(self.up_to, names, self.workload, method)
        object.__setattr__(made, "options", dict(options))
        return made

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        attributes = options.get("attributes")
        if attributes is not None and not are_names(attributes):
            raise InvalidInput('question: attributes must be a list of names, such as ["age"]')
        if "up_to" not in options:
            raise InvalidInput("question: up_to is missing: how many attributes a table may have")
        workload = options.get("workload")
        if workload is not None and not (
            isinstance(workload, list) and all(are_names(each) for each in workload)
        ):
            raise InvalidInput(
                'question: workload must be a list of lists of names, such as [["age", "state"]]'
            )
        if not isinstance(options.get("method", ""), str):
            raise InvalidInput("question: method must be a name")
        name = options.get("method", AUTO)
        takes = () if name == AUTO else method(name).options
        known = inspect.signature(cls).parameters
        own = {key: part for key, part in options.items() if key in takes and key not in known}
        rest = {key: part for key, part in options.items() if key not in own}
        return super().from_survey({**rest, **({"options": own} if own else {})})

    def work(self, schema: Schema) -> Workload:
        """The tables that matter."""
        return Workload.of(schema, self.attributes, self.up_to, self.workload)

    def attributes_in(self, schema: Schema) -> tuple[str, ...]:
        return self.work(schema).names

    def values(self, schema: Schema) -> int:
        """The cells of the largest table, or all values of single attributes if those are more."""
        work = self.work(schema)
        if work.sets is not None:
            largest = max(work.cells(each) for each in work.sets)
        else:
            largest = prod(sorted(work.sizes)[-work.order :])
        return max(largest, sum(work.sizes))

    def is_planned(self, schema: Schema, names: Sequence[str]) -> bool:
        work = self.work(schema)
        if not set(names) <= set(work.names):
            return False
        if work.sets is None:
            return len(set(names)) <= work.order
        return any(set(names) <= set(work.attributes(each)) for each in work.sets)

    def settled(self, schema: Schema, terms: Terms) -> Marginals:
        work = self.work(schema)
        largest = max(work.sample_cells)
        if largest > MAX_TABLE_CELLS:
            raise InvalidInput(
                f"up_to ({self.up_to}): a table of {largest:,} cells is more than "
                f"{MAX_TABLE_CELLS:,}"
            )
        if self.method == AUTO:
            return self._chosen(work, terms)
        chosen = method(self.method)
        reason = chosen.refuse(work, terms)
        if reason is not None:
            fitting = ", ".join(each.name for each in METHODS if each.refuse(work, terms) is None)
            raise DoesNotFit(
                chosen.name, f"method ({chosen.name}) does not fit: {reason} (these fit: {fitting})"
            )
        options = self._settled_options(chosen, work, terms)
        return self._settled_as(work.names, chosen.name, options)

    def _settled_options(
        self, chosen: MarginalMethod, work: Workload, terms: Terms
    ) -> Mapping[str, Any]:
        """Every choice that the plan must hold; those of a plan's own question are taken again."""
        named = dict(self.options)
        package = {"package": chosen.package} if chosen.package else {}
        if package and named.get("package") == chosen.package:
            del named["package"]
        if set(named) - set(chosen.options):  # what it settles by itself may not be given
            own = chosen.settle(work, terms, {})
            if plain_options(own) == plain_options(named):
                named = {}
        options = chosen.settle(work, terms, named)
        return plain_options(options) | package if package else options

    def _chosen(self, work: Workload, terms: Terms) -> Marginals:
        """The question with the best method, and its error, which nobody need predict again."""
        if self.options:
            raise InvalidInput(f"option {next(iter(self.options))!r} needs a method by name")
        choices = searched(work, terms)
        choice = best_of(choices)
        made = self._settled_as(work.names, choice.method.name, choice.options)
        made._errors[work, terms] = choice.error
        made._searched[work, terms] = choices
        return made

    def _ranking(self, work: Workload, terms: Terms, baselines: bool) -> list[Choice]:
        """The methods by predicted error, those that can be chosen or the baselines; each computed
        once.
        """
        key = (work, terms, baselines)
        if key not in self._rankings:
            methods = BASELINES if baselines else CHOOSABLE
            known = self._searched.get((work, terms), [])
            self._rankings[key] = ranking(work, terms, methods, known)
        return self._rankings[key]

    def predict(self, schema: Schema, terms: Terms, series: Series | None = None) -> Prediction:
        """The root mean squared error of a cell, over the tables that matter; and apart those of
        single attributes' shares, of pairs and of larger tables.
        """
        work = self.work(schema)
        own = round_terms(self, schema, terms, series)
        error = sqrt(self._squared_error(work, own) / work.mean_cells)
        figures = predicted_figures(method(self.method), work, own, self.options)
        return Prediction(error, self.method, figures)

    def _squared_error(self, work: Workload, terms: Terms) -> float:
        """The predicted squared error of a table, computed once."""
        if (work, terms) not in self._errors:
            self._errors[work, terms] = method(self.method).predict(work, terms, self.options)
        return self._errors[work, terms]

    def rank(self, plan: Plan, *, baselines: bool = False) -> tuple[Rank, ...]:
        work, terms = self.work(plan.schema), plan.round_terms
        choices = self._ranking(work, terms, baselines=False)
        if method(self.method).package:  # which the planner knows nothing of
            own = ranking(work, terms, [method(self.method)])
            choices = sorted([*choices, *own], key=lambda each: each.error)
        if baselines:
            choices = sorted(
                [*choices, *self._ranking(work, terms, baselines=True)], key=lambda each: each.error
            )
        ranks = ranks_of(work, choices, self.method)
        fitting = {rank.method for rank in ranks}
        for each in METHODS:
            if each.name not in fitting and (baselines or not each.is_baseline):
                reason = each.refuse(work, terms) or "left out by the planner"
                ranks.append(
                    Rank(each.name, None, None, None, reason, each.name == self.method, None)
                )
        return tuple(ranks)

    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        return method(self.method).cohorts(schema, self.work(schema), terms.epsilon, self.options)

    def estimate(self, aggregate: Aggregate) -> MarginalEstimate:
        """Tables of any attributes."""
        aggregate.require_people()
        work = self.work(aggregate.plan.schema)
        result = method(self.method).estimate(work, aggregate, self.options)
        return cast(MarginalEstimate, result.estimate)

    def explain(self, plan: Plan) -> list[str]:
        work = self.work(plan.schema)
        chosen = method(self.method)
        prediction = predicted(plan)
        error = prediction.error
        tables = (
            f"{work.count:,} tables of {work.order} attributes"
            if self.workload is None
            else f"{work.count} tables"
        )
        return [
            f"Question: {tables} over {', '.join(work.names)}",
            f"Method: {chosen.name} ({chosen.about}), {chosen.source}{_brought(chosen.package)}",
            f"People: {plan.round_people:,} in {len(plan.cohorts):,} "
            f"cohort{'s' if len(plan.cohorts) > 1 else ''}, "
            f"{plan.cohorts.bytes} byte{'s' if plan.cohorts.bytes > 1 else ''} per report",
            f"Predicted standard errors: {', '.join(str(each) for each in prediction.figures)}",
            f"Predicted squared error of a table, by which methods are ranked: "
            f"{error**2 * work.mean_cells:.2g}, about {error:.2g} per cell",
            *explained(
                work,
                self.coverage(plan),
                plan.round_people,
                self._reconstructed(work),
                self.outside_tables(plan),
            ),
        ]

    def coverage(self, plan: Plan) -> Coverage:
        """Which attributes and pairs of its tables a plan asks about, and how many of its people
        each.
        """
        return method(self.method).coverage(self.work(plan.schema), self.options)

    def gaps(self, plan: Plan) -> dict[str, Any]:
        """``never_asked``: attributes and pairs inside its tables that nobody is asked about.
        ``outside_tables``: those that lie in none of them; None if there are too many to list.
        """
        work = self.work(plan.schema)
        outside = self.outside_tables(plan)
        return {
            "never_asked": [list(work.attributes(part)) for part in self.coverage(plan).left_out],
            "outside_tables": None
            if outside is None
            else [list(work.attributes(part)) for part in outside],
        }

    def outside_tables(self, plan: Plan) -> tuple[Places, ...] | None:
        """What lies in none of a plan's tables, and nobody is asked about: attributes, and pairs of
        them.

        None if there are too many to list.
        """
        work = self.work(plan.schema)
        parts = parts_outside(work)
        if not parts:
            return parts
        shares = method(self.method).shares(work, self.options, parts)
        return tuple(part for part, share in zip(parts, shares, strict=True) if share <= 0)

    def _reconstructed(self, work: Workload) -> int:
        """How many of the workload's sampled tables of three or more attributes reports do not tell
        as a whole.
        """
        large = [places for places in work.sample if len(places) > 2]
        return sum(not method(self.method).is_whole(work, self.options, places) for places in large)

    def to_json(self) -> dict[str, Any]:
        return {
            "up_to": self.up_to,
            "attributes": None if self.attributes is None else list(self.attributes),
            "workload": None if self.workload is None else [list(each) for each in self.workload],
            "method": self.method,
            "options": dict(sorted(self.options.items())),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        require_method(data["method"], data["options"].get("package"))
        made = cls(data["up_to"], data["attributes"], data["workload"], data["method"])
        object.__setattr__(made, "options", dict(data["options"]))
        return made


def _brought(package: str) -> str:
    return f", of the package {package}" if package else ""
