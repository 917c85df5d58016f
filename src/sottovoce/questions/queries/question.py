"""The question: counts, sums and quantiles of any selection of whispered dimensions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan, prod, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import COINS, Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.shuffling import Shuffling
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question, are_names, predicted, round_terms
from sottovoce.questions.method import AUTO, Options, given
from sottovoce.questions.prediction import DoesNotFit, Figure, Prediction, Rank
from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.methods import METHODS, method
from sottovoce.questions.queries.planner import best_of, ranking, ranks_of, squared_error
from sottovoce.questions.queries.target import QueryWorkload, Target
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_RANKED = 6  # methods that an explanation lists


@dataclass(frozen=True, init=False)
class Queries(Question):
    """Counts of any selection of whispered dimensions, and sums of public measures over it.

    Dimensions are sensitive and leave as whispers; measures are public numbers that travel in
    clear beside them, and need not be named again in ``public``.

    Args:
        dimensions: sensitive ordinal, integer, categorical or boolean attributes.
        measures: public attributes whose sums may be asked for.
        method: a name, or ``auto``, which predicts every method's error and takes the best.
        workload: the selections that matter: ``volumes``, shares of all combinations of codes,
            ``random`` or ``mean``, and ``dimensions``, over how many at once; by default random
            ranges of one and two dimensions, and the mean of one.
        fanout: hi, hio, sc, tree: into how many intervals an interval is cut.
        fine: hdg: how many cells the grid of one dimension has.
        coarse: hdg: how many cells the grid of two dimensions has along each.

    >>> import sottovoce as sv
    >>> amount = sv.Number(0, 500, step="0.01", sensitive=False)
    >>> schema = sv.Schema(age=sv.Ordinal(18, 81), amount=amount)
    >>> question = sv.Queries(["age"], measures=["amount"])
    >>> plan = sv.plan(schema, question, epsilon=1.0, people=10_000)
    >>> plan.columns
    ('amount',)
    """

    kind: ClassVar[str] = "queries"
    ranked: ClassVar[str] = "a share of people, on average over the workload"
    answers_sql: ClassVar[bool] = True
    # a method's choices follow from its options, and go into the cohorts
    resettles: ClassVar[bool] = False
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    workload: QueryWorkload | None
    method: str
    options: Mapping[str, Any] = field(hash=False)

    def __init__(
        self,
        dimensions: Sequence[str],
        measures: Sequence[str] = (),
        method: str = AUTO,
        workload: QueryWorkload | Mapping[str, Any] | None = None,
        *,
        fanout: int | None = None,
        fine: int | None = None,
        coarse: int | None = None,
    ) -> None:
        for part, names in (("dimensions", dimensions), ("measures", measures)):
            is_list = isinstance(names, Sequence) and not isinstance(names, str)
            if not is_list or not are_names(list(names)):
                raise InvalidInput(f'{part} must be a list of names, such as ["age"]')
        if not isinstance(method, str):
            raise InvalidInput(f"method ({method}) must be a name")
        if workload is not None and not isinstance(workload, QueryWorkload):
            workload = QueryWorkload.of(workload)
        parts: dict[str, Any] = {
            "dimensions": tuple(dimensions),
            "measures": tuple(measures),
            "workload": workload,
            "method": method,
            "options": given(fanout=fanout, fine=fine, coarse=coarse),
        }
        for part, value in parts.items():
            object.__setattr__(self, part, value)

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        if not are_names(options.get("dimensions")):
            raise InvalidInput('question: dimensions must be a list of names, such as ["age"]')
        return super().from_survey(options)

    def _settled_as(self, name: str, options: Options) -> Queries:
        """The same question by a method whose options are settled."""
        made = Queries(self.dimensions, self.measures, name, self.workload)
        object.__setattr__(made, "options", dict(options))
        return made

    def target(self, schema: Schema) -> Target:
        """What is asked for, if the schema allows it."""
        for place, name in enumerate(self.measures):
            if name in self.dimensions:
                raise InvalidInput(f"measures: attribute {name!r} is a dimension")
            if name in self.measures[:place]:
                raise InvalidInput(f"measures: attribute {name!r} must be named once")
            if schema[name].sensitive:
                raise InvalidInput(
                    f"measures: attribute {name!r} is sensitive, and only ever leaves as a "
                    "whisper: name it in dimensions"
                )
        return Target.of(schema, self.dimensions, self.workload)

    def attributes_in(self, schema: Schema) -> tuple[str, ...]:
        return self.target(schema).names

    def values(self, schema: Schema) -> int:
        return prod(self.target(schema).sizes)

    def is_planned(self, schema: Schema, names: Sequence[str]) -> bool:
        return set(names) <= set(self.dimensions)

    # -- from a survey to a plan

    def settled(self, schema: Schema, terms: Terms) -> Queries:
        target = self.target(schema)
        if self.method == AUTO:
            if self.options:
                raise InvalidInput(f"option {next(iter(self.options))!r} needs a method by name")
            choices, _ = ranking(target, terms)
            choice = best_of(choices)
            return self._settled_as(choice.method.name, choice.options)
        chosen = method(self.method)
        reason = chosen.refuse(target, terms)
        if reason is not None:
            fitting = [each.name for each in METHODS if each.refuse(target, terms) is None]
            raise DoesNotFit(
                chosen.name,
                f"method ({chosen.name}) does not fit: {reason} "
                f"(these fit: {', '.join(fitting) or 'none'})",
            )
        return self._settled_as(chosen.name, chosen.settle(target, terms, self.options))

    def rounds(self, schema: Schema) -> tuple[int, ...]:
        return method(self.method).rounds(self.target(schema), self.options)

    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        target = self.target(schema)
        return method(self.method).cohorts(schema, target, terms.epsilon, self.options)

    def plan(
        self,
        schema: Schema,
        terms: Terms,
        series: Series | None = None,
        coin: str = COINS[0],
        public: Sequence[str] = (),
        shuffling: Shuffling | None = None,
    ) -> Plan:
        """The plan of a settled question; its measures travel in clear, before others."""
        for name in public:
            if name in self.dimensions:
                raise InvalidInput(f"public: attribute {name!r} is a dimension, and is whispered")
        columns = tuple(dict.fromkeys([*self.measures, *public]))
        return super().plan(schema, terms, series, coin, columns, shuffling)

    # -- what is expected of it

    def predict(self, schema: Schema, terms: Terms, series: Series | None = None) -> Prediction:
        """The root mean squared error of a share, over the workload."""
        target = self.target(schema)
        own = round_terms(self, schema, terms, series)
        squared = squared_error(self.method, target, own, json.dumps(dict(self.options)))
        if squared is None:
            why = f"method ({self.method}): its error is not known beforehand"
            return Prediction(nan, self.method, unknown=why)
        error = sqrt(squared)
        figure = Figure("a share of the workload", error)
        return Prediction(error, self.method, (figure,))

    def rank(self, plan: Plan, *, baselines: bool = False) -> tuple[Rank, ...]:
        choices, others = ranking(self.target(plan.schema), plan.round_terms)
        if not baselines:
            choices = tuple(
                each
                for each in choices
                if not each.method.is_baseline or each.method.name == self.method
            )
        return ranks_of(choices, others, self.method)

    def explain(self, plan: Plan) -> list[str]:
        target = self.target(plan.schema)
        chosen = method(self.method)
        prediction = predicted(plan)
        dimensions = ", ".join(f"{one.name} ({one.size:,})" for one in target.dimensions)
        lines = [
            f"Question: queries over {dimensions}",
            f"Workload: {target.workload}",
            f"Method: {chosen.name} ({chosen.about}), {chosen.source}",
            f"People: {plan.round_people:,} in {len(plan.cohorts):,} "
            f"cohort{'s' if len(plan.cohorts) > 1 else ''}, "
            f"{plan.cohorts.bytes} byte{'s' if plan.cohorts.bytes > 1 else ''} per report",
        ]
        if prediction.unknown:
            lines.append(f"Predicted standard error: {prediction.unknown}")
        else:
            lines.append(
                f"Predicted standard error: {', '.join(str(each) for each in prediction.figures)}"
            )
        ranked = [each for each in self.rank(plan, baselines=True) if each.ratio is not None]
        listed = ", ".join(f"{each.method} {each.ratio:.3g}" for each in ranked[:MOST_RANKED])
        lines.append(f"Predicted squared errors, over the least: {listed}")
        lines += chosen.explain(target, plan, self.options)
        if plan.unsent:
            lines.append(
                f"Not sent: {', '.join(plan.unsent)}; an analyst may join them by report id"
            )
        return lines

    # -- what was learnt

    def estimate(self, aggregate: Aggregate) -> QueryEstimate:
        """Answers to any selection; ``next`` is the question of the round that follows, if there
        is one.
        """
        aggregate.require_people()
        target = self.target(aggregate.plan.schema)
        result = method(self.method).estimate(target, aggregate, self.options)
        found = cast(QueryEstimate, result.estimate)
        if result.known is None:
            return found
        following = self._settled_as(self.method, {**self.options, "known": result.known})
        return replace(found, next=following)

    # -- in a plan

    def to_json(self) -> dict[str, Any]:
        return {
            "dimensions": list(self.dimensions),
            "measures": list(self.measures),
            "workload": None if self.workload is None else self.workload.to_json(),
            "method": self.method,
            "options": dict(sorted(self.options.items())),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        made = cls(data["dimensions"], data["measures"], data["method"], data["workload"])
        object.__setattr__(made, "options", dict(data["options"]))
        return made
