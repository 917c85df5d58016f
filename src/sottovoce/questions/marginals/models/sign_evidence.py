"""What reports of signs say of a pair of attributes by themselves: unbiased, nothing shrunk.

Tests of independence need that: a table that was shrunk toward a model says what the model says.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.oracles.rules import sign_noise
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.signs import Moments, SignSpace
from sottovoce.questions.marginals.workload import Places, Workload

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_COINS = 1 << 23  # normal draws that are held at once


@dataclass(frozen=True)
class SignOverlaps:
    """How many reports tell signs, and which tell two signs and their product at once.

    With w = 1 / noise of a report, sums over the reports that tell

    Attributes:
        first: a sign, of w^2, (signs,).
        second: a product of two, of w^2, (signs, signs), symmetric as all that follow.
        corners: two signs and their product, of w.
        corner_squares: the same, of w^2.
        corner_products: the same, of w^2 rho / gap^2, where rho is the mean of the product of two
            characters that a report tells, over that of the product's own character.
    """

    first: Floats
    second: Floats
    corners: Floats
    corner_squares: Floats
    corner_products: Floats


def product_mean(oracle: Any) -> float:
    """rho: E[y_c y_d] = rho E[(c d)(value)] for the sums y of two characters c and d.

    One answer: the product is the answer's own character, so rho = p - q. Of a set of w values:
    with the sums of :func:`sottovoce.oracles.rules.sign_noise`, rho = p - q - 2 (near - far).
    """
    chosen = getattr(oracle, "chosen", 1)
    size, p = oracle.size, oracle.p
    # the chances that a set holds the value and a given other one, and two given others
    near = p * (chosen - 1) / (size - 1)
    far = p * (chosen - 1) * (chosen - 2) + (1 - p) * chosen * (chosen - 1)
    far = far / max((size - 1) * (size - 2), 1)
    return float(oracle.gap - 2 * (near - far))


def sign_overlaps(work: Workload, aggregate: Aggregate) -> SignOverlaps:
    """Count the reports of a family of signs by what they tell together."""
    space = SignSpace(work.sizes)
    family: Any = aggregate.plan.cohorts
    cohorts, _, people = aggregate.answers  # a row for each cohort and answer, (rows,) each
    block_numbers = family.numbers(cohorts)
    count = space.count
    first = np.zeros(count)
    pairs = np.zeros((4, count * count))  # second, corners, their squares and products
    for number, block in enumerate(family.blocks):
        rows = np.flatnonzero(block_numbers == number)
        members, masks = family.reach(number, cohorts[rows])  # (rows of the block, block.order)
        signs = space.starts[members] + masks - 1
        oracle = family.oracles[number]
        weight = 1 / sign_noise(oracle)
        is_corner = block.shape == "corner"
        if is_corner or block.order == 1:
            for column in range(block.order):
                told = np.bincount(signs[:, column], people[rows], minlength=count)
                first += weight**2 * told
        if block.order < 2 or (block.shape == "parity" and block.order > 2):
            continue
        product = product_mean(oracle) / oracle.gap**2
        for one, two in combinations(range(block.order), 2):
            key = signs[:, one] * count + signs[:, two]
            told = np.bincount(key, people[rows], minlength=count * count)
            pairs[0] += weight**2 * told
            if is_corner:
                pairs[1] += weight * told
                pairs[2] += weight**2 * told
                pairs[3] += weight**2 * product * told
    # reports name two signs in increasing order: the lower half mirrors the upper
    square = pairs.reshape(4, count, count)
    square = square + square.transpose(0, 2, 1)
    return SignOverlaps(first, square[0], square[1], square[2], square[3])


@dataclass(frozen=True, eq=False)
class SignPair:
    """A pair's unbiased table from signs, and the law of its errors if the two are independent.

    People are a sample of a population. A report y of a sign, over its gap, has mean S and variance
    noise - S^2; means weigh reports by 1 / noise. A report that tells two signs and their product
    errs in all three at once.

    Attributes:
        table: unbiased, (values of one, values of two).
        bases: the contrasts' values of both attributes, (values, contrasts) each.
        maps: from means of signs to means of contrasts, (contrasts, signs) each.
        means: of the signs of both attributes, (signs,) each, those of a distribution.
        information: of both attributes' signs, (signs,) each, and of their products.
        left: what is left of the variances of sums once the corners' share is taken: the same.
        roots: square roots of the corners' covariances of the three sums, (signs, signs, 3, 3).
    """

    table: Floats
    bases: tuple[Floats, Floats]
    maps: tuple[Floats, Floats]
    means: tuple[Floats, Floats]
    information: tuple[Floats, Floats, Floats]
    left: tuple[Floats, Floats, Floats]
    roots: Floats

    @classmethod
    def of(cls, heard: Moments, overlaps: SignOverlaps, pair: Places) -> SignPair:
        """What was heard of two attributes."""
        space = heard.space
        one, two = space.of(pair[0]), space.of(pair[1])
        bases = (space.bases[pair[0]], space.bases[pair[1]])
        maps = tuple(
            space.to_contrasts[space.contrasts_of(place), space.of(place)] for place in pair
        )
        singles = heard.mean(1)
        means = []  # of signs, as the nearest distributions have them
        for place, basis, to_contrasts in zip(pair, bases, maps, strict=True):
            values = 1 / len(basis) + basis @ (to_contrasts @ singles[space.of(place)])
            means.append(space.rows[place] @ norm_sub(values))  # (signs,)
        first, second = means
        product = np.outer(first, second)  # S_rs = S_r S_s, (signs, signs)
        known = heard.second[1][one, two]
        # of a product that nobody told nothing speaks against independence
        pairs = np.where(known > 0, heard.mean(2)[one, two], product)
        table = _table(bases, maps, (singles[one], singles[two], pairs))

        corners = overlaps.corners[one, two]
        squares = overlaps.corner_squares[one, two]
        products = overlaps.corner_products[one, two]
        # of the three sums of corners:  C - L S^2  and  R S_(product of both) - L S S'
        shape = product.shape
        sums = [np.broadcast_to(first[:, None], shape), np.broadcast_to(second, shape), product]
        covariance = np.empty((*shape, 3, 3))
        for row, column in np.ndindex(3, 3):
            both = squares * sums[row] * sums[column]
            if row == column:
                covariance[..., row, column] = corners - both
            else:
                third = sums[3 - row - column]  # the product of two of them is the third
                covariance[..., row, column] = products * third - both
        sizes, axes = np.linalg.eigh(covariance)
        roots = axes * np.sqrt(np.maximum(sizes, 0))[..., None, :]

        information = (heard.first[1][one], heard.first[1][two], known)
        # sum of w - w^2 S^2 over the reports that are no corners of the pair
        left = (
            information[0] - overlaps.first[one] * first**2 - covariance[..., 0, 0].sum(1),
            information[1] - overlaps.first[two] * second**2 - covariance[..., 1, 1].sum(0),
            known - overlaps.second[one, two] * product**2 - covariance[..., 2, 2],
        )
        clipped = tuple(np.maximum(part, 0) for part in left)
        return cls(
            table,
            bases,
            (maps[0], maps[1]),
            (first, second),
            information,
            (clipped[0], clipped[1], clipped[2]),
            roots,
        )

    def errors(self, count: int, draws: np.random.Generator) -> Floats:
        """Errors as they might have been, (count, values of one, values of two)."""
        step = max(1, MAX_COINS // self.roots.size)  # draws at once
        parts = [self._drawn(min(step, count - done), draws) for done in range(0, count, step)]
        return np.concatenate(parts)

    def _drawn(self, count: int, draws: np.random.Generator) -> Floats:
        shape = self.information[2].shape
        coins = draws.standard_normal((count, *shape, 3))
        corners = np.einsum("nrsj,rsij->nrsi", coins, self.roots)  # (count, signs, signs, 3)
        sums = (
            corners[..., 0].sum(2) + self._normal(0, count, draws),
            corners[..., 1].sum(1) + self._normal(1, count, draws),
            corners[..., 2] + self._normal(2, count, draws),
        )
        first, second, pairs = (
            np.divide(told, known, out=np.zeros_like(told), where=known > 0)
            for told, known in zip(sums, self.information, strict=True)
        )
        # of a product that nobody told, what its signs say
        guessed = first[:, :, None] * self.means[1] + self.means[0][:, None] * second[:, None, :]
        pairs = np.where(self.information[2] > 0, pairs, guessed)
        return _table(self.bases, self.maps, (first, second, pairs), 0.0)

    def _normal(self, part: int, count: int, draws: np.random.Generator) -> Floats:
        """Normal draws of what is left of a sum, a row for each."""
        variances = self.left[part]
        return np.asarray(draws.standard_normal((count, *variances.shape)) * np.sqrt(variances))


def _table(
    bases: tuple[Floats, Floats],
    maps: tuple[Floats, ...],
    told: tuple[Floats, Floats, Floats],
    total: float = 1.0,
) -> Floats:
    """The tables of two attributes from means of signs.

    Args:
        bases: (values, contrasts) of each attribute.
        maps: (contrasts, signs) of each attribute.
        told: means of the signs of one and of the other, (..., signs), and of products.
        total: what cells sum to.

    Returns:
        Floats of shape (..., values of one, values of two).
    """
    # f(x, y) = total/(K L) + sum E[c] c(x) / L + sum E[d] d(y) / K + sum E[c d] c(x) d(y)
    one, two = (basis @ each for basis, each in zip(bases, maps, strict=True))  # (values, signs)
    rows = told[0] @ one.T / len(two)
    columns = told[1] @ two.T / len(one)
    inner = one @ told[2] @ two.T
    flat = total / (len(one) * len(two))
    return np.asarray(flat + rows[..., :, None] + columns[..., None, :] + inner)
