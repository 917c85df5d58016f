"""Structure by evidence: what products of two or three signs hold beyond what smaller tables say of them.

The residuals of all sets of attributes, scaled by the spread of their contrasts, have a prior of a mass at zero and
normals of several widths; the weights are fitted to all sets at once, so structure is believed where there is some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.signs import Moments
from sottovoce.questions.marginals.workload import Places, Workload

WIDTHS = np.concatenate([[0.0], np.geomspace(0.02, 0.8, 10)])
NULL_COUNTS = {2: 0.2, 3: 3.0}  # triples are taken for nothing until they show something
SLAB_COUNT = 0.2
ROUNDS = 200
SLACK = 1e-5  # variance of a mean that is never waived
SMALLEST_INFORMATION = 1e-6


@dataclass(frozen=True)
class Shrunk:
    """Posterior means and variances of effects, and the fitted weight of each width."""

    mean: Floats
    variance: Floats
    weights: Floats
    evidence: Floats  # of each group: the chance that it is not zero


def shrink(effects: Floats, variances: Floats, groups: NDArray[np.int64], null_count: float = 3.0) -> Shrunk:
    """Effects seen with noise, shrunk toward zero; those of one group share their width."""
    squares = WIDTHS[:, None] ** 2
    wide = squares + variances
    logs = -0.5 * np.log(wide) - 0.5 * effects**2 / wide
    count = int(groups.max()) + 1 if len(groups) else 0
    by_group = np.array([np.bincount(groups, row, minlength=count) for row in logs])
    likelihood = np.exp(by_group - by_group.max(0))
    weights = np.full(len(WIDTHS), 0.5 / (len(WIDTHS) - 1))
    weights[0] = 0.5
    for _ in range(ROUNDS):
        share = weights[:, None] * likelihood
        share /= share.sum(0)
        weights = share.sum(1) + SLAB_COUNT
        weights[0] += null_count - SLAB_COUNT
        weights /= weights.sum()
    share = weights[:, None] * likelihood
    share = share / share.sum(0)
    evidence = 1 - share[0]
    share = share[:, groups]
    keep = squares / wide
    mean = (share * keep).sum(0) * effects
    variance = (share * (keep * variances + (keep * effects) ** 2)).sum(0) - mean**2
    return Shrunk(mean, np.maximum(variance, 0), weights, evidence)


@dataclass(frozen=True)
class Interactions:
    """Means and variances of products of contrasts of different attributes, by increasing numbers of contrasts.

    ``evidence``: for attributes of increasing places, the chance that they hold more than smaller tables say.
    """

    mean: Floats
    variance: Floats
    evidence: Floats
    weights: Floats  # of each width


def interactions(
    work: Workload,
    heard: Moments,
    order: int,
    single: Floats,
    expected: Callable[[tuple[int, ...], list[Places]], Floats],
) -> Interactions:
    """What reports on ``order`` attributes at once say beyond ``expected`` tables; ``single``: means of contrasts."""
    space = heard.space
    told = (heard.first, heard.second, heard.third)[order - 1]
    assert told is not None
    alike: dict[tuple[int, ...], list[Places]] = defaultdict(list)
    for places in combinations(range(len(work.sizes)), order):
        alike[work.shape(places)].append(places)
    parts: dict[str, list[Any]] = defaultdict(list)
    spread = contrast_spreads(heard, single)
    for shape, sets in alike.items():
        rows = [space.rows[place] for place in sets[0]]
        bases = [space.bases[place] for place in sets[0]]
        tables = np.asarray(expected(shape, sets)).reshape(len(sets), *shape)
        sums, information = (part[_block(space.starts, sets, [len(each) for each in rows])] for part in told)
        overlaps = [each @ basis for each, basis in zip(rows, bases, strict=True)]  # signs x contrasts
        left = _turned(sums - information * _turned(tables, [each.T for each in rows]), overlaps)
        # signs come at random, and the mean square of their overlap with a contrast is H / (H - 1)
        gain = prod((len(each) + 1) / len(each) for each in rows)
        known = gain * np.maximum(information.reshape(len(sets), -1).sum(1), SMALLEST_INFORMATION)
        known = known.reshape(-1, *[1] * order)
        where = _block(space.contrast_starts, sets, [size - 1 for size in shape])
        scale = np.ones([1] * (order + 1))
        for axis in where:
            scale = scale * spread[axis]
        parts["where"].append(np.stack([axis.ravel() for axis in np.broadcast_arrays(*where)]))
        parts["mean"].append(_turned(tables, bases).ravel())
        parts["effect"].append((left / known / scale).ravel())
        parts["variance"].append((1 / known / scale**2).ravel())
        parts["scale"].append(scale.ravel())
        first = sum(len(each) for each in parts["sets"])
        parts["group"].append(np.repeat(np.arange(first, first + len(sets)), scale[0].size))
        parts["sets"].append(sets)
    joined = {name: np.concatenate(each, axis=-1) for name, each in parts.items() if name != "sets"}
    found = shrink(joined["effect"], joined["variance"], joined["group"], NULL_COUNTS[order])
    mean, variance = (np.zeros((int(space.contrast_starts[-1]),) * order) for _ in range(2))
    mean[tuple(joined["where"])] = joined["mean"] + found.mean * joined["scale"]
    variance[tuple(joined["where"])] = found.variance * joined["scale"] ** 2 + SLACK
    evidence = np.zeros((len(work.sizes),) * order)
    evidence[tuple(np.array([each for sets in parts["sets"] for each in sets]).T)] = found.evidence
    return Interactions(mean, variance, evidence, found.weights)


def _block(starts: NDArray[np.int64], sets: list[Places], lengths: list[int]) -> tuple[Any, ...]:
    """Indices of the numbers that each set's attributes own: one axis for the sets, then one per attribute."""
    grid = np.ix_(range(len(sets)), *(range(length) for length in lengths))
    places = np.array(sets)
    return tuple(starts[places[:, axis]][grid[0]] + grid[axis + 1] for axis in range(len(lengths)))


def _turned(tables: Floats, maps: list[Floats]) -> Floats:
    """Every axis of the tables but the first, by a linear map each (old x new)."""
    for axis, each in enumerate(maps, start=1):
        tables = np.moveaxis(np.tensordot(tables, each, axes=(axis, 0)), -1, axis)
    return tables


def contrast_spreads(heard: Moments, single: Floats) -> Floats:
    """Standard deviations of the contrasts among people."""
    out = []
    for place, basis in enumerate(heard.space.bases):
        mean = single[heard.space.contrasts_of(place)]
        table = np.maximum(1 / len(basis) + basis @ mean, 0)
        out.append(np.maximum(table @ basis**2 - mean**2, 0.01))
    return np.asarray(np.sqrt(np.concatenate(out)))
