"""Tests of independence that know the privacy noise, so that they hold their level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan, sqrt
from typing import Any

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.analysis.pairs import (
    MAX_DRAWN_CELLS,
    PairLaw,
    Source,
    contingency,
    estimate_of,
    pair_laws,
    standardized,
)
from sottovoce.analysis.records import people_of
from sottovoce.analysis.trees import Edge, Tree, dependency_tree
from sottovoce.device.client import simulate
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.questions.marginals.estimate import MOSTLY_HEARD
from sottovoce.questions.marginals.workload import Places
from sottovoce.results.estimate import Floats
from sottovoce.results.joint import JointEstimate

NEVER_ASKED = "never asked"
NULLS = ("asymptotic", "simulation", "naive")
NULL_DRAWS = 2000  # of a normal law
SAME = 1e-12  # a statistic that is lower by less, relatively, counts as reached
STRENGTH_DRAWS = 200  # for what noise alone would seem to give
NULL_SEED = 1  # of these draws: they only integrate, and give the same figures every time


@dataclass(frozen=True)
class Association:
    """Whether two attributes are independent: a small ``p_value`` says that they are not.

    ``statistic`` has about the mean of a chi-squared variable with ``degrees`` if they are.
    ``adjusted`` is the p-value corrected for all pairs tested together (Benjamini and Hochberg): of
    the pairs with ``adjusted`` below 0.05, one in twenty is expected to be independent after all.
    ``method`` names the null law. ``cramers_v`` is the strength, from 0 to 1, without what noise
    alone would seem to give. A pair that was never asked (``is_asked``) has no figures: they are
    NaN, and null in JSON. ``heard`` is the share that reports tell of what was asked of the pair;
    below half of it there is no strength, which would read as independence.
    """

    attributes: tuple[str, str]
    statistic: float
    degrees: int
    p_value: float
    adjusted: float
    method: str
    cramers_v: float
    people: int
    is_asked: bool = True
    heard: float = 1.0

    @classmethod
    def unasked(cls, attributes: tuple[str, str], degrees: int, people: int) -> Association:
        """Of a pair that no report tells of."""
        return cls(
            attributes, nan, degrees, nan, nan, NEVER_ASKED, nan, people, is_asked=False, heard=0.0
        )

    @property
    def strength(self) -> str:
        """Cramer's V in words."""
        return "unknown" if isnan(self.cramers_v) else f"{self.cramers_v:.3f}"

    @property
    def mark(self) -> str:
        """What a reader must know of how much was heard; empty if it was all."""
        return f"{self.heard:.0%} heard" if self.heard < 1 else ""

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {
            "attributes": list(self.attributes),
            "is_asked": self.is_asked,
            "statistic": self.statistic if self.is_asked else None,
            "degrees": self.degrees,
            "p_value": self.p_value if self.is_asked else None,
            "adjusted": self.adjusted if self.is_asked else None,
            "method": self.method,
            "cramers_v": None if isnan(self.cramers_v) else self.cramers_v,
            "heard": self.heard,
            "people": self.people,
        }

    def __str__(self) -> str:
        if not self.is_asked:
            return f"{self.attributes[0]}, {self.attributes[1]}: {NEVER_ASKED} together"
        notes = ", ".join(filter(None, [self.method, f"{self.people:,} people", self.mark]))
        return (
            f"{self.attributes[0]}, {self.attributes[1]}: V {self.strength}, "
            f"statistic {self.statistic:.2f}, "
            f"p {self.p_value:.2g}, adjusted {self.adjusted:.2g} ({notes})"
        )


