"""From epsilon to integer thresholds, in decimal arithmetic, always rounded to the private side."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sottovoce.entropy import WHOLE
from sottovoce.errors import InvalidInput

_CONTEXT = decimal.Context(prec=100, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_SLACK = Decimal(10) ** -60  # far more than the error of 100 digits, far less than one part in 2^64
LARGEST_EPSILON = 100


def parse_epsilon(epsilon: Any) -> Decimal:
    """Epsilon as the exact decimal that was written.

    >>> parse_epsilon(0.1)
    Decimal('0.1')
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
        raise InvalidInput(f"epsilon ({epsilon}) must be at most {LARGEST_EPSILON}: beyond it nothing is private")
    return value


def exp(value: Decimal) -> Decimal:
    """e to the power of ``value``, to a hundred digits."""
    return _CONTEXT.exp(value)


def ratio(numerator: Decimal, denominator: Decimal) -> Decimal:
    """A quotient to a hundred digits."""
    return _CONTEXT.divide(numerator, denominator)


def rounded_down(probability: Decimal) -> int:
    """The largest threshold whose chance is surely not above ``probability``."""
    scaled = _CONTEXT.multiply(probability, Decimal(WHOLE))
    return max(0, math.floor(scaled - _SLACK * WHOLE))


def rounded_up(probability: Decimal) -> int:
    """The smallest threshold whose chance is surely not below ``probability``."""
    scaled = _CONTEXT.multiply(probability, Decimal(WHOLE))
    return min(WHOLE, math.ceil(scaled + _SLACK * WHOLE))


def truth_threshold(size: int, epsilon: Decimal) -> int:
    """GRR over ``size`` values: the chance to skip the uniform draw, (E - 1)/(E + size - 1), rounded down."""
    odds = exp(epsilon)
    threshold = rounded_down(ratio(odds - 1, odds + size - 1))
    if threshold == 0:
        raise InvalidInput(f"epsilon ({epsilon}) is too small for size {size}: a report would say nothing")
    return threshold


def log_ratio(value: Fraction) -> float:
    """The natural logarithm of an exact ratio, to the nearest double."""
    if value < 1:
        value = 1 / value
    top, bottom = Decimal(value.numerator), Decimal(value.denominator)
    return float(_CONTEXT.ln(_CONTEXT.divide(top, bottom)))


def exceeds(value: Fraction, epsilon: Decimal) -> bool:
    """Whether an exact likelihood ratio is larger than e^epsilon allows."""
    return _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator)) > exp(epsilon) + _SLACK


def chance(threshold: int) -> Fraction:
    """The exact probability that a coin of this threshold lands heads."""
    return Fraction(threshold, WHOLE)
