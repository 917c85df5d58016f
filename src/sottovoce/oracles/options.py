"""Options of oracles, as they come from a person, a file or a plan: read strictly, refused clearly."""

from __future__ import annotations

import hashlib
import json
import operator
import re
from decimal import Decimal
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np

from sottovoce.attributes.base import LARGEST_INTEGER
from sottovoce.errors import InvalidInput

_FRACTION = re.compile("([1-9][0-9]{0,15})/([1-9][0-9]{0,15})")  # 2^53 has 16 digits


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number in a range; a decimal string of one will do, since plans hold no large integers."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} ({value}) must be a whole number") from None
    if not least <= number <= most:
        raise InvalidInput(f"{name} ({value}) must lie between {least} and {most}")
    return number


def plain_option(option: Any) -> Any:
    """An option as a plan can hold it: no floats, no integers above 2^53, nothing of numpy's."""
    if isinstance(option, list | tuple):
        return [plain_option(part) for part in option]
    option = option.item() if isinstance(option, np.generic) else option
    large = isinstance(option, int) and abs(option) > LARGEST_INTEGER
    return str(option) if large or isinstance(option, float | Decimal | Fraction) else option


def named_salt(*parts: Any) -> str:
    """A salt that what is so described always gets again, and nothing else shares."""
    text = json.dumps(parts, ensure_ascii=False)
    return str(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))


def power_of_two(name: str, value: Any, least: int, most: int) -> int:
    """A power of two in a range."""
    number = whole(name, value, least, most)
    if number & (number - 1):
        raise InvalidInput(f"{name} ({value}) must be a power of two")
    return number


def share(name: str, value: Any) -> Fraction:
    """A number from 0 to 1: a decimal, a fraction such as "3/4", or a float."""
    try:
        number = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"{name} ({value}) must be a number") from None
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
            f'{name} ({text}) must be a fraction of two whole numbers of at most 2^53 in lowest terms, such as "1/1000"'
        )
    return Fraction(*parts)
