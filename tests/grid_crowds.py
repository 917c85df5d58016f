"""Crowds that are asked by grids: exact noise of local hashing, drawn cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers

Asked = tuple[tuple[int, ...], tuple[Integers, ...], float]  # axes, edges, share of the people


def shifted_edges(size: int, width: int, shift: int) -> Integers:
    """Where intervals begin: at every code x with (x + shift) a multiple of the width."""
    starts = np.arange(0, size + shift + width, width) - shift
    return np.unique(np.clip(starts, 0, size)).astype(np.int64)


def line_grids(size: int, counts: Sequence[int], shifts: int = 4) -> list[Asked]:
    """Grids of one dimension with about so many cells, each in some shifts."""
    asked: list[Asked] = []
    for count in counts:
        width = max(1, size // count)
        places = min(shifts, width)
        for place in range(places):
            edges = shifted_edges(size, width, width * place // places)
            asked.append(((0,), (edges,), 1.0 / places))
    return asked


def hear(
    people: Integers, asked: Sequence[Asked], epsilon: float, rng: np.random.Generator
) -> list[GridEvidence]:
    """What each grid's people say through local hashing to two values.

    Args:
        people: How many of each cell of the whole table, (sizes...).
        asked: The grids.
        epsilon: Of each report.
        rng: Draws everything.
    """
    p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    q = 0.5
    shares = np.array([share for _, _, share in asked])
    parts = rng.multinomial(people.ravel(), shares / shares.sum())  # (cells, grids)
    evidence = []
    for place, (axes, edges, _) in enumerate(asked):
        table = parts[:, place].reshape(people.shape)
        others = tuple(axis for axis in range(people.ndim) if axis not in axes)
        held = table.sum(axis=others)
        for axis, starts in enumerate(edges):
            held = np.add.reduceat(held, starts[:-1], axis=axis)
        count = int(held.sum())
        support = rng.binomial(held, p) + rng.binomial(count - held, q)
        values: Floats = (support / count - q) / (p - q)
        floor = q * (1 - q) / (p - q) ** 2 / count
        slope = (1 - p - q) / (p - q) / count
        evidence.append(GridEvidence(axes, edges, values, floor, slope, count))
    return evidence
