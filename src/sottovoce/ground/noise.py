"""Exact integer noise in bulk: discrete Laplace and discrete Gaussian, and uniform samples.

The laws are exact, as in canonne2020discrete: scales and variances are fractions, all coins are
uniform 64-bit words of an :class:`~sottovoce.ground.entropy.Entropy`, and no rounding of a double
decides a draw. A coin of chance exp(-gamma) compares a word with exp(-gamma) in doubles, whose
error is bounded by ``_BAND``. Only a word that lies so near, one in 2^43, is compared again, with
as many digits and further bits as that takes.

A simulation hands in :class:`~sottovoce.ground.entropy.Seeded` and runs the same code.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import COIN_BITS, WHOLE, Entropy
from sottovoce.ground.errors import InvalidInput

Integers = NDArray[np.int64]

# Largest numerator or denominator of a Laplace scale, and bound of a Gaussian's deviation: all
# integers below stay exact in doubles and in 64 bits.
LARGEST_NOISE_SCALE = 1 << 46
# How near a word must be to exp(-gamma), as a share of 1, to be compared again. The doubles are
# nearer than 2^-48: see _survive.
_BAND = 2.0**-44
_BLOCK = 1 << 16  # proposals that are drawn at once, so that they stay in the cache
_UNIT_TAIL = 45  # e^-45 < 2^-64
_GUARD_DIGITS = 8  # of a decimal, beyond those that are compared


def discrete_gaussian(variance: Fraction, count: int, entropy: Entropy) -> Integers:
    """Noise z with P(z) ~ exp(-z^2 / (2 variance)) over the integers, exactly.

    Args:
        variance: the parameter sigma^2, exact. (The noise's own variance is never above it.)
        count: how many draws.
        entropy: where the bits come from.

    Returns:
        ``count`` independent draws.

    >>> from sottovoce.ground.entropy import Seeded
    >>> discrete_gaussian(Fraction(25), 5, Seeded(1)).shape
    (5,)
    """
    sigma2 = _exact("variance", variance)
    if sigma2 >= LARGEST_NOISE_SCALE**2:
        raise InvalidInput(f"variance ({float(sigma2):.3g}) must be below 2^92")
    # algorithm 3 of canonne2020discrete: Laplace noise of scale t = floor(sigma) + 1, which is
    # kept with chance exp(-(|y| - sigma^2/t)^2 / (2 sigma^2))
    scale = math.isqrt(math.floor(sigma2)) + 1
    centre = sigma2 / scale
    near_centre = float(centre)
    near_double = float(2 * sigma2)

    def exact_exponent(proposal: int) -> Fraction:
        return (abs(proposal) - centre) ** 2 / (2 * sigma2)

    def propose(wanted: int) -> Integers:
        proposals = discrete_laplace(Fraction(scale), wanted, entropy)
        distance = np.abs(proposals).astype(np.float64) - near_centre
        kept = _survive(distance * distance / near_double, proposals, exact_exponent, entropy)
        return proposals[kept]

    return _collected(count, 1.4, propose)


def lattice_gaussian(variance: Fraction, per_unit: int, count: int, entropy: Entropy) -> Integers:
    """Discrete Gaussian noise on the multiples of ``1 / per_unit``, exactly.

    Args:
        variance: sigma^2 in whole units.
        per_unit: how many steps of the lattice make a unit.
        count: how many draws.
        entropy: where the bits come from.

    Returns:
        The noise in steps of the lattice: integers, to be divided by ``per_unit``.

    >>> from sottovoce.ground.entropy import Seeded
    >>> lattice_gaussian(Fraction(25), 6, 5, Seeded(1)).dtype
    dtype('int64')
    """
    if per_unit < 1:
        raise InvalidInput(f"per_unit ({per_unit}) must be at least 1")
    return discrete_gaussian(_exact("variance", variance) * per_unit**2, count, entropy)


def discrete_laplace(scale: Fraction, count: int, entropy: Entropy) -> Integers:
    """Noise z with P(z) ~ exp(-|z| / scale) over the integers, exactly.

    Args:
        scale: a fraction greater than 0; its terms are at most 2^46.
        count: how many draws.
        entropy: where the bits come from.

    Returns:
        ``count`` independent draws.

    >>> from sottovoce.ground.entropy import Seeded
    >>> discrete_laplace(Fraction(5, 2), 5, Seeded(1)).shape
    (5,)
    """
    exact = _exact("scale", scale)
    top, bottom = exact.numerator, exact.denominator
    if max(top, bottom) > LARGEST_NOISE_SCALE:
        raise InvalidInput(f"scale ({exact}) must be a fraction of numbers of at most 2^46")

    def exact_exponent(part: int) -> Fraction:
        return Fraction(part, top)

    def propose(wanted: int) -> Integers:
        # algorithm 2 of canonne2020discrete: x = part + top * wholes has P(x) ~ exp(-x/top), and
        # floor(x / bottom) has the ratio exp(-bottom/top)
        part = uniform_below(top, wanted, entropy)
        kept = _survive(part / top, part, exact_exponent, entropy)
        part = part[kept]
        wholes = _unit_geometric(len(part), entropy)
        size = (part + top * wholes) // bottom
        negative = (entropy.words(len(size)) & np.uint64(1)).astype(bool)
        signed: Integers = np.where(negative, -size, size)
        is_other_zero = negative & (size == 0)  # zero has one sign only
        return np.asarray(signed[~is_other_zero], np.int64)

    return _collected(count, 2.0, propose)


def uniform_below(limit: int, count: int, entropy: Entropy) -> Integers:
    """Uniform integers of ``range(limit)``, without bias: words above a multiple are drawn anew.

    >>> from sottovoce.ground.entropy import Seeded
    >>> sorted(set(uniform_below(3, 100, Seeded(1)).tolist()))
    [0, 1, 2]
    """
    if not 0 < limit <= 1 << 62:
        raise InvalidInput(f"limit ({limit}) must lie between 1 and 2^62")
    highest = np.uint64(WHOLE - WHOLE % limit - 1)

    def propose(wanted: int) -> Integers:
        words = entropy.words(wanted)
        kept = words[words <= highest]
        return np.asarray(kept % np.uint64(limit), np.int64)

    return _collected(count, 1.0, propose)


def sampled_within_groups(sizes: NDArray[Any], limit: int, entropy: Entropy) -> NDArray[np.bool_]:
    """A uniform choice of at most ``limit`` members of each group, independent of the others.

    Every member gets a 64-bit word, and the lowest ones stay. A group in which two words are equal
    draws all of its words anew, so that every choice is exactly as likely as any other.

    Args:
        sizes: of the groups, whose members stand one after another.
        limit: how many members of a group may stay.
        entropy: where the bits come from.

    Returns:
        For each member whether it stays, in the order in which they stand.

    >>> from sottovoce.ground.entropy import Seeded
    >>> sampled_within_groups(np.array([2, 3]), 2, Seeded(1)).sum()
    np.int64(4)
    """
    if limit < 0:
        raise InvalidInput(f"limit ({limit}) must be at least 0")
    counts = np.asarray(sizes, np.int64)
    stays = np.ones(int(counts.sum()), bool)
    is_large = counts > limit
    members = np.flatnonzero(np.repeat(is_large, counts))
    counts = counts[is_large]
    while len(members):
        group = np.repeat(np.arange(len(counts)), counts)
        words = entropy.words(len(members))
        order = np.lexsort((words, group))  # by group, then by word
        starts = np.cumsum(counts) - counts
        rank = np.arange(len(members)) - np.repeat(starts, counts)
        stays[members[order]] = rank < limit

        ordered = words[order]
        is_equal = (ordered[1:] == ordered[:-1]) & (group[1:] == group[:-1])
        again = np.zeros(len(counts), bool)
        again[group[1:][is_equal]] = True
        members = members[again[group]]
        counts = counts[again]
    return stays


def _exact(name: str, value: Any) -> Fraction:
    """A parameter that decides privacy: exact, and greater than 0."""
    if isinstance(value, float) or not isinstance(value, Fraction | int | Decimal):
        raise InvalidInput(f"{name} ({value}) must be a Fraction, an int or a Decimal")
    exact = Fraction(value)
    if exact <= 0:
        raise InvalidInput(f"{name} ({value}) must be greater than 0")
    return exact


def _collected(count: int, tries: float, propose: Callable[[int], Integers]) -> Integers:
    """The first ``count`` kept proposals, asked for in blocks.

    Args:
        count: how many to return.
        tries: proposals that one kept draw takes, about.
        propose: from how many proposals to make to those that were kept.
    """
    if count < 0:
        raise InvalidInput(f"count ({count}) must be at least 0")
    drawn = np.empty(count, np.int64)
    filled = 0
    while filled < count:
        missing = count - filled
        kept = propose(min(_BLOCK, int(tries * missing) + 8))[:missing]
        drawn[filled : filled + len(kept)] = kept
        filled += len(kept)
    return drawn


def _survive(
    exponent: NDArray[np.float64],
    values: Integers,
    exact_exponent: Callable[[int], Fraction],
    entropy: Entropy,
) -> NDArray[np.bool_]:
    """Coins of chance exp(-exponent), exactly.

    How far the doubles are from the truth: exponents are made of at most four operations on
    numbers of comparable size, so that exp(-exponent) is off by at most 8 x 2^-53 (the largest of
    r (1 + r) exp(-r^2/2) is below 2); numpy's exp by less than four units of its last place, so by
    2^-51; the word that is cut off to 53 bits by 2^-53. Together they are less than 2^-48.

    Args:
        exponent: the exponents as doubles.
        values: what each exponent was computed from.
        exact_exponent: from a value to its exact exponent.
        entropy: where the bits come from.
    """
    words = entropy.words(len(exponent))
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    chance = np.exp(-exponent)
    heads = uniform < chance
    for index in np.flatnonzero(np.abs(uniform - chance) < _BAND):
        exact = exact_exponent(int(values[index]))
        heads[index] = _is_below_exp(int(words[index]), exact, entropy)
    return heads


def _is_below_exp(word: int, exponent: Fraction, entropy: Entropy) -> bool:
    """Whether a uniform number, whose first 64 bits are ``word``, is below exp(-exponent).

    Further bits are drawn, and further digits computed, until the two differ.
    """
    if exponent == 0:
        return True
    bits = COIN_BITS
    while True:
        low, high = _exp_bounds(exponent, bits)
        if (word + 1) <= low * (1 << bits):
            return True
        if word >= high * (1 << bits):
            return False
        word = word << COIN_BITS | entropy.bits(COIN_BITS)
        bits += COIN_BITS


def _exp_bounds(exponent: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Fractions below and above exp(-exponent), nearer to each other than 2^-bits."""
    if exponent > bits + 1:  # exp(-exponent) < 2^-(bits + 1)
        return Fraction(0), Fraction(1, 2 << bits)
    larger = max(1, math.ceil(exponent))
    digits = bits // 3 + len(str(larger)) + _GUARD_DIGITS
    # every decimal operation names the context, so that no caller's settings reach a coin
    context = decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
    power = context.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator))
    near = Fraction(context.exp(power))
    # the quotient is off by a relative 10^-digits, so the power by that times the exponent; and
    # Decimal's exp is correctly rounded
    slack = near * 4 * larger / Fraction(10) ** (digits - 1)
    return near - slack, near + slack


