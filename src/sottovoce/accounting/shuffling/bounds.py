"""What shuffled reports promise: upper bounds of delta and epsilon, numerically.

    delta(eps) <= 1/n E[(l_1 + ... + l_n)_+]                    balle2019blanket, lemma 5.3

for the losses l of n people's blankets (``losses.py``), replace-one neighbours. Reports that are
surely of the blanket, those of shufflers (fakes), are counted in the same way:

    delta(eps) <= E[ gamma/(K + 1) (L_1 + ... + L_{K+1})_+ ],  K = fakes + Bin(honest, gamma)

A single question with two values is a sum of bits, whose law is exact (``bit_sums.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import numpy as np

from sottovoce.accounting.gaussian import check_delta
from sottovoce.accounting.shuffling.bit_sums import FEW_CROWDS, MANY_CROWDS, BitSums
from sottovoce.accounting.shuffling.expectation import (
    COARSE_GRID,
    FINE_GRID,
    LossPart,
    positive_part,
)
from sottovoce.accounting.shuffling.losses import (
    Mixture,
    check_mixture,
    exact_share,
    local_epsilon,
    loss_atoms,
)
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput

MAX_SHUFFLED = 10**12  # people, or fakes
SOLVED_TO = 1e-4  # relative, of an epsilon that was solved for
_TAIL_SHARE = 1e-4  # of delta, for the chance of fewer reports of the blanket than were counted on
_SMALLEST_EPSILON = 1e-9


def shuffled_delta(
    mixture: Mixture,
    epsilon: float,
    people: int,
    fakes: int = 0,
    colluding: float = 0,
) -> float:
    """An upper bound of the delta of shuffled reports at ``epsilon``, for replace-one neighbours.

    Args:
        mixture: (weight, blankets of what is asked together) of each cohort. A device draws its
            cohort by weight, and the cohort travels inside the shuffled report.
        epsilon: at least 0.
        people: how many reports are shuffled, the person's own included.
        fakes: reports of the blanket that shufflers add.
        colluding: the share of the other people who tell the analyst what they sent.

    >>> from sottovoce.oracles import oracle
    >>> ask = oracle("grr", size=16, epsilon=4).blanket()
    >>> shuffled_delta([(1, [ask])], 0.05, 1_000_000) < 1e-9
    True
    """
    crowd = ShuffledCrowd(mixture, people, fakes, colluding)
    if not 0 <= epsilon < math.inf:
        raise InvalidInput(f"epsilon ({epsilon}) must be finite and at least 0")
    return crowd.delta(epsilon)


def shuffled_epsilon(
    mixture: Mixture,
    people: int,
    delta: float,
    fakes: int = 0,
    colluding: float = 0,
) -> float:
    """An upper bound of the epsilon of shuffled reports at ``delta``; never above the local one.

    Args:
        mixture: as of :func:`shuffled_delta`.
        people: how many reports are shuffled.
        delta: above 0 and below 1.
        fakes: reports of the blanket that shufflers add.
        colluding: the share of the other people who tell the analyst what they sent.

    >>> from sottovoce.oracles import oracle
    >>> ask = oracle("grr", size=16, epsilon=4).blanket()
    >>> round(shuffled_epsilon([(1, [ask])], 1_000_000, 1e-9), 4)
    0.0443
    """
    check_delta(delta)
    return ShuffledCrowd(mixture, people, fakes, colluding).epsilon(delta)


def colluding_epsilon(mixture: Mixture, fakes: int, delta: float) -> float:
    """The same against an analyst with whom everybody else colludes: fakes alone hide a person.

    >>> from sottovoce.oracles import oracle
    >>> ask = oracle("olh", size=1024, epsilon=6, hash_bits=9).blanket()
    >>> round(colluding_epsilon([(1, [ask])], 100_000, 1e-9), 3)
    0.23
    """
    return shuffled_epsilon(mixture, 1, delta, fakes)


class ShuffledCrowd:
    """One person's report among those of others and of shufflers."""

    def __init__(self, mixture: Mixture, people: int, fakes: int = 0, colluding: float = 0) -> None:
        check_mixture(mixture)
        people = whole("people", people, 1, MAX_SHUFFLED)
        self.fakes = whole("fakes", fakes, 0, MAX_SHUFFLED)
        self.honest = math.floor((people - 1) * (1 - exact_share(colluding)))
        self.local = local_epsilon(mixture)
        self._atoms = loss_atoms(mixture)
        # fakes have the law of the blanket only if that is the same in every cohort
        self._common = loss_atoms(mixture, common=True)
        self._binary = _binary_chances(mixture)

    def delta(self, epsilon: float, points: int = FINE_GRID) -> float:
        """An upper bound of delta: the least of those there are."""
        if epsilon >= self.local:
            return 0.0
        return min([1.0, *(bound(epsilon, points) for bound in self._bounds)])

    def epsilon(self, delta: float) -> float:
        """An upper bound of epsilon: a number at which a bound of delta was computed."""
        if not self._bounds:
            return self.local
        if self.delta(min(_SMALLEST_EPSILON, self.local), COARSE_GRID) <= delta:
            return min(_SMALLEST_EPSILON, self.local)
        coarse = solved_epsilon(
            lambda epsilon: self.delta(epsilon, COARSE_GRID), delta, self.local, 1e-2
        )
        best = min(self._bounds, key=lambda bound: bound(coarse, COARSE_GRID))
        return solved_epsilon(
            lambda epsilon: min(1.0, best(epsilon, FINE_GRID)),
            delta,
            self.local,
            SOLVED_TO,
            coarse,
        )

    @property
    def _bounds(self) -> list[Callable[[float, int], float]]:
        """Each is an upper bound of delta at an epsilon, on a grid of so many points."""
        if self._binary is not None:
            return [self._of_bits] if self.honest + self.fakes else []
        found: list[Callable[[float, int], float]] = []
        if self.honest:
            found.append(self._without_fakes)
        if self.fakes:
            found.append(self._with_fakes)
        return found

    def _without_fakes(self, epsilon: float, points: int) -> float:
        atoms, people = self._atoms, self.honest + 1
        part = LossPart(atoms.values(epsilon), atoms.chances, people)
        return positive_part([part], points) / people

    @cached_property
    def _bits(self) -> BitSums:
        assert self._binary is not None
        return BitSums(*self._binary, self.honest, self.fakes, fake=Fraction(1, 2))

    def _of_bits(self, epsilon: float, points: int) -> float:
        # the other direction is this one with the two values exchanged, in a crowd that is among
        # all crowds too
        return self._bits.delta(epsilon, MANY_CROWDS if points >= FINE_GRID else FEW_CROWDS)

    def _with_fakes(self, epsilon: float, points: int) -> float:
        atoms = self._common
        gamma, losses = atoms.gamma, atoms.values(epsilon)
        others = LossPart(losses, atoms.chances, self.honest)
        surely = LossPart(losses, atoms.chances / gamma, self.fakes + 1)
        total = gamma * positive_part([others, surely], points)
        if not self.honest:
            return total / (self.fakes + 1)
        # E[X/(K + 1)] <= P(K < k) + E[X]/(k + 1), as X/(K + 1) gamma is a delta given K: below 1
        tail = max(_TAIL_SHARE * total / (self.fakes + 1 + gamma * self.honest), 1e-300)
        least = self.fakes + least_count(self.honest, gamma, tail)
        return tail + total / (least + 1)


