"""What a question is: what is to be learnt, its plan, and what the crowd's integers say of it."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import nan
from typing import Any, ClassVar, Self, cast

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import COINS, Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.shuffling import Shuffling
from sottovoce.protocol.terms import Terms
from sottovoce.questions.prediction import Prediction, Rank
from sottovoce.results.estimate import Estimate
from sottovoce.schema import Schema


@dataclass(frozen=True)
class ShuffledChoice:
    """One way to ask people whose reports are shuffled.

    Attributes:
        question: to be settled.
        cap: the most that a report may cost by itself, if this way has a limit of its own.
        focus: what is to be known best, if the question offers a choice.
        row: the name of a row of choices, if their loss falls along it and then rises: few of them
            are looked at.
    """

    question: Question
    cap: Decimal | None = None
    focus: str | None = None
    row: str | None = None


class Question(ABC):
    """What is to be learnt.

    A protocol implements its cohorts, its estimate and its own description, and says what it asks
    for and how well it will be known; whoever plans, serves or shows a question asks it, and need
    not know which one it is.

    Throughout:
        schema: what people may answer.
        terms: epsilon, how many people, and whom they trust.
        series: the rounds and which of them this is; by default the first of its own.
        plan: of this question.
        coin: ``device``, or ``assigned`` if the collector hands coins out.
        public: attributes that travel in clear beside the whisper.
        shuffling: who mixes the reports; None if nobody does.
        focus: what is to be known best, as in :class:`ShuffledChoice`.
        aggregate: what the reports add up to.
    """

    kind: ClassVar[str]
    # whether what is settled stays as it is if it is settled again
    resettles: ClassVar[bool] = True
    is_joint: ClassVar[bool] = False  # whether it asks how attributes go together
    # of what a ranking of its methods has the squared errors
    ranked: ClassVar[str] = "a table, summed over its cells"
    # whether it looks for popular values, of which most are never named
    finds: ClassVar[bool] = False
    answers_sql: ClassVar[bool] = False  # whether analysts may ask it in SQL
    takes_fakes: ClassVar[bool] = False  # whether its estimates take out the fakes of shufflers

    # -- from a survey to a plan

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        """The question as a survey file describes it: its parts by name, without ``kind``.

        Args:
            options: the parts by name.
        """
        cls.check_names(options)
        try:
            return cls(**options)
        except TypeError:
            raise InvalidInput(
                f"question: options ({', '.join(options)}) do not fit {cls.kind}"
            ) from None

    @classmethod
    def check_names(cls, options: Mapping[str, Any]) -> None:
        """Refuse what is no parameter of this question.

        Args:
            options: the parts by name.
        """
        known = tuple(inspect.signature(cls).parameters)
        for name in options:
            if name not in known:
                raise InvalidInput(
                    f"question: {name!r} is not one of {cls.kind}'s options ({', '.join(known)})"
                )

    def settled(self, schema: Schema, terms: Terms) -> Question:
        """The question with every choice made that a plan must hold; by default there are none."""
        return self

    def rounds(self, schema: Schema) -> tuple[int, ...]:
        """The shares of people of a settled question's rounds, if what is asked next depends on
        what was heard; by default one round.
        """
        return (1,)

    @abstractmethod
    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        """Who is asked what."""

    def plan(
        self,
        schema: Schema,
        terms: Terms,
        series: Series | None = None,
        coin: str = COINS[0],
        public: Sequence[str] = (),
        shuffling: Shuffling | None = None,
    ) -> Plan:
        """The plan of a settled question."""
        series = Series(self.rounds(schema)) if series is None else series
        asked = {"kind": self.kind, **self.to_json()}
        made = Plan.write(
            schema,
            asked,
            terms,
            self.cohorts(schema, terms),
            series,
            coin,
            public,
            shuffling,
        )
        made.__dict__["derived_question"] = self  # it need not be looked up
        return made

    # -- what it asks for

    def attributes_in(self, schema: Schema) -> tuple[str, ...]:
        """The attributes of a schema that it is about."""
        return ()

    def values(self, schema: Schema) -> int:
        """How many values an answer may hold: all its attributes'. An open alphabet has none."""
        attributes = [schema[name] for name in self.attributes_in(schema)]
        return sum(attribute.size for attribute in attributes if not attribute.is_open)

    def is_planned(self, schema: Schema, names: Sequence[str]) -> bool:
        """Whether it asks for the table of these attributes together, or for one that holds it.

        Args:
            names: of the attributes.
        """
        return False

    def gaps(self, plan: Plan) -> dict[str, Any]:
        """What a plan leaves out, as JSON: parts that nobody is asked about; by default nothing."""
        return {}

    def candidates(self, schema: Schema, words: Sequence[str]) -> Any:
        """Words that may be among the answers, as :meth:`estimate` takes ``candidates``.

        Args:
            words: the values that may occur.
        """
        return words

    # -- what is expected of it

    def predict(self, schema: Schema, terms: Terms, series: Series | None = None) -> Prediction:
        """What a settled question promises before anybody is asked."""
        return Prediction(
            nan, self.kind, unknown=f"question ({self.kind}): its error is not known beforehand"
        )

    def shuffled_choices(
        self, schema: Schema, epsilon: float, delta: float, people: int, fakes: int
    ) -> Sequence[ShuffledChoice]:
        """Ways to ask people whose reports are shuffled, of which the one of least
        :meth:`shuffled_loss` is taken; by default as everybody is asked.

        Args:
            schema: what people may answer.
            epsilon: against the analyst.
            delta: of the same promise.
            people: how many surely report.
            fakes: how many reports of nobody the shufflers add.
        """
        return [ShuffledChoice(self)]

    def shuffled_loss(self, schema: Schema, terms: Terms, focus: str | None) -> float:
        """How badly a settled question will be known at these terms, to compare its choices."""
        return 0.0

    def rank(self, plan: Plan, *, baselines: bool = False) -> tuple[Rank, ...]:
        """The methods that a plan could have taken, the best first; none where there is no choice.

        Args:
            baselines: whether those are added that are never chosen and are there to be compared
                with; they take longest.
        """
        return ()

    @abstractmethod
    def explain(self, plan: Plan) -> list[str]:
        """Lines for a person who wants to know what will be asked and how well it will be known."""

    # -- what was learnt

    @abstractmethod
    def estimate(self, aggregate: Aggregate) -> Estimate:
        """What the crowd's integers say. Keywords of its own, such as ``candidates``, are those of
        :meth:`sottovoce.Aggregate.estimate`, which refuses them to questions that have none.
        """

    # -- in a plan

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The question as JSON without floats; ``kind`` is added by the plan."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`.

        Args:
            data: what :meth:`to_json` gave.
        """


def predicted(plan: Plan) -> Prediction:
    """What a plan promises; computed once, and kept with the plan.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=10_000)
    >>> predicted(plan).method, predicted(plan) is predicted(plan)
    ('grr', True)
    """
    if "prediction" not in plan.__dict__:
        plan.__dict__["prediction"] = plan.question.predict(plan.schema, plan.terms, plan.series)
    return cast(Prediction, plan.__dict__["prediction"])


def round_terms(question: Question, schema: Schema, terms: Terms, series: Series | None) -> Terms:
    """The terms for the people of one round of a question."""
    series = Series(question.rounds(schema)) if series is None else series
    people = terms.people * series.shares[series.number] // sum(series.shares)
    return terms.among(max(1, people))


def are_names(part: Any) -> bool:
    """Whether a part of a survey is a list of names."""
    return isinstance(part, list) and all(isinstance(name, str) for name in part)


def check_single(options: Mapping[str, Any]) -> None:
    """Refuse a survey of one attribute that does not name it, or names no method."""
    if not isinstance(options.get("attribute"), str):
        raise InvalidInput('question: attribute must be a name, such as "word"')
    if not isinstance(options.get("method", ""), str):
        raise InvalidInput("question: method must be a name")
