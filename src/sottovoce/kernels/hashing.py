"""Keyed 64-bit mixing, and local hashing on it. ``ground.hashes`` gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.kernels.compiled import njit
from sottovoce.kernels.draws import below, uniform_word
from sottovoce.kernels.transform import narrow_transform

SORTED_FROM = 22  # bits of a value from which a table is written range by range
MOST_SORTED = 31  # of which a cell and a sign fit into 32 bits
_RANGE_BITS = 16  # 2^16 cells lie in the second cache
_SORTED_UPDATES = 1 << 17  # that are sorted at once, which lie in it too


@njit(inline="always", nogil=True)
def _mix(word):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit words: every input bit moves half of the output (Stafford's mix 13)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(inline="always", nogil=True)
def keyed_hash(key, value):  # type: ignore[no-untyped-def]
    """64 bits that look random for different (key, value): three mixes, keyed in between."""
    inner = _mix(value + np.uint64(0x9E3779B97F4A7C15)) ^ _mix(key ^ np.uint64(0xD1B54A32D192ED03))
    return _mix(_mix(inner) + key)


@njit(inline="always", nogil=True)
def bucket(word, buckets):  # type: ignore[no-untyped-def]
    """The bucket of a hash: its top 32 bits scaled to ``range(buckets)``."""
    return ((word >> np.uint64(32)) * buckets) >> np.uint64(32)


@njit(cache=True, nogil=True)
def hash_buckets(keys, values, buckets):  # type: ignore[no-untyped-def]
    """The bucket of each value under the key beside it."""
    out = np.empty(values.size, np.uint64)
    for row in range(values.size):
        out[row] = bucket(keyed_hash(keys[row], values[row]), np.uint64(buckets))
    return out


@njit(cache=True, nogil=True)
def hash_words(key, values):  # type: ignore[no-untyped-def]
    """The whole hash of each value under one key."""
    out = np.empty(values.size, np.uint64)
    for row in range(values.size):
        out[row] = keyed_hash(key, values[row])
    return out


@njit(cache=True, nogil=True)
def whisper_seeded(values, seeds, answers, buckets, truth, state):  # type: ignore[no-untyped-def]
    """Local hashing: a uniform 64-bit seed, and randomized response on the bucket it gives."""
    for row in range(values.size):
        seed = uniform_word(state)
        answer = bucket(keyed_hash(seed, values[row]), np.uint64(buckets))
        if uniform_word(state) >= np.uint64(truth):
            answer = below(state, np.uint64(buckets))
        seeds[row] = seed
        answers[row] = answer


@njit(cache=True, nogil=True)
def count_seeded(seeds, answers, values, buckets):  # type: ignore[no-untyped-def]
    """How many reports support each value."""
    out = np.zeros(values.size, np.int64)
    for place in range(values.size):
        value = values[place]
        total = 0
        for row in range(seeds.size):
            total += bucket(keyed_hash(seeds[row], value), np.uint64(buckets)) == answers[row]
        out[place] = total
    return out


@njit(cache=True, nogil=True)
def weigh_seeded(seeds, answers, weights, values, buckets):  # type: ignore[no-untyped-def]
    """The weight of the reports that support each value: :func:`count_seeded` with weights."""
    out = np.zeros(values.size, np.int64)
    for place in range(values.size):
        value = values[place]
        total = np.int64(0)
        for row in range(seeds.size):
            if bucket(keyed_hash(seeds[row], value), np.uint64(buckets)) == answers[row]:
                total += weights[row]
        out[place] = total
    return out


@njit(inline="always", nogil=True)
def _parity(word):  # type: ignore[no-untyped-def]
    word ^= word >> np.uint64(32)
    word ^= word >> np.uint64(16)
    word ^= word >> np.uint64(8)
    word ^= word >> np.uint64(4)
    return (np.uint64(0x6996) >> (word & np.uint64(15))) & np.uint64(1)


@njit(inline="always", nogil=True)
def _scrambled(word, width):  # type: ignore[no-untyped-def]
    """A fixed public permutation of words of ``width`` bits: neighbours share no line."""
    mask = (np.uint64(1) << width) - np.uint64(1)
    half = (width + np.uint64(1)) >> np.uint64(1)
    word = (word * np.uint64(0x9E3779B1)) & mask
    word ^= word >> half
    word = (word * np.uint64(0x85EBCA77)) & mask
    word ^= word >> half
    word = (word * np.uint64(0xC2B2AE3D)) & mask
    return word ^ (word >> half)


@njit(cache=True, nogil=True)
def scramble(values, width):  # type: ignore[no-untyped-def]
    """Where the permutation takes each value."""
    out = np.empty(values.size, np.uint64)
    for place in range(values.size):
        out[place] = _scrambled(values[place], np.uint64(width))
    return out


@njit(cache=True, nogil=True)
def whisper_linear(values, rows, answers, width, truth, state):  # type: ignore[no-untyped-def]
    """Local hashing on parities: ``rows[i]`` are words of ``width`` bits, answers parities."""
    count = rows.shape[1]
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for person in range(values.size):
        answer = np.uint64(0)
        point = _scrambled(values[person], np.uint64(width))
        for place in range(count):
            row = uniform_word(state) & mask
            rows[person, place] = row
            answer |= _parity(row & point) << np.uint64(place)
        if uniform_word(state) >= np.uint64(truth):
            answer = uniform_word(state) & ((np.uint64(1) << np.uint64(count)) - np.uint64(1))
        answers[person] = answer


@njit(inline="always", nogil=True)
def unpack_linear(payload, person, width, count, rows):  # type: ignore[no-untyped-def]
    """One report's rows into ``rows``; returns its answer."""
    mask = np.uint64((np.uint64(1) << np.uint64(width)) - np.uint64(1))
    held = np.uint64(0)
    holds = np.uint64(0)
    byte = 0
    for place in range(count):
        while holds < np.uint64(width):
            held |= np.uint64(payload[person, byte]) << holds
            holds += np.uint64(8)
            byte += 1
        rows[place] = held & mask
        held >>= np.uint64(width)
        holds -= np.uint64(width)
    while holds < np.uint64(count):
        held |= np.uint64(payload[person, byte]) << holds
        holds += np.uint64(8)
        byte += 1
    return held & ((np.uint64(1) << np.uint64(count)) - np.uint64(1))


