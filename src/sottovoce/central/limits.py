"""How many tuples a person may contribute: public, or chosen from a noisy histogram, or by the
exponential mechanism. What is chosen from the data is paid for.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sottovoce.accounting import ExponentialStep, GaussianStep, Ledger, Neighbours
from sottovoce.central.method import Floats, Integers
from sottovoce.ground.entropy import COIN_BITS, Entropy
from sottovoce.ground.noise import discrete_gaussian

KEPT_PERCENTILE = Fraction(99, 100)  # of people whose contribution stays whole (gopi2021marginals)
_STEPS_PER_DOUBLING = 2  # of limits that may be chosen
_CLEAR = 3.0  # standard deviations that a bin of a histogram must show to count as held
# the same for a percentile, where one false bin among the thirty of a long grid decides
_CLEAR_TAIL = 4.0
_START_DIGITS = 40
SPREAD = 4.0  # the mean square of counts that were found, over their squared mean, about


def limit_note(limit: int, k: int) -> str:
    """What a reader must know of counts to which a person adds only so often.

    >>> limit_note(5, 2)
    'A user was counted for at most 5 tuples of 2 values, drawn at random where she holds more: \
counts lean downwards by what was left out, which their intervals do not hold.'
    """
    what = "values" if k == 1 else f"tuples of {k} values"
    return (
        f"A user was counted for at most {limit:,} {what}, drawn at random where she holds more: "
        "counts lean downwards by what was left out, which their intervals do not hold."
    )


def limit_grid(least: int, most: int) -> Integers:
    """Limits that may be chosen: some for each doubling, from ``least`` to ``most``.

    >>> limit_grid(1, 20)
    array([ 1,  2,  3,  4,  6,  8, 12, 16, 20])
    """
    grid = {least, most}
    doubling = 1
    while doubling < most:
        for part in range(_STEPS_PER_DOUBLING):
            edge = doubling + doubling * part // _STEPS_PER_DOUBLING
            if least < edge < most:
                grid.add(edge)
        doubling *= 2
    return np.array(sorted(grid), np.int64)


def noisy_sizes(
    sizes: Integers,
    grid: Integers,
    name: str,
    variance: Fraction,
    neighbours: Neighbours,
    ledger: Ledger,
    entropy: Entropy,
) -> Floats:
    """How many people hold up to each limit of a grid, and more than the one before; with noise.

    Guarantee: one Gaussian step: a person is in one bin.

    Args:
        sizes: of what each person holds.
        grid: ascending limits; whoever holds more than the last counts there.
        name: of what is held, for the ledger.
        variance: of the noise on a bin.
        neighbours: who counts as a neighbour.
        ledger: where it is spent.
        entropy: where the noise comes from.

    Returns:
        (limits + 1,), first those who hold nothing, then a bin for each limit.
    """
    step = GaussianStep.of_counts(
        f"{name}: limit", "a histogram of how much people hold", 1, variance, neighbours
    )
    ledger.spend(step)
    bins = 1 + np.minimum(np.searchsorted(grid, sizes), len(grid) - 1)
    counts = np.bincount(np.where(sizes > 0, bins, 0), minlength=len(grid) + 1)
    return (counts + discrete_gaussian(variance, len(counts), entropy)).astype(np.float64)


def percentile_limit(
    histogram: Floats,
    grid: Integers,
    deviation: float = 0.0,
    percentile: Fraction = KEPT_PERCENTILE,
) -> int:
    """The least limit that so many people keep, by a noisy histogram of :func:`noisy_sizes`.

    Args:
        histogram: of what people hold.
        grid: its limits.
        deviation: of the histogram's noise, if bins that it may explain are to be left out.
        percentile: of people whose contribution stays whole.

    >>> percentile_limit(np.array([10.0, 40.0, 49.0, 1.0]), np.array([1, 2, 4]))
    2
    """
    held = histogram
    if deviation:
        held = np.where(histogram > _CLEAR_TAIL * deviation, histogram, 0.0)
        held[0] = histogram[0]
    below = np.cumsum(held)[1:]
    is_enough = below >= float(percentile) * max(below[-1], 1.0)
    return int(grid[np.argmax(is_enough)])


def least_error_limit(
    histogram: Floats, grid: Integers, deviation: float, tuples: int, unit_variance: float
) -> int:
    """The limit with the least squared error of a count, by a noisy histogram.

    A limit loses contributions, and the noise grows with it.

    Args:
        histogram: of what people hold, from :func:`noisy_sizes`.
        grid: its limits.
        deviation: of the histogram's noise.
        tuples: how many there are to count.
        unit_variance: the variance of the noise at limit 1.
    """
    bins = histogram[1:]
    held = np.where(bins > _CLEAR * deviation, bins, 0.0)
    total = float((held * grid).sum())
    if total <= 0 or tuples < 1:
        return int(grid[0])
    over = np.maximum(0, grid[None, :] - grid[:, None])  # (limits, bins)
    lost = (over * held).sum(axis=1) / total
    mean_square = (total / tuples) ** 2 * SPREAD
    error = lost**2 * mean_square + grid * unit_variance
    return int(grid[np.argmin(error)])


def exponential_limit(
    sizes: Integers,
    grid: Integers,
    name: str,
    epsilon: Fraction,
    ledger: Ledger,
    entropy: Entropy,
    percentile: Fraction = KEPT_PERCENTILE,
) -> int:
    """A percentile by the exponential mechanism, as gopi2021marginals prints it.

    Guarantee: epsilon-private; the score -|#{w <= t} - Q n| moves by at most 1.

    Args:
        sizes: of what each person holds.
        grid: limits that may be chosen.
        name: of what is held, for the ledger.
        epsilon: of the choice.
        ledger: where it is spent.
        entropy: where the choice comes from.
        percentile: Q.
    """
    ledger.spend(ExponentialStep(f"{name}: limit", "a percentile of how much people hold", epsilon))
    ordered = np.sort(sizes)
    below = np.searchsorted(ordered, grid, side="right")
    exponents = []
    for number in below.tolist():
        distance = abs(number - percentile * len(sizes))
        exponents.append(-epsilon * distance / 2)
    return int(grid[exponential_choice(exponents, entropy)])


def exponential_choice(exponents: Sequence[Fraction], entropy: Entropy) -> int:
    """An index i with P(i) ~ exp(exponents[i]), exactly.

    A uniform number is compared with the law's sums; digits and bits are added until they differ.

    >>> from sottovoce.ground.entropy import Seeded
    >>> exponential_choice([Fraction(0), Fraction(-200)], Seeded(1))
    0
    """
    highest = max(exponents)
    digits, bits = _START_DIGITS, 2 * COIN_BITS
    uniform = entropy.bits(bits)
    while True:
        context = decimal.Context(
            prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
        )
        sums = []
        total = Decimal(0)
        for exponent in exponents:
            gap = exponent - highest
            power = context.divide(Decimal(gap.numerator), Decimal(gap.denominator))
            total = context.add(total, context.exp(power))
            sums.append(total)
        slack = total * len(exponents) * Decimal(10) ** (8 - digits)
        low = context.divide(context.multiply(total, Decimal(uniform)), Decimal(1 << bits))
        high = context.divide(context.multiply(total, Decimal(uniform + 1)), Decimal(1 << bits))
        index = sum(1 for each in sums if each + slack <= low)
        if high <= sums[index] - slack:
            return index
        uniform = uniform << COIN_BITS | entropy.bits(COIN_BITS)
        bits += COIN_BITS
        digits += _START_DIGITS