def _binary_chances(mixture: Mixture) -> tuple[Fraction, Fraction] | None:
    """(p, q) of a mixture that is one answer to one question with two values, of which a report
    supports one; None of all others.
    """
    asks = [blanket for _, asks in mixture for blanket in asks]
    (ask, *others) = asks
    is_one_of_two = ask.q == Fraction(1, 2) and ask.both == 0 == ask.pair and ask.triple is None
    if others or not is_one_of_two:
        return None
    return ask.gamma * ask.q * ask.ratio, ask.gamma * ask.q


def solved_epsilon(
    delta_at: Callable[[float], float],
    delta: float,
    most: float,
    accuracy: float,
    near: float | None = None,
) -> float:
    """An epsilon at which a falling curve is at most delta, above the least by ``accuracy``.

    sqrt(-ln delta) is nearly linear in epsilon, so that a secant needs few steps.

    Args:
        delta_at: the curve.
        delta: its goal.
        most: where the curve is 0.
        accuracy: relative.
        near: a guess.
    """
    goal = math.sqrt(-math.log(delta))

    def height(epsilon: float) -> float:
        found = delta_at(epsilon)
        if found <= 0:
            return 2 * goal + 10
        return (math.sqrt(-math.log(found)) if found < 1 else 0.0) - goal

    low, low_height, high, high_height = 0.0, -goal, most, math.inf
    guess = min(0.01, most / 2) if near is None else near
    if not 0 < guess < most:
        guess = most / 2
    while high - low > accuracy * high and high > _SMALLEST_EPSILON:
        found = height(guess)
        if found >= 0:
            high, high_height = guess, found
        else:
            low, low_height = guess, found
        if high_height == math.inf:  # no end but the last is known to be right
            guess = min(guess * (1 + 2 * accuracy) if near is not None else guess * 3, most)
            near = None
            if guess >= most:
                guess = (low + most) / 2
            continue
        span = high - low
        step = span * -low_height / (high_height - low_height)
        # a little outside, so that both ends come near
        step += accuracy * high / 4 if step < span / 2 else -accuracy * high / 4
        guess = low + min(max(step, 0.02 * span), 0.98 * span)
    return high


def least_count(trials: int, chance: float, tail: float) -> int:
    """A number that Bin(trials, chance) falls below with chance at most ``tail``.

    By Chernoff, P(Bin <= k) <= exp(-trials KL(k/trials || chance)).

    >>> least_count(1000, 0.5, 1e-9), least_count(10, 0.5, 1e-9)
    (399, 0)
    """
    low, high = -1, math.floor(trials * min(chance, 1.0))
    while high - low > 1:
        middle = (low + high) // 2
        if trials * _divergence(middle / trials, chance) >= -math.log(tail):
            low = middle
        else:
            high = middle
    return low + 1


def _divergence(share: float, chance: float) -> float:
    """KL(Bernoulli(share) || Bernoulli(chance)), a little less."""
    if chance >= 1:
        return math.inf
    total = 0.0
    if share > 0:
        total += share * math.log(share / chance)
    if share < 1:
        total += (1 - share) * (np.log1p(-share) - np.log1p(-chance))
    return float(total) * (1 - 1e-9)