@njit(inline="always", nogil=True)
def scatter_signs(rows, answer, weight, table):  # type: ignore[no-untyped-def]
    """For each non-empty subset of a report's rows: table[xor] += weight (-1)^<subset, answer>."""
    where = np.uint64(0)
    sign = weight
    for step in range(1, 1 << rows.size):
        place = 0  # Gray code: the row that enters or leaves is the lowest set bit of the step
        while (step >> place) & 1 == 0:
            place += 1
        where ^= rows[place]
        if (answer >> place) & 1:
            sign = -sign
        table[where] += sign


@njit(cache=True, nogil=True)
def scatter_linear(payload, width, count, table):  # type: ignore[no-untyped-def]
    """Every report's signs into the table."""
    rows = np.zeros(count, np.uint64)
    for person in range(payload.shape[0]):
        answer = np.int64(unpack_linear(payload, person, width, count, rows))
        scatter_signs(rows, answer, np.int64(1), table)


@njit(cache=True, nogil=True)
def _scatter_sorted(payload, width, count, shift, table):  # type: ignore[no-untyped-def]
    """:func:`scatter_linear` whose updates are sorted into ranges of 2^shift cells first.

    Counting sort: how many updates each range gets, then the updates range by range.
    """
    updates = np.empty(payload.shape[0] * ((1 << count) - 1), np.uint32)  # cell and sign in one
    starts = np.zeros((1 << (width - shift)) + 1, np.int64)
    rows = np.zeros(count, np.uint64)
    made = 0
    for person in range(payload.shape[0]):
        answer = np.int64(unpack_linear(payload, person, width, count, rows))
        where = np.uint64(0)
        sign = np.uint64(0)
        for step in range(1, 1 << count):
            place = 0  # Gray code, as in scatter_signs
            while (step >> place) & 1 == 0:
                place += 1
            where ^= rows[place]
            sign ^= np.uint64((answer >> place) & 1)
            updates[made] = np.uint32((where << np.uint64(1)) | sign)
            starts[np.int64(where >> np.uint64(shift)) + 1] += 1
            made += 1
    for part in range(starts.size - 1):
        starts[part + 1] += starts[part]
    ordered = np.empty_like(updates)
    for update in updates:
        part = np.int64(update) >> (shift + 1)
        ordered[starts[part]] = update
        starts[part] += 1
    for update in ordered:
        table[np.int64(update >> np.uint32(1))] += 1 - 2 * np.int64(update & np.uint32(1))


