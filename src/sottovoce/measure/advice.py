"""Advice before anybody is asked: which epsilon, or how many people, an error needs, or a popular
value to be found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from itertools import combinations
from math import exp, inf, isfinite, log
from typing import Any, NamedTuple

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from sottovoce.questions.prediction import (
    OF_PAIRS,
    OF_SHARES,
    OF_TABLES,
    PREDICTED_KINDS,
    DoesNotFit,
)
from sottovoce.schema import Schema

LEAST_EPSILON, MOST_EPSILON = Decimal("0.01"), Decimal(10)
MIN_ADVISED_PEOPLE, MAX_ADVISED_PEOPLE = 10, 10**9
CLOSE = Decimal("1.01")  # a search ends when what is enough and what is not are so close
GUESSES = 3  # before a search looks at the end of its range
MAX_SEARCH_STEPS = 32  # of one search; it takes about six
PREDICTIONS = 2 * 6 + 1  # of both searches and the survey itself, about


class PredictedError(NamedTuple):
    """The standard error to expect, of the worst attributes, and the method that makes it."""

    error: float
    method: str


@dataclass(frozen=True)
class Answer:
    """How much of one thing is needed while the other stays; None if nothing in range does.

    ``error`` and ``method`` are those at the amount needed, or at ``most`` where that is not
    enough.
    """

    needed: float | None
    most: float  # where the search ended
    least: float  # where it began
    error: float
    method: str

    @property
    def is_least(self) -> bool:
        """Whether even the least amount looked at is enough."""
        return self.needed == self.least


@dataclass(frozen=True)
class Advice:
    """What an error needs, of epsilon and of people, beside what a survey has.

    Of popular values ``error`` is the share of people who hold a value that is to be found with an
    even chance.
    """

    error: float
    epsilon: float
    people: int
    planned: PredictedError
    epsilon_needed: Answer
    people_needed: Answer
    is_share: bool = False  # whether it is about a value to be found
    of: str | None = None  # what errs: shares, pairs or tables; None for shares and pairs alike
    what: str = "a share"  # the same in words

    def to_json(self) -> dict[str, Any]:
        """The advice as JSON; of heavy hitters ``error`` is the share found with an even chance."""
        return {
            "share" if self.is_share else "error": self.error,
            **({} if self.is_share else {"of": self.of, "what": self.what}),
            "planned": {"epsilon": self.epsilon, "people": self.people, **_figures(self.planned)},
            "epsilon": {"people": self.people, **_answer(self.epsilon_needed)},
            "people": {"epsilon": self.epsilon, **_answer(self.people_needed)},
        }

    def __str__(self) -> str:
        wanted = f"A standard error of {self.error:g} for {self.what}, the worst, needs"
        if self.is_share:
            wanted = (
                f"To find a value that {self.error:.4g} of people hold, with an even chance, needs"
            )
        planned = _reached(self.planned, self.is_share)
        return "\n".join(
            [
                wanted,
                f"  with {self.people:,} people:  "
                f"{_sentence(self.epsilon_needed, 'epsilon', self.is_share)}",
                f"  at epsilon {self.epsilon:g}:  "
                f"{_sentence(self.people_needed, 'people', self.is_share)}",
                f"As planned, with {self.people:,} people at epsilon {self.epsilon:g}: {planned}",
            ]
        )


def _sentence(found: Answer, what: str, is_share: bool) -> str:
    named = {"epsilon": "epsilon {:g}", "people": "{:,.0f} people"}[what]
    reached = _reached(found, is_share)
    if found.needed is None:
        return f"more than {named.format(found.most)}, where there would still be {reached}"
    if found.is_least:
        return f"{named.format(found.needed)} or even less ({reached})"
    return f"{named.format(found.needed)} or more ({reached})"


def _reached(found: PredictedError | Answer, is_share: bool) -> str:
    if not isfinite(found.error):
        return f"no estimate, because {found.method} does not fit"
    if is_share:
        return f"a share of {found.error:.2g} by {found.method}"
    return f"an error of {found.error:.2g} by {found.method}"


def _figures(found: PredictedError | Answer) -> dict[str, Any]:
    return {"error": found.error if isfinite(found.error) else None, "method": found.method}


def _answer(found: Answer) -> dict[str, Any]:
    return {"needed": found.needed, "searched_up_to": found.most, **_figures(found)}


def predicted(
    schema: Schema, question: Question, epsilon: Any, people: int, of: str | None = None
) -> PredictedError:
    """What the planner expects of a question; an infinite error if its method does not fit.

    Without ``of`` the error is that of single shares or of pairs, whichever is larger.

    >>> import sottovoce as sv
    >>> predicted(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), 1.0, 10_000).method
    'grr'
    """
    terms = Terms(parse_epsilon(epsilon), people)
    try:
        found = question.settled(schema, terms).predict(schema, terms)
    except DoesNotFit as wrong:
        return PredictedError(inf, wrong.method)
    if found.unknown:
        raise InvalidInput(found.unknown)
    if found.is_share:
        return PredictedError(found.error, found.method)
    error = found.largest(of)
    if error is None:
        known = ", ".join(dict.fromkeys(figure.kind for figure in found.figures))
        raise InvalidInput(f"of ({of}): this question has no such error (it has: {known})")
    return PredictedError(error, found.method)


def _in_words(schema: Schema, question: Question, of: str | None) -> str:
    """What an error is the error of."""
    share, pair, table = "a share of one attribute", "a cell of a pair", "a cell of a table"
    if of is not None:
        return {OF_SHARES: share, OF_PAIRS: pair, OF_TABLES: table}[of]
    pairs = combinations(question.attributes_in(schema), 2)
    has_pairs = any(question.is_planned(schema, names) for names in pairs)
    return f"{share} and for {pair}" if has_pairs else share


def advise(
    schema: Schema,
    question: Question,
    *,
    epsilon: Any,
    people: int,
    error: float,
    of: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Advice:
    """Which epsilon gives this error with so many people, and how many people do at this epsilon.

    ``error`` is a standard error, for the worst attributes; for frequencies that of a rare value,
    for marginals the root mean square over the cells of a table; for heavy hitters the share of
    people who hold a value that is to be found with an even chance. ``of`` says what is to err so
    little: ``shares`` of one attribute, cells of ``pairs``, or of larger ``tables``; by default
    shares and pairs both. ``progress`` is called with the number of predictions made, of about
    ``PREDICTIONS``.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(x=sv.Boolean())
    >>> advice = advise(schema, sv.Frequencies("x"), epsilon=1.0, people=10_000, error=0.005)
    >>> round(advice.epsilon_needed.needed, 1), round(advice.people_needed.needed, -3)
    (1.8, 37000)
    """
    exact = parse_epsilon(epsilon)
    people = whole("people", people, 1, MAX_ADVISED_PEOPLE)
    if not (isfinite(error) and 0 < error < 1):
        raise InvalidInput(f"error ({error}) must lie between 0 and 1")
    if of is not None and of not in PREDICTED_KINDS:
        raise InvalidInput(f"of ({of}) must be one of {', '.join(PREDICTED_KINDS)}")
    if of is not None and question.finds:
        raise InvalidInput(f"of ({of}): a share that is to be found is of no other kind")
    made = 0

    def counted(at: Any, crowd: int) -> PredictedError:
        nonlocal made
        made += 1
        if progress:
            progress(made)
        return predicted(schema, question, at, crowd, of)

    planned = counted(exact, people)
    crowd = Decimal(people)
    return Advice(
        error,
        float(exact),
        people,
        planned,
        _Search(
            lambda at: counted(at, people), error, LEAST_EPSILON, MOST_EPSILON, 1, _shorter
        ).run(exact, planned),
        _Search(
            lambda at: counted(exact, int(at)),
            error,
            Decimal(MIN_ADVISED_PEOPLE),
            Decimal(MAX_ADVISED_PEOPLE),
            2,
            _whole_number,
        ).run(crowd, planned),
        question.finds,
        of,
        _in_words(schema, question, of),
    )


@dataclass(frozen=True)
class _Search:
    """Bisection on logarithms for the least amount that is enough;
    two steps of three interpolate.
    """

    predict: Callable[[Decimal], PredictedError]
    error: float
    least: Decimal
    most: Decimal
    power: int  # the amount goes as error^-power: epsilon with 1, people with 2
    rounded: Callable[[float], Decimal]  # up

    def run(self, start: Decimal, planned: PredictedError) -> Answer:
        """From an amount whose prediction is known."""
        at = min(self.most, max(self.least, start))
        known = {start: planned} if at == start else {}
        for _ in range(MAX_SEARCH_STEPS):
            if at not in known:
                known[at] = self.predict(at)
            enough = [each for each, found in known.items() if found.error <= self.error]
            top = min(enough, default=None)
            bottom = max((each for each in known if top is None or each < top), default=None)
            if top is not None and (
                top <= self.least or (bottom is not None and top <= bottom * CLOSE)
            ):
                return self._answer(top, known[top])
            following = self._next(bottom, top, known)
            if following in known:
                break
            at = following
        return self._answer(top, known[top]) if top is not None else self._answer(None, known[at])

    def _next(
        self, bottom: Decimal | None, top: Decimal | None, known: dict[Decimal, PredictedError]
    ) -> Decimal:
        if bottom is None or top is None:
            end = top if bottom is None else bottom
            assert end is not None
            if len(known) > GUESSES:
                return self.least if bottom is None else self.most
            # a little beyond what error ~ amount^(-1/power) says:
            # the next two amounts then enclose the answer
            beyond = 0.8 if bottom is None else 1.25
            ratio = (
                min(max(known[end].error / self.error, 1e-3), 1e3)
                if isfinite(known[end].error)
                else 4.0
            )
            guess = float(end) * ratio**self.power * beyond
            return min(self.most, max(self.least, self.rounded(guess)))
        part = 0.5
        if (
            len(known) % 3
            and isfinite(known[bottom].error)
            and known[bottom].error > known[top].error > 0
        ):
            fall = log(known[bottom].error) - log(known[top].error)
            part = min(0.95, max(0.05, (log(known[bottom].error) - log(self.error)) / fall + 0.02))
        low, high = log(bottom), log(top)
        return self.rounded(exp(low + part * (high - low)))

    def _answer(self, needed: Decimal | None, found: PredictedError) -> Answer:
        return Answer(
            None if needed is None else _number(needed), float(self.most), float(self.least), *found
        )


def _shorter(amount: float) -> Decimal:
    """Three digits, rounded up."""
    exact = Decimal(amount)
    return exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), ROUND_CEILING).normalize()


def _whole_number(amount: float) -> Decimal:
    return Decimal(max(1, int(_shorter(amount))))


def _number(amount: Decimal) -> float:
    return int(amount) if amount == amount.to_integral_value() else float(amount)
