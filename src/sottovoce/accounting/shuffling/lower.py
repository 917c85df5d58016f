"""Rigorous lower bounds beside the upper ones: one pair of crowds, one test that tells them apart.

Everybody else holds a third value x'', or one of the two. Whatever event A of the shuffled reports
one picks,

    delta(eps) >= P_x(A) - e^eps P_x'(A),

so that at delta no epsilon below ln((P_x(A) - delta)/P_x'(A)) is true. Here A is {T > t}, T a sum
over reports of whole numbers near the losses of the best test. The law of T is exact on the
lattice, and a number that is off by a little costs what is of second order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sottovoce.accounting.gaussian import Floats, check_delta
from sottovoce.accounting.shuffling.bounds import ShuffledCrowd
from sottovoce.accounting.shuffling.expectation import (
    LossPart,
    centring_tilt,
    loss_grid,
    spectrum,
)
from sottovoce.accounting.shuffling.losses import Mixture
from sottovoce.accounting.shuffling.rounds import rounds_epsilon
from sottovoce.oracles.blankets import Blanket

LATTICE_POINTS = 1 << 15
LATTICE_MARGIN = 1e-6  # relative: what double precision may have lost

# of the epsilon near which tests are looked for, while none of them has proved as much
CLAIMED_SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.35)
_LONGEST = 64.0  # of a level below 0, in those above it
_HITS = 24  # so many of the longest losses fit into the window, twelve to each side
_ROOM = 4  # times the width that a grid has for the tilted sum


@dataclass(frozen=True)
class Outcomes:
    """The chances of a report's outcomes: on x, on x', of everybody else, and of a fake."""

    first: Floats
    second: Floats
    others: Floats
    fakes: Floats


def lower_epsilon(
    mixture: Mixture,
    people: int,
    delta: float,
    fakes: int = 0,
    colluding: float = 0,
    rounds: int = 1,
    claimed: float | None = None,
) -> float:
    """An epsilon below which no promise at ``delta`` is true; 0 if the joint law is not known.

    It holds for three people whose values differ in whatever they are asked, and of salted and
    seeded hashes for random ones.

    Args:
        mixture: as of :func:`~sottovoce.accounting.shuffling.bounds.shuffled_delta`.
        people: how many reports are shuffled.
        delta: above 0 and below 1.
        fakes: reports of the blanket that shufflers add.
        colluding: the share of the other people who tell the analyst what they sent.
        rounds: of the same people.
        claimed: an epsilon near which the test is the best one; the upper bound by default.

    >>> from sottovoce.oracles import oracle
    >>> ask = oracle("grr", size=16, epsilon=4).blanket()
    >>> round(lower_epsilon([(1, [ask])], 1_000_000, 1e-9), 4)
    0.0442
    """
    check_delta(delta)
    crowd = ShuffledCrowd(mixture, people, fakes, colluding)
    blankets = [blanket for _, asks in mixture for blanket in asks]
    if any(blanket.pair is None for blanket in blankets):
        return 0.0
    if crowd.honest + crowd.fakes == 0:
        return rounds * crowd.local
    if claimed is None:
        claimed = rounds_epsilon(crowd, rounds, delta)
    found = 0.0
    two = _outcomes(mixture, has_third=False)
    of_first = replace(two, others=two.first)
    if all(blanket.triple is not None for blanket in blankets):
        crowds = [_outcomes(mixture, has_third=True), two]
    else:  # everybody else holds x', or x
        crowds = [two, of_first]
    for share in CLAIMED_SHARES:
        claim = share * claimed
        if claim <= found:
            break
        for outcomes in crowds:
            found = max(found, _tested(outcomes, crowd, delta, claim, rounds))
        crowds = [*crowds[:2], of_first]  # if few are of the blanket, perhaps all others tell x
    return min(found, rounds * crowd.local)


def _outcomes(mixture: Mixture, *, has_third: bool) -> Outcomes:
    total = sum(weight for weight, _ in mixture)
    rows = []
    for weight, asks in mixture:
        joint = np.ones((1, 4))
        for ask in asks:
            joint = (joint[:, None, :] * _ask_outcomes(ask, has_third=has_third)).reshape(-1, 4)
        rows.append(joint * (weight / total))
    table = np.concatenate(rows)
    return Outcomes(*np.ascontiguousarray(table.T))


def _ask_outcomes(ask: Blanket, *, has_third: bool) -> Floats:
    """A row for each set of x, x', x'' that a report may support; everybody else holds x' if there
    is no third value.
    """
    pair = ask.pair if ask.pair is not None else ask.both
    triple = ask.triple if has_third and ask.triple is not None else pair
    # chances that a report of the blanket supports all, a given two, a given one, none
    if has_third:
        exactly = [
            1 - 3 * ask.q + 3 * pair - triple,
            ask.q - 2 * pair + triple,
            pair - triple,
            triple,
        ]
        members = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
        chances = [exactly[a + b + c] for a, b, c in members]
    else:
        members = [(a, b, b) for a in (0, 1) for b in (0, 1)]
        exactly = [1 - 2 * ask.q + pair, ask.q - pair, pair]
        chances = [exactly[a + b] for a, b, _ in members]
    rows = []
    for member, chance in zip(members, chances, strict=True):
        if chance > 0:
            scale = ask.gamma * chance
            rows.append([float(scale * (ask.ratio if held else 1)) for held in member])
            rows[-1].append(float(chance))
    return np.array(rows)


def _tested(
    outcomes: Outcomes, crowd: ShuffledCrowd, delta: float, claimed: float, rounds: int
) -> float:
    """The best of all thresholds for one statistic."""
    crowd_size = crowd.honest + crowd.fakes
    mean = (crowd.honest * outcomes.others + crowd.fakes * outcomes.fakes) / crowd_size
    losses = (outcomes.first - outcomes.second) - math.expm1(claimed / rounds) * outcomes.second
    losses /= mean
    largest = float(losses.max())
    if largest <= 0:
        return 0.0
    parts = [
        LossPart(losses, outcomes.others, rounds * crowd.honest),
        LossPart(losses, outcomes.fakes, rounds * crowd.fakes),
    ]
    parts = [part for part in parts if part.count > 0]
    tilt = centring_tilt(parts)
    step, size = loss_grid(parts, tilt, largest, LATTICE_POINTS)
    # rare losses far below 0 tell no more than some below it, and none may wrap around
    levels = np.rint(np.maximum(losses, -_LONGEST * largest) / step)
    size *= _ROOM
    while size < _HITS * -levels.min():
        size *= 2
    return best_threshold(outcomes, parts, levels, tilt * step, size, delta, rounds)


def best_threshold(
    outcomes: Outcomes,
    crowd: Sequence[LossPart],
    levels: Floats,
    tilt: float,
    size: int,
    delta: float,
    rounds: int = 1,
) -> float:
    """max over t of ln((P(T > t) - delta)/Q(T > t)), T a sum of levels.

    Args:
        outcomes: of one report.
        crowd: the others' reports of all rounds.
        levels: a whole number for each outcome.
        tilt: about where the sum is looked at; any is right.
        size: of the lattice, wider than the sum under the tilted law.
        delta: above 0.
        rounds: how often the person reports.
    """
    # masses below 1 would be read as losses of 0: the chances of every report sum to 1 here
    parts = [LossPart(levels, part.chances / part.chances.sum(), part.count) for part in crowd]
    centre = round(sum(part.tilted(tilt)[0] for part in parts))
    deviation = math.sqrt(sum(part.tilted(tilt)[1] for part in parts))
    log_scale = sum(part.log_moment(tilt) for part in parts)
    others = spectrum(parts, 1.0, tilt, size)
    # tilted transforms of the person's reports
    frequency = np.arange(size // 2 + 1)
    first = np.zeros(size // 2 + 1, complex)
    second = np.zeros(size // 2 + 1, complex)
    for level in np.unique(levels):
        here = levels == level
        wave = np.exp(-2j * np.pi * ((frequency * int(level)) % size) / size)
        wave *= math.exp(tilt * level)
        first += float(outcomes.first[here].sum()) * wave
        second += float(outcomes.second[here].sum()) * wave
    # first^k - second^k, without cancelling
    gap = (first - second) * sum(
        first**done * second ** (rounds - 1 - done) for done in range(rounds)
    )
    second = second**rounds
    start = centre - int(3 * deviation)
    stop = min(centre + size // 2, start + size - 1)
    places = np.arange(start, stop)
    untilted = np.exp(log_scale - tilt * places)
    gaps = np.fft.irfft(others * gap, size)[places % size] * untilted
    seconds = np.maximum(np.fft.irfft(others * second, size)[places % size], 0) * untilted
    # A = {t < T < stop} in both crowds
    gap_tails = np.cumsum(gaps[::-1])
    second_tails = np.cumsum(seconds[::-1])
    # e^eps - 1 >= (P(A) - Q(A) - delta)/Q(A)
    enough = gap_tails > delta * (1 + LATTICE_MARGIN)
    if not enough.any():
        return 0.0
    excess = (gap_tails[enough] - delta * (1 + LATTICE_MARGIN)) / second_tails[enough]
    return math.log1p(float(excess.max())) * (1 - LATTICE_MARGIN)