def scatter(payload: NDArray[np.uint8], width: int, count: int, table: NDArray[Any]) -> None:
    """Every report's signs into the table, the fastest way.

    The cells of a table that no cache holds are each far from the last one; range by range they
    are not.
    """
    if not SORTED_FROM <= width <= MOST_SORTED:
        scatter_linear(payload, width, count, table)
        return
    step = max(1, _SORTED_UPDATES >> count)  # reports
    for start in range(0, len(payload), step):
        _scatter_sorted(payload[start : start + step], width, count, _RANGE_BITS, table)


@njit(cache=True, nogil=True)
def weigh_linear(payload, weights, width, count, table):  # type: ignore[no-untyped-def]
    """Every report's signs into the table, times its weight: :func:`scatter_linear`, weighted.

    The weights themselves are added to the first cell, as the number of reports is there.
    """
    rows = np.zeros(count, np.uint64)
    total = np.int64(0)
    for person in range(payload.shape[0]):
        answer = np.int64(unpack_linear(payload, person, width, count, rows))
        total += weights[person]
        scatter_signs(rows, answer, weights[person], table)
    table[0] += total


@njit(cache=True, nogil=True)
def _scatter_grouped(payload, groups, weights, width, count, tables):  # type: ignore[no-untyped-def]
    """:func:`weigh_linear` into the table of each report's group."""
    rows = np.zeros(count, np.uint64)
    for person in range(payload.shape[0]):
        answer = np.int64(unpack_linear(payload, person, width, count, rows))
        table = tables[groups[person]]
        weight = weights[person]
        table[0] += weight
        scatter_signs(rows, answer, weight, table)


def scatter_grouped(
    payload: NDArray[np.uint8],
    groups: NDArray[np.int64],
    weights: NDArray[np.int64] | None,
    width: int,
    count: int,
    tables: NDArray[np.int64],
) -> None:
    """Every report's signs, times its weight, into the table of its group, (groups, cells)."""
    beside = np.ones(len(payload), np.int64) if weights is None else weights
    _scatter_grouped(payload, groups, beside, width, count, tables)


@njit(cache=True, nogil=True)
def _gather_scrambled(cells, width, shift, out):  # type: ignore[no-untyped-def]
    """out[v] = cells[scrambled v] >> shift, for every value v."""
    for value in range(out.size):
        out[value] = (
            np.int64(cells[np.int64(_scrambled(np.uint64(value), np.uint64(width)))]) >> shift
        )


def decode_linear(table: NDArray[np.int64], size: int, width: int, count: int) -> NDArray[np.int64]:
    """How many reports support each value of ``range(size)``, from :func:`scatter_linear`'s table.

    One transform and one pass over it: at 2^24 values every temporary column would cost 128 MiB of
    fresh pages.
    """
    out = np.empty(size, np.int64)
    _gather_scrambled(narrow_transform(table), width, count, out)
    return out


@njit(cache=True, nogil=True)
def gather_sketch(sketch, keys, values, buckets):  # type: ignore[no-untyped-def]
    """For each value, the sum over rows of the sketch's cell in the value's bucket."""
    out = np.zeros(values.size, np.int64)
    for place in range(values.size):
        total = np.int64(0)
        for row in range(keys.size):
            total += sketch[row, bucket(keyed_hash(keys[row], values[place]), np.uint64(buckets))]
        out[place] = total
    return out