def _unit_thresholds() -> NDArray[np.uint64]:
    """floor(2^64 e^-k) for k = 1, 2, ... down to 0, from a hundred digits; rising."""
    context = decimal.Context(prec=100)
    powers = [Fraction(context.exp(Decimal(-k))) for k in range(1, _UNIT_TAIL + 1)]
    levels = [math.floor(power * WHOLE) for power in powers]
    return np.array(levels[::-1], np.uint64)


_UNIT_THRESHOLDS = _unit_thresholds()


def _unit_geometric(count: int, entropy: Entropy) -> Integers:
    """Whole numbers k with P(k >= m) = e^-m, exactly.

    A word w stands for a uniform number between w/2^64 and (w + 1)/2^64, and k is how many of
    e^-1, e^-2, ... lie above that number. Only if one lies between the two, further bits decide.
    """
    words = entropy.words(count)
    above = np.searchsorted(_UNIT_THRESHOLDS, words, side="right")
    wholes = (_UNIT_TAIL - above).astype(np.int64)
    # a word equal to floor(2^64 e^-k) is undecided; the lowest threshold is 0, for all k from 45 on
    is_edge = np.isin(words, _UNIT_THRESHOLDS)
    for index in np.flatnonzero(is_edge):
        wholes[index] = _slow_unit_geometric(int(words[index]), entropy)
    return wholes


