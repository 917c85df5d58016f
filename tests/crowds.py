"""Shuffled crowds, enumerated: exact hockey-stick divergences in whole numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from math import lcm

Channel = list[list[Fraction]]  # a row for each value, a column for each report
Histogram = tuple[int, ...]


def channel_of(laws: list[dict[object, Fraction]]) -> Channel:
    """The enumerated law of an oracle as rows."""
    outputs = sorted(set().union(*laws), key=repr)
    return [[law.get(output, Fraction(0)) for output in outputs] for law in laws]


def exact_delta(
    channel: Channel,
    people: int,
    e: Fraction,
    fakes: Sequence[Fraction] = (),
    count: int = 0,
) -> Fraction:
    """The largest delta over all data sets of the others and pairs of one person's values.

    Args:
        channel: of one report.
        people: in all.
        e: e^epsilon.
        fakes: the law of a fake report.
        count: of fakes.
    """
    scale = lcm(*(chance.denominator for row in [*channel, list(fakes)] for chance in row))
    rows = [[int(chance * scale) for chance in row] for row in channel]
    fake = [int(chance * scale) for chance in fakes]
    start: dict[Histogram, int] = {(0,) * len(rows[0]): 1}
    for _ in range(count):
        start = _joined(start, fake)
    worst = 0
    for others in combinations_with_replacement(range(len(rows)), people - 1):
        law = start
        for value in others:
            law = _joined(law, rows[value])
        laws = [_joined(law, row) for row in rows]
        for first, second in permutations(laws, 2):
            found = 0
            for histogram, chance in first.items():
                found += max(0, e.denominator * chance - e.numerator * second.get(histogram, 0))
            worst = max(worst, found)
    return Fraction(worst, e.denominator * scale ** (people + count))


def _joined(law: dict[Histogram, int], row: list[int]) -> dict[Histogram, int]:
    """The law of the histogram with one more report."""
    found: dict[Histogram, int] = defaultdict(int)
    for histogram, weight in law.items():
        for place, chance in enumerate(row):
            if chance:
                grown = (*histogram[:place], histogram[place] + 1, *histogram[place + 1 :])
                found[grown] += weight * chance
    return dict(found)


def mean_positive_part(atoms: list[tuple[Fraction, Fraction]], people: int) -> Fraction:
    """1/n E[(sum of n losses)_+] exactly, for atoms (loss, chance)."""
    law: dict[Fraction, Fraction] = {Fraction(0): Fraction(1)}
    for _ in range(people):
        grown: dict[Fraction, Fraction] = defaultdict(Fraction)
        for total, weight in law.items():
            for loss, chance in atoms:
                grown[total + loss] += weight * chance
        law = dict(grown)
    return sum((total * weight for total, weight in law.items() if total > 0), Fraction(0)) / people


def response(ratio: Fraction, size: int) -> Channel:
    """Generalized randomized response at exactly this ratio."""
    return [
        [(ratio if x == y else Fraction(1)) / (ratio + size - 1) for y in range(size)]
        for x in range(size)
    ]
