"""How many of very many draws of noise exceed a threshold: exactly, without drawing them all.

The chance of one draw is a sum of exponentials, the number of those that exceed is binomial. Both
are decimals with as many digits as a comparison with a uniform number needs, so that the law is
exact, as in :mod:`sottovoce.ground.noise`.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from sottovoce.ground.entropy import COIN_BITS, Entropy
from sottovoce.ground.errors import InvalidInput

_GUARD_DIGITS = 12
_START_DIGITS = 60
_START_WORDS = 2  # of the uniform number
LARGEST_TAIL_SIGMA = 1 << 18  # so that sums of a few dozen sigma terms stay quick


@lru_cache(maxsize=256)
def gaussian_tail(variance: Fraction, least: int, digits: int = _START_DIGITS) -> Decimal:
    """P(z >= least) of discrete Gaussian noise, to so many digits after its first one.

    Args:
        variance: the parameter sigma^2, exact.
        least: any integer.
        digits: how many digits are right.

    >>> round(float(gaussian_tail(Fraction(1), 2)), 6)
    0.058558
    """
    if variance <= 0:
        raise InvalidInput(f"variance ({variance}) must be greater than 0")
    if least <= 0:
        context = _context(digits)
        return context.subtract(Decimal(1), gaussian_tail(variance, 1 - least, digits))
    if variance > LARGEST_TAIL_SIGMA**2:
        raise InvalidInput(f"variance ({float(variance):.3g}) must be at most 2^36 for a tail")
    above = _half_sum(variance, least, digits)
    positive = _half_sum(variance, 1, digits)
    context = _context(digits)
    whole = context.add(Decimal(1), context.multiply(Decimal(2), positive))
    return context.divide(above, whole)


def _half_sum(variance: Fraction, least: int, digits: int) -> Decimal:
    """The sum of exp(-z^2 / (2 variance)) over z >= least, which is above 0.

    One term follows from the one before by a factor that itself falls by a constant factor, and
    terms are added until the rest is below the last digit.
    """
    # some thirty sigma factors follow from each other, each with a rounding of its own
    terms = 32 * (math.isqrt(math.ceil(variance)) + 1)
    context = _context(digits + 2 * len(str(terms)))
    term = _exp(-Fraction(least * least) / (2 * variance), context)
    factor = _exp(-Fraction(2 * least + 1) / (2 * variance), context)
    step = _exp(-1 / variance, context)
    smallest = Decimal(10) ** (-digits - _GUARD_DIGITS)
    total = Decimal(0)
    while term > context.multiply(total, smallest):
        total = context.add(total, term)
        term = context.multiply(term, factor)
        factor = context.multiply(factor, step)
    # the rest is at most term / (1 - factor), and 1 - factor is above 1/sigma so far out
    return total


def number_above(count: int, chance_least: int, variance: Fraction, entropy: Entropy) -> int:
    """How many of ``count`` draws of discrete Gaussian noise are at least ``chance_least``.

    Args:
        count: how many draws are spoken of; none is made.
        chance_least: what a draw must reach.
        variance: the parameter sigma^2 of the noise.
        entropy: where the bits come from.

    Returns:
        A binomial number, of exactly that law.

    >>> from sottovoce.ground.entropy import Seeded
    >>> number_above(10**12, 40, Fraction(25), Seeded(1)) < 10**5
    True
    """
    if count < 0:
        raise InvalidInput(f"count ({count}) must be at least 0")
    if count == 0:
        return 0
    words = _START_WORDS
    uniform = entropy.bits(words * COIN_BITS)
    digits = _START_DIGITS
    while True:
        found = _inverted(count, chance_least, variance, uniform, words * COIN_BITS, digits)
        if found is not None:
            return found
        uniform = uniform << COIN_BITS | entropy.bits(COIN_BITS)
        words += 1
        digits += _START_DIGITS


def _inverted(
    count: int, least: int, variance: Fraction, uniform: int, bits: int, digits: int
) -> int | None:
    """The number at which the binomial law's sum passes a uniform number; None if these digits and
    bits do not decide.
    """
    context = _context(digits)
    tail = gaussian_tail(variance, least, digits + len(str(count)))
    rest = context.subtract(Decimal(1), tail)
    low = context.divide(Decimal(uniform), Decimal(1 << bits))
    width = context.divide(Decimal(1), Decimal(1 << bits))
    high = context.add(low, width)
    slack = Decimal(10) ** (-digits + _GUARD_DIGITS)
    # P(0) = (1 - p)^N, P(m + 1) = P(m) (N - m)/(m + 1) p/(1 - p)
    log_rest = context.multiply(Decimal(count), context.ln(rest))
    term = context.exp(log_rest)
    odds = context.divide(tail, rest)
    total = term
    for number in range(count):
        if high <= total - slack:
            return number
        if low < total + slack:
            return None
        ratio = context.divide(Decimal(count - number), Decimal(number + 1))
        term = context.multiply(term, context.multiply(ratio, odds))
        total = context.add(total, term)
    return count


def _context(digits: int) -> decimal.Context:
    return decimal.Context(
        prec=digits + _GUARD_DIGITS, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
    )


def _exp(exponent: Fraction, context: decimal.Context) -> Decimal:
    """exp of a fraction; the quotient has the digits that a large exponent takes."""
    size = len(str(math.ceil(abs(exponent)))) + _GUARD_DIGITS
    wider = decimal.Context(
        prec=context.prec + size, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
    )
    quotient = wider.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return context.exp(quotient)
