"""The errors of repaired values: the crowd's reports are drawn again, and repaired as they were.

Standard errors and biases are those that repaired values show over the draws. Intervals are not:
quantiles of the draws miss the truth far too often near 0 (docs/postprocessing.md). They start from
the unrepaired values, which are unbiased, and use only what is certain of the truth: it lies
between 0 and 1, and sums to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.oracles import Noise
from sottovoce.postprocessing.crowds import Integers, collected, plausible_crowd
from sottovoce.postprocessing.simplex import norm
from sottovoce.results.cells import Total, bounded_ends, bounded_interval, quantile
from sottovoce.results.estimate import Floats, Table

REPAIR_ERRORS = "parametric bootstrap through the repair"
UNREPAIRED_ERRORS = "those of the unrepaired values"
REPLICATES = 2000  # collections that are drawn, if the table is not large
FEWEST_REPLICATES = 20
MOST_DRAWN = 1 << 21  # values, over all draws, if these are more than the fewest
MOST_REPAIRED = 1 << 19  # values of a table; of a larger one nothing is drawn
VALUES_AT_ONCE = 1 << 18  # values
DRAW_SEED = 20


def chunks(rows: int, size: int) -> Iterator[int]:
    """Numbers of rows of ``size`` values that are drawn at once, ``rows`` in all.

    >>> list(chunks(100, 1 << 13))
    [32, 32, 32, 4]
    """
    most = max(1, VALUES_AT_ONCE // size)
    for first in range(0, rows, most):
        yield min(most, rows - first)


def spread_of_norm(noise_of: Callable[[int], Noise], size: int, count: int, sums: Floats) -> Floats:
    """The variance of a sum of ``count`` values after ``norm``, which makes all ``size`` sum to 1.

    Args:
        noise_of: The law of the error of a sum of so many values.
        size: How many values there are.
        count: How many of them are summed.
        sums: True, or plausible, sums, of any shape.

    >>> spread_of_norm(lambda count: Noise(count * 0.01, 0.0), 2, 1, np.array([0.5])).round(6)
    array([0.005])
    """
    own = noise_of(count).variance(sums)
    rest = noise_of(size - count).variance(1 - sums) if count < size else np.zeros_like(own)
    whole = noise_of(size).variance(1.0)
    # Cov[T, A] of the sum T and that of all, A:  Var[A - T] = Var[A] + Var[T] - 2 Cov[T, A]
    together = (own + whole - rest) / 2
    # norm takes (|T|/d) (A - 1) off T:  Var = Var[T] - 2 (|T|/d) Cov[T, A] + (|T|/d)^2 Var[A]
    part = count / size
    return np.maximum(own - 2 * part * together + part**2 * whole, 0.0)


@dataclass(frozen=True, eq=False)
class RepairSpread:
    """How far repaired values, and sums of them, may be off.

    >>> from sottovoce.postprocessing.simplex import norm_sub
    >>> values, variances = np.array([0.9, 0.3, -0.2]), np.full(3, 0.01)
    >>> raw = Table(("x",), "abc", values, variances, 100, Noise(0.01, 0.0))
    >>> spread = RepairSpread(raw, lambda table: norm_sub(table.values), has_bounds=True)
    >>> [ends.round(3).tolist() for ends in spread.interval(0.95)]
    [[0.704, 0.104, 0.0], [1.0, 0.496, 0.164]]
    """

    raw: Table  # before any repair
    repair: Callable[[Table], Floats]  # of all its values, (..., values)
    has_bounds: bool = False  # whether repaired values lie in [0, 1]
    is_whole: bool = False  # whether the repair takes all values to sum to one
    cuts_sums: bool = False  # whether sums are not negative, although values may be
    shares: Floats | None = None  # to draw people by; None for those of the raw values

    def draws(self) -> Iterator[Floats]:
        """Repaired values less the truth that they were drawn for, (rows, values) at a time."""
        truth = self._crowd / self.raw.people
        for _, repaired in self._collections():
            yield repaired - truth

    def _collections(self) -> Iterator[tuple[Table, Floats]]:
        """What collections say, and their repaired values, (rows, values) at a time."""
        crowd = self._crowd
        random = np.random.default_rng(DRAW_SEED)
        replicates = min(REPLICATES, max(FEWEST_REPLICATES, MOST_DRAWN // crowd.size))
        for rows in chunks(replicates, crowd.size):
            heard = collected(self.raw, crowd, rows, random)
            yield heard, self.repair(heard)

    @property
    def _crowd(self) -> Integers:
        shares = self.raw.values if self.shares is None else self.shares
        return plausible_crowd(replace(self.raw, values=shares))

    @property
    def is_drawn(self) -> bool:
        """Whether the table is small enough for draws."""
        return len(self.raw) <= MOST_REPAIRED

    def moments(self) -> tuple[Floats, Floats]:
        """(variances, bias) of the repaired values, (values,) both."""
        return _moments(self.draws())

    @property
    def is_narrowed(self) -> bool:
        """Whether the law of sums tells how much is won by knowing that all sum to one."""
        raw = self.raw
        if not self.is_whole or not raw.is_complete or raw.sum_noise is None:
            return False
        # the law of a single value, unless reports tell of more than their number
        return raw.spread is None and raw.sum_noise(1) == raw.noise

    def unbiased(self) -> tuple[Floats, Floats]:
        """(values, variances) without bias: those of ``norm`` if sums are known, or the raw."""
        if not self.is_narrowed or self.raw.sum_noise is None:
            return self.raw.values, self.raw.variances
        values = norm(self.raw.values)
        shares = np.clip(values, 0, 1)
        return values, spread_of_norm(self.raw.sum_noise, values.size, 1, shares)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """(low, high) of every true frequency."""
        if self.is_narrowed:
            values, variances = self.unbiased()
            reach = quantile(level) * np.sqrt(variances)
            low, high = values - reach, values + reach
        else:
            low, high = self.raw.interval(level)
        return bounded_interval(low, high, level) if self.has_bounds else (low, high)

    def total(self, places: Sequence[int], value: float) -> Total:
        """The sum of the repaired values at these places, which is ``value``, with its error."""
        raw = self.raw
        before = raw.total([raw.labels[place] for place in places])
        is_bounded = self.has_bounds or self.cuts_sums
        if self.is_narrowed and raw.sum_noise is not None:
            # norm takes its share of what is missing or too much to the sum
            missing = 1 - float(raw.values.sum())
            centre = float(before) + missing * len(places) / len(raw)
            share = np.clip(centre, 0, 1)
            variance = spread_of_norm(raw.sum_noise, len(raw), len(places), share)
            unbiased = Total(centre, float(np.sqrt(variance)))
        else:
            unbiased = before
        error = self._sum_error(places, before.std_error) if self.is_drawn else before.std_error
        value = max(value, 0.0) if self.cuts_sums else value
        ends = partial(bounded_ends, unbiased) if is_bounded else unbiased.interval
        return Total(value, error, before.is_bound, ends)

    def _sum_error(self, places: Sequence[int], unrepaired: float) -> float:
        """The standard error of a sum, over the draws.

        Draws without the counts' law do not know how values err together. There the repair takes
        the same part of the error as in the draws off that of the unrepaired sum, ``unrepaired``.
        """
        chosen = list(places)
        heard_sums = []
        repaired_sums = []
        has_law = False
        for heard, repaired in self._collections():
            heard_sums.append(heard.values[:, chosen].sum(axis=1))  # (rows,)
            repaired_sums.append(repaired[:, chosen].sum(axis=1))
            has_law = heard.law is not None
        after = np.concatenate(repaired_sums)
        if self.cuts_sums:
            after = np.maximum(after, 0.0)
        spread = float(after.std(ddof=1))
        plain = float(np.concatenate(heard_sums).std(ddof=1))
        if has_law or plain <= 0:
            return spread
        return unrepaired * spread / plain


def _moments(draws: Iterator[Floats]) -> tuple[Floats, Floats]:
    """(variances, means) of rows that come some at a time."""
    rows: int = 0
    sums: ArrayLike = 0.0
    squares: ArrayLike = 0.0
    for errors in draws:
        rows += len(errors)
        sums = sums + errors.sum(axis=0)
        squares = squares + (errors**2).sum(axis=0)
    means = np.asarray(sums) / rows
    variances = (np.asarray(squares) - rows * means**2) / (rows - 1)
    return np.maximum(variances, 0.0), means
