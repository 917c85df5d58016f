"""What a plan can promise before anybody is asked: errors of rare items, and how frequent an item
must be.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from sottovoce.oracles import PureOracle
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask, Drawn, Padded
from sottovoce.protocol.terms import Terms
from sottovoce.questions.itemsets.padding import best_oracle, padded_ask, padded_noise
from sottovoce.questions.itemsets.target import BEST, COUNT, FIND, FROM_SIZES, ItemTarget, RoundStep
from sottovoce.questions.method import Options

ALPHA = 0.05  # candidates that nobody holds, expected among those that count as found
HELD = (1, 4, 16)  # numbers of items that people may hold, for which a threshold is told


def rare_error(ask: Ask, people: int, factor: float = 1.0) -> float:
    """The predicted standard error of a candidate that nearly nobody holds."""
    encoding, source = ask.encoding, ask.oracle
    assert isinstance(encoding, Padded | Drawn)
    assert isinstance(source, PureOracle)
    times = encoding.length if isinstance(encoding, Padded) else 1
    return sqrt(padded_noise(source, times, people, factor).floor)


def least_frequency(
    target: ItemTarget, steps: Sequence[RoundStep], options: Options, terms: Terms, held: int
) -> float:
    """How frequent an item must be to be found with even chances, by people who hold ``held`` items
    each.

    It must pass every round: be among the candidates of the first, and significant among them in
    the last.
    """
    limits = []
    for step in steps:
        if step.name in (FIND, COUNT):
            own = _round_terms(step, steps, options, terms)
            limits.append(_limit(target, step.name, options, own, held))
    return max(limits)


def _round_terms(
    step: RoundStep, steps: Sequence[RoundStep], options: Options, terms: Terms
) -> Terms:
    """Epsilon and the people of one round: half of epsilon from everybody if that is split."""
    if options.get("split") == "budget":
        return Terms(shared(terms.epsilon, 2), max(1, terms.people))
    total = sum(each.share for each in steps)
    people = terms.people * step.share // total
    return Terms(terms.epsilon, max(1, people))


def _limit(target: ItemTarget, name: str, options: Options, terms: Terms, held: int) -> float:
    """How frequent an item must be to pass one round."""
    count = target.items
    if name == FIND:
        # noise may pass 2k of d where candidates are sought
        passing = options["candidates"] / count
    else:
        count = min(count, options.get("candidates", count))
        # noise may pass 0.05 of 2k where they are tested
        passing = ALPHA / count
    length, error = _error(target.name, name, options, count, held, terms)
    quantile = -NormalDist().inv_cdf(min(passing, 0.5))
    return quantile * error * max(held, length) / length


def _error(
    attribute: str, name: str, options: Options, count: int, held: int, terms: Terms
) -> tuple[int, float]:
    """(the length that a round will take, the standard error of a rare candidate in it), if people
    hold so many.
    """
    phase = ""  # of a method of one round
    if "second_length" in options:
        phase = "first_" if name == FIND else "second_"
    oracle = options[f"{phase}oracle"]
    length = options[f"{phase}length"]
    if length in FROM_SIZES:
        length = min(held, count)
    elif isinstance(length, str):
        length = count
    if oracle == BEST:
        _, variance = best_oracle(count, length, terms.epsilon)
        return length, sqrt(variance / terms.people)
    delta = options.get("delta")
    exact = None if delta is None else Fraction(delta)
    ask = padded_ask(attribute, count, None, length, oracle, terms.epsilon, exact)
    return length, rare_error(ask, terms.people)
