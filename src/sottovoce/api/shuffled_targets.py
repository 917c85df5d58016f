"""From three promises to what keeps them with the least error: the oracle, its local epsilon and
the number of fakes (wang2021thesis, section 9.5.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sottovoce.accounting.gaussian import check_delta
from sottovoce.accounting.shuffling import (
    colluding_epsilon,
    local_epsilon_for,
    oracle_mixture,
    shuffled_epsilon,
)
from sottovoce.api.descent import descended
from sottovoce.ground.arguments import LARGEST_INTEGER, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import ADAPTIVE, oracle_with
from sottovoce.oracles.base import Oracle, PureOracle
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.questions.shuffled_oracles import Way, rows_of, shuffled_error, shuffled_ways

MOST_FAKE_STEPS = 16  # quarters of a power of two beyond the people: at most 16 times as many
LEAST_FAKE_STEPS = -48  # and at least 1/4096 as many, if any
STRIDES = (8, 2, 1)  # of the search, in these quarters
SIZE_STRIDES = (16, 4, 1)  # of the search along an oracle's hash sizes


@dataclass(frozen=True)
class TargetSearch:
    """What keeps three promises with the least predicted error.

    Attributes:
        oracle: with its coins.
        fakes: reports of nobody that the shufflers add.
        analyst: the epsilon against the analyst that was reached, an upper bound.
        colluding: against the analyst with everybody else.
        local: against the analyst with all shufflers.
        mse: the mean squared error of a value's frequency.
    """

    oracle: Oracle
    fakes: int
    analyst: float
    colluding: float
    local: float
    mse: float


@dataclass(frozen=True)
class _Promises:
    analyst: Decimal
    colluding: Decimal
    local: Decimal
    delta: float
    people: int
    size: int
    focus: str | None


@dataclass(frozen=True)
class _Tried:
    loss: float
    name: str
    options: dict[str, Any]
    steps: int | None  # None: no fakes
    local: Decimal


def search_targets(
    analyst: Any,
    colluding: Any,
    local: Any,
    *,
    people: Any,
    size: Any,
    delta: float,
    focus: str | None = None,
) -> TargetSearch:
    """The oracle, local epsilon and fakes of least predicted error that keep three promises.

    Fakes cost error and let reports tell more: how many are best depends on all three promises.
    They are searched for on a scale of quarters of a power of two of the people.

    Args:
        analyst: epsilon against the analyst, who sees the shuffled reports.
        colluding: epsilon against the analyst to whom everybody else tells her report.
        local: epsilon against the analyst with all shufflers.
        people: how many report.
        size: of the attribute.
        delta: of the first two promises, above 0 and below 1.
        focus: ``average`` over all values (the default) or ``head``.

    >>> found = search_targets("0.5", 2, 4, people=10_000, size=4, delta=1e-6)
    >>> found.analyst <= 0.5, found.colluding <= 2, found.local <= 4, found.fakes > 0
    (True, True, True, True)
    """
    check_delta(delta)
    wanted = [parse_epsilon(each) for each in (analyst, colluding, local)]
    if not wanted[0] <= wanted[1] <= wanted[2]:
        raise InvalidInput(
            f"targets ({', '.join(str(each) for each in wanted)}) must not fall: whoever sees more "
            "learns no less"
        )
    asked = _Promises(
        wanted[0],
        wanted[1],
        wanted[2],
        delta,
        whole("people", people, 2, LARGEST_INTEGER),
        whole("size", size, 2, LARGEST_INTEGER),
        focus,
    )
    ways = shuffled_ways(ADAPTIVE, {}, [asked.size], False, float(wanted[0]), delta, people, 0)
    best: _Tried | None = None
    for row in rows_of(ways):
        tried = _of_row(row, asked, None if best is None else best.steps)
        if best is None or tried.loss < best.loss:
            best = tried
    assert best is not None
    return _told(best, asked)


def _of_row(row: Sequence[Way], asked: _Promises, start: int | None) -> _Tried:
    """The best hash size and number of fakes of one oracle, by steps from that of another."""
    known: dict[int, _Tried] = {}

    def at(place: int) -> _Tried:
        if place not in known:
            name, options, _ = row[place]
            known[place] = _of_oracle(name, options, asked, start)
        return known[place]

    last = len(row) - 1
    return at(descended(lambda place: at(place).loss, len(row) // 2, SIZE_STRIDES, 0, last))


def _of_oracle(name: str, options: dict[str, Any], asked: _Promises, start: int | None) -> _Tried:
    """The best number of fakes of one oracle, by steps from that of another."""
    known: dict[int | None, _Tried] = {}

    def at(steps: int | None) -> _Tried:
        if steps not in known:
            known[steps] = _with_fakes(name, options, asked, steps)
        return known[steps]

    place = descended(
        lambda steps: at(steps).loss,
        -8 if start is None else start,
        STRIDES,
        LEAST_FAKE_STEPS,
        MOST_FAKE_STEPS,
    )
    return min(at(place), at(None), key=lambda each: each.loss)


def _fakes(steps: int | None, people: int) -> int:
    return 0 if steps is None else max(1, round(people * 2 ** (steps / 4)))


def _with_fakes(
    name: str, options: dict[str, Any], asked: _Promises, steps: int | None, rough: bool = True
) -> _Tried:
    """The largest local epsilon with so many fakes, and the error that it gives."""
    fakes = _fakes(steps, asked.people)
    build = oracle_mixture(name, asked.size, **options)
    if fakes:
        # to everybody else her report is one among the fakes
        cap = local_epsilon_for(
            build, asked.colluding, asked.delta, 1, asked.local, fakes, rough=rough
        )
    else:
        cap = min(asked.local, asked.colluding)
    if cap > asked.analyst:
        cap = local_epsilon_for(
            build, asked.analyst, asked.delta, asked.people, cap, fakes, rough=rough
        )
    source = oracle_with(name, asked.size, cap, options)
    assert isinstance(source, PureOracle)
    reports = asked.people + fakes
    heard = source.among_fakes(Fraction(fakes, reports)) if fakes else source
    loss = shuffled_error(heard.noise(reports), asked.size, asked.people, asked.focus)
    return _Tried(loss, name, options, steps, cap)


def _told(best: _Tried, asked: _Promises) -> TargetSearch:
    """Solved on the fine grid, with all three numbers as they are reached."""
    exact = _with_fakes(best.name, best.options, asked, best.steps, rough=False)
    source = oracle_with(exact.name, asked.size, exact.local, exact.options)
    fakes = _fakes(exact.steps, asked.people)
    mixture = [(1, [source.blanket()])]
    alone = colluding_epsilon(mixture, fakes, asked.delta) if fakes else source.epsilon
    analyst = shuffled_epsilon(mixture, asked.people, asked.delta, fakes)
    assert isinstance(source, PureOracle)
    reports = asked.people + fakes
    heard = source.among_fakes(Fraction(fakes, reports)) if fakes else source
    noise = heard.noise(reports)
    return TargetSearch(
        source,
        fakes,
        min(analyst, source.epsilon),
        min(alone, source.epsilon),
        source.epsilon,
        noise.floor + noise.slope / asked.size,
    )
