"""Numbers of a fixed-point scale, such as money: exact decimals that only travel in clear."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from sottovoce.ground.arguments import LARGEST_INTEGER, number_in
from sottovoce.ground.errors import InvalidInput
from sottovoce.schema.attribute import Attribute, plain

MOST_DECIMALS = 9
_DECIMAL = re.compile(r"\s*([+-]?)([0-9]{1,40})(?:\.([0-9]{1,40}))?\s*", re.ASCII)


@dataclass(frozen=True)
class FixedPoint(Attribute):
    """A decimal from ``low`` to ``high``, ends included, of at most so many ``decimals``.

    It is kept as a scaled integer: 12.3 of two decimals is 1230. It may only be public, a column
    that travels in clear beside the whisper (``sv.plan(..., public=...)``): ``sensitive`` must be
    False, and no question asks about it.

    Args:
        low: the smallest number.
        high: the largest number.
        decimals: how many digits stand behind the point.

    >>> amount = FixedPoint(0, "9999.99", decimals=2, sensitive=False)
    >>> amount.scaled("12.3"), amount.written(1230)
    (1230, '12.30')
    """

    low: Any
    high: Any
    decimals: int = 2
    kind: ClassVar[str] = "fixed-point"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sensitive:
            raise InvalidInput(
                "sensitive (True) must be False: a fixed-point number only ever travels in clear"
            )
        object.__setattr__(self, "decimals", plain(self.decimals))
        is_whole = isinstance(self.decimals, int) and not isinstance(self.decimals, bool)
        if not is_whole or not 0 <= self.decimals <= MOST_DECIMALS:
            raise InvalidInput(
                f"decimals ({self.decimals}) must be an integer from 0 to {MOST_DECIMALS}"
            )
        try:
            first, last = (scaled_decimal(end, self.decimals) for end in (self.low, self.high))
        except (ValueError, TypeError, OverflowError):
            raise InvalidInput(
                f"low and high must be decimals of at most {self.decimals} digits after the point"
            ) from None
        if last <= first:
            raise InvalidInput(f"high ({self.high}) must be greater than low ({self.low})")
        if max(abs(first), abs(last)) > LARGEST_INTEGER:
            raise InvalidInput(
                "low and high must lie within 2^53 when scaled, so that every language can read "
                "the plan"
            )
        object.__setattr__(self, "low", self.written(first))
        object.__setattr__(self, "high", self.written(last))

    @cached_property
    def first(self) -> int:
        """The smallest number, scaled."""
        return scaled_decimal(self.low, self.decimals)

    @cached_property
    def last(self) -> int:
        """The largest number, scaled."""
        return scaled_decimal(self.high, self.decimals)

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def scaled(self, value: Any) -> int:
        """The scaled integer of one value; raises ``ValueError`` or ``TypeError`` if it is not
        exactly one of these.

        Args:
            value: a number, or its text.
        """
        number = scaled_decimal(value, self.decimals)
        if not self.first <= number <= self.last:
            raise ValueError
        return number

    def written(self, number: int) -> str:
        """A scaled integer as text, with all its decimals.

        Args:
            number: a scaled integer.
        """
        digits = f"{abs(number):0{self.decimals + 1}d}"
        sign = "-" if number < 0 else ""
        if not self.decimals:
            return sign + digits
        return f"{sign}{digits[: -self.decimals]}.{digits[-self.decimals :]}"

    def code(self, value: Any) -> int:
        raise TypeError  # nobody is asked about it

    def options(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "decimals": self.decimals}

    @property
    def rule(self) -> str:
        digits = f"{self.decimals} digits after the point"
        return f"value must be a decimal from {self.low} to {self.high} of at most {digits}"


def scaled_decimal(value: Any, decimals: int) -> int:
    """A decimal times 10^decimals, if that is a whole number: nothing is rounded.

    A float counts as the decimal of so many digits that is read as that float.

    >>> scaled_decimal("12.3", 2), scaled_decimal(-0.1, 1), scaled_decimal(7, 0)
    (1230, -1, 7)
    """
    value = plain(value)
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, float):
        text = f"{value:.{decimals}f}"
        if float(text) != value:
            raise ValueError
    elif isinstance(value, Decimal):
        text = f"{value:f}"
    elif isinstance(value, int | str):
        text = str(value)
    else:
        raise TypeError
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise ValueError
    sign, whole, part = found.group(1), found.group(2), (found.group(3) or "").rstrip("0")
    if len(part) > decimals:
        raise ValueError
    number = int(whole + part.ljust(decimals, "0"))
    return -number if sign == "-" else number


def Number(low: Any, high: Any, step: Any = 1, *, sensitive: bool = True) -> FixedPoint:
    """A public number from ``low`` to ``high`` in steps of a power of ten, such as money.

    It is a :class:`FixedPoint` of as many decimals as the step has.

    Args:
        low: the smallest number.
        high: the largest number.
        step: a power of ten, such as ``"0.01"``.
        sensitive: must be False.

    >>> Number(0, 5000, step="0.01", sensitive=False)
    FixedPoint(sensitive=False, low='0.00', high='5000.00', decimals=2)
    """
    size = None if isinstance(step, bool) else number_in(str(plain(step)))
    steps = [Fraction(1, 10**places) for places in range(MOST_DECIMALS + 1)]
    if size is None or size not in steps:
        raise InvalidInput(
            f"step ({step}) must be 1 or a negative power of ten down to 1e-{MOST_DECIMALS}, such "
            'as "0.01"'
        )
    return FixedPoint(low, high, steps.index(size), sensitive=sensitive)
