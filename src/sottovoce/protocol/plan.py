"""The plan: public, frozen, named by its hash. Cohorts of people answer asks through frequency oracles."""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import LARGEST_INTEGER, plain_options, whole
from sottovoce.ground.errors import InvalidInput, PlanMismatch, SottovoceError
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.protocol.cohorts import Cohorts, share_of
from sottovoce.protocol.encodings import of_kind
from sottovoce.protocol.families import FAMILIES
from sottovoce.protocol.guarantee import Guarantee, at_most
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.results.estimate import Estimate

FORMAT = 1
COINS = ("device", "assigned")
MOST_DELTA = Fraction(1, 1000)
_ID = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Series:
    """The rounds a plan belongs to. A person's round is drawn once; a later plan names its parent.

    ``shares``: how the crowd is split over the rounds; ``number``: this plan's round, from 0.
    """

    shares: tuple[int, ...] = (1,)
    number: int = 0
    origin: str | None = None  # the id of the first round's plan
    parent: str | None = None  # the id of the round before

    def __post_init__(self) -> None:
        if not self.shares:
            raise InvalidInput("rounds must have at least one share")
        for share in self.shares:
            if not isinstance(share, int):
                raise InvalidInput("rounds must be whole numbers")
            whole("rounds", share, 1, LARGEST_INTEGER)
        whole("round", self.number, 0, len(self.shares) - 1)
        for name, plan_id in (("origin", self.origin), ("parent", self.parent)):
            named = isinstance(plan_id, str) and _ID.fullmatch(plan_id) is not None
            if (self.number > 0) != named or (self.number == 0 and plan_id is not None):
                raise InvalidInput(f"{name} must be the id of a plan in every round but the first, and none there")

    def at(self, ticket: int) -> int:
        """The round of a uniform ticket of ``range(sum(shares))``."""
        return int(self.at_column(np.array([ticket]))[0])

    def at_column(self, tickets: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The rounds of many tickets."""
        return share_of(tickets, self.shares)

    def to_json(self) -> dict[str, Any]:
        return {
            "shares": list(self.shares),
            "round": self.number,
            "origin": self.origin,
            "parent": self.parent,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Series:
        return cls(tuple(data["shares"]), data["round"], data["origin"], data["parent"])


class Question(ABC):
    """What is to be learnt. A protocol implements three things: its cohorts, its estimate, its own description."""

    kind: ClassVar[str]
    resettles: ClassVar[bool] = True  # whether what is settled stays as it is if it is settled again

    def settled(self, schema: Schema, epsilon: Decimal, people: int) -> Question:
        """The question with every choice made that a plan must hold; by default there are none."""
        return self

    def rounds(self, schema: Schema, epsilon: Decimal, people: int) -> tuple[int, ...]:
        """The shares of people of its rounds, if what is asked next depends on what was heard; by default one round."""
        return (1,)

    @abstractmethod
    def cohorts(self, schema: Schema, epsilon: Decimal, people: int) -> Cohorts:
        """Who is asked what."""

    @abstractmethod
    def estimate(self, aggregate: Aggregate, **options: Any) -> Estimate:
        """What the crowd's integers say."""

    @abstractmethod
    def explain(self, plan: Plan) -> list[str]:
        """Lines for a person who wants to know what will be asked and how well it will be known."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The question as JSON without floats; ``kind`` is added by the plan."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""


@dataclass(frozen=True)
class Plan:
    """A frozen plan. Two plans are equal if their bytes are; ``id`` is the SHA-256 of those bytes."""

    text: str
    schema: Schema = field(compare=False, repr=False)
    question: Question = field(compare=False, repr=False)
    epsilon: Decimal = field(compare=False, repr=False)
    people: int = field(compare=False, repr=False)
    cohorts: Cohorts = field(compare=False, repr=False)
    series: Series = field(compare=False, repr=False)
    coin: str = field(compare=False, repr=False)  # who draws cohorts and hashes

    @cached_property
    def id(self) -> str:
        """SHA-256 of the plan's UTF-8 bytes, as 64 hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def guarantee(self) -> Guarantee:
        """Computed from the structure: the largest over cohorts of the sum over their asks."""
        return self.cohorts.guarantee

    @property
    def cost(self) -> str:
        """What it asks of a person, in words: its epsilon, and its delta if it has one."""
        delta = self.guarantee.delta
        return f"epsilon {self.epsilon}, delta {at_most(delta)}" if delta else f"epsilon {self.epsilon}"

    @property
    def round_people(self) -> int:
        """How many people this round expects."""
        return max(1, self.people * self.series.shares[self.series.number] // sum(self.series.shares))

    def cohort_people(self, index: int) -> int:
        """How many people one cohort expects."""
        weight: int = self.cohorts[index].weight
        return max(1, self.round_people * weight // self.cohorts.weight)

    def to_json(self) -> str:
        """The plan as it is stored, byte for byte."""
        return self.text

    def __str__(self) -> str:
        lines = [f"Plan {self.id[:16]}", *self.question.explain(self), f"Guarantee: {self.guarantee}"]
        if len(self.series.shares) > 1:
            lines.insert(1, f"Round {self.series.number + 1} of {len(self.series.shares)}; nobody answers two rounds")
        return "\n".join(lines)

    @classmethod
    def make(
        cls,
        schema: Schema,
        question: Question,
        epsilon: Any,
        people: int,
        series: Series | None = None,
        coin: str = COINS[0],
    ) -> Self:
        """Freeze a question into a plan."""
        _check_coin(coin)
        exact = parse_epsilon(epsilon)
        people = whole("people", people, 1, LARGEST_INTEGER)
        series = series or Series()
        question = question.settled(schema, exact, people)
        cohorts = question.cohorts(schema, exact, people)
        _affordable(cohorts, exact)
        _check_delta(cohorts.delta, people, coin)
        unwritten = cls("", schema, question, exact, people, cohorts, series, coin)
        text = unwritten._canonical()
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput("plan: names and values must be text that UTF-8 can hold") from None
        return replace(unwritten, text=text)

    def _canonical(self) -> str:
        """The one text that a plan of these parts has."""
        body = {
            "sottovoce": FORMAT,
            "schema": self.schema.to_json(),
            "question": {"kind": self.question.kind, **self.question.to_json()},
            "epsilon": str(self.epsilon),
            "people": self.people,
            "coin": self.coin,
            "series": self.series.to_json(),
            "cohorts": self.cohorts.to_json(),
        }
        return json.dumps(body, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def parse(cls, text: str | bytes, questions: Sequence[type[Question]], id: str | None = None) -> Self:
        """Read a plan; refuse it unless it hashes to ``id`` (if given) and its coins are what its epsilon gives."""
        try:
            stored = text if isinstance(text, bytes) else text.encode()
            if id is not None and hashlib.sha256(stored).hexdigest() != str(id).lower():
                raise PlanMismatch("plan: its hash is not the id expected; it was changed or is another plan")
            body = json.loads(stored, parse_float=_no_float, parse_constant=_no_float)
        except (UnicodeError, RecursionError, ValueError) as wrong:
            if isinstance(wrong, SottovoceError):
                raise
            raise InvalidInput("plan: the file is not JSON in UTF-8") from None
        if not isinstance(body, dict) or body.get("sottovoce") != FORMAT:
            raise InvalidInput(f"plan: the format version must be {FORMAT}")
        try:
            return cls._from_body(stored.decode(), body, questions)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, IndexError) as wrong:
            if isinstance(wrong, SottovoceError):
                raise
            raise InvalidInput(f"plan: a part is missing or malformed ({type(wrong).__name__})") from None

    @classmethod
    def _from_body(cls, text: str, body: Mapping[str, Any], questions: Sequence[type[Question]]) -> Self:
        schema = Schema.from_json(body["schema"])
        asked = dict(body["question"])
        question = of_kind("question", asked.pop("kind"), questions)
        family = of_kind("family", body["cohorts"]["family"], FAMILIES)
        plan = cls(
            text,
            schema,
            question.from_json(asked),
            parse_epsilon(body["epsilon"]),
            whole("plan: people", body["people"], 1, LARGEST_INTEGER),
            family.from_json(body["cohorts"], schema),
            Series.from_json(body["series"]),
            _check_coin(body["coin"]),
        )
        _affordable(plan.cohorts, plan.epsilon)
        _check_delta(plan.cohorts.delta, plan.people, plan.coin)
        derived = plan.question.cohorts(schema, plan.epsilon, plan.people)
        if derived != plan.cohorts:
            raise InvalidInput("plan: its cohorts are not those of its question")
        _check_options(body["question"].get("options", {}))
        if question.resettles and plan.question.settled(schema, plan.epsilon, plan.people) != plan.question:
            raise InvalidInput("plan: its question has options that no plan has")
        # another spelling would be another id, for which every device draws again
        if text != replace(plan, cohorts=derived)._canonical():
            raise InvalidInput("plan: its text must be the one that sottovoce writes for it, byte for byte")
        return plan


def _check_coin(coin: Any) -> str:
    if coin not in COINS:
        raise InvalidInput(f"coin ({coin}) must be one of {', '.join(COINS)}")
    return str(coin)


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse an option of a question that spells a number as a plan never does, such as "064"."""
    if json.dumps(plain_options(options)) != json.dumps(options):
        raise InvalidInput("plan: an option of its question is a number that is not written as plans write it")


def _affordable(cohorts: Cohorts, epsilon: Decimal) -> None:
    """Refuse cohorts whose asks cost more than a plan promises, in exact sums of what was asked for."""
    cost = cohorts.requested
    if cost > Fraction(epsilon):
        raise InvalidInput(f"plan: its asks cost epsilon {float(cost):.6g}, more than the {epsilon} it promises")


def _check_delta(delta: Fraction, people: int, coin: str) -> None:
    """Refuse a delta that is no small chance: too large, or one that whoever assigns the hashes can make certain."""
    if not delta:
        return
    if delta > MOST_DELTA or delta * people >= 1:
        raise InvalidInput(f"delta ({delta}) must be at most {MOST_DELTA} and below 1/people (1/{people})")
    if coin == "assigned":
        raise InvalidInput(
            "coin (assigned) is not for a plan with a delta: its promise needs hashes that nobody chooses"
        )


def _no_float(text: str) -> Any:
    raise InvalidInput("plan: a plan holds no JSON floats; numbers that are not whole are decimal strings")
