"""What the roles of an oracle share: the values that it takes, and the bit fields of one report."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.oracles.layout import Layout, Payload

MAX_LISTED_VALUES = 1 << 26  # values that are estimated one and all; beyond, name the ones you want
MOST_WEIGHT = 1 << 50  # absolute weights of all reports, added up


@dataclass(frozen=True)
class Shape(ABC):
    """Values of ``range(size)``, reported at ``requested`` epsilon in the fields of ``layout``."""

    names: ClassVar[tuple[str, ...]]  # the name in plans, then the aliases
    about: ClassVar[str]  # one line for tables
    package: ClassVar[str] = ""  # the other package that brings it, as plans name it
    largest: ClassVar[int] = MAX_LISTED_VALUES  # the largest size it takes
    # what the absolute weights of all reports may add up to, so that no integer overflows
    most_weight: ClassVar[int] = MOST_WEIGHT

    size: int
    requested: Decimal

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The bit fields of one report."""

    @property
    def bits(self) -> int:
        """Bits per report."""
        return self.layout.bits

    def pack(self, output: Any) -> bytes:
        """One report as bytes."""
        return self.layout.pack(output)

    def unpack(self, data: bytes) -> Any:
        """One report from bytes; impossible ones are refused."""
        return self.layout.unpack(data)

    def validate(self, payload: Payload) -> None:
        """Refuse a batch that holds an impossible report."""
        if payload.ndim != 2 or payload.dtype != np.uint8 or payload.shape[1] != self.layout.bytes:
            raise CorruptReport(f"payload must be rows of {self.layout.bytes} bytes")
        self.layout.validate(payload)

    def check(self, value: int) -> int:
        """``value`` if it is a code of this oracle; one clear error otherwise."""
        try:
            code = operator.index(value)
        except TypeError:
            raise InvalidInput("value must be a whole number") from None
        if not 0 <= code < self.size:
            raise InvalidInput(f"value must lie in range({self.size})")
        return code

    def _column(self, values: ArrayLike) -> NDArray[np.uint64]:
        column = np.asarray(values)
        if column.size == 0:
            return np.zeros(0, np.uint64)
        if column.dtype.kind not in "iub" or column.ndim != 1:
            raise InvalidInput("values must be a column of integers")
        if int(column.min()) < 0 or int(column.max()) >= self.size:
            raise InvalidInput(f"values must lie in range({self.size})")
        return column.astype(np.uint64, copy=False)
