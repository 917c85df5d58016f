"""Structure by evidence: what products of two or three signs hold beyond what smaller tables say.

The residuals of all sets of attributes, scaled by the spread of their contrasts, have a prior of a
mass at zero and normals of several widths. The weights are fitted to all sets at once, so structure
is believed where there is some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.signs import Moments
from sottovoce.questions.marginals.workload import Places, Workload

PRIOR_WIDTHS = np.concatenate(
    [[0.0], np.geomspace(0.02, 0.8, 10)]
)  # standard deviations of the prior
# pseudo-counts of the widths' weights, by the number of attributes: of no effect, and of each other
NULL_COUNTS = {2: 0.2, 3: 3.0}  # triples are taken for nothing until they show something
SLAB_COUNT = 0.2
EM_ROUNDS = 200
MEAN_SLACK = 1e-5  # variance of a mean that is never waived
SMALLEST_INFORMATION = 1e-6
SMALLEST_CONTRAST_VARIANCE = 0.01  # of a contrast among people


@dataclass(frozen=True)
class Shrunk:
    """Posterior means and variances of effects, and the fitted weight of each width."""

    mean: Floats  # (effects,)
    variance: Floats  # (effects,)
    weights: Floats  # (widths,), sum to 1
    evidence: Floats  # (groups,): the chance that a group's effects are not zero


def shrink(
    effects: Floats,
    variances: Floats,
    groups: NDArray[np.int64],
    null_count: float = 3.0,
) -> Shrunk:
    """Effects seen with noise, shrunk toward zero; those of one group share their width.

    Args:
        effects: what was seen, (effects,).
        variances: of its noise, positive, (effects,).
        groups: the group of each effect, 0 to groups - 1, (effects,).
        null_count: the pseudo-count of groups without any effect.
    """
    # effect_e ~ N(delta_e, v_e),  delta_e ~ N(0, s_g^2) for e in group g,  s_g one of PRIOR_WIDTHS,
    # P(s_g = PRIOR_WIDTHS[k]) = w_k,  w ~ Dirichlet of the pseudo-counts
    squares = PRIOR_WIDTHS[:, None] ** 2  # (widths, 1)
    total_variances = squares + variances  # (widths, effects)
    logs = -0.5 * np.log(total_variances) - 0.5 * effects**2 / total_variances
    count = int(groups.max()) + 1 if len(groups) else 0
    group_logs = np.array([np.bincount(groups, row, minlength=count) for row in logs])
    likelihood = np.exp(group_logs - group_logs.max(0))  # (widths, groups), the largest is 1

    # EM: which width each group has, then the weights of the widths
    weights = np.full(len(PRIOR_WIDTHS), 0.5 / (len(PRIOR_WIDTHS) - 1))
    weights[0] = 0.5
    for _ in range(EM_ROUNDS):
        share = (
            weights[:, None] * likelihood
        )  # (widths, groups): P(s_g = PRIOR_WIDTHS[k] | effects)
        share /= share.sum(0)
        weights = share.sum(1) + SLAB_COUNT
        weights[0] += null_count - SLAB_COUNT
        weights /= weights.sum()
    share = weights[:, None] * likelihood
    share = share / share.sum(0)
    evidence = 1 - share[0]

    # given its width an effect has mean f e and variance f v,  f = s^2 / (s^2 + v);
    # over the widths, E = sum w f e and Var = sum w (f v + (f e)^2) - E^2
    share = share[:, groups]  # (widths, effects)
    factor = squares / total_variances
    mean = (share * factor).sum(0) * effects
    second_moment = (share * (factor * variances + (factor * effects) ** 2)).sum(0)
    variance = second_moment - mean**2
    return Shrunk(mean, np.maximum(variance, 0), weights, evidence)


@dataclass(frozen=True)
class Interactions:
    """Means and variances of products of contrasts of different attributes.

    Attributes:
        mean: by increasing numbers of contrasts, an axis for each; 0 elsewhere.
        variance: the same.
        evidence: for increasing attributes, an axis for each, the chance that they hold more than
            smaller tables say.
        weights: of each width, (widths,).
    """

    mean: Floats
    variance: Floats
    evidence: Floats
    weights: Floats


class _Residuals(NamedTuple):
    """Products of contrasts for the sets of one shape, flat: set by set, (products,) each."""

    contrasts: NDArray[np.int64]  # (order, products): the numbers of the contrasts
    expected: Floats  # means
    effect: Floats  # how far reports say that means are off, over the scale
    variance: Floats  # of the effect
    scale: Floats  # product of the contrasts' standard deviations


def interactions(
    work: Workload,
    heard: Moments,
    order: int,
    single: Floats,
    expected: Callable[[tuple[int, ...], list[Places]], Floats],
) -> Interactions:
    """What reports on ``order`` attributes at once say beyond expected tables.

    Args:
        work: the attributes and their sizes.
        heard: the means of signs that reports tell.
        order: 2 or 3 attributes.
        single: means of contrasts, (contrasts,).
        expected: for a shape and sets of attributes of that shape, the tables that smaller ones
            let one expect, (sets, cells).
    """
    space = heard.space
    sets_by_shape: dict[tuple[int, ...], list[Places]] = defaultdict(list)
    for places in combinations(range(len(work.sizes)), order):
        sets_by_shape[work.shape(places)].append(places)

    spreads = contrast_spreads(heard, single)
    parts: list[_Residuals] = []
    groups: list[NDArray[np.int64]] = []  # the products of a set share their width
    all_sets: list[Places] = []
    for shape, sets in sets_by_shape.items():
        tables = np.asarray(expected(shape, sets)).reshape(len(sets), *shape)
        part = _residuals(heard, sets, tables, spreads)
        parts.append(part)
        numbers = np.arange(len(all_sets), len(all_sets) + len(sets))
        groups.append(np.repeat(numbers, len(part.scale) // len(sets)))
        all_sets.extend(sets)

    index = np.concatenate([part.contrasts for part in parts], axis=-1)  # (order, products)
    expected_mean = np.concatenate([part.expected for part in parts])
    effect = np.concatenate([part.effect for part in parts])
    effect_variance = np.concatenate([part.variance for part in parts])
    scale = np.concatenate([part.scale for part in parts])
    shrunk = shrink(effect, effect_variance, np.concatenate(groups), NULL_COUNTS[order])

    contrasts_count = int(space.contrast_starts[-1])
    mean = np.zeros((contrasts_count,) * order)
    mean[tuple(index)] = expected_mean + shrunk.mean * scale
    variance = np.zeros((contrasts_count,) * order)
    variance[tuple(index)] = shrunk.variance * scale**2 + MEAN_SLACK
    evidence = np.zeros((len(work.sizes),) * order)
    evidence[tuple(np.array(all_sets).T)] = shrunk.evidence
    return Interactions(mean, variance, evidence, shrunk.weights)


def _residuals(
    heard: Moments,
    sets: list[Places],
    tables: Floats,
    spreads: Floats,
) -> _Residuals:
    """How far reports say that means of products of contrasts are from those of expected tables.

    Args:
        heard: the means of signs that reports tell.
        sets: sets of attributes of one shape.
        tables: what is expected of them, (sets, values of the first, values of the second, ...).
        spreads: standard deviations of all contrasts, (contrasts,).
    """
    space = heard.space
    order = len(sets[0])
    by_order = (heard.first, heard.second, heard.third)[order - 1]
    assert by_order is not None
    rows = [space.rows[attribute] for attribute in sets[0]]  # (signs, values) each
    bases = [space.bases[attribute] for attribute in sets[0]]  # (values, contrasts) each
    sign_index = _block(space.starts, sets, [len(signs) for signs in rows])
    contrast_index = _block(space.contrast_starts, sets, [basis.shape[1] for basis in bases])

    # information * (mean - expected) = sums - information * expected: (sets, signs, signs, ...)
    sums, information = (array[sign_index] for array in by_order)
    expected_signs = _transformed(tables, [signs.T for signs in rows])
    residual_sums = sums - information * expected_signs

    # from signs to contrasts; signs come at random, and the mean square of their overlap with a
    # contrast is H / (H - 1), so that a contrast has H / (H - 1) times the information of its signs
    overlaps = [signs @ basis for signs, basis in zip(rows, bases, strict=True)]
    contrast_sums = _transformed(residual_sums, overlaps)  # (sets, contrasts, contrasts, ...)
    gain = prod((len(signs) + 1) / len(signs) for signs in rows)
    set_information = information.reshape(len(sets), -1).sum(1)  # (sets,)
    known = gain * np.maximum(set_information, SMALLEST_INFORMATION)
    known = known.reshape(-1, *[1] * order)  # (sets, 1, 1, ...)

    scale = np.ones([1] * (order + 1))
    for axis in contrast_index:
        scale = scale * spreads[axis]  # in the end (sets, contrasts, contrasts, ...)
    flat_index = [axis.ravel() for axis in np.broadcast_arrays(*contrast_index)]
    return _Residuals(
        contrasts=np.stack(flat_index),
        expected=_transformed(tables, bases).ravel(),
        effect=(contrast_sums / known / scale).ravel(),
        variance=(1 / known / scale**2).ravel(),
        scale=scale.ravel(),
    )


def _block(
    starts: NDArray[np.int64],
    sets: list[Places],
    lengths: list[int],
) -> tuple[NDArray[np.int64], ...]:
    """Indices of the signs, or contrasts, of each set's attributes.

    Args:
        starts: the first sign, or contrast, of each attribute.
        sets: sets of attributes with as many signs, or contrasts.
        lengths: how many these are, for each attribute of a set.

    Returns:
        An index for each attribute; together they broadcast to (sets, *lengths).
    """
    grid: Any = np.ix_(range(len(sets)), *(range(length) for length in lengths))
    attributes = np.array(sets)  # (sets, order)
    index = []
    for axis in range(len(lengths)):
        first = starts[attributes[:, axis]]  # (sets,)
        index.append(first[grid[0]] + grid[axis + 1])
    return tuple(index)


def _transformed(tables: Floats, maps: list[Floats]) -> Floats:
    """Tables with a linear map on every axis but the first, (old, new) each."""
    for axis, matrix in enumerate(maps, start=1):
        product = np.tensordot(tables, matrix, axes=(axis, 0))  # the new axis comes last
        tables = np.moveaxis(product, -1, axis)
    return tables


def contrast_spreads(heard: Moments, single: Floats) -> Floats:
    """Standard deviations of the contrasts among people, from their means: (contrasts,) both."""
    variances = []
    for attribute, basis in enumerate(heard.space.bases):
        # Var[c] = sum over values of f(v) c(v)^2 - E[c]^2,  f(v) = 1/K + sum over c of E[c] c(v)
        mean = single[heard.space.contrasts_of(attribute)]
        table = np.maximum(1 / len(basis) + basis @ mean, 0)  # (values,)
        variance = table @ basis**2 - mean**2
        variances.append(np.maximum(variance, SMALLEST_CONTRAST_VARIANCE))
    return np.asarray(np.sqrt(np.concatenate(variances)))
