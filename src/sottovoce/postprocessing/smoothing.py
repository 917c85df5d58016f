"""Expectation maximization with smoothing (EMS), for reports that say where a value is near."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.wave import SquareWave, windowed
from sottovoce.results.estimate import Floats

MOST_ITERATIONS = 10_000
LEAST_GAIN = 1e-3  # of the log-likelihood in one iteration, or it ends
MIN_ITERATIONS = 5  # the first steps from the uniform distribution may gain little


def smoothed_em(
    source: SquareWave,
    heard: ArrayLike,
    *,
    is_smoothed: bool = True,
    iterations: int = MOST_ITERATIONS,
    tolerance: float = LEAST_GAIN,
) -> Floats:
    """Frequencies of the values behind the reports of a square wave: biased, smooth, not negative.

    Each iteration is one of expectation maximization, then every value becomes a quarter, a half
    and a quarter of its neighbours and itself. It starts from the uniform distribution.

    Args:
        source: what the reports were drawn by.
        heard: how many reports named each place, or how much weight they have, (places,).
        is_smoothed: False for the likeliest frequencies as they are.
        iterations: at most.
        tolerance: it ends when the log-likelihood gains less.

    Returns:
        Frequencies that sum to one, (values,).

    >>> from sottovoce.oracles import oracle
    >>> wave = oracle("square-wave", size=8, epsilon=3.0)
    >>> heard = wave.accumulate(wave.empty(), wave.simulate([5] * 4000, seed=1))
    >>> int(smoothed_em(wave, heard).argmax())
    5
    """
    counts = np.asarray(heard, float)
    total = float(counts.sum())
    if counts.shape != (source.places,) or counts.min() < 0 or not total > 0:
        raise InvalidInput(
            f"heard must be {source.places} counts of places, none negative and some above 0"
        )
    if iterations < 1:
        raise InvalidInput(f"iterations ({iterations}) must be at least 1")
    p_minus_q, q = source.gap, source.q
    shares = np.full(source.size, 1 / source.size)  # f
    likelihood = -np.inf
    for step in range(iterations):
        # m_o = q + (p - q) sum of f over the values near o      the chance of place o
        chances = q + p_minus_q * _held_near(shares, source.near)
        gained = float(counts @ np.log(chances))
        if abs(gained - likelihood) < tolerance and step >= MIN_ITERATIONS:
            break
        likelihood = gained
        # f_v <- f_v sum_o (T_o/n) P(o|v)/m_o,  P(o|v) = q + (p - q) [o near v]
        ratios = counts / chances / total  # (places,)
        shares = shares * (q * ratios.sum() + p_minus_q * windowed(ratios, source.near))
        if is_smoothed:
            shares = smoothed(shares)
        shares = np.maximum(shares, 0.0)
        shares = shares / shares.sum()
    return shares


def smoothed(shares: Floats) -> Floats:
    """A quarter of each neighbour and half of the value itself; two thirds at either end.

    >>> smoothed(np.array([0.0, 0.0, 1.0, 0.0])).round(3).tolist()
    [0.0, 0.25, 0.5, 0.333]
    """
    if shares.size < 3:
        return shares
    # binomial weights (1, 2, 1), of those that are there     li2020numerical, section 5.5
    out = np.empty_like(shares)
    out[1:-1] = (shares[:-2] + 2 * shares[1:-1] + shares[2:]) / 4
    out[0] = (2 * shares[0] + shares[1]) / 3
    out[-1] = (2 * shares[-1] + shares[-2]) / 3
    return out


def _held_near(shares: Floats, near: int) -> Floats:
    """The share of those who are near each place, (places,)."""
    margin = np.zeros(near - 1)
    padded = np.concatenate([margin, shares, margin])
    return np.asarray(windowed(padded, near))
