"""Local hashing over a prime field: lines a v + b modulo a prime below 2^27, cut into intervals."""

from __future__ import annotations

import numpy as np

from sottovoce.kernels.compiled import njit
from sottovoce.kernels.draws import below, uniform_word
from sottovoce.kernels.hashing import _scrambled


@njit(inline="always", nogil=True)
def _width_of(size):  # type: ignore[no-untyped-def]
    """Bits of a value of ``range(size)``."""
    width = np.uint64(0)
    while (np.uint64(size - np.uint64(1)) >> width) != np.uint64(0):
        width += np.uint64(1)
    return width


@njit(inline="always", nogil=True)
def _point(value, size, width):  # type: ignore[no-untyped-def]
    """Where a fixed public permutation of ``range(size)`` takes a value."""
    value = _scrambled(value, width)
    while value >= size:
        value = _scrambled(value, width)
    return value


@njit(cache=True, nogil=True)
def points_of(values, size):  # type: ignore[no-untyped-def]
    """Where the permutation takes each value."""
    out = np.empty(values.size, np.int64)
    width = _width_of(np.uint64(size))
    for place in range(values.size):
        out[place] = _point(values[place], np.uint64(size), width)
    return out


@njit(cache=True, nogil=True)
def whisper_field(values, factors, shifts, answers, shape, truth, state):  # type: ignore[no-untyped-def]
    """A uniform line, and randomized response on the interval in which it takes a value.

    Args:
        values: one of each person.
        factors: a - 1 of each report's line.
        shifts: b of each line.
        answers: an interval for each report.
        shape: how many values, points and intervals there are.
        truth: the coin's threshold.
        state: of the generator.
    """
    size, prime, intervals = np.uint64(shape[0]), np.uint64(shape[1]), np.uint64(shape[2])
    width = _width_of(size)
    for row in range(values.size):
        factor = below(state, prime - np.uint64(1))
        shift = below(state, prime)
        if uniform_word(state) < np.uint64(truth):
            point = _point(values[row], size, width)
            answer = (((factor + np.uint64(1)) * point + shift) % prime) * intervals // prime
        else:
            answer = below(state, intervals)
        factors[row] = factor
        shifts[row] = shift
        answers[row] = answer


@njit(inline="always", nogil=True)
def _inverse(factor, prime):  # type: ignore[no-untyped-def]
    """1/factor modulo a prime (Euclid)."""
    old, new = np.int64(prime), np.int64(factor)
    before, here = np.int64(0), np.int64(1)
    while new != 0:
        times = old // new
        old, new = new, old - times * new
        before, here = here, before - times * here
    return before + np.int64(prime) if before < 0 else before


@njit(cache=True, nogil=True)
def list_supported(factors, shifts, answers, groups, weights, prime, intervals, tables):  # type: ignore[no-untyped-def]
    """Add each report's weight to the points that it names, in the table of its group."""
    size = tables.shape[1]
    for row in range(factors.size):
        step = _inverse(factors[row] + np.uint64(1), prime)
        answer = np.int64(answers[row])
        # the places u with u intervals // prime = answer
        first = (answer * prime + intervals - 1) // intervals
        stop = ((answer + 1) * prime + intervals - 1) // intervals
        table = tables[groups[row]]
        weight = weights[row]
        # u = a v + b, so that v = (u - b)/a
        point = (first + prime - np.int64(shifts[row])) % prime * step % prime
        for _ in range(stop - first):
            if point < size:
                table[point] += weight
            point += step
            if point >= prime:
                point -= prime
