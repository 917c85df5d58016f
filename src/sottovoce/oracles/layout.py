"""The shape of one report: bit fields of fixed width, low bit first, padded with zeros to bytes."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import CorruptReport
from sottovoce.kernels.fields import read_field, write_field

Payload = NDArray[np.uint8]


@dataclass(frozen=True)
class Field:
    """An unsigned integer of ``width`` bits, below ``limit`` if one is given."""

    name: str
    width: int
    limit: int | None = None


@dataclass(frozen=True)
class Layout:
    """Fields one after another. An output is the tuple of their integers, or the integer of one.

    >>> Layout((Field("answer", 3, 6),)).pack(5).hex()
    '05'
    """

    fields: tuple[Field, ...]

    @cached_property
    def bits(self) -> int:
        return sum(field.width for field in self.fields)

    @cached_property
    def bytes(self) -> int:
        return (self.bits + 7) // 8

    def pack(self, output: Any) -> builtins.bytes:
        """The bytes of an output."""
        parts = (output,) if len(self.fields) == 1 else output
        total = 0
        offset = 0
        for field, part in zip(self.fields, parts, strict=True):
            total |= part << offset
            offset += field.width
        return total.to_bytes(self.bytes, "little")

    def unpack(self, data: builtins.bytes) -> Any:
        """The output that ``data`` holds; refuses what no device can have sent."""
        if len(data) != self.bytes:
            raise CorruptReport(f"payload ({len(data)} bytes) must have {self.bytes} bytes")
        total = int.from_bytes(data, "little")
        parts = []
        for field in self.fields:
            part = total & ((1 << field.width) - 1)
            if field.limit is not None and part >= field.limit:
                raise CorruptReport(f"payload: field {field.name!r} must be below {field.limit}")
            parts.append(part)
            total >>= field.width
        if total:
            raise CorruptReport("payload: the padding must be zero")
        return parts[0] if len(parts) == 1 else tuple(parts)

    def offset(self, name: str) -> int:
        """The first bit of a field."""
        offset = 0
        for field in self.fields:
            if field.name == name:
                return offset
            offset += field.width
        raise KeyError(name)

    def read(self, payload: Payload, name: str) -> NDArray[np.uint64]:
        """One field of every row; for fields of at most 64 bits."""
        width = next(field.width for field in self.fields if field.name == name)
        if not width:  # a choice of one
            return np.zeros(len(payload), np.uint64)
        return read_field(payload, self.offset(name), width)

    def write(self, payload: Payload, name: str, values: NDArray[np.uint64]) -> None:
        """Put one field into every row, which must hold zeros there."""
        width = next(field.width for field in self.fields if field.name == name)
        if not width:
            return
        write_field(payload, self.offset(name), width, values)

    def validate(self, payload: Payload) -> None:
        """Refuse a batch with an impossible row, as :meth:`unpack` refuses a single one."""
        for field in self.fields:
            if (
                field.limit is not None
                and len(payload)
                and int(self.read(payload, field.name).max()) >= field.limit
            ):
                raise CorruptReport(f"payload: field {field.name!r} must be below {field.limit}")
        spare = self.bytes * 8 - self.bits
        if spare and len(payload) and int(payload[:, -1].max()) >> (8 - spare):
            raise CorruptReport("payload: the padding must be zero")
