"""Intervals of what was chosen for being large: those of a normal mean, given that its estimate
passed a threshold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.extras import imported
from sottovoce.results.cells import quantile

Floats = NDArray[np.float64]
MOST_BELOW = 1e4  # standard errors below the estimate beyond which no low end is looked for
END_HALVINGS = 80  # of the reach of a bisection


def selected_interval(
    estimate: ArrayLike, std_error: ArrayLike, threshold: ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats]:
    """The interval of a normal mean given that its estimate exceeded ``threshold``.

    Over all estimates that pass, whatever the mean is, ``level`` of these intervals hold it. The
    usual ones hold it more rarely, because those that pass by luck are too large. Far above the
    threshold both are the same. At the threshold the low end falls without limit: a mean that
    cannot be negative is cut at 0 by the caller, which loses nothing.

    Of all regions that hold the estimate with chance ``level``, each mean has the shortest: no
    mean is refused because its estimate came too close to the threshold. So the estimate always
    lies in its interval, and both ends rise with it.

    Args:
        estimate: the estimates, each above its threshold, (values,).
        std_error: their standard errors, positive, (values,) or one for all.
        threshold: what they had to exceed, (values,) or one for all; minus infinity for no choice.
        level: the chance with which an interval holds its mean.

    Returns:
        (low, high), two arrays of shape (values,).

    >>> low, high = selected_interval([3.0, 3.0, 3.0], 1.0, [-np.inf, 1.0, 2.5], 0.95)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([1.04, 1.06, -3.08], [4.96, 4.96, 4.9])
    """
    values, errors, limits = np.broadcast_arrays(
        np.atleast_1d(np.asarray(estimate, float)), std_error, threshold
    )
    # in standard errors: how far the estimate lies above its threshold
    above = np.maximum(values - limits, 0) / errors
    # low end: the estimate is as large as the mean's region reaches;
    # P[X > x] = alpha P[X > t], or half of alpha where the region ends above the threshold too
    down = _largest_refused(lambda below: _upper_end(-below, above, level), above)
    # high end: the estimate is as small as the region reaches
    up = _least_refused(lambda beyond: _lower_end(beyond, above, level), quantile(level), above)
    return values - down * errors, values + up * errors


def _reach(passed: Floats, level: float) -> Floats:
    """How far the region of a mean reaches to both sides, if it ends above the threshold.

    Args:
        passed: how far the mean lies above the threshold, in standard errors.
        level: of the region.
    """
    special = imported("scipy.special")
    # 2 Phi(r) - 1 = level Phi(m - t)
    inside = level * special.ndtr(passed)
    return np.asarray(special.ndtri((1 + inside) / 2))


def _lower_end(mean: Floats, above: Floats, level: float) -> Floats:
    """Whether estimates at 0 are refused from below: positive if the region starts above them.

    Args:
        mean: means, measured from the estimate.
        above: how far the estimate lies above the threshold.
        level: of the region.
    """
    reach = _reach(mean + above, level)
    return np.asarray(mean - reach)


def _upper_end(mean: Floats, above: Floats, level: float) -> Floats:
    """Whether estimates at 0 are refused from above: negative if the region ends below them.

    Args:
        mean: means, measured from the estimate.
        above: how far the estimate lies above the threshold.
        level: of the region.
    """
    special = imported("scipy.special")
    reach = _reach(mean + above, level)
    is_cut = mean - reach < -above  # the region starts at the threshold
    # log P[X > x] - log P[X > t] - log alpha, which falls below 0 where x is refused
    tail = special.log_ndtr(mean) - special.log_ndtr(mean + above) - np.log1p(-level)
    return np.where(is_cut, tail, mean + reach)


def _largest_refused(kept: Callable[[Floats], Floats], above: Floats) -> Floats:
    """How far below the estimate means are not refused, by bisection: ``kept`` falls with it."""
    near, far = np.zeros(len(above)), np.full(len(above), MOST_BELOW)
    for _ in range(END_HALVINGS):
        middle = (near + far) / 2
        is_kept = kept(middle) > 0
        near = np.where(is_kept, middle, near)
        far = np.where(is_kept, far, middle)
    return near


def _least_refused(refused: Callable[[Floats], Floats], most: float, above: Floats) -> Floats:
    """How far above the estimate means are not refused, by bisection: ``refused`` rises with it."""
    near, far = np.zeros(len(above)), np.full(len(above), most)
    for _ in range(END_HALVINGS):
        middle = (near + far) / 2
        is_kept = refused(middle) < 0
        near = np.where(is_kept, middle, near)
        far = np.where(is_kept, far, middle)
    return near
