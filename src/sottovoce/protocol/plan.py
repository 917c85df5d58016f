"""The plan: public, frozen, named by its hash. Cohorts answer asks through frequency oracles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from sottovoce.ground.errors import InvalidInput, PlanMismatch, SottovoceError
from sottovoce.ground.html import facts_html
from sottovoce.protocol.columns import Columns
from sottovoce.protocol.families import FAMILIES, Family
from sottovoce.protocol.guarantee import Guarantee, at_most
from sottovoce.protocol.question_forms import check_form, check_measures, question_class
from sottovoce.protocol.series import Series
from sottovoce.protocol.shuffling import ShuffledGuarantee, Shuffling
from sottovoce.protocol.terms import LOCAL, SHUFFLED, Terms
from sottovoce.schema import FixedPoint, Schema

if TYPE_CHECKING:
    from sottovoce.questions.base import Question

PLAN_FORMAT = 1
COINS = ("device", "assigned")
MOST_DELTA = Fraction(1, 1000)
MOST_FAKES = 16  # times the people


@dataclass(frozen=True)
class Plan:
    """A frozen plan. Two plans are equal if their bytes are; ``id`` is the SHA-256 of those bytes.

    All that a device needs is here: the schema, the terms, who is asked what, the rounds, whose
    coins are drawn. The question is kept as it is stored; whoever analyses looks it up
    (:attr:`question`), which a device never does.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(smoker=sv.Boolean())
    >>> made = sv.plan(schema, sv.Frequencies("smoker"), epsilon=1.0, people=10_000)
    >>> Plan.from_json(made.to_json(), id=made.id) == made
    True
    """

    text: str  # as it is stored, byte for byte
    schema: Schema = field(compare=False, repr=False)  # what people may answer
    # epsilon, how many people, and whom they trust
    terms: Terms = field(compare=False, repr=False)
    cohorts: Family = field(compare=False, repr=False)  # who is asked what
    series: Series = field(compare=False, repr=False)  # the rounds, and which of them this is
    coin: str = field(compare=False, repr=False)  # who draws cohorts and hashes
    asked: Mapping[str, Any] = field(compare=False, repr=False)  # the question, as JSON
    # public attributes, that travel in clear
    columns: tuple[str, ...] = field(default=(), compare=False, repr=False)
    # who mixes reports before they are opened, if anybody does
    shuffling: Shuffling | None = field(default=None, compare=False, repr=False)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the plan's UTF-8 bytes, as 64 hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def public(self) -> Columns:
        """The types of the public columns, and their form on the wire."""
        return Columns.of(self.schema, self.columns)

    @cached_property
    def unsent(self) -> tuple[str, ...]:
        """Public attributes that do not travel: whoever has them joins them by report id."""
        return tuple(
            name
            for name, attribute in self.schema.items()
            if not attribute.sensitive and name not in self.columns
        )

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of a report where all are as long as the longest: payload, then public values."""
        return self.cohorts.bytes + self.public.width

    @property
    def epsilon(self) -> Decimal:
        """What one person's report may cost, against whoever knows that it is hers."""
        return self.terms.epsilon

    @property
    def people(self) -> int:
        """How many people are expected, in all rounds."""
        return self.terms.people

    @cached_property
    def guarantee(self) -> Guarantee:
        """Computed from the structure: the largest over cohorts of the sum over their asks.

        Of a shuffled plan with what shuffling adds to it.
        """
        local = self.cohorts.guarantee
        return local if self.shuffling is None else ShuffledGuarantee.of(local, self.shuffling)

    @property
    def cost(self) -> str:
        """What it asks of a person, in words: its epsilon, and its delta if it has one."""
        if self.shuffling is not None:
            return f"epsilon {self.shuffling.epsilon} shuffled, {self.epsilon} by itself"
        delta = self.guarantee.delta
        return (
            f"epsilon {self.epsilon}, delta {at_most(delta)}"
            if delta
            else f"epsilon {self.epsilon}"
        )

    @property
    def round_people(self) -> int:
        """How many people this round expects."""
        return max(
            1, self.people * self.series.shares[self.series.number] // sum(self.series.shares)
        )

    @property
    def round_terms(self) -> Terms:
        """The terms for the people of this round."""
        return self.terms.among(self.round_people)

    def cohort_people(self, index: int) -> int:
        """How many people one cohort expects.

        Args:
            index: of the cohort.
        """
        weight: int = self.cohorts[index].weight
        return max(1, self.round_people * weight // self.cohorts.weight)

    @cached_property
    def question(self) -> Question:
        """The question, if it derives this plan, which keeps what shuffling is to promise."""
        derived = self.derived_question
        if self.shuffling is not None:
            # not on a device, which need not know what a crowd hides
            from sottovoce.protocol.promises import recount

            if self.shuffling.fakes and not derived.takes_fakes:
                raise InvalidInput(f"plan: estimates of {derived.kind} do not take out fakes")
            for fault in recount(self).faults:
                raise InvalidInput(f"plan: it promises more than it keeps: {fault}")
        return derived

    @cached_property
    def derived_question(self) -> Question:
        """The question, if it derives this plan: its cohorts, and the one way it is written.

        What shuffling promises is not counted again, as it is for :attr:`question`.
        """
        loaded = question_class(self.asked)
        stored = {key: part for key, part in self.asked.items() if key != "kind"}
        question: Question = _read(lambda: loaded.from_json(stored))
        if _read(lambda: question.cohorts(self.schema, self.terms)) != self.cohorts:
            raise InvalidInput("plan: its cohorts are not those of its question")
        if question.resettles and question.settled(self.schema, self.terms) != question:
            raise InvalidInput("plan: its question has options that no plan has")
        if json.dumps(question.to_json()) != json.dumps(stored):
            raise InvalidInput("plan: its question is not written as sottovoce writes it")
        return question

    def to_json(self) -> str:
        """The plan as it is stored, byte for byte."""
        return self.text

    def __repr__(self) -> str:
        return f"<Plan {self.id[:16]}: {self.asked['kind']}, {self.cost}, {self.people:,} people>"

    def __str__(self) -> str:
        return "\n".join([f"Plan {self.id[:16]}", *self._facts()])

    def _repr_html_(self) -> str:
        """In a notebook: what it asks, how, and what it promises."""
        return facts_html(f"Plan {self.id[:16]}", self._facts())

    def _facts(self) -> list[str]:
        """What it asks, how, and what it promises, in lines."""
        lines = [*self.question.explain(self), *self._promises()]
        if len(self.series.shares) > 1:
            lines.insert(
                0,
                f"Round {self.series.number + 1} of {len(self.series.shares)}; nobody answers two "
                "rounds",
            )
        if self.columns:
            lines.append(
                f"In clear: {', '.join(self.columns)}; the guarantee is for the rest, given these"
            )
        return lines

    def _promises(self) -> list[str]:
        """The guarantee in lines, and who mixes the reports."""
        if self.shuffling is None:
            return [f"Guarantee: {self.guarantee}"]
        part = self.shuffling
        lines = [f"Guarantee {line}" for line in str(self.guarantee).split("\n")]
        fakes = f"; they add {part.fakes:,} fakes" if part.fakes else ""
        if not part.hops:
            return [*lines, f"Shuffled: no keys of shufflers, for simulations{fakes}"]
        count = "1 shuffler" if part.shufflers == 1 else f"{part.shufflers} shufflers"
        return [*lines, f"Shuffled by {count}{fakes}"]

    @classmethod
    def write(
        cls,
        schema: Schema,
        asked: Mapping[str, Any],
        terms: Terms,
        cohorts: Family,
        series: Series,
        coin: str,
        public: Sequence[str] = (),
        shuffling: Shuffling | None = None,
    ) -> Plan:
        """Freeze the parts into a plan: its one text, if what it asks is what it promises.

        Args:
            public: attributes that travel in clear.
            shuffling: who mixes the reports; None if nobody does.
        """
        unwritten = cls("", schema, terms, cohorts, series, coin, asked, tuple(public), shuffling)
        unwritten._check()
        text = unwritten._canonical()
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput("plan: names and values must be text that UTF-8 can hold") from None
        return replace(unwritten, text=text)

    def _check(self) -> None:
        """Refuse a plan whose parts promise what they do not keep."""
        _check_coin(self.coin)
        _check_cost(self.cohorts, self.epsilon)
        _check_delta(self.cohorts.delta, self.people, self.coin)
        for name in self.cohorts.attributes:
            if isinstance(self.schema[name], FixedPoint):
                raise InvalidInput(
                    f"plan: attribute {name!r} is a fixed-point number, and only ever travels in "
                    "clear"
                )
        len(self.public)  # which refuses what must not travel so
        for name in self.columns:
            if name in self.cohorts.attributes:
                raise InvalidInput(
                    f"public: attribute {name!r} is whispered, and must not travel in clear too"
                )
        check_measures(self.asked, self.columns)
        if self.shuffling is not None:
            _check_shuffling(self.shuffling, self)

    def _canonical(self) -> str:
        """The one text that a plan of these parts has."""
        body = {
            "sottovoce": PLAN_FORMAT,
            "schema": self.schema.to_json(),
            "question": self.asked,
            "epsilon": str(self.epsilon),
            "people": self.people,
            "coin": self.coin,
            **({"public": list(self.columns)} if self.columns else {}),
            **({"shuffle": self.shuffling.to_json()} if self.shuffling else {}),
            "series": self.series.to_json(),
            "cohorts": self.cohorts.to_json(),
        }
        return json.dumps(body, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, id: str | None = None) -> Plan:
        """Read a plan; refuse it unless it hashes to ``id`` (if given), with the right coins.

        Args:
            text: the plan as it is stored.
            id: the id that it must have; any by default.
        """
        try:
            stored = text if isinstance(text, bytes) else text.encode()
            if id is not None and hashlib.sha256(stored).hexdigest() != str(id).lower():
                raise PlanMismatch(
                    "plan: its hash is not the id expected; it was changed or is another plan"
                )
            body = json.loads(stored, parse_float=_no_float, parse_constant=_no_float)
        except (UnicodeError, RecursionError, ValueError) as wrong:
            if isinstance(wrong, SottovoceError):
                raise
            raise InvalidInput("plan: the file is not JSON in UTF-8") from None
        if not isinstance(body, dict) or body.get("sottovoce") != PLAN_FORMAT:
            raise InvalidInput(f"plan: the format version must be {PLAN_FORMAT}")
        return _read(lambda: cls._from_body(stored.decode(), body))

    @classmethod
    def _from_body(cls, text: str, body: Mapping[str, Any]) -> Plan:
        check_form(body["question"])
        schema = Schema.from_json(body["schema"])
        name = body["cohorts"]["family"]
        if name not in FAMILIES:
            raise InvalidInput(f"plan: family ({name}) must be one of {', '.join(FAMILIES)}")
        part = Shuffling.from_json(body["shuffle"]) if "shuffle" in body else None
        trust, fakes = (SHUFFLED, part.fakes) if part else (LOCAL, 0)
        plan = cls(
            text,
            schema,
            Terms.of(body["epsilon"], body["people"], trust=trust, fakes=fakes),
            FAMILIES[name].from_json(body["cohorts"], schema),
            Series.from_json(body["series"]),
            body["coin"],
            body["question"],
            _names(body.get("public", [])),
            part,
        )
        plan._check()
        # another spelling would be another id, for which every device draws again
        if text != plan._canonical():
            raise InvalidInput(
                "plan: its text must be the one that sottovoce writes for it, byte for byte"
            )
        return plan


T = TypeVar("T")


def _read(part: Callable[[], T]) -> T:
    """What reading a part of a plan gives; one clear error for whatever a plan cannot hold."""
    try:
        return part()
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        RecursionError,
        IndexError,
    ) as wrong:
        if isinstance(wrong, SottovoceError):
            raise
        raise InvalidInput(
            f"plan: a part is missing or malformed ({type(wrong).__name__})"
        ) from None


