"""Simulated devices, a column of values at a time, against the thresholds of a real one."""

from __future__ import annotations

import numpy as np

from sottovoce.kernels.compiled import njit
from sottovoce.kernels.draws import below, below32, coin_word, uniform_word


@njit(cache=True, nogil=True)
def whisper_direct(values, answers, size, truth, state):  # type: ignore[no-untyped-def]
    """Generalized randomized response: the truth, or a uniform value of all."""
    for row in range(values.size):
        if uniform_word(state) < np.uint64(truth):
            answers[row] = values[row]
        else:
            answers[row] = below(state, np.uint64(size))


@njit(cache=True, nogil=True)
def whisper_near(values, answers, near, places, truth, state):  # type: ignore[no-untyped-def]
    """Square wave: a uniform place of the ``near`` ones from the value on, or one of all."""
    for row in range(values.size):
        if uniform_word(state) < np.uint64(truth):
            answers[row] = values[row] + below(state, np.uint64(near))
        else:
            answers[row] = below(state, np.uint64(places))


@njit(cache=True, nogil=True)
def whisper_bits(positions, payload, width, one, zero, state):  # type: ignore[no-untyped-def]
    """Bit vectors: coins of threshold ``zero`` everywhere, redrawn with threshold ``one`` at the
    positions set (a position named twice is drawn twice, and the last draw counts).
    """
    full = width // 64
    for row in range(payload.shape[0]):
        for word in range(full + 1):
            left = width - word * 64
            if left <= 0:
                break
            coins = coin_word(state, np.uint64(zero))
            if left < 64:
                coins &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
            for byte in range((min(left, 64) + 7) // 8):
                payload[row, word * 8 + byte] = np.uint8(
                    (coins >> np.uint64(8 * byte)) & np.uint64(255)
                )
        for place in range(positions.shape[1]):
            position = positions[row, place]
            bit = np.uint8(1) << np.uint8(position & np.uint64(7))
            where = np.int64(position >> np.uint64(3))
            payload[row, where] &= ~bit
            if uniform_word(state) < np.uint64(one):
                payload[row, where] |= bit


@njit(cache=True, nogil=True)
def whisper_subset(values, payload, size, chosen, include, state):  # type: ignore[no-untyped-def]
    """Subsets of fixed size: the value joins by a coin, the rest is uniform (Floyd)."""
    for row in range(values.size):
        value = np.int64(values[row])
        others = chosen
        bits = payload[row]
        bits[:] = 0
        if uniform_word(state) < np.uint64(include):
            bits[value >> 3] |= np.uint8(1) << np.uint8(value & 7)
            others -= 1
        for last in range(size - 1 - others, size - 1):
            pick = np.int64(below32(state, np.uint64(last + 1)))
            pick += np.int64(pick >= value)
            if (bits[pick >> 3] >> np.uint8(pick & 7)) & np.uint8(1):
                pick = np.int64(last + (last >= value))
            bits[pick >> 3] |= np.uint8(1) << np.uint8(pick & 7)


@njit(cache=True, nogil=True)
def whisper_columns(rows, columns, order, truth, state):  # type: ignore[no-untyped-def]
    """Hadamard response: a uniform column among those where the row has the coin's sign."""
    for person in range(rows.size):
        row = rows[person]
        column = uniform_word(state) & np.uint64(order - 1)
        agreed = uniform_word(state) < np.uint64(truth)
        crossed = row & column
        negative = False
        while crossed:
            crossed &= crossed - np.uint64(1)
            negative = not negative
        if negative == agreed:
            column ^= row & (~row + np.uint64(1))
        columns[person] = column


@njit(cache=True, nogil=True)
def whisper_signs(buckets, columns, signs, order, truth, state):  # type: ignore[no-untyped-def]
    """One Hadamard coefficient of a one-hot vector: a uniform index, its sign by a coin."""
    for person in range(buckets.size):
        column = uniform_word(state) & np.uint64(order - 1)
        crossed = buckets[person] & column
        sign = np.uint64(0)
        while crossed:
            crossed &= crossed - np.uint64(1)
            sign ^= np.uint64(1)
        if uniform_word(state) >= np.uint64(truth):
            sign = uniform_word(state) & np.uint64(1)
        columns[person] = column
        signs[person] = sign


@njit(cache=True, nogil=True)
def whisper_coefficients(values, coefficients, signs, order, truth, state):  # type: ignore[no-untyped-def]
    """The sign of one Hadamard coefficient, a uniform one of those that are not constant, kept or
    turned by a coin.
    """
    for person in range(values.size):
        coefficient = below(state, np.uint64(order - 1))
        crossed = values[person] & (coefficient + np.uint64(1))
        sign = np.uint64(0)
        while crossed:
            crossed &= crossed - np.uint64(1)
            sign ^= np.uint64(1)
        if uniform_word(state) >= np.uint64(truth):
            sign ^= np.uint64(1)
        coefficients[person] = coefficient
        signs[person] = sign


@njit(inline="always", nogil=True)
def _survives(state, numerator, denominator):  # type: ignore[no-untyped-def]
    """Heads with probability exp(-numerator/denominator), a ratio of at most 1, in integers."""
    rounds = np.uint64(1)
    while below(state, denominator * rounds) < numerator:
        rounds += np.uint64(1)
    return rounds & np.uint64(1) == np.uint64(1)


@njit(cache=True, nogil=True)
def whisper_laplace(values, cells, top, most, scale, rate, state):  # type: ignore[no-untyped-def]
    """Histograms: ``top`` at the value, plus discrete Laplace noise with P(z) proportional to
    exp(-|z| rate/scale), then cut to ``most`` either way.

    The algorithm of canonne2020discrete, in 64-bit integers.
    """
    for row in range(cells.shape[0]):
        for column in range(cells.shape[1]):
            while True:
                part = below(state, np.uint64(scale))
                if not _survives(state, part, np.uint64(scale)):
                    continue
                whole = np.uint64(0)
                while _survives(state, np.uint64(1), np.uint64(1)):
                    whole += np.uint64(1)
                size = (part + np.uint64(scale) * whole) // np.uint64(rate)
                negative = uniform_word(state) & np.uint64(1) == np.uint64(1)
                if negative and size == np.uint64(0):
                    continue
                noise = -np.int64(size) if negative else np.int64(size)
                if column == np.int64(values[row]):
                    noise += top
                cells[row, column] = max(-most, min(most, noise))
                break
