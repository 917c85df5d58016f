"""The seeded generator of simulations (xoshiro256++) and exact draws, for use in kernels."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.threads import thread_count
from sottovoce.kernels.compiled import njit

# people simulated by one generator; fixed, so that a seed means the same on every machine
PEOPLE_CHUNK = 1 << 15


@njit(inline="always", nogil=True)
def next_word(state):  # type: ignore[no-untyped-def]
    """The next uniform 64-bit word of xoshiro256++ (Blackman and Vigna)."""
    total = state[0] + state[3]
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return word


@njit(inline="always", nogil=True)
def below(state, limit):  # type: ignore[no-untyped-def]
    """A uniform integer of ``range(limit)``, by rejection from the next power of two."""
    mask = np.uint64(limit - np.uint64(1))
    mask |= mask >> np.uint64(1)
    mask |= mask >> np.uint64(2)
    mask |= mask >> np.uint64(4)
    mask |= mask >> np.uint64(8)
    mask |= mask >> np.uint64(16)
    mask |= mask >> np.uint64(32)
    value = next_word(state) & mask
    while value >= limit:
        value = next_word(state) & mask
    return value


@njit(inline="always", nogil=True)
def below32(state, limit):  # type: ignore[no-untyped-def]
    """A uniform integer of ``range(limit)``, limits below 2^32, by Lemire's multiply-and-reject."""
    product = (next_word(state) >> np.uint64(32)) * limit
    low = product & np.uint64(0xFFFFFFFF)
    if low < limit:
        least = (np.uint64(1 << 32) - limit) % limit
        while low < least:
            product = (next_word(state) >> np.uint64(32)) * limit
            low = product & np.uint64(0xFFFFFFFF)
    return product >> np.uint64(32)


@njit(inline="always", nogil=True)
def coin_word(state, threshold):  # type: ignore[no-untyped-def]
    """64 independent coins of one threshold at once,
    compared bit by bit with 64 uniform integers.
    """
    heads = np.uint64(0)
    unsettled = ~np.uint64(0)
    place = 63
    while unsettled != np.uint64(0) and place >= 0:
        drawn = next_word(state)
        if (threshold >> np.uint64(place)) & np.uint64(1):
            heads |= unsettled & ~drawn
            unsettled &= drawn
        else:
            unsettled &= ~drawn
        place -= 1
    return heads


def in_chunks(count: int, seed: int, work: Callable[[slice, NDArray[np.uint64]], None]) -> None:
    """Call ``work(rows, generator state)`` for each chunk of people, on all cores, in any order."""

    def one(start: int) -> None:
        state = np.random.SeedSequence([seed, start]).generate_state(4, np.uint64).astype(np.uint64)
        work(slice(start, min(start + PEOPLE_CHUNK, count)), state)

    starts = range(0, count, PEOPLE_CHUNK)
    if len(starts) <= 1:
        for start in starts:
            one(start)
        return
    with ThreadPoolExecutor(thread_count()) as pool:
        for _ in pool.map(one, starts):
            pass
