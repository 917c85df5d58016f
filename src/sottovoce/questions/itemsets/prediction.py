"""What a plan can promise before anybody is asked: errors of rare items, and how frequent an item
must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import Any

from sottovoce.oracles import PureOracle
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask, Drawn, Padded
from sottovoce.protocol.terms import Terms
from sottovoce.questions.itemsets.methods import BEST, COUNT, FIND, FROM_SIZES, RoundStep, Setting
from sottovoce.questions.itemsets.padding import best_oracle, padded_ask, padded_noise

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
    attribute: str,
    planned: tuple[RoundStep, ...],
    options: Mapping[str, Any],
    setting: Setting,
    held: int,
) -> float:
    """How frequent an item must be to be found with even chances, by people who hold ``held`` items
    each.

    It must pass every round: be among the candidates of the first, and significant among them in
    the last.
    """
    total = sum(step.share for step in planned)
    epsilon = setting.epsilon
    if options.get("split") == "budget":
        epsilon, total = shared(epsilon, 2), 1
    limits = []
    for step in planned:
        if step.name not in (FIND, COUNT):
            continue
        people = max(1, setting.people * (step.share if total > 1 else 1) // total)
        is_finding = step.name == FIND
        count = (
            setting.items
            if is_finding or "candidates" not in options
            else min(setting.items, options["candidates"])
        )
        # the share of candidates that noise may pass: 2k/d where candidates are sought, 0.05/2k
        # where they are tested
        passing = options["candidates"] / count if is_finding else ALPHA / count
        length, error = _error(attribute, step.name, options, count, held, Terms(epsilon, people))
        quantile = -NormalDist().inv_cdf(min(passing, 0.5))
        limits.append(quantile * error * max(held, length) / length)
    return max(limits)


def _error(
    attribute: str, name: str, options: Mapping[str, Any], count: int, held: int, terms: Terms
) -> tuple[int, float]:
    """(the length that a round will take, the standard error of a rare candidate in it), if people
    hold so many.
    """
    phase = "first_" if name == FIND else "second_" if "second_length" in options else ""
    length, oracle = options[f"{phase}length"], options[f"{phase}oracle"]
    if length in FROM_SIZES:
        length = min(held, count)
    elif isinstance(length, str):
        length = count
    if oracle == BEST:
        return length, sqrt(best_oracle(count, length, terms.epsilon)[1] / terms.people)
    delta = options.get("delta")
    ask = padded_ask(
        attribute,
        count,
        None,
        length,
        oracle,
        terms.epsilon,
        None if delta is None else Fraction(delta),
    )
    return length, rare_error(ask, terms.people)