def _names(part: Any) -> tuple[str, ...]:
    if not isinstance(part, list) or not all(isinstance(name, str) for name in part):
        raise InvalidInput("plan: public must be a list of names")
    return tuple(part)


def _check_coin(coin: Any) -> None:
    if coin not in COINS:
        raise InvalidInput(f"coin ({coin}) must be one of {', '.join(COINS)}")


def _check_cost(cohorts: Family, epsilon: Decimal) -> None:
    """Refuse cohorts whose asks cost more than a plan promises, in exact sums."""
    cost = cohorts.requested
    if cost > Fraction(epsilon):
        raise InvalidInput(
            f"plan: its asks cost epsilon {float(cost):.6g}, more than the {epsilon} it promises"
        )


def _check_delta(delta: Fraction, people: int, coin: str) -> None:
    """Refuse a delta that is no small chance: too large, or certain for who assigns the hashes."""
    if not delta:
        return
    if delta > MOST_DELTA or delta * people >= 1:
        raise InvalidInput(
            f"delta ({delta}) must be at most {MOST_DELTA} and below 1/people (1/{people})"
        )
    if coin == "assigned":
        raise InvalidInput(
            "coin (assigned) is not for a plan with a delta: its promise needs hashes that nobody "
            "chooses"
        )


def _check_shuffling(part: Shuffling, plan: Plan) -> None:
    """Refuse what shuffling cannot keep: whatever tells who sent a report undoes it."""
    if plan.coin != "device":
        raise InvalidInput(
            f"coin ({plan.coin}) must be the device's in a shuffled plan: an assigned coin names "
            "its sender"
        )
    if plan.columns:
        raise InvalidInput(
            f"public: attribute {plan.columns[0]!r} must not travel in clear in a shuffled plan: "
            "what is known of a sender names her report"
        )
    if plan.cohorts.delta:
        raise InvalidInput(
            "plan: an ask whose own promise has a delta cannot be shuffled: what that adds up to "
            "is not known"
        )
    _check_delta(part.delta, plan.people, plan.coin)
    if part.epsilon > plan.epsilon or plan.epsilon > part.cap:
        raise InvalidInput(
            f"plan: its own epsilon ({plan.epsilon}) must lie between the analyst's "
            f"({part.epsilon}) and the cap ({part.cap})"
        )
    if part.least > plan.round_people:
        raise InvalidInput(
            f"plan: least ({part.least}) must be at most the people it expects "
            f"({plan.round_people})"
        )
    if part.fakes and not part.fakes <= plan.people * MOST_FAKES:
        raise InvalidInput(
            f"fakes ({part.fakes}) must be at most {MOST_FAKES} times the people ({plan.people})"
        )
    if part.fakes:
        for cohort in plan.cohorts.kinds:
            for oracle in cohort.oracles:
                _ = oracle.muted  # refuses an oracle that has no fakes


def _no_float(text: str) -> Any:
    raise InvalidInput(
        "plan: a plan holds no JSON floats; numbers that are not whole are decimal strings"
    )
