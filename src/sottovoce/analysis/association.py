"""Tests of independence that know the privacy noise, so that they hold their level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan, nan
from typing import Any

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.analysis.dependence import (
    Dependence,
    adjusted,
    dependences,
    evidence_of,
    judged,
)
from sottovoce.analysis.pairs import Source, contingency, estimate_of
from sottovoce.analysis.records import people_of
from sottovoce.analysis.ties import Edge
from sottovoce.analysis.trees import Tree, dependency_tree
from sottovoce.device.simulation import simulate
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.questions.marginals.estimate import MOSTLY_HEARD
from sottovoce.questions.marginals.method import PairEvidence
from sottovoce.questions.marginals.workload import Places
from sottovoce.results.estimate import Floats
from sottovoce.results.joint import JointEstimate

NEVER_ASKED = "never asked"
NULLS = ("asymptotic", "simulation", "naive")
LEAST_SHOWN = 0.001  # of an end of an interval that is not 0


@dataclass(frozen=True)
class Association:
    """Whether two attributes are independent: a small ``p_value`` says that they are not.

    ``statistic`` has about the mean of a chi-squared variable with ``degrees`` if they are.
    ``adjusted`` is the p-value corrected for all pairs tested together (Benjamini and Hochberg): of
    the pairs with ``adjusted`` below 0.05, one in twenty is expected to be independent after all.
    ``method`` names the null law. ``cramers_v`` is the strength, from 0 to 1, without what noise
    alone would seem to give; ``low`` and ``high`` hold it at 95%, and ``low`` is above 0 exactly if
    ``p_value`` is at most 0.05. So do the ends of ``information``, the mutual information in nats,
    which is below 0 where noise alone would tell more. A pair that was never asked (``is_asked``)
    has no figures: they are NaN, and null in JSON. ``heard`` is the share that reports tell of what
    was asked of the pair; below half of it there is no strength, which would read as independence.
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
    low: float = nan
    high: float = nan
    information: float = nan
    information_low: float = nan
    information_high: float = nan

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
    def span(self) -> str:
        """The interval of Cramer's V in words; empty if there is none."""
        if isnan(self.cramers_v):
            return ""
        # an end above 0 does not read as 0
        low = f"{self.low:.3f}" if self.low == 0 or self.low >= LEAST_SHOWN else f"<{LEAST_SHOWN}"
        return f"{low} to {self.high:.3f}"

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
            "cramers_v": _figure(self.cramers_v),
            "low": _figure(self.low),
            "high": _figure(self.high),
            "information": _figure(self.information),
            "information_low": _figure(self.information_low),
            "information_high": _figure(self.information_high),
            "heard": self.heard,
            "people": self.people,
        }

    def __str__(self) -> str:
        if not self.is_asked:
            return f"{self.attributes[0]}, {self.attributes[1]}: {NEVER_ASKED} together"
        notes = ", ".join(filter(None, [self.method, f"{self.people:,} people", self.mark]))
        span = f" ({self.span})" if self.span else ""
        return (
            f"{self.attributes[0]}, {self.attributes[1]}: V {self.strength}{span}, "
            f"statistic {self.statistic:.2f}, "
            f"p {self.p_value:.2g}, adjusted {self.adjusted:.2g} ({notes})"
        )


def _figure(value: float) -> float | None:
    return None if isnan(value) else value


def associate(
    source: Source,
    pairs: Sequence[Sequence[str]] | Sequence[str] | None = None,
    *,
    null: str | None = None,
    replicates: int = 99,
    seed: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Association]:
    """Test pairs of attributes for independence.

    A pair that was never asked is refused if it is named, and else marked: nothing is known of it.

    Args:
        source: the estimate of a ``Marginals`` question, or its aggregate.
        pairs: of names; all pairs by default.
        null: where the law of the statistic under independence comes from. ``asymptotic``: errors
            are normal, with the variances that the estimate states; for unbiased methods.
            ``simulation``: whole collections among people for whom the pair is independent and all
            else as estimated; for every method, given the aggregate. ``naive``: the textbook's
            chi-squared law, which takes the noise for association and rejects far too often. By
            default ``asymptotic`` for unbiased estimates and ``simulation`` for others.
        replicates: how many collections are simulated.
        seed: of the simulations.
        progress: told after each simulation.

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
    places = [_increasing(pair) for pair in asked]
    if chosen == "simulation":
        assert isinstance(source, Aggregate)
        count = whole("replicates", replicates, 19, 100_000)
        tests = _simulated(source, estimate, asked, count, seed, progress or _silent)
    else:
        tests = dependences(estimate, places)
    if chosen == "naive":
        naive = [_naive(evidence, estimate.people) for evidence in evidence_of(estimate, places)]
        tests = [
            replace(test, statistic=other.statistic, p_value=other.p_value)
            for test, other in zip(tests, naive, strict=True)
        ]
    corrected = adjusted([test.p_value for test in tests])
    found = {}
    for pair, test, both in zip(asked, tests, corrected, strict=True):
        names = _named(estimate, pair)
        found[pair] = _association(estimate, names, _degrees(estimate, pair), test, both, chosen)
    return [found[pair] if pair in found else _unasked(estimate, pair) for pair in listed]


def _association(
    estimate: JointEstimate,
    names: tuple[str, str],
    degrees: int,
    test: Dependence,
    corrected: float,
    null: str,
) -> Association:
    heard = estimate.heard_share(*names)
    told = Association(
        names,
        test.statistic,
        degrees,
        test.p_value,
        corrected,
        null,
        nan,
        estimate.people,
        heard=heard,
    )
    if heard < MOSTLY_HEARD:
        return told
    return replace(
        told,
        cramers_v=test.cramers_v,
        low=test.low,
        high=test.high,
        information=test.information,
        information_low=test.information_low,
        information_high=test.information_high,
    )


def _named(estimate: JointEstimate, pair: Places) -> tuple[str, str]:
    one, two = estimate.work.attributes(pair)
    return one, two


def _unasked(estimate: JointEstimate, pair: Places) -> Association:
    return Association.unasked(_named(estimate, pair), _degrees(estimate, pair), estimate.people)


def _degrees(estimate: JointEstimate, pair: Places) -> int:
    one, two = estimate.work.shape(pair)
    return (one - 1) * (two - 1)


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
    if estimate.fit.evidence(pairs[:1]) is not None:
        return "asymptotic"
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


def _naive(evidence: PairEvidence, people: int) -> Dependence:
    """As if of counts: n sum (f - e)^2 / e against chi-squared (cormode2018marginal, 6.1)."""
    special = imported("scipy.special")

    statistic = people * float(contingency(evidence.table))
    degrees = (evidence.table.shape[0] - 1) * (evidence.table.shape[1] - 1)
    return Dependence(statistic, float(special.chdtrc(degrees, statistic)))


def _simulated(
    heard: Aggregate,
    estimate: JointEstimate,
    asked: Sequence[Places],
    replicates: int,
    seed: int,
    progress: Callable[[int], None],
) -> list[Dependence]:
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
    tests: dict[int, Dependence] = {}
    tables = estimate.fit.tables([_increasing(pair) for pair in asked])
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
            shape = estimate.work.shape(_increasing(asked[number]))
            drawn = np.array([made[place].reshape(shape) for made in collections])
            tests[number] = judged(tables[number].reshape(shape), drawn)
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
