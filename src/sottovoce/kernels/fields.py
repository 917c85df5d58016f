"""Bit fields in rows of bytes, least significant bit first; numpy alone, for collectors too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Payload = NDArray[np.uint8]
_ROWS = 1 << 14  # rows that are widened to words at once


def read_field(payload: Payload, offset: int, width: int) -> NDArray[np.uint64]:
    """The unsigned integer of 1 to 64 bits at bit ``offset`` of every row."""
    first, skip = divmod(offset, 8)
    last = (offset + width - 1) // 8
    if last > first and skip + width <= 64 and _has_word(payload, first):
        values = _words_at(payload, first).astype(np.uint64)  # (rows,)
        values >>= np.uint64(skip)
        if width < 64:
            values &= np.uint64((1 << width) - 1)
        return values
    values = payload[:, first].astype(np.uint64)  # (rows,)
    values >>= np.uint64(skip)
    for byte in range(first + 1, last + 1):
        values |= payload[:, byte].astype(np.uint64) << np.uint64(8 * (byte - first) - skip)
    if width < 64:
        values &= np.uint64((1 << width) - 1)
    return values


def write_field(payload: Payload, offset: int, width: int, values: NDArray[np.uint64]) -> None:
    """Or values of at most ``width`` bits into the rows, which must hold zeros there."""
    first, skip = divmod(offset, 8)
    last = (offset + width - 1) // 8
    values = values.astype(np.uint64, copy=False)
    if skip == 0 and width == 64 and _has_word(payload, first):
        _words_at(payload, first)[:] |= values
        return
    payload[:, first] |= (values << np.uint64(skip)).astype(np.uint8)  # the lowest eight bits
    for byte in range(first + 1, last + 1):
        payload[:, byte] |= (values >> np.uint64(8 * (byte - first) - skip)).astype(np.uint8)


def _has_word(payload: Payload, first: int) -> bool:
    """Whether eight bytes from byte ``first`` on lie in every row, one after another."""
    return first + 8 <= payload.shape[1] and payload.strides[1] == 1


def _words_at(payload: Payload, first: int) -> NDArray[np.uint64]:
    """Those eight bytes of every row as one word, where they lie."""
    return payload[:, first : first + 8].view("<u8")[:, 0]


def words_of(payload: Payload) -> NDArray[np.uint64]:
    """Rows of bytes as rows of 64-bit words, padded with zeros where they do not fit."""
    if payload.shape[1] % 8 == 0 and payload.flags.c_contiguous:
        return payload.view(np.uint64)
    if payload.shape[1] in (1, 2, 4) and payload.flags.c_contiguous:
        return payload.view(f"<u{payload.shape[1]}").astype(np.uint64)
    padded = np.zeros((len(payload), (payload.shape[1] + 7) // 8 * 8), np.uint8)
    padded[:, : payload.shape[1]] = payload
    return padded.view(np.uint64)


def ones_per_row(payload: Payload) -> NDArray[np.int64]:
    """How many bits are set in every row."""
    out = np.zeros(len(payload), np.int64)
    for start in range(0, len(payload), _ROWS):
        words = words_of(payload[start : start + _ROWS])
        out[start : start + _ROWS] = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return out
