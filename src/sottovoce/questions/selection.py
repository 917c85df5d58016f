"""Intervals of what was chosen for being large: those of a normal mean, given that its estimate
passed a threshold, and perhaps a part of the evidence another one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.extras import imported
from sottovoce.results.cells import Total, cell_ends, largest_total, quantile

Floats = NDArray[np.float64]
MOST_BELOW = 1e4  # standard errors below the estimate beyond which no low end is looked for
END_HALVINGS = 50  # of the reach of a bisection
MEAN_STEPS, ESTIMATE_STEPS = 160, 240  # of the grids on which a choice in two steps is weighed
MOST_BEYOND = 5.0  # standard errors to which those grids reach
LOW_STEPS = 6  # in which the error at a low end is found
LEAST_LEVEL = 1e-6  # of an interval to one side of half of all chances or less
SURE_PASS = 0.999  # chance above which an earlier choice changes nothing


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
    """How far below the estimate means are not refused: ``kept`` falls with it."""
    far = np.full(len(above), MOST_BELOW)
    near, _ = _narrowed(lambda below: ~(kept(below) > 0), np.zeros(len(above)), far)
    return near


def _least_refused(refused: Callable[[Floats], Floats], most: float, above: Floats) -> Floats:
    """How far above the estimate means are not refused: ``refused`` rises with it."""
    far = np.full(len(above), most)
    near, _ = _narrowed(lambda beyond: ~(refused(beyond) < 0), np.zeros(len(above)), far)
    return near


def least_passing(
    passes: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats
) -> Floats:
    """Where a test that larger numbers pass begins to be passed.

    Args:
        passes: whether numbers pass, (values,) to (values,).
        low: numbers below which nothing is looked for, (values,).
        high: numbers, each of which is taken to pass, (values,).

    >>> least_passing(lambda each: each > 2, np.zeros(1), np.full(1, 8.0)).round(6).tolist()
    [2.0]
    """
    _, passing = _narrowed(passes, low, high)
    return passing


def _narrowed(
    passes: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """By bisection, the range in which a test that larger numbers pass begins to be passed."""
    below, above = low.astype(float), high.astype(float)
    for _ in range(END_HALVINGS):
        middle = (below + above) / 2
        is_passed = passes(middle)
        above = np.where(is_passed, middle, above)
        below = np.where(is_passed, below, middle)
    return below, above


def _from_below(total: Total, level: float) -> tuple[float, float]:
    """The interval of a sum of lower bounds, which has no upper end but 1."""
    low, _ = total.interval(level)
    return low, 1.0


@dataclass(frozen=True, eq=False)
class ChosenSpread:
    """Intervals of frequencies that were printed because they were large: a table's ``spread``.

    ``threshold`` is what a value had to exceed to be printed (or starred, if it is). Of values that
    combine two rounds, ``earlier`` is what the first one's part of the evidence had to exceed to be
    looked at again, and ``earlier_error`` how far that part strays from a given value; 0 for no
    such choice. Variances are ``floor`` for a value that nobody holds, and what grows with the
    frequency: ``doubt`` with its square, the rest in proportion. ``is_cut``: frequencies are lower
    bounds, and intervals reach up to 1.
    """

    values: Floats  # (values,)
    variances: Floats
    floor: Floats
    doubt: Floats
    threshold: Floats
    earlier: Floats
    earlier_error: Floats
    is_cut: bool = False

    @property
    def std_error(self) -> Floats:
        """Standard errors of the values."""
        return np.sqrt(self.variances)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """(low, high) of every value, within [0, 1], two arrays of shape (values,)."""
        # what is cut off makes no interval too high: all of the error may be at its low end
        reached = max(2 * level - 1, LEAST_LEVEL) if self.is_cut else level
        below = np.minimum(self.threshold, self.values)
        low, high = selected_interval(self.values, self.std_error, below, reached)
        # the low end is that of a lower frequency, which errs less
        for _ in range(LOW_STEPS):
            low, _ = selected_interval(self.values, self._error_at(low), below, reached)
        for row, (means, chances) in self._curves.items():
            low[row], high[row] = _ends(means, chances, 1 - reached)
        # none is empty: a frequency of 0 is never missed from above, nor one of 1 from below
        least = max(NormalDist().inv_cdf(level), 0.0) * self.std_error
        low = np.clip(np.minimum(low, 1 - least), 0, 1)
        high = np.clip(np.maximum(high, least), 0, 1)
        if self.is_cut:
            high = np.ones(len(high))
        return low, high

    def _error_at(self, frequencies: Floats) -> Floats:
        """The standard errors that values would have at other frequencies."""
        part = np.clip(frequencies / np.where(self.values > 0, self.values, np.inf), 0, 1)
        growth = (self.variances - self.floor - self.doubt, self.doubt)
        return np.sqrt(_grown(self.floor, growth, part))

    def total(self, places: Sequence[int], value: float) -> Total:
        """The sum of some values; how they err together is not known."""
        if len(places) == 1:
            error = float(self.std_error[places[0]])
            return Total(value, error, ends=partial(cell_ends, self, places[0]))
        total = largest_total(self.values, self.std_error, places, is_complete=False)
        if not self.is_cut:
            return total
        return Total(value, total.std_error, is_bound=True, ends=partial(_from_below, total))

    @cached_property
    def _curves(self) -> dict[int, tuple[Floats, Floats]]:
        """Means, and how well each goes with the value, where an earlier choice matters."""
        special = imported("scipy.special")
        errors = np.where(self.earlier_error > 0, self.earlier_error, np.inf)
        low = self.values - MOST_BEYOND * self.std_error
        passes = special.ndtr((low - self.earlier) / errors)
        is_chosen = (self.earlier_error > 0) & (passes < SURE_PASS)
        return {row: self._curve(row) for row in np.flatnonzero(is_chosen).tolist()}

    def _curve(self, row: int) -> tuple[Floats, Floats]:
        """How well every mean goes with a value that passed an earlier choice and a threshold.

        Given the mean m, values y have a density in proportion to phi((y - m) / error) Phi((y -
        earlier) / earlier_error) above the threshold: evidence that combines two rounds by inverse
        variances is sufficient, so that the first round's part, given y, does not depend on m.

        Returns:
            (means, the chance of a value that is at most as likely as this one), both (means,).
        """
        value, error = float(self.values[row]), float(self.std_error[row])
        reach = MOST_BEYOND * error
        means = np.linspace(min(0.0, value), value + reach, MEAN_STEPS)
        lowest = max(min(self.threshold[row], value), means[0] - reach)
        values = np.linspace(lowest, means[-1] + reach, ESTIMATE_STEPS)
        part = np.clip(means / value, 0, 1) if value > 0 else np.zeros(len(means))
        growth = (self.variances[row] - self.floor[row] - self.doubt[row], self.doubt[row])
        variances = _grown(self.floor[row], growth, part)  # (means,)
        of_choice = imported("scipy.special").log_ndtr(
            (np.append(values, value) - self.earlier[row]) / self.earlier_error[row]
        )
        # log densities of all values, and of this one, (means, values) and (means,)
        squares = (values - means[:, None]) ** 2
        logs = of_choice[:-1] - squares / variances[:, None] / 2
        own = of_choice[-1] - (value - means) ** 2 / variances / 2
        density = np.exp(logs - logs.max(axis=1, keepdims=True))
        is_less = logs <= own[:, None]
        chances = (density * is_less).sum(axis=1) / density.sum(axis=1)
        return means, chances


def _grown(floor: Floats, growth: tuple[Floats, Floats], part: Floats) -> Floats:
    """The variance at a part of a frequency, of which two parts grow with it and its square."""
    linear, square = (np.maximum(each, 0) for each in growth)
    return np.asarray(floor + part * linear + part**2 * square)


def _ends(means: Floats, chances: Floats, alpha: float) -> tuple[float, float]:
    """The least and the largest mean whose chance is at least ``alpha``, between steps of the
    grid.
    """
    kept = np.flatnonzero(chances >= alpha)
    if not len(kept):
        best = float(means[int(np.argmax(chances))])
        return best, best
    first, last = int(kept[0]), int(kept[-1])
    low, high = float(means[first]), float(means[last])
    if first > 0:
        low = float(np.interp(alpha, chances[[first - 1, first]], means[[first - 1, first]]))
    if last + 1 < len(means):
        high = float(np.interp(-alpha, -chances[[last, last + 1]], means[[last, last + 1]]))
    return low, high
