"""How much two attributes depend on each other: one statistic behind test, strength and interval.

Were the interaction D that was heard t times as large, its statistic would be t^2 times as large.
The test asks whether t = 0 explains what was heard. What noise alone adds to the statistic, taken
off, gives the estimate of t; the t that explain it are the interval. Cramer's V and the mutual
information are functions of t, so that neither contradicts the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, copysign, log2, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.analysis.pairs import (
    MAX_DRAWN_CELLS,
    contingency,
    interaction,
    mutual_information,
    pair_laws,
)
from sottovoce.ground.extras import imported
from sottovoce.questions.marginals.method import PairEvidence
from sottovoce.questions.marginals.models.pair_law import independent_of, margins_of
from sottovoce.results.estimate import Floats
from sottovoce.results.joint import JointEstimate

if TYPE_CHECKING:
    from sottovoce.questions.marginals.workload import Places

TEST_LEVEL = 0.05  # of the test, and one less that of the interval
NULL_DRAWS = 2000  # of a normal law
SAME = 1e-12  # a statistic that is lower by less, relatively, counts as reached
NULL_SEED = 1  # of these draws: they only integrate, and give the same figures every time
UNEVENNESS = 0.5  # relative standard error of phi^2 if ties are taken to be even
LEAST_SCALE = 0.1  # of that phi^2: noise may make the other answer negative
SMALLEST_SQUARE = 1e-18  # a variance of phi^2 without any noise
LONGEST_RAY = 20.0  # times the interaction that was heard
HALVINGS = 30  # of a range that holds an end of an interval
SEARCH_PARTS = 64  # into which a range is cut at once, to the same fineness


@dataclass(frozen=True)
class Dependence:
    """A test of independence with the strength that goes with it.

    ``low`` and ``high`` hold Cramer's V at 95%; ``low`` is above 0 exactly if ``p_value`` is at
    most 0.05. The same holds of the mutual information, in nats. ``excess`` is the information
    that was heard less what noise alone seems to tell, and may be below 0; ``plain`` has noise in
    it.
    """

    statistic: float
    p_value: float
    cramers_v: float = nan
    low: float = nan
    high: float = nan
    excess: float = nan
    information_low: float = nan
    information_high: float = nan
    plain: float = nan

    @property
    def information(self) -> float:
        """The mutual information, in nats: 0 where noise alone would tell more."""
        return max(self.excess, 0.0)


def evidence_of(estimate: JointEstimate, pairs: Sequence[Places]) -> Sequence[PairEvidence]:
    """What is known of pairs, given by increasing places, before anything is shrunk or repaired."""
    told = estimate.fit.evidence(pairs)
    if told is not None:
        return told
    return pair_laws(estimate, pairs, population=True)


def dependences(estimate: JointEstimate, pairs: Sequence[Places]) -> list[Dependence]:
    """Test pairs, given by increasing places, against normal errors around independence."""
    found = []
    for pair, evidence in zip(pairs, evidence_of(estimate, pairs), strict=True):
        draws = np.random.default_rng([NULL_SEED, *pair])
        count = max(200, min(NULL_DRAWS, MAX_DRAWN_CELLS // evidence.table.size))
        errors = evidence.errors(count, draws)  # (draws, rows, columns)
        found.append(judged(evidence.table, independent_of(evidence.table) + errors))
    return found


def judged(table: Floats, drawn: Floats) -> Dependence:
    """What a table says beside those that were drawn for independent attributes.

    The statistic adds up the squared interactions, each over its mean under independence so that
    all cells weigh alike. The table itself counts as one of the draws, so that the test holds its
    level for any number of them.

    Args:
        table: What was heard, (rows, columns).
        drawn: What might have been heard of independent attributes, (draws, rows, columns).
    """
    tied = interaction(np.concatenate([table[None], drawn]))  # (1 + draws, rows, columns)
    means = (tied**2).mean(axis=0)  # (rows, columns)
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    scale = degrees / table.size
    weights = np.divide(scale, means, out=np.zeros_like(means), where=means > 0)
    own, others = tied[0], tied[1:]
    statistic = float((weights * own**2).sum())
    nulls = (weights * others**2).sum(axis=(1, 2))  # (draws,)
    crossed = (weights * own * others).sum(axis=(1, 2))  # (draws,)
    ray = _Ray(statistic, nulls, crossed)
    low, high = ray.interval()
    best = ray.estimate
    scale = _contingency_scale(table, drawn, weights, ray)
    middle = independent_of(table)

    def strength(t: float) -> float:
        # V^2 = phi^2 / (min(rows, columns) - 1),  phi^2 in proportion to t^2
        squared = scale * t**2 * statistic / (min(table.shape) - 1)
        return min(1.0, sqrt(squared)) if t > 0 else 0.0

    def information(t: float) -> float:
        """Of the table e + u D whose V is that of t."""
        if t == 0 or statistic <= 0:
            return 0.0
        wanted = strength(abs(t)) ** 2 * (min(table.shape) - 1)
        most = LONGEST_RAY * max(abs(t), 1.0)
        # of large tables fewer at once
        count = max(2, min(SEARCH_PARTS, MAX_DRAWN_CELLS // table.size))
        low, high = 0.0, most  # the u that is looked for lies between them
        for _ in range(ceil(HALVINGS / log2(count))):
            tried = np.linspace(low, high, count + 1)[1:]  # (parts,)
            reached = contingency(middle + tried[:, None, None] * own) >= wanted
            part = int(reached.argmax()) if reached.any() else count - 1
            low, high = low + part * (high - low) / count, float(tried[part])
        u = high
        return copysign(float(mutual_information(middle + u * own)), t)

    return Dependence(
        statistic,
        ray.p_value,
        *_ordered(strength, best, low, high),
        *_ordered(information, best, low, high),
        plain=float(mutual_information(table)),
    )


def _contingency_scale(table: Floats, drawn: Floats, weights: Floats, ray: _Ray) -> float:
    """How much chi-squared per person, phi^2, goes with one unit of the statistic.

    Two answers are weighed by their errors. phi^2 as heard, less what noise alone gives: unbiased,
    and hopeless where values are rare, since it divides by their frequencies. And what goes with
    the statistic if ties are as strong among rare values as among others, which may be off by half.

    Args:
        table: What was heard, (rows, columns).
        drawn: What might have been heard of independent attributes, (draws, rows, columns).
        weights: Of the squared interactions in the statistic, (rows, columns).
        ray: The statistic.
    """
    # D_ij with mean square tau^2 p_i (1 - p_i) q_j (1 - q_j) has phi^2 = degrees tau^2
    rows, columns = margins_of(table)
    room = np.outer(rows * (1 - rows), columns * (1 - columns))
    degrees = (len(rows) - 1) * (len(columns) - 1)
    typical = float((weights * room).sum())
    if typical <= 0:
        return 0.0
    even = degrees / typical
    excess = max(ray.excess, float(ray.nulls.std()))
    if excess <= 0:
        return even
    noise = contingency(drawn)  # (draws,)
    heard = float(contingency(table)) - float(noise.mean())
    heard_precision = 1 / max(float(noise.var()), SMALLEST_SQUARE)
    even_precision = 1 / (UNEVENNESS * even * excess) ** 2
    mixed = heard * heard_precision + even * excess * even_precision
    scale = mixed / (heard_precision + even_precision) / excess
    return max(scale, LEAST_SCALE * even)


def _ordered(
    figure: Callable[[float], float], best: float, low: float, high: float
) -> tuple[float, float, float]:
    """A figure and its ends."""
    value = figure(best)
    least = min(figure(low), max(value, 0.0)) if low > 0 else 0.0
    return value, least, max(figure(high), value, least)


@dataclass(frozen=True)
class _Ray:
    """The statistic of the tables e + t D + error, for draws of the error.

    It is  t^2 s + 2 t b + c  for the statistic s that was heard, c that of the error alone and b
    their product.
    """

    statistic: float
    nulls: Floats  # c, (draws,)
    crossed: Floats  # b, (draws,)

    @property
    def p_value(self) -> float:
        """Of t = 0: by counting, and beyond the draws' reach by a gamma law."""
        share = self._reached(0.0)
        if share * (1 + len(self.nulls)) > 1:
            return share
        return min(share, _tail(self.statistic, self.nulls))

    @property
    def excess(self) -> float:
        """The statistic less what noise alone gives: t^2 s, if t were known."""
        return self.statistic - float(self.nulls.mean())

    @property
    def estimate(self) -> float:
        """t, below 0 where noise alone would give more."""
        if self.statistic <= 0:
            return 0.0
        squared = self.excess / self.statistic
        return copysign(sqrt(abs(squared)), squared)

    def interval(self) -> tuple[float, float]:
        """The least and the largest t that explain the statistic, at one less the test's level.

        At t = 0 a statistic speaks against t if it is too large. Far from it both ways count, each
        with half of the level; in between the lower way counts in proportion to t^2 s over the
        standard deviation of the noise.
        """
        # all t up to this may explain it: t^2 s is nine times what noise and itself can make up
        if self.statistic <= 0:
            return 0.0, 0.0
        most = 3 * sqrt((self.statistic + float(self.nulls.max())) / self.statistic)
        spread = float(self.nulls.std())

        def below(t: float) -> float:
            """The part of the level for statistics that are too small."""
            if spread <= 0:
                return TEST_LEVEL / 2 if t > 0 else 0.0
            return TEST_LEVEL / 2 * min(1.0, t**2 * self.statistic / spread)

        def is_too_low(t: float) -> bool:
            return self._reached(t) <= TEST_LEVEL - below(t)

        def is_too_high(t: float) -> bool:
            share = float((self._at(t) <= self.statistic).mean())
            return share <= below(t)

        low = _last(is_too_low, most) if is_too_low(0.0) else 0.0
        high = _last(lambda t: not is_too_high(t), most)
        return low, max(low, high)

    def _at(self, t: float) -> Floats:
        return np.asarray(t**2 * self.statistic + 2 * t * self.crossed + self.nulls)

    def _reached(self, t: float) -> float:
        """The share of draws that reach the statistic, itself among them."""
        reached = int((self._at(t) >= self.statistic * (1 - SAME)).sum())
        return (1 + reached) / (1 + len(self.nulls))


def _last(holds: Callable[[float], bool], most: float) -> float:
    """The largest t up to ``most`` at which something holds that holds at 0 and then no more."""
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return high


def _tail(statistic: float, draws: Floats) -> float:
    """The chance of so much under the gamma law of the draws' mean and variance (Satterthwaite)."""
    special = imported("scipy.special")  # scipy.stats takes seconds to load

    # shape k and scale t with  k t = mean  and  k t^2 = variance
    mean, variance = float(draws.mean()), float(draws.var())
    if variance <= 0:
        return 1.0
    return float(special.gammaincc(mean**2 / variance, statistic * mean / variance))


def adjusted(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for testing many at once (Benjamini and Hochberg).

    >>> adjusted([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    # of the sorted p-values:  min over j >= i of  p_(j) m/j,  at most 1
    order = np.argsort(p_values, kind="stable")
    count = len(p_values)
    ratios = np.array(p_values)[order] * count / np.arange(1, count + 1)
    falling = np.minimum.accumulate(ratios[::-1])[::-1]
    out = np.empty(count)
    out[order] = np.minimum(falling, 1.0)
    return [float(value) for value in out]
