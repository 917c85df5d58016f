"""From epsilon to integer thresholds: exact fractions after one exponential, rounded privately."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sottovoce.ground.entropy import WHOLE
from sottovoce.ground.errors import InvalidInput

# Every decimal operation names this context, so that no caller's settings reach a coin.
_CONTEXT = decimal.Context(prec=100, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
# far more than the error of a hundred digits, far less than one part in 2^64
_SLACK = Fraction(1, 10**60)
LARGEST_EPSILON = 100


def parse_epsilon(epsilon: Any) -> Decimal:
    """Epsilon as the exact decimal that was written, without zeros at its end: one number, one
    spelling in a plan.

    >>> parse_epsilon(0.1), parse_epsilon("1.00"), parse_epsilon("1E+1")
    (Decimal('0.1'), Decimal('1'), Decimal('10'))
    """
    try:
        if isinstance(epsilon, bool):
            raise TypeError
        value = epsilon if isinstance(epsilon, Decimal) else Decimal(str(epsilon))
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput(f"epsilon ({epsilon}) must be a number") from None
    if not value.is_finite() or value <= 0:
        raise InvalidInput(f"epsilon ({epsilon}) must be finite and greater than 0")
    if value > LARGEST_EPSILON:
        raise InvalidInput(
            f"epsilon ({epsilon}) must be at most {LARGEST_EPSILON}: beyond it nothing is private"
        )
    if len(value.as_tuple().digits) > 50 or value < Decimal("1e-50"):
        raise InvalidInput("epsilon must have at most 50 digits and be at least 1e-50")
    shortest = _CONTEXT.normalize(value)
    is_written_out = int(shortest.as_tuple().exponent) <= 0
    return shortest if is_written_out else _CONTEXT.quantize(shortest, Decimal(1))


def shared(epsilon: Decimal, parts: int) -> Decimal:
    """An equal part of a budget, rounded down to nine digits: parts never exceed the whole."""
    return decimal.Context(prec=9, rounding=decimal.ROUND_FLOOR, traps=[]).divide(
        epsilon, Decimal(parts)
    )


@lru_cache(maxsize=256)
def exp(exponent: Decimal | Fraction) -> Fraction:
    """e to the power of ``exponent``, to a hundred digits, as a fraction to go on with exactly."""
    exact = Fraction(exponent)
    power = _CONTEXT.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return Fraction(_CONTEXT.exp(power))


def log_down(ratio: Fraction) -> Decimal:
    """The natural logarithm, rounded down to thirty digits:
    an epsilon that surely costs no more.
    """
    exact = _CONTEXT.ln(_CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    return decimal.Context(prec=30, rounding=decimal.ROUND_FLOOR, traps=[]).plus(exact)


def rounded_down(probability: Fraction) -> int:
    """The largest threshold whose chance is surely not above ``probability``."""
    return max(0, math.floor((probability - _SLACK) * WHOLE))


def rounded_up(probability: Fraction) -> int:
    """The smallest threshold whose chance is surely not below ``probability``."""
    return min(WHOLE, math.ceil((probability + _SLACK) * WHOLE))


@lru_cache(maxsize=1024)
def truth_threshold(size: int, epsilon: Decimal) -> int:
    """GRR over ``size`` values: the chance not to draw, (E - 1)/(E + size - 1), rounded down."""
    odds = exp(epsilon)
    threshold = rounded_down((odds - 1) / (odds + size - 1))
    if threshold == 0:
        raise InvalidInput(
            f"epsilon ({epsilon}) is too small for size {size}: a report would say nothing"
        )
    return threshold


def log_ratio(value: Fraction) -> float:
    """The natural logarithm of an exact ratio, to the nearest double."""
    if value < 1:
        value = 1 / value
    return float(_CONTEXT.ln(_CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))))


def exceeds(value: Fraction, epsilon: Decimal) -> bool:
    """Whether an exact likelihood ratio is larger than e^epsilon allows."""
    return value > exp(epsilon) + _SLACK


def chance(threshold: int) -> Fraction:
    """The exact probability that a coin of this threshold lands heads."""
    return Fraction(threshold, WHOLE)
