"""Uniform words and exact draws, for use in kernels.

A kernel reads words from a *state*. That of a simulation is the four words of a seeded generator
(xoshiro256++). That of people's own reports is a *tape*: words of the operating system, each read
once, behind a header that says how far it was read, and whether it was too short.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import System
from sottovoce.ground.seeds import Seed
from sottovoce.ground.threads import thread_count
from sottovoce.kernels.compiled import njit

# people simulated by one generator; fixed, so that a seed means the same on every machine
PEOPLE_CHUNK = 1 << 15

GENERATOR_WORDS = 4
TAPE_HEADER = 4  # how far a tape was read, whether it was too short; with its words it is longer
TOO_SHORT = np.uint64(0x9E3779B97F4A7C15)  # odd: its multiples are all words
TAPE_WORDS = 1 << 16  # so many are drawn at once
FIRST_PEOPLE, FIRST_WORDS = 64, 8  # who is asked first, and words for each, before more is known

State = NDArray[np.uint64]
Work = Callable[[slice, State], None]


@njit(inline="always", nogil=True)
def uniform_word(state):  # type: ignore[no-untyped-def]
    """The next uniform 64-bit word: of xoshiro256++ (Blackman and Vigna), or of a tape."""
    if state.size != GENERATOR_WORDS:
        if state[0] == np.uint64(state.size):
            state[1] += TOO_SHORT  # what is drawn will be thrown away: any words do that end loops
            return state[1]
        word = state[state[0]]
        state[0] += np.uint64(1)
        return word
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
    value = uniform_word(state) & mask
    while value >= limit:
        value = uniform_word(state) & mask
    return value


@njit(inline="always", nogil=True)
def below32(state, limit):  # type: ignore[no-untyped-def]
    """A uniform integer of ``range(limit)``, limits below 2^32, by Lemire's multiply-and-reject."""
    product = (uniform_word(state) >> np.uint64(32)) * limit
    low = product & np.uint64(0xFFFFFFFF)
    if low < limit:
        least = (np.uint64(1 << 32) - limit) % limit
        while low < least:
            product = (uniform_word(state) >> np.uint64(32)) * limit
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
        drawn = uniform_word(state)
        if (threshold >> np.uint64(place)) & np.uint64(1):
            heads |= unsettled & ~drawn
            unsettled &= drawn
        else:
            unsettled &= ~drawn
        place -= 1
    return heads


def in_chunks(count: int, seed: Seed, work: Work) -> None:
    """Call ``work(rows, state)`` for each chunk of people, on all cores, in any order.

    Whatever else ``work`` holds, it writes its rows anew: it may be called for them again.
    """

    def one(start: int) -> None:
        rows = slice(start, min(start + PEOPLE_CHUNK, count))
        if seed is None:
            _from_system(rows, work)
            return
        words = np.random.SeedSequence([seed, start]).generate_state(GENERATOR_WORDS, np.uint64)
        work(rows, words.astype(np.uint64))

    starts = range(0, count, PEOPLE_CHUNK)
    if len(starts) <= 1:
        for start in starts:
            one(start)
        return
    with ThreadPoolExecutor(thread_count()) as pool:
        for _ in pool.map(one, starts):
            pass


def _from_system(rows: slice, work: Work) -> None:
    """Let people draw from tapes of the operating system's words, as many at once as one serves."""
    people, words, start = FIRST_PEOPLE, FIRST_WORDS * FIRST_PEOPLE, rows.start
    while start < rows.stop:
        part = slice(start, min(start + people, rows.stop))
        read = _from_tape(part, work, words)
        start = part.stop
        # the next tape is for as many people as it should serve, with a tenth to spare
        each = read / (part.stop - part.start)
        people = max(1, int(TAPE_WORDS / (1.1 * each + 1)))
        words = TAPE_WORDS


def _from_tape(rows: slice, work: Work, count: int) -> int:
    """Draw a tape of so many words, and let these people draw from it; returns how many they read.

    If it is too short they draw all over again from the same words and as many more behind them.
    What is drawn is then what an endless tape gives: nothing depends on where one ended.
    """
    words = System().words(count)
    while True:
        tape = np.concatenate([np.array([TAPE_HEADER, 0, 0, 0], np.uint64), words])
        work(rows, tape)
        if not tape[1]:
            return int(tape[0]) - TAPE_HEADER
        words = np.concatenate([words, System().words(len(words))])
