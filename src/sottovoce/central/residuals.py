"""Residuals with noise: measured once each, added up to the counts of any table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np

from sottovoce.central.domains import Places
from sottovoce.central.method import Floats, Integers
from sottovoce.central.residual_plan import ResidualPlan
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.noise import lattice_gaussian


def measured(counts: Integers, places: Places, plan: ResidualPlan, entropy: Entropy) -> Floats:
    """A residual with its noise, once a ledger has it.

    One person moves the residual of a table by multiples of 1/N, where N is how many cells the
    table has. So the noise lies on a lattice that holds them: then it reveals what the squared
    length of that move is over the variance, which is P_B / s_B^2. Of noise on whole numbers that
    is not so: 1 / s_B^2 is all that could be promised, as if the whole table were released.

    Noise is added to all cells, and what is no residual is taken off again. All that is a sum over
    the values of an attribute must vanish to the last bit, since nothing was paid for it: hence
    differences of integers, before there are any floats.

    Args:
        counts: the exact table, an axis for each attribute.
        places: its attributes.
        plan: which says how much noise.
        entropy: where the noise comes from.

    Returns:
        The residual, of the shape of the table; its sums over each axis are 0 but for rounding.
    """
    variance = plan.variance(places)
    if variance == 0:
        return counts.astype(np.float64)  # the number of people, which neighbours share
    steps = plan.steps_per_unit(places)
    noise = lattice_gaussian(variance, steps, counts.size, entropy)
    noisy = steps * counts + noise.reshape(counts.shape)  # in steps of the lattice
    for axis in range(counts.ndim):
        noisy = noisy - np.take(noisy, [0], axis=axis)  # less the first value
    residual = noisy / steps
    for axis in range(counts.ndim):
        residual = residual - residual.mean(axis=axis, keepdims=True)
    return np.asarray(residual, np.float64)


@dataclass(frozen=True, eq=False)
class Residuals:
    """All residuals of up to so many attributes, as they were measured.

    Attributes:
        plan: what they were measured by.
        parts: for each set of attributes its residual.
    """

    plan: ResidualPlan
    parts: Mapping[Places, Floats] = field(repr=False)

    @property
    def total(self) -> float:
        """The number of people, as far as it is known."""
        return float(self.parts[()])

    def table(self, places: Places) -> Floats:
        """The unbiased counts of up to ``order`` attributes, an axis for each."""
        shape = tuple(self.plan.sizes[place] for place in places)
        counts = np.zeros(shape)
        for own in subsets_of(places):
            counts += spread_over(self.parts[own], own, places, shape)
        return counts

    def sum_variance(self, places: Places, chosen: Floats) -> float:
        """The variance of the noise of a weighted sum of counts.

        Args:
            places: the attributes of the table.
            chosen: the weight of each cell, of the shape of the table.
        """
        total = 0.0
        for own in subsets_of(places):
            # u reaches the residual of B through its sums over A\\B, each 1/n_j of them
            others = tuple(axis for axis, place in enumerate(places) if place not in own)
            weights = chosen.sum(axis=others)
            for axis in range(len(own)):
                weights = weights - weights.mean(axis=axis, keepdims=True)
            shared = chosen.size // weights.size  # prod over A\\B of n_j
            square = float((weights**2).sum()) / shared**2
            total += float(self.plan.variance(own)) * square
        return total


def subsets_of(places: Places) -> list[Places]:
    """All sets of some attributes, the empty one first.

    >>> subsets_of((1, 4))
    [(), (1,), (4,), (1, 4)]
    """
    return [own for count in range(len(places) + 1) for own in combinations(places, count)]


def spread_over(part: Floats, own: Places, places: Places, shape: tuple[int, ...]) -> Floats:
    """A residual as it enters a wider table: the same for all values of the other attributes.

    Args:
        part: the residual.
        own: its attributes.
        places: those of the table.
        shape: that of the table.

    Returns:
        An array that broadcasts to the shape.
    """
    axes = [size if place in own else 1 for place, size in zip(places, shape, strict=True)]
    others = prod(shape) // max(1, part.size)
    return np.asarray(part.reshape(axes) / others)
