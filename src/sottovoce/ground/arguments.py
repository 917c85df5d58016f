"""Arguments, as they come from a person, a file or a plan: read strictly, refused clearly."""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Mapping
from decimal import Context, Decimal
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np

from sottovoce.ground.errors import InvalidInput

_FRACTION = re.compile("([1-9][0-9]{0,15})/([1-9][0-9]{0,15})")  # 2^53 has 16 digits
LARGEST_INTEGER = 1 << 53  # that every language's JSON keeps
MOST_DIGITS = 64  # of a number that is given as text
MOST_EXPONENT = 99
_EXPONENT = re.compile("e[+-]?([0-9_]+)", re.IGNORECASE)
# options whose numbers a question reads, and writes, by a rule of their own
_AS_GIVEN = (
    "delta",
    "known",
    "package",
)


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number in a range, or a decimal string of one: plans hold no large integers."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} ({value}) must be a whole number") from None
    if not least <= number <= most:
        raise InvalidInput(f"{name} ({value}) must lie between {least} and {most}")
    return number


def number_in(text: str) -> Fraction | None:
    """The number that a text is, in any of the ways that Python reads; None if it is none, or too
    long to be meant.

    >>> number_in("1e-2"), number_in("1e-1000000000"), number_in("grr")
    (Fraction(1, 100), None, None)
    """
    exponent = _EXPONENT.search(text)
    if len(text) > MOST_DIGITS or (exponent and int(exponent[1]) > MOST_EXPONENT):
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def written(number: Fraction) -> int | str:
    """How a question writes a number: whole, as a decimal if that ends, else as a fraction.

    >>> written(Fraction(2, 200)), written(Fraction(4, 2)), written(Fraction(2, 6))
    ('0.01', 2, '1/3')
    >>> written(Fraction(1, 10**8))
    '1E-8'
    """
    if number.denominator == 1:
        whole_number = int(number)
        return whole_number if abs(whole_number) <= LARGEST_INTEGER else str(whole_number)
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        return str(number)
    exact = Context(prec=4 * number.denominator.bit_length() + MOST_DIGITS)
    return str(
        exact.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(exact)
    )


def plain_option(option: Any) -> Any:
    """An option as a plan can hold it: no floats, no integers above 2^53, nothing of numpy's,
    numbers in one way.
    """
    if isinstance(option, list | tuple):
        return [plain_option(part) for part in option]
    option = option.item() if isinstance(option, np.generic) else option
    if isinstance(option, bool) or not isinstance(option, int | float | Decimal | Fraction | str):
        return option
    number = number_in(str(option))
    return option if number is None else written(number)


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """A question's options as a plan can hold them. Salts and chances are text, even whole ones.

    >>> plain_options({"hash_bits": "2", "theta": 0.25, "salt": 7, "instantaneous": (1, 0)})
    {'hash_bits': 2, 'theta': '0.25', 'salt': '7', 'instantaneous': ['1', '0']}
    """
    plain = {
        key: option if key in _AS_GIVEN else plain_option(option) for key, option in options.items()
    }
    if isinstance(plain.get("salt"), int):
        plain["salt"] = str(plain["salt"])
    if isinstance(plain.get("instantaneous"), list):
        plain["instantaneous"] = [str(part) for part in plain["instantaneous"]]
    return plain


def named_salt(*parts: Any) -> str:
    """A salt that what is so described always gets again, and nothing else shares."""
    text = json.dumps(parts, ensure_ascii=False)
    return str(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))


def plain_text(name: str, text: str) -> str:
    """``text`` if every store can keep it."""
    try:
        text.encode()
    except (UnicodeError, AttributeError):
        raise InvalidInput(f"{name} must be text that UTF-8 can hold") from None
    if "\0" in text:
        raise InvalidInput(f"{name} must not hold the character zero")
    return text


def power_of_two(name: str, value: Any, least: int, most: int) -> int:
    """A power of two in a range."""
    number = whole(name, value, least, most)
    if number & (number - 1):
        raise InvalidInput(f"{name} ({value}) must be a power of two")
    return number


def share(name: str, value: Any) -> Fraction:
    """A number from 0 to 1: a decimal, a fraction such as "3/4", or a float."""
    number = number_in(str(value))
    if number is None:
        raise InvalidInput(f"{name} ({value}) must be a number")
    if not 0 <= number <= 1:
        raise InvalidInput(f"{name} ({value}) must lie between 0 and 1")
    return number


def fraction(name: str, text: Any) -> Fraction:
    """A fraction as a plan writes it: two decimal integers of at most 2^53, in lowest terms.

    >>> fraction("delta", "1/1000")
    Fraction(1, 1000)
    """
    found = _FRACTION.fullmatch(text) if isinstance(text, str) else None
    parts = [int(part) for part in found.groups()] if found else []
    if not parts or max(parts) > LARGEST_INTEGER or gcd(*parts) > 1:
        raise InvalidInput(
            f"{name} ({text}) must be a fraction of two whole numbers of at most 2^53 "
            'in lowest terms, such as "1/1000"'
        )
    return Fraction(*parts)
