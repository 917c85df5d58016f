"""AHEAD: a binary tree over one dimension that grows round by round, only where people are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import LARGEST_INTEGER, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.encodings import Ask, Intervals
from sottovoce.protocol.families import Cohort, Family, Listed
from sottovoce.protocol.terms import Terms
from sottovoce.questions.method import NO_OPTIONS, Options, RoundResult
from sottovoce.questions.queries.evidence import Floats, GridEvidence, Integers
from sottovoce.questions.queries.fitted import FittedTable, Joint, Term
from sottovoce.questions.queries.hybrid import cell_means
from sottovoce.questions.queries.method import QueryMethod
from sottovoce.questions.queries.target import Target
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

FANOUT = 2  # du2021ahead chooses two
UNIT = 10**12  # a share is kept in a plan as a whole number of these
MAX_AHEAD_SIZE = 1 << 16


@dataclass(frozen=True)
class Layer:
    """What the people of one round said of the intervals they were asked about."""

    cuts: tuple[int, ...]  # where all intervals but the first begin
    shares: tuple[int, ...]  # unbiased, in units
    people: int

    def to_json(self) -> list[Any]:
        """As a plan holds it."""
        return [list(self.cuts), list(self.shares), self.people]

    @classmethod
    def from_json(cls, data: Any, size: int) -> Layer:
        """The inverse of :meth:`to_json`; anything else is refused."""
        if not isinstance(data, list) or len(data) != 3:
            raise InvalidInput("plan: a layer that is known must be cuts, shares and people")
        cuts, shares, people = data
        kept = tuple(
            whole("plan: share", share, -LARGEST_INTEGER, LARGEST_INTEGER) for share in shares
        )
        own = checked_cuts(cuts, size)
        if len(kept) != len(own) + 1:
            raise InvalidInput("plan: a layer that is known must have a share for each interval")
        return cls(own, kept, whole("plan: people", people, 1, LARGEST_INTEGER))


@dataclass(frozen=True)
class Growth:
    """How far the tree has grown: the intervals of this round, and what earlier ones said."""

    cuts: tuple[int, ...]
    layers: tuple[Layer, ...] = ()

    @classmethod
    def of(cls, options: Options, size: int) -> Growth:
        """As a plan's options hold it; without them the first round, which cuts in two."""
        known = options.get("known")
        if known is None:
            return cls(((size + 1) // 2,))
        if not isinstance(known, list) or len(known) != 2 or not isinstance(known[1], list):
            raise InvalidInput("plan: known must hold the cuts of this round and earlier layers")
        layers = tuple(Layer.from_json(each, size) for each in known[1])
        return cls(checked_cuts(known[0], size), layers)

    def to_json(self) -> list[Any]:
        """The inverse of :meth:`of`."""
        return [list(self.cuts), [layer.to_json() for layer in self.layers]]


def checked_cuts(cuts: Any, size: int) -> tuple[int, ...]:
    """Increasing codes from 1 to size - 1, at least one."""
    if not isinstance(cuts, list) or not cuts or not all(isinstance(cut, int) for cut in cuts):
        raise InvalidInput("plan: cuts must be a list of whole numbers, at least one")
    before = 0
    for cut in cuts:
        before = whole("plan: cut", cut, before + 1, size - 1)
    return tuple(cuts)


@dataclass(frozen=True, eq=False)
class AdaptiveTable(FittedTable):
    """Shares of the intervals of a tree that has grown, by all rounds together.

    Every round's shares are brought to frequencies first; what then fits all rounds best, in
    squares over their variances, are the shares of the last round's intervals. Within an interval
    people are taken as spread evenly, and what that costs is not in the errors.
    """

    size: int
    layers: Sequence[GridEvidence]  # of each round
    is_unbiased: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    @property
    def edges(self) -> Integers:
        """Of the last round's intervals."""
        return self.layers[-1].edges[0]

    @cached_property
    def _fit(self) -> tuple[Floats, Floats]:
        """The shares of the last round's intervals, which sum to one, and their covariance."""
        count = len(self.edges) - 1
        information = np.zeros((count, count))
        moments = np.zeros(count)
        parts = []
        for layer in self.layers:
            # which interval of a round each of the last ones lies in: its share is their sum
            owner = np.searchsorted(layer.edges[0], self.edges[:-1], side="right") - 1
            member = (owner[:, None] == np.arange(len(layer.values))).astype(float)
            shares = norm_sub(layer.values)
            information += member @ member.T / layer.floor
            moments += member @ shares / layer.floor
            parts.append((member / layer.floor, shares, layer))
        inverse = np.linalg.inv(information)
        # least squares under sum f = 1:  f + C 1 (1 - 1'f) / (1'C 1)
        along = inverse.sum(axis=1)
        free = inverse @ moments
        fitted = free + along * (1 - free.sum()) / along.sum()
        solver = inverse - np.outer(along, along) / along.sum()
        covariance = np.zeros((count, count))
        for member, shares, layer in parts:
            # coins, and who answered this round
            spread = np.diag(layer.floor + (layer.slope + 1 / layer.people) * shares)
            spread = spread - np.outer(shares, shares) / layer.people
            loads = solver @ member
            covariance += loads @ spread @ loads.T
        return fitted, covariance

    def joint(self, terms: Sequence[Term]) -> Joint:
        whole_axis = np.ones(self.size)
        chosen = [np.asarray(term.get(0, whole_axis), float) for term in terms]
        loads = np.stack([cell_means(weights, self.edges) for weights in chosen])
        shares, covariance = self._fit
        return Joint(loads @ shares, loads @ covariance @ loads.T)


class AdaptiveTree(QueryMethod):
    """Each round asks other people about the intervals of a tree, then cuts those in two that hold
    more than noise explains. What is not cut stays whole in all later rounds.

    Guarantee: epsilon-LDP for one report; nobody answers two rounds.
    Assumes:   uniform entropy; values in the schema's ranges.
    Source:    du2021ahead.
    Checked:   tests/exact/test_query_plans.py
    """

    name = "ahead"
    about = "a binary tree that grows round by round where people are"
    source = "du2021ahead"
    is_baseline = True
    options: ClassVar[tuple[str, ...]] = ("known",)

    def refuse(self, target: Target, terms: Terms) -> str | None:
        if len(target) != 1 or not target.dimensions[0].is_ordered:
            return "an adaptive tree is for one dimension whose values have an order"
        if target.sizes[0] > MAX_AHEAD_SIZE:
            return f"{target.sizes[0]:,} values are more than {MAX_AHEAD_SIZE:,}"
        return None

    def settle(self, target: Target, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        self.check_options(options)
        if options.get("known") is None:
            return {}
        return {"known": Growth.of(options, target.sizes[0]).to_json()}

    def rounds(self, target: Target, options: Options) -> tuple[int, ...]:
        """One for each level of the whole tree."""
        return (1,) * (target.sizes[0] - 1).bit_length()

    def cohorts(self, schema: Schema, target: Target, epsilon: Decimal, options: Options) -> Family:
        growth = Growth.of(options, target.sizes[0])
        encoding = Intervals.of(schema, target.names[0], growth.cuts)
        # the paper's unary encoding has the same error, and a bit for each interval
        made = oracle("olh", size=encoding.size, epsilon=epsilon)
        return Listed([Cohort((Ask(encoding, made),))])

    def fit(
        self,
        target: Target,
        aggregate: Aggregate,
        options: Options,
        squares: Floats | None = None,
        counted: FittedTable | None = None,
    ) -> AdaptiveTable:
        if squares is not None or counted is not None:
            raise InvalidInput("method (ahead) asks in rounds, and answers no sums of weights")
        size = target.sizes[0]
        growth = Growth.of(options, size)
        cell = aggregate.plan.cohorts[0].oracles[0].noise(1)
        own, _ = aggregate.frequencies(0)
        told = [
            (layer.cuts, np.array(layer.shares) / UNIT, layer.people) for layer in growth.layers
        ]
        layers = [
            GridEvidence(
                axes=(0,),
                edges=(_edges(cuts, size),),
                values=shares,
                floor=cell.floor / people,
                slope=cell.slope / people,
                people=people,
            )
            for cuts, shares, people in [*told, (growth.cuts, own, aggregate.people)]
        ]
        return AdaptiveTable(size, layers)

    def estimate(self, target: Target, aggregate: Aggregate, options: Options) -> RoundResult:
        found = super().estimate(target, aggregate, options).estimate
        growth = Growth.of(options, target.sizes[0])
        people = aggregate.people + sum(layer.people for layer in growth.layers)
        found = replace(found, people=people)
        done = len(growth.layers) + 1
        if done == len(self.rounds(target, options)):
            return RoundResult(found)
        own, _ = aggregate.frequencies(0)
        cell = aggregate.plan.cohorts[0].oracles[0].noise(aggregate.people).floor
        told = tuple(int(share) for share in np.rint(own * UNIT))
        layer = Layer(growth.cuts, told, aggregate.people)
        size = target.sizes[0]
        before = _edges(growth.layers[-1].cuts, size) if growth.layers else None
        # frequencies are judged, as du2021ahead's code does, not the unbiased shares
        cuts = grown(_edges(growth.cuts, size), norm_sub(own), threshold(cell), before)
        return RoundResult(found, Growth(cuts, (*growth.layers, layer)).to_json())


def threshold(variance: float) -> float:
    """The share above which an interval is cut: then its parts tell more than their noise.

    >>> round(threshold(0.0003), 4)
    0.03
    """
    # theta = sqrt((B + 1) Var)        du2021ahead, section 4
    return sqrt((FANOUT + 1) * variance)


def grown(
    edges: Integers, shares: Floats, least: float, before: Integers | None = None
) -> tuple[int, ...]:
    """The cuts of the next round: intervals that hold more than ``least`` are cut in two.

    An interval that a round left whole stays whole. Judged anew in every round, it would be cut by
    noise in one of them.

    Args:
        edges: of the intervals of this round.
        shares: how many people each holds, (intervals,).
        least: at or below it an interval stays whole.
        before: edges of the intervals of the round before; None in the first.

    >>> grown(np.array([0, 4, 8]), np.array([0.9, 0.1]), 0.2)
    (2, 4)
    >>> grown(np.array([0, 2, 4, 8]), np.array([0.1, 0.5, 0.4]), 0.2, np.array([0, 4, 8]))
    (2, 3, 4)
    """
    left_whole = set() if before is None else set(pairwise(before.tolist()))
    cuts = set(edges[1:-1].tolist())
    for interval, share in zip(pairwise(edges.tolist()), shares, strict=True):
        low, high = interval
        if share > least and high - low > 1 and interval not in left_whole:
            cuts.add((low + high + 1) // 2)
    return tuple(sorted(cuts))


def _edges(cuts: Sequence[int], size: int) -> Integers:
    return np.array([0, *cuts, size], np.int64)
