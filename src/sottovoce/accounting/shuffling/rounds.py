"""Several shuffled rounds of the same people: their losses add up.

delta as a function of x = e^epsilon is convex, and so is the lower hull of computed points, which
lies above it. The hull is the curve of a pair of laws whose losses lie on the grid of the points
(zhu2022optimal, proposition 22), and the losses of independent rounds add: a power of a
characteristic function, tilted to where it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sottovoce.accounting.gaussian import Floats, check_delta
from sottovoce.accounting.shuffling.bounds import ShuffledCrowd
from sottovoce.accounting.shuffling.expectation import COARSE_GRID
from sottovoce.ground.arguments import whole

MAX_ROUNDS = 10_000
ROUND_MARGIN = 1e-6  # relative, of delta: what double precision may have lost
_HULL_POINTS = 300
_INFINITE_SHARE = 0.05  # of delta, for losses beyond the last point


@dataclass(frozen=True)
class LossCurve:
    """Losses of a dominating pair: at ``step * (-m .. m)``, and at infinity."""

    chances: Floats  # (2 m + 1,)
    infinite: float
    step: float

    def composed(self, rounds: int, epsilon: float) -> float:
        """An upper bound of the delta of so many rounds at ``epsilon``."""
        half = len(self.chances) // 2
        losses = np.arange(-half, half + 1, dtype=np.float64) * self.step
        tilt = self._tilt(losses, epsilon / rounds)
        weights = self.chances * np.exp(tilt * losses)
        total = float(weights.sum())
        size = 1 << math.ceil(math.log2(2 * half * rounds + 2))
        law = np.fft.irfft(np.fft.rfft(weights / total, size) ** rounds, size)
        sums = np.arange(-half * rounds, half * rounds + 1) * self.step
        above = sums > epsilon
        # chance = law total^rounds e^(-tilt loss), and of it 1 - e^(epsilon - loss) is delta
        untilted = np.exp(rounds * math.log(total) - tilt * sums[above])
        chances = np.maximum(law[: len(sums)][above], 0) * untilted
        finite = float(chances @ -np.expm1(epsilon - sums[above]))
        infinite = -math.expm1(rounds * math.log1p(-self.infinite))
        return min(1.0, (finite + infinite) * (1 + ROUND_MARGIN))

    def _tilt(self, losses: Floats, mean: float) -> float:
        """About where the tilted mean of a loss is ``mean``; any tilt is right."""
        low, high = 0.0, 600 / max(float(losses[-1]), 1e-300)
        for _ in range(40):
            middle = (low + high) / 2
            weights = self.chances * np.exp(middle * (losses - losses[-1]))
            if float(weights @ losses) < mean * float(weights.sum()):
                low = middle
            else:
                high = middle
        return low


def loss_curve(delta_at: Callable[[float], float], width: float, points: int) -> LossCurve:
    """The pair that dominates a mechanism whose neighbours are symmetric.

    Args:
        delta_at: an upper bound of delta for every epsilon of at least 0.
        width: the last epsilon at which it is computed; beyond it a loss counts as infinite.
        points: how many of them, beside 0.
    """
    step = width / points
    epsilons = np.arange(points + 1) * step
    heights = np.minimum.accumulate([delta_at(float(epsilon)) for epsilon in epsilons])
    # delta(-eps) = 1 - e^-eps + e^-eps delta(eps), the same pair the other way round
    mirrored = -np.expm1(-epsilons) + np.exp(-epsilons) * heights
    x = np.exp(np.concatenate([-epsilons[:0:-1], epsilons]))
    y = np.concatenate([mirrored[:0:-1], heights])
    knots = _lower_hull(np.concatenate([[0.0], x]), np.concatenate([[1.0], y]))
    all_x, all_y = np.concatenate([[0.0], x])[knots], np.concatenate([[1.0], y])[knots]
    slopes = np.append(np.diff(all_y) / np.diff(all_x), 0.0)  # flat beyond the last point
    chances = np.zeros(2 * points + 1)
    # x_i times the change of slope there; the losses below 0 follow by symmetry
    chances[knots[1:] - 1] = np.maximum(np.diff(slopes), 0) * all_x[1:]
    above = chances[points + 1 :]
    chances[:points] = (above * np.exp(-epsilons[1:]))[::-1]
    infinite = float(all_y[-1])
    rest = 1 - infinite - float(above.sum()) - float(chances[:points].sum())
    chances[points] = max(rest, 0.0)
    return LossCurve(chances, infinite, step)


def _lower_hull(x: Floats, y: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Indices of the lower convex hull of points from left to right."""
    kept: list[int] = []
    for index in range(len(x)):
        while len(kept) > 1:
            first, last = kept[-2], kept[-1]
            rise = (y[last] - y[first]) * (x[index] - x[last])
            if rise < (y[index] - y[last]) * (x[last] - x[first]):
                break
            kept.pop()
        kept.append(index)
    return np.array(kept, np.int64)


def rounds_epsilon(crowd: ShuffledCrowd, rounds: int, delta: float) -> float:
    """An upper bound of the epsilon of several rounds, each with fresh coins and a fresh shuffle.

    >>> from sottovoce.oracles import oracle
    >>> ask = oracle("olh", size=1024, epsilon=6, hash_bits=9).blanket()
    >>> crowd = ShuffledCrowd([(1, [ask])], 1_000_000)
    >>> 0.23 < rounds_epsilon(crowd, 6, 1e-9) < 0.25
    True
    """
    check_delta(delta)
    rounds = whole("rounds", rounds, 1, MAX_ROUNDS)
    if rounds == 1 or crowd.honest + crowd.fakes == 0:
        return rounds * crowd.epsilon(delta)
    width = crowd.epsilon(delta * _INFINITE_SHARE / rounds)
    points = max(_HULL_POINTS, 2 * round(math.sqrt(rounds)))
    curve = loss_curve(lambda epsilon: crowd.delta(epsilon, COARSE_GRID), width, points)
    return composed_epsilon(curve, rounds, delta)


def composed_epsilon(curve: LossCurve, rounds: int, delta: float) -> float:
    """An epsilon at which so many rounds of a curve are at most delta."""
    low, high = 0.0, rounds * curve.step * (len(curve.chances) // 2)
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if curve.composed(rounds, middle) <= delta:
            high = middle
        else:
            low = middle
    return high