def associate(
    source: Source,
    pairs: Sequence[Sequence[str]] | Sequence[str] | None = None,
    *,
    null: str | None = None,
    replicates: int = 99,
    seed: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Association]:
    """Test pairs of attributes for independence; all pairs by default.

    ``null``: where the law of the statistic under independence comes from. ``asymptotic``: errors
    are normal, with the variances that the estimate states; for unbiased methods. ``simulation``:
    ``replicates`` whole collections (drawn with ``seed``) among people for whom the pair is
    independent and all else as estimated; for every method, given the aggregate. ``naive``: the
    textbook's chi-squared law, which takes the noise for association and rejects far too often. By
    default ``asymptotic`` for unbiased estimates and ``simulation`` for others.

    A pair that was never asked is refused if it is named, and else marked: nothing is known of it.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(a=sv.Boolean(), b=sv.Boolean(), c=sv.Boolean())
    >>> plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=4.0, people=20_000)
    >>> people = {"a": [True, False] * 10_000, "b": [True, False] * 10_000}
    >>> people["c"] = [True, True, False, False] * 5_000
    >>> heard = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1))
    >>> found = sv.associate(heard, ["a", "b"], null="asymptotic")
    >>> found[0].attributes, found[0].degrees
    (('a', 'b'), 1)
    """
    estimate = estimate_of(source)
    listed = _pairs(estimate, pairs)
    asked = [pair for pair in listed if estimate.is_asked(*estimate.work.attributes(pair))]
    if pairs is not None and len(asked) < len(listed):
        one, two = estimate.work.attributes(next(pair for pair in listed if pair not in asked))
        raise InvalidInput(
            f"pairs: {one!r} and {two!r} were never asked together, so nothing is known of them"
        )
    chosen = _null(source, estimate, asked, null)
    laws = pair_laws(estimate, [_increasing(pair) for pair in asked], population=True)
    if chosen == "simulation":
        assert isinstance(source, Aggregate)
        if seed is None:
            raise InvalidInput("seed is needed for the null law by simulation")
        count = whole("replicates", replicates, 19, 100_000)
        tests = _simulated(source, estimate, asked, laws, count, seed, progress or _silent)
    else:
        judge = _asymptotic if chosen == "asymptotic" else _naive
        tests = [judge(law, estimate.people, number) for number, law in enumerate(laws)]
    corrected = adjusted([p_value for _, p_value in tests])
    found = {}
    for number, pair in enumerate(asked):
        law = laws[number]
        statistic, p_value = tests[number]
        names = _named(estimate, pair)
        heard = estimate.heard_share(*names)
        found[pair] = Association(
            names,
            statistic,
            _degrees(law),
            p_value,
            corrected[number],
            chosen,
            _strength(law, number) if heard >= MOSTLY_HEARD else nan,
            estimate.people,
            heard=heard,
        )
    return [found[pair] if pair in found else _unasked(estimate, pair) for pair in listed]


def _named(estimate: JointEstimate, pair: Places) -> tuple[str, str]:
    one, two = estimate.work.attributes(pair)
    return one, two


def _unasked(estimate: JointEstimate, pair: Places) -> Association:
    one, two = estimate.work.shape(pair)
    return Association.unasked(_named(estimate, pair), (one - 1) * (two - 1), estimate.people)


def _silent(done: int) -> None:
    pass


def _pairs(
    estimate: JointEstimate, pairs: Sequence[Sequence[str]] | Sequence[str] | None
) -> list[Places]:
    if pairs is None:
        if len(estimate.work.names) < 2:
            raise InvalidInput("pairs: there must be at least 2 attributes")
        return list(combinations(range(len(estimate.work.names)), 2))
    if isinstance(pairs, str) or not pairs:
        raise InvalidInput("pairs must be a list of pairs of attributes")
    listed: Any = [pairs] if isinstance(pairs[0], str) else pairs
    for pair in listed:
        if isinstance(pair, str) or len(pair) != 2:
            raise InvalidInput(f"pairs: {pair!r} must be two attributes")
    return [estimate.work.places(pair) for pair in listed]


def _increasing(pair: Places) -> Places:
    return tuple(sorted(pair))


def _null(
    source: Source, estimate: JointEstimate, asked: Sequence[Places], null: str | None
) -> str:
    if null is not None and null not in NULLS:
        raise InvalidInput(f"null ({null}) must be one of {', '.join(NULLS)}")
    if null == "simulation" and not isinstance(source, Aggregate):
        raise InvalidInput(
            "null (simulation) needs the aggregate in place of its estimate, to collect again"
        )
    if null is not None:
        return null
    pairs = [_increasing(pair) for pair in asked]
    if all(
        estimate.fit.is_unbiased(pair) and not estimate.fit.is_reconstructed(pair) for pair in pairs
    ):
        return "asymptotic"
    if not isinstance(source, Aggregate):
        raise InvalidInput(
            f"null: estimates by {estimate.method} are biased, and the null law takes a "
            "simulation: give the aggregate in place of its estimate, or choose asymptotic, which "
            "is then approximate"
        )
    return "simulation"


