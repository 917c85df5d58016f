"""Several shuffled rounds of the same people: their losses add up.

delta as a function of x = e^epsilon is convex, and so is the lower hull of computed points, which
lies above it. The hull is the curve of a pair of laws whose losses lie on the grid of the points
(zhu2022optimal, proposition 22), and the losses of independent rounds add: a power of a
characteristic function, tilted to where it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.accounting.gaussian import Floats, check_delta
from sottovoce.accounting.shuffling.bounds import SOLVED_TO, ShuffledCrowd
from sottovoce.accounting.shuffling.expectation import COARSE_GRID
from sottovoce.ground.arguments import whole

MAX_ROUNDS = 10_000
ROUND_MARGIN = 1e-6  # relative, of delta: what double precision may have lost
_HULL_POINTS = 150
_INFINITE_SHARE = 0.05  # of delta, for losses beyond the last point


@dataclass(frozen=True)
class LossCurve:
    """Losses of a dominating pair: at ``step * (-m .. m)``, and at infinity."""

    chances: Floats  # (2 m + 1,)
    infinite: float
    step: float

    def reversed(self, infinite: float) -> LossCurve:
        """The losses of the same pair the other way round, ``infinite`` of them beyond all."""
        half = len(self.chances) // 2
        losses = np.arange(-half, half + 1) * self.step
        turned = (self.chances * np.exp(-losses))[::-1]
        return LossCurve(np.ascontiguousarray(turned), infinite, self.step)


def composed_delta(curves: Sequence[tuple[LossCurve, int]], epsilon: float) -> float:
    """An upper bound of the delta of independent losses together.

    Args:
        curves: on one grid, and how often each.
        epsilon: at least 0.
    """
    step, half = curves[0][0].step, len(curves[0][0].chances) // 2
    count = sum(times for _, times in curves)
    losses = np.arange(-half, half + 1, dtype=np.float64) * step
    tilt = _centred_tilt(curves, losses, epsilon)
    size = 1 << math.ceil(math.log2(2 * half * count + 2))
    log_total, log_finite = 0.0, 0.0
    powers = np.ones(size // 2 + 1, complex)
    for curve, times in curves:
        weights = curve.chances * np.exp(tilt * losses)
        total = float(weights.sum())
        powers *= np.fft.rfft(weights / total, size) ** times
        log_total += times * math.log(total)
        log_finite += times * math.log1p(-curve.infinite)
    law = np.fft.irfft(powers, size)[: 2 * half * count + 1]
    sums = np.arange(-half * count, half * count + 1) * step
    above = sums > epsilon
    # chance = law e^(log total - tilt loss), and of it 1 - e^(epsilon - loss) is delta
    chances = np.maximum(law[above], 0) * np.exp(log_total - tilt * sums[above])
    finite = float(chances @ -np.expm1(epsilon - sums[above]))
    return min(1.0, (finite - math.expm1(log_finite)) * (1 + ROUND_MARGIN))


def _centred_tilt(curves: Sequence[tuple[LossCurve, int]], losses: Floats, epsilon: float) -> float:
    """About where the tilted mean of all losses together is epsilon; any tilt is right."""
    low, high = 0.0, 600 / max(float(losses[-1]), 1e-300)
    for _ in range(40):
        middle = (low + high) / 2
        mean = 0.0
        for curve, times in curves:
            weights = curve.chances * np.exp(middle * (losses - losses[-1]))
            mean += times * float(weights @ losses) / float(weights.sum())
        if mean < epsilon:
            low = middle
        else:
            high = middle
    return low


def loss_curve(
    delta_at: Callable[[float], float],
    width: float,
    points: int,
    reversed_at: Callable[[float], float] | None = None,
) -> LossCurve:
    """The pair that dominates a mechanism.

    Args:
        delta_at: an upper bound of delta for every epsilon of at least 0.
        width: the last epsilon at which it is computed; beyond it a loss counts as infinite.
        points: how many of them, beside 0.
        reversed_at: the same with the neighbours exchanged; None if that makes no difference.
    """
    epsilons = np.arange(points + 1, dtype=np.float64) * (width / points)
    heights = np.minimum.accumulate([delta_at(float(epsilon)) for epsilon in epsilons])
    others = heights
    if reversed_at is not None:
        others = np.minimum.accumulate([reversed_at(float(epsilon)) for epsilon in epsilons])
    above = _positive_losses(epsilons, heights, others)
    # a loss below 0 is one above it the other way round, e^-loss times as likely
    below = _positive_losses(epsilons, others, heights) * np.exp(-epsilons[1:])
    infinite = float(heights[-1])
    rest = max(0.0, 1 - infinite - float(above.sum()) - float(below.sum()))
    chances = np.concatenate([below[::-1], [rest], above])
    return LossCurve(chances, infinite, width / points)


def _positive_losses(epsilons: Floats, heights: Floats, others: Floats) -> Floats:
    """The chances of losses at each epsilon above 0, from the hull of both sides.

    Args:
        epsilons: 0 and up.
        heights: delta there.
        others: delta there with the neighbours exchanged.
    """
    # delta(-eps) = 1 - e^-eps + e^-eps delta'(eps)
    mirrored = -np.expm1(-epsilons) + np.exp(-epsilons) * others
    x = np.concatenate([[0.0], np.exp(-epsilons[:0:-1]), np.exp(epsilons)])
    y = np.concatenate([[1.0], mirrored[:0:-1], heights])
    knots = _lower_hull(x, y)
    slopes = np.append(np.diff(y[knots]) / np.diff(x[knots]), 0.0)  # flat beyond the last point
    # x times the change of slope at x
    chances = np.zeros(len(x))
    chances[knots[1:]] = np.maximum(np.diff(slopes), 0) * x[knots[1:]]
    return chances[len(epsilons) + 1 :]


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
    points = _HULL_POINTS
    curve = loss_curve(lambda epsilon: crowd.delta(epsilon, COARSE_GRID), width, points)
    return composed_epsilon([(curve, rounds)], delta)


def composed_epsilon(curves: Sequence[tuple[LossCurve, int]], delta: float) -> float:
    """An epsilon at which losses together, on one grid, are at most delta."""
    longest = curves[0][0].step * (len(curves[0][0].chances) // 2)
    low, high = 0.0, longest * sum(times for _, times in curves)
    while high - low > SOLVED_TO * high:
        middle = (low + high) / 2
        if composed_delta(curves, middle) <= delta:
            high = middle
        else:
            low = middle
    return high
