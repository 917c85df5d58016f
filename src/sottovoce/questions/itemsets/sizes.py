"""How many candidates people hold: the law of sizes, its 90th percentile, and what a length limit
misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite, nan
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.results.findings import SIGNIFICANT

Floats = NDArray[np.float64]
SIZE_PERCENTILE = 0.9
SIZE_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Sizes:
    """The share of people who hold 0, 1, 2, ... candidates, estimated with the same error each.

    >>> law = Sizes(np.array([0.1, 0.5, 0.3, 0.0, 0.1]), 1e-9)
    >>> law.percentile(), round(law.update_factor(2), 4)
    (4, 1.1538)
    """

    shares: Floats  # (sizes,)
    variance: float  # of one share

    @property
    def numbers(self) -> Floats:
        """0, 1, 2, ..., (sizes,)."""
        return np.arange(len(self.shares), dtype=float)

    def filtered(self) -> Sizes:
        """With the shares that noise alone may explain set to nothing."""
        # T = Phi^-1(1 - 0.05/2k) sqrt(Var)   wang2021thesis, section 5.3.1, step 2
        tail = SIGNIFICANT / max(1, len(self.shares) - 1)
        limit = -NormalDist().inv_cdf(tail) * float(np.sqrt(self.variance))
        kept = np.where(self.shares > limit, self.shares, 0.0)
        return Sizes(kept, self.variance)

    def projected(self) -> Sizes:
        """As the nearest distribution."""
        return Sizes(norm_sub(self.shares), self.variance)

    @property
    def is_known(self) -> bool:
        """Whether any size but 0 rises above the noise."""
        return bool((self.shares[1:] > 0).any())

    def percentile(self, level: float = SIZE_PERCENTILE) -> int:
        """The least number that so many of those who hold anything do not exceed; 1 if nothing is
        known.
        """
        if not self.is_known:
            return 1
        # the smallest L whose sizes 1 ... L make up more than 0.9 of all
        #     wang2021thesis, section 5.3.1, step 2
        held = np.cumsum(self.shares[1:])  # held[L - 1]: the share who hold 1 ... L
        is_enough = held > level * held[-1]
        return int(np.argmax(is_enough)) + 1

    def kept(self, length: int) -> float:
        """The part of all that people hold which a limit of ``length`` lets them report."""
        held = float(self.numbers @ self.shares)
        if held <= 0:
            return 1.0
        return self._reported(length) / held

    def _reported(self, length: int) -> float:
        """How many candidates a person reports on average, under this limit."""
        # sum of min(l, L) f(l)
        return float(np.minimum(self.numbers, length) @ self.shares)

    def update_factor(self, length: int) -> float:
        """What to multiply estimates by, if what is missed is like what is reported."""
        # u'(L) = sum of l f(l) / (sum of l f(l) - sum over l > L of (l - L) f(l))
        #     wang2021thesis, eq. (5.5)
        return 1 / self.kept(length)

    def to_json(self) -> list[str]:
        """The variance, then the shares, as decimal strings."""
        return [_short(number) for number in (self.variance, *self.shares)]

    @classmethod
    def from_json(cls, data: Sequence[str]) -> Sizes:
        """The inverse of :meth:`to_json`."""
        variance, *shares = (finite("sizes", number) for number in data)
        return cls(np.array(shares), variance)


def finite(part: str, number: Any) -> float:
    """A number that an earlier round's estimate wrote into a plan."""
    try:
        found = float(Decimal(number))
    except (ArithmeticError, TypeError, ValueError):
        found = nan
    if not isfinite(found):
        raise InvalidInput(f"plan: known {part} must be decimal numbers")
    return found


def _short(number: float) -> str:
    return f"{number:.{SIZE_DIGITS}g}"