def _degrees(law: PairLaw) -> int:
    return (len(law.table) - 1) * (law.table.size // len(law.table) - 1)


def _asymptotic(law: PairLaw, people: int, number: int) -> tuple[float, float]:
    """Against normal errors around independence: about a weighted sum of chi-squares."""
    draws = np.random.default_rng([NULL_SEED, 0, number])
    count = max(200, min(NULL_DRAWS, MAX_DRAWN_CELLS // law.table.size))
    return judged(law, law.independent + law.errors(count, draws))


def judged(law: PairLaw, independent: Floats) -> tuple[float, float]:
    """(statistic, p-value) of a table beside those that were drawn for independent attributes.

    The statistic adds up the squared interactions, each over its variance, and over its mean under
    independence so that all cells weigh alike. The table itself counts as one of the draws, so that
    the test holds its level for any number of them.
    """
    tables = np.concatenate([law.table[None], independent])  # (1 + draws, rows, columns)
    squares = standardized(law, tables)
    means = squares.mean(axis=0)  # (rows, columns)
    parts = np.divide(squares, means, out=np.zeros_like(squares), where=means > 0)
    statistics = parts.sum(axis=(1, 2)) * (_degrees(law) / law.table.size)  # (1 + draws,)
    own, others = float(statistics[0]), statistics[1:]
    reached = int((others >= own * (1 - SAME)).sum())
    share = (1 + reached) / (1 + len(others))
    return own, share if reached else min(share, _tail(own, others))


def _tail(statistic: float, draws: Floats) -> float:
    """The chance of so much under the gamma law of the draws' mean and variance (Satterthwaite)."""
    gamma = imported("scipy.stats").gamma

    # shape k and scale t with  k t = mean  and  k t^2 = variance
    mean, variance = float(draws.mean()), float(draws.var())
    if variance <= 0:
        return 1.0
    return float(gamma.sf(statistic, mean**2 / variance, scale=variance / mean))


def _naive(law: PairLaw, people: int, number: int) -> tuple[float, float]:
    """As if of counts: n sum (f - e)^2 / e against chi-squared (cormode2018marginal, 6.1)."""
    chi2 = imported("scipy.stats").chi2

    statistic = people * float(contingency(law.table))
    return statistic, float(chi2.sf(statistic, _degrees(law)))


def _strength(law: PairLaw, number: int) -> float:
    """Cramer's V, the contingency of noise alone taken off."""
    draws = np.random.default_rng([NULL_SEED, 1, number])
    count = max(20, min(STRENGTH_DRAWS, MAX_DRAWN_CELLS // law.table.size))
    noise = contingency(law.independent + law.errors(count, draws))  # (count,)
    excess = max(0.0, float(contingency(law.table)) - float(noise.mean()))
    # V^2 = phi^2 / (min(rows, columns) - 1)
    return sqrt(excess / (min(law.table.shape) - 1))


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


def _simulated(
    heard: Aggregate,
    estimate: JointEstimate,
    asked: Sequence[Places],
    laws: Sequence[PairLaw],
    replicates: int,
    seed: int,
    progress: Callable[[int], None],
) -> list[tuple[float, float]]:
    """Against whole collections among people for whom the pair is independent.

    People are drawn from the dependency tree with its doubtful edges cut and, of the edges between
    the pair, the weakest: then the pair is independent and every other tie of the tree is as
    estimated. Pairs parted by the same edge share their collections.
    """
    tree = dependency_tree(estimate)
    doubtful = frozenset(edge for edge in tree.edges if not edge.is_clear)
    groups: dict[frozenset[Edge], list[int]] = {}
    for number, pair in enumerate(asked):
        between = tree.path(*estimate.work.attributes(pair))
        weakest = min(between, key=lambda edge: edge.information)
        groups.setdefault(doubtful | {weakest}, []).append(number)
    tests: dict[int, tuple[float, float]] = {}
    done = 0
    for group, (without, members) in enumerate(groups.items()):
        sets = [_increasing(asked[number]) for number in members]
        collections: list[list[Floats]] = []  # the members' tables of each replicate
        for replicate in range(replicates):
            seeds = [seed, group, replicate]
            collections.append(_collected(heard, estimate, tree, without, sets, seeds))
            done += 1
            progress(done)
        for place, number in enumerate(members):
            shape = laws[number].table.shape
            drawn = np.array([tables[place].reshape(shape) for tables in collections])
            tests[number] = judged(laws[number], drawn)
    return [tests[number] for number in range(len(asked))]


def _collected(
    heard: Aggregate,
    estimate: JointEstimate,
    tree: Tree,
    without: frozenset[Edge],
    sets: Sequence[Places],
    seeds: Sequence[int],
) -> list[Floats]:
    """The tables that one more collection gives, among people drawn from the tree."""
    draws = np.random.Generator(np.random.PCG64(list(seeds)))
    series = heard.plan.series
    # so many that as many as before are of this round
    people = estimate.people * sum(series.shares) // series.shares[series.number]
    crowd = people_of(heard.plan.schema, tree.codes(people, draws, without))
    reports = simulate(heard.plan, crowd, int(draws.integers(1 << 62)))
    again = Aggregate(heard.plan).add(reports)
    return estimate_of(again).fit.tables(sets)
