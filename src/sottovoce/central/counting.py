"""Sums over people of their candidate tuples: limited, noisy, above a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np

from sottovoce.central.candidates import TupleCandidates
from sottovoce.central.method import CentralTable, Integers
from sottovoce.central.records import all_records, records
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.noise import discrete_gaussian, discrete_gaussian_above
from sottovoce.ground.tails import number_above
from sottovoce.kernels.tuples import collect_tuples, count_tuples, tuple_sizes

_WORDS = 1 << 18  # drawn at once for the choice of what people contribute
_SPARE_WORDS = 64
_MOST_PLAIN = 1 << 25  # sums in a plain array; a hash table holds more
_KEYS = 1 << 22  # room for kept tuples that is asked for at once


def sizes_held(table: CentralTable, numbers: Integers, candidates: TupleCandidates) -> Integers:
    """How many candidates each person holds. It is not private."""
    sizes = [np.zeros(0, np.int64)]
    for part in records(table, numbers):
        sizes.append(tuple_sizes(part.people, part.rows, part.values, *candidates.listing))
    return np.concatenate(sizes)


def unit_weights(limit: int) -> Integers:
    """1 for each tuple."""
    return np.ones(limit + 1, np.int64)


def equal_weights(limit: int, per_unit: int) -> Integers:
    """1/sqrt(t) for each of t tuples, rounded down, in steps of ``1 / per_unit``.

    >>> equal_weights(4, 100)
    array([  0, 100,  70,  57,  50])
    """
    weights = [isqrt(per_unit**2 // kept) for kept in range(1, limit + 1)]
    return np.array([0, *weights], np.int64)


def summed(
    table: CentralTable,
    numbers: Integers,
    candidates: TupleCandidates,
    limit: int,
    weights: Integers,
    entropy: Entropy,
) -> tuple[Integers, Integers]:
    """Sums over people; each contributes a uniform choice of at most ``limit`` tuples.

    Args:
        table: what the curator holds.
        numbers: of its values, see :func:`sottovoce.central.records.records`.
        candidates: which tuples count.
        limit: of tuples that a person contributes.
        weights: of each tuple, by how many of a person are kept, (limit + 1,).
        entropy: where the choices come from.

    Returns:
        The keys of all candidates that anybody contributed, ascending, and their sums.
    """
    first_key, key_span = candidates.key_range
    is_plain = key_span <= _MOST_PLAIN
    keys = np.full(0 if is_plain else 1 << 12, -1, np.int64)
    sums = np.zeros(key_span if is_plain else 1 << 12, np.int64)
    filled = 0
    for part in records(table, numbers):
        person, last = 0, len(part.people) - 1
        words = np.zeros(0, np.uint64)
        while person < last:
            person, keys, sums, filled = count_tuples(
                part.people,
                part.rows,
                part.values,
                *candidates.listing,
                limit,
                weights,
                words,
                person,
                keys,
                sums,
                filled,
                first_key,
            )
            if person < last:
                words = entropy.words(max(_WORDS, limit + _SPARE_WORDS))
    if is_plain:
        held = np.flatnonzero(sums)
        return held + first_key, sums[held]
    is_held = keys != -1
    order = np.argsort(keys[is_held])
    return keys[is_held][order], sums[is_held][order]


def collected(
    table: CentralTable,
    numbers: Integers,
    candidates: TupleCandidates,
    limit: int,
    entropy: Entropy,
) -> tuple[Integers, Integers]:
    """What each person contributes: a uniform choice of at most ``limit`` candidates.

    Returns:
        Where the keys of each person begin, (people + 1,), and the keys.
    """
    part = all_records(table, numbers)
    last = len(part.people) - 1
    sizes = np.zeros(last, np.int64)
    keys = []
    words = np.zeros(0, np.uint64)
    person = 0
    while person < last:
        room = np.empty(max(_KEYS, limit), np.int64)
        person, written = collect_tuples(
            part.people,
            part.rows,
            part.values,
            *candidates.listing,
            limit,
            words,
            person,
            sizes,
            room,
        )
        keys.append(room[:written].copy())
        if person < last:
            words = entropy.words(max(_WORDS, limit + _SPARE_WORDS))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return starts, np.concatenate([np.zeros(0, np.int64), *keys])


@dataclass(frozen=True, eq=False)
class NoisySums:
    """What is above a threshold."""

    keys: Integers  # ascending
    sums: Integers  # noisy, in steps of the lattice
    absent: int  # how many of them nobody contributed to. It is not private.


def above_threshold(
    keys: Integers,
    sums: Integers,
    candidates: TupleCandidates,
    variance: Fraction,
    threshold: int,
    entropy: Entropy,
) -> NoisySums:
    """Add noise to the sums of all candidates, and keep what is above a threshold.

    Candidates that nobody contributed to have noise alone. How many of them exceed the threshold is
    binomial; then which ones is uniform; then by how much is the noise's own law beyond it. So the
    law is the same as if every one had been drawn.

    Args:
        keys: of all candidates with a sum.
        sums: in steps of the lattice.
        candidates: all.
        variance: of the noise, in squared steps.
        threshold: in steps; at least 0.
        entropy: where the noise comes from.
    """
    if threshold < 0:
        raise InvalidInput(f"threshold ({threshold}) must be at least 0")
    noisy = sums + discrete_gaussian(variance, len(sums), entropy)
    is_above = noisy > threshold
    others = candidates.total - len(keys)
    number = number_above(others, threshold + 1, variance, entropy)
    drawn = candidates.absent(number, keys, entropy)
    noise = discrete_gaussian_above(variance, threshold + 1, number, entropy)
    found = np.concatenate([keys[is_above], drawn])
    order = np.argsort(found)
    return NoisySums(found[order], np.concatenate([noisy[is_above], noise])[order], number)