def _slow_unit_geometric(word: int, entropy: Entropy) -> int:
    """The same of one word: compared with e^-1, e^-2 and so on, one after another."""
    bits = COIN_BITS
    power = 0
    while True:
        low, high = _exp_bounds(Fraction(power + 1), bits)
        if (word + 1) <= low * (1 << bits):
            power += 1
        elif word >= high * (1 << bits):
            return power
        else:
            word = word << COIN_BITS | entropy.bits(COIN_BITS)
            bits += COIN_BITS


def discrete_gaussian_above(
    variance: Fraction, least: int, count: int, entropy: Entropy
) -> Integers:
    """Discrete Gaussian noise given that it is at least ``least``, exactly.

    With a = least, exp(-(a + g)^2/(2 sigma^2)) ~ exp(-a g/sigma^2) exp(-g^2/(2 sigma^2)): a
    geometric g, kept with the chance that remains. So the time does not grow with how rare it is.

    Args:
        variance: the parameter sigma^2, exact.
        least: the lowest noise, above 0.
        count: how many draws.
        entropy: where the bits come from.

    Returns:
        ``count`` independent draws, none below ``least``.

    >>> from sottovoce.ground.entropy import Seeded
    >>> bool(discrete_gaussian_above(Fraction(4), 20, 100, Seeded(1)).min() >= 20)
    True
    """
    sigma2 = _exact("variance", variance)
    if least < 1:
        raise InvalidInput(f"least ({least}) must be at least 1")
    # proposals fall by exp(-1/scale) a step, no faster than the law's first step does; and no
    # slower than sigma, or hardly any would be kept
    scale = math.ceil(min(sigma2 / least, Fraction(math.isqrt(math.ceil(sigma2)) + 1)))
    slope = Fraction(least) / sigma2 - Fraction(1, scale)
    near_slope = float(slope)
    near_double = float(2 * sigma2)
    # where the slope is below 0 the exponent's least value is subtracted, so that none is below 0
    lowest = -(slope**2) * sigma2 / 2 if slope < 0 else Fraction(0)
    near_lowest = float(lowest)

    def exact_exponent(step: int) -> Fraction:
        return slope * step + Fraction(step * step) / (2 * sigma2) - lowest

    def propose(wanted: int) -> Integers:
        signed = discrete_laplace(Fraction(scale), 2 * wanted, entropy)
        steps = signed[signed >= 0]
        near = steps.astype(np.float64)
        exponent = near_slope * near + near * near / near_double - near_lowest
        kept = _survive(exponent, steps, exact_exponent, entropy)
        return least + steps[kept]

    return _collected(count, 2.0, propose)
