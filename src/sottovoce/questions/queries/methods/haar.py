"""HaarHRR: one Haar wavelet coefficient of one dimension, by the sign of a Hadamard coefficient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.oracles import oracle
from sottovoce.oracles.hadamard import HadamardRandomizedResponse
from sottovoce.protocol.encodings import Ask, Grid
from sottovoce.protocol.families import Cohort, Family, Listed
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import Options
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.method import QueryMethod
from sottovoce.questions.queries.target import Target
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_HAAR_SIZE = 1 << 16  # values: a query is transformed as a whole


@dataclass(frozen=True, eq=False)
class HaarTable(FittedTable):
    """Unbiased characters of one dimension: character m is the mean of (-1)^<m, code>.

    Codes are those of the next power of two, of which the last may be held by nobody. Characters
    whose masks end at one bit together are a level of Haar coefficients. Of two characters the
    errors are uncorrelated, up to the squares of small frequencies.
    """

    size: int
    characters: Floats  # by mask, (codes,); the first is 1
    variances: Floats  # (codes,)
    is_unbiased: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    def joint(self, terms: Sequence[Term]) -> Joint:
        loads = character_weights(terms, self.size)  # (terms, codes)
        covariance = (loads * self.variances) @ loads.T
        return Joint(loads @ self.characters, covariance)


class HaarCoefficients(QueryMethod):
    """People shared evenly over the levels of a binary tree: each tells the sign of one Hadamard
    coefficient of the level's Haar coefficients.

    The sign of mask m of j bits, its lowest bit set, is that of one coefficient of level j. A
    uniform mask of j bits that is not 0 ends at each level k <= j with a chance of 2^(k-1) in
    2^j - 1. So cohorts of ``hrr`` over 2, 4, 8, ... intervals, weighted as :func:`level_weights`
    says, reach all levels evenly, and no oracle of its own is needed.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    cormode2019ranges, HaarHRR.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "haar"
    about = "Haar wavelet coefficients, people shared over levels"
    source = "cormode2019ranges"
    is_baseline = True
    is_unbiased = True

    def refuse(self, target: Target, terms: Terms) -> str | None:
        if len(target) != 1 or not target.dimensions[0].is_ordered:
            return "Haar coefficients are for one dimension whose values have an order"
        if target.sizes[0] > MAX_HAAR_SIZE:
            return f"{target.sizes[0]:,} values are more than {MAX_HAAR_SIZE:,}"
        return None

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        levels = bits_of(target.sizes[0])
        cohorts = []
        for level, weight in enumerate(level_weights(levels), start=1):
            grid = Grid.of(schema, target.names, (1 << (levels - level),))
            made = oracle("hrr", size=grid.size, epsilon=epsilon)
            cohorts.append(Cohort((Ask(grid, made),), weight))
        return Listed(cohorts)

    def fit(
        self,
        target: Target,
        aggregate: Aggregate,
        options: Options,
        squares: Floats | None = None,
        counted: FittedTable | None = None,
    ) -> HaarTable:
        size = target.sizes[0]
        levels = bits_of(size)
        signs = np.zeros(1 << levels)  # summed by mask
        asked = np.zeros(1 << levels)  # weight of those who were asked for a mask, as expected
        square = np.zeros(1 << levels)  # the same of squared weights
        for index in range(levels):
            made = aggregate.plan.cohorts[index].oracles[0]
            assert isinstance(made, HadamardRandomizedResponse)
            state = aggregate.state(index)
            people = float(state[0])
            # a mask of the first bits of a code, as a mask of all its bits
            masks = np.arange(1, made.order) << (levels - index - 1)
            signs[masks] += state[1:]
            asked[masks] += people / (made.order - 1)
            own = people if squares is None else float(squares[index])
            square[masks] += own / (made.order - 1)
            truth = 2 * made.p - 1
        return _table(size, signs / truth, asked, square / truth**2)

    def predict_terms(
        self, target: Target, terms: Terms, options: Options, selections: Sequence[Term]
    ) -> Floats:
        size = target.sizes[0]
        levels = bits_of(size)
        p = float(oracle("hrr", size=2, epsilon=terms.epsilon).p)  # type: ignore[attr-defined]
        # n/L people on a level of 2^(k-1) masks:  Var = L 2^(k-1) / (n (2p - 1)^2)
        masks = np.arange(1, 1 << levels)
        lowest = masks & -masks
        per_level = (1 << (levels - 1)) // lowest
        variances = levels * per_level / (terms.people * (2 * p - 1) ** 2)
        loads = character_weights(selections, size)[:, 1:]
        return np.asarray(loads**2 @ variances)


def _table(size: int, signs: Floats, asked: Floats, square: Floats) -> HaarTable:
    """Characters as ratios, where anybody was asked; 0 with all that is possible where nobody."""
    is_asked = asked > 0
    is_asked[0] = False
    characters = np.zeros(len(signs))
    variances = np.ones(len(signs))
    characters[is_asked] = signs[is_asked] / asked[is_asked]
    variances[is_asked] = square[is_asked] / asked[is_asked] ** 2
    characters[0], variances[0] = 1.0, 0.0
    return HaarTable(size, characters, variances)


def bits_of(size: int) -> int:
    """How many bits a code has.

    >>> bits_of(64), bits_of(65)
    (6, 7)
    """
    return (size - 1).bit_length()


def level_weights(levels: int) -> list[int]:
    """The people of ``hrr`` over 2, 4, ..., 2^levels intervals, so that levels are told evenly.

    >>> level_weights(3)
    [4, 6, 14]
    """
    # shares r_j of cohort j on its own level, with sum over j >= k of r_j 2^(k-j) = 1/L for all k:
    #   r_L = 1/L, all others 1/(2 L); and cohort j has w_j = r_j (2^j - 1)/2^(j-1)
    finest = (2 << levels) - 2
    return [(1 << levels) - (1 << (levels - level)) for level in range(1, levels)] + [finest]


def character_weights(terms: Sequence[Term], size: int) -> Floats:
    """How much each character counts in a selection's share: (terms, codes).

    A code that nobody holds is selected as the last one is, which makes a selection of all exact.
    """
    codes = 1 << bits_of(size)
    whole = np.ones(size)
    selected = np.stack([np.asarray(term.get(0, whole), float) for term in terms])
    padded = np.pad(selected, ((0, 0), (0, codes - size)), mode="edge")
    # sum over codes of w f = (1/K) sum over masks of  theta_m  sum over codes of (-1)^<m, code> w
    span = 1
    while span < codes:
        pairs = padded.reshape(len(terms), -1, 2, span)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        padded = np.stack([first + second, first - second], axis=2).reshape(len(terms), codes)
        span *= 2
    return np.asarray(padded / codes)
