"""Which attributes tell most about each other: mutual information, and the tree of most of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import nan, prod
from typing import Any

import numpy as np

from sottovoce.analysis.pairs import (
    MAX_DRAWN_CELLS,
    Source,
    estimate_of,
    mutual_information,
    pair_laws,
    repaired_tables,
)
from sottovoce.analysis.records import (
    Integers,
    checked_names,
    conditionals_of,
    draw_cells,
    draw_given,
    frame,
    generator,
)
from sottovoce.analysis.ties import Edge, Pair, Tie, ties_of
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.html import text_html
from sottovoce.oracles import Noise
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.questions.marginals.estimate import MAX_TABLE_CELLS, labels_of
from sottovoce.questions.marginals.method import BOOTSTRAP
from sottovoce.questions.marginals.models.bounds import Ends, allowed_variances, interval_ends
from sottovoce.questions.marginals.models.pair_law import PairLaw
from sottovoce.results.estimate import Floats, Table
from sottovoce.results.joint import turned
from sottovoce.schema import Schema

TABLE_DRAWS = 200  # of a pair's table, for what noise alone would tell and for standard errors
NOISE_SEED = 2  # of these draws: they only integrate, and give the same figures every time


def _affordable(cells: int) -> int:
    """How often a table of so many cells is drawn."""
    return max(20, min(TABLE_DRAWS, MAX_DRAWN_CELLS // cells))


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree over attributes, each told by one other: the best such approximation of them all.

    ``edges`` lead away from the root, the most telling first. Figures are in nats, of the people
    asked.
    """

    root: str
    edges: tuple[Edge, ...]
    people: int
    schema: Schema = field(repr=False)
    ties: Mapping[Pair, Tie] = field(repr=False)
    singles: Mapping[str, Floats] = field(repr=False)
    laws: Mapping[Pair, PairLaw] = field(repr=False)  # of the edges, parents in rows

    @property
    def total(self) -> float:
        """The information of all edges together: by as much the tree beats independence."""
        return sum(edge.information for edge in self.edges)

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes, each after its parent."""
        return (self.root, *(edge.child for edge in self.edges))

    def tie(self, one: str, two: str) -> Tie:
        """What is known of two attributes, neighbours or not."""
        return self.ties[(one, two) if (one, two) in self.ties else (two, one)]

    def information(self, one: str, two: str) -> float:
        """What two attributes tell about each other, neighbours or not; NaN if never asked."""
        tie = self.tie(one, two)
        return tie.information if tie.is_asked else nan

    @property
    def never_asked(self) -> tuple[Pair, ...]:
        """The pairs that no report tells of."""
        return tuple(pair for pair, tie in self.ties.items() if not tie.is_asked)

    def path(self, one: str, two: str) -> list[Edge]:
        """The edges between two attributes."""
        above = {edge.child: edge for edge in self.edges}

        def upwards(name: str) -> Iterator[Edge]:
            while name in above:
                yield above[name]
                name = above[name].parent

        first, second = list(upwards(one)), list(upwards(two))
        return [edge for edge in [*first, *second] if (edge in first) != (edge in second)]

    @cached_property
    def _conditionals(self) -> dict[Pair, Floats]:
        """Of each edge the child given its parent, (parent's values, child's values)."""
        return self._conditionals_of({pair: law.table for pair, law in self.laws.items()})

    def _conditionals_of(self, tables: Mapping[Pair, Floats]) -> dict[Pair, Floats]:
        conditionals = {}
        for (parent, child), table in tables.items():
            rows = conditionals_of(repaired_tables(table), self.singles[child])
            conditionals[parent, child] = rows
        return conditionals

    def joint(self, *attributes: str) -> Table:
        """The table of some attributes under the tree's model: each given its parent.

        Its errors are those of the edges' tables; that the model is a tree, they do not count. If
        it holds a pair that was never asked, its intervals hold all that its margins allow: its
        attributes' tables, and those of the edges in it that were asked.
        """
        names = checked_names(self.attributes, attributes)
        shape = tuple(self.schema[name].size for name in names)
        if prod(shape) > MAX_TABLE_CELLS:
            raise InvalidInput(f"joint: {prod(shape):,} cells are more than {MAX_TABLE_CELLS:,}")
        values = self._multiplied(names, self._conditionals, self.singles[self.root])
        variances = self._variances(names, values)
        unasked = tuple(pair for pair in self.never_asked if set(pair) <= set(names))
        if unasked:
            allowed = allowed_variances(shape, values, self._margin_ends(names))
            variances = np.maximum(variances, allowed)
        return Table(
            names,
            labels_of(self.schema, names),
            values,
            variances,
            self.people,
            Noise(float(variances.mean()), 0.0),
            is_unbiased=False,
            method="tree",
            is_reconstructed=True,
            errors=BOOTSTRAP,
            never_asked=unasked,
        )

    def _margin_ends(self, names: Sequence[str]) -> dict[tuple[int, ...], Ends]:
        """The ends of the intervals of what was asked of attributes, by place: each, and edges."""
        edges = [(edge.parent, edge.child) for edge in self.edges if edge.is_asked]
        inside = [tuple(sorted(edge, key=names.index)) for edge in edges if set(edge) <= set(names)]
        parts = [*((name,) for name in names), *inside]
        ends = {}
        for part in parts:
            table = self._multiplied(part, self._conditionals, self.singles[self.root])
            positions = tuple(names.index(name) for name in part)
            ends[positions] = interval_ends(table, self._variances(part, table), len(parts))
        return ends

    def _variances(self, names: Sequence[str], values: Floats) -> Floats:
        """Of the joint, by drawing every edge's table anew.

        Args:
            names: Its attributes.
            values: The joint, flat.
        """
        draws = np.random.default_rng([NOISE_SEED, 2])
        count = _affordable(values.size)
        # for each edge (draws, parent's values, child's values)
        errors = {pair: law.errors(count, draws) for pair, law in self.laws.items()}
        squares = np.zeros_like(values)
        for number in range(count):
            tables = {pair: law.table + errors[pair][number] for pair, law in self.laws.items()}
            root = self._root_of(tables)
            drawn = self._multiplied(names, self._conditionals_of(tables), root)
            squares += (drawn - values) ** 2
        return squares / count

    def _root_of(self, tables: Mapping[Pair, Floats]) -> Floats:
        """The root's distribution: a margin of its first edge's table, or what is known alone."""
        for (parent, _), table in tables.items():
            if parent == self.root:
                return norm_sub(table.sum(1))
        return self.singles[self.root]

    def _multiplied(
        self, names: Sequence[str], conditionals: Mapping[Pair, Floats], root: Floats
    ) -> Floats:
        """The product of the conditionals, summed over the attributes not asked for.

        Args:
            names: The attributes asked for.
            conditionals: The child given its parent, of each edge (parent's values, child's).
            root: The root's distribution, (values,).

        Returns:
            The table of ``names`` in this order, flat.
        """
        # what lies below an attribute, given it: (own values, *those of the attributes asked for),
        # and which those are
        below = {name: (np.ones(self.schema[name].size), list[str]()) for name in self.attributes}
        for edge in reversed(self.edges):  # children before their parents
            factor, axes = below[edge.child]
            rows = conditionals[edge.parent, edge.child]
            if edge.child in names:
                # Pr[child | parent] Pr[what is below | child], the child's axis kept
                told = rows.reshape(rows.shape + (1,) * len(axes)) * factor
                axes = [edge.child, *axes]
            else:
                # the same, summed over the child's values
                told = np.tensordot(rows, factor, axes=1)
            # times what other children told: their axes first, then these
            sofar, known = below[edge.parent]
            sofar = sofar.reshape(sofar.shape + (1,) * len(axes))
            told = told.reshape(told.shape[:1] + (1,) * len(known) + told.shape[1:])
            below[edge.parent] = (sofar * told, [*known, *axes])
        factor, axes = below[self.root]
        if self.root in names:
            table = factor * root.reshape(root.shape + (1,) * len(axes))
            axes = [self.root, *axes]
        else:
            table = np.tensordot(root, factor, axes=1)
        return turned(table, axes, names)

    def sample(self, people: int, seed: int) -> Any:
        """Records drawn from the tree's model, as a data frame of the schema's labels."""
        drawn = self.codes(people, generator(people, seed))
        return frame(self.schema, {name: drawn[name] for name in self.singles})

    def codes(
        self, people: int, draws: np.random.Generator, without: frozenset[Edge] = frozenset()
    ) -> dict[str, Integers]:
        """Codes of records drawn from the tree's model; the edges in ``without`` are cut."""
        drawn = {self.root: draw_cells(self.singles[self.root], people, draws)}
        for edge in self.edges:
            if edge in without:
                drawn[edge.child] = draw_cells(self.singles[edge.child], people, draws)
            else:
                rows = self._conditionals[(edge.parent, edge.child)]
                drawn[edge.child] = draw_given(rows, drawn[edge.parent], draws)
        return drawn

    def children(self, name: str) -> list[Edge]:
        """The edges below an attribute, the most telling first."""
        return sorted(
            (edge for edge in self.edges if edge.parent == name), key=lambda edge: -edge.information
        )

    def plot(self, path: str | None = None) -> Any:
        """An Altair chart of the tree, edges as wide as they tell; written to ``path`` if given."""
        from sottovoce.results.plots import network

        depth, row = self._layout()
        nodes = [{"name": name, "x": depth[name], "y": row[name]} for name in self.attributes]
        links = [
            {
                "x": depth[edge.parent],
                "y": row[edge.parent],
                "x2": depth[edge.child],
                "y2": row[edge.child],
                "weight": max(edge.information, 0.0),
                "between": f"{edge.parent} - {edge.child}",
                "figure": edge.figure,
                "is_clear": edge.is_clear,
            }
            for edge in self.edges
        ]
        title = f"dependency tree ({self.people:,} people)"
        return network(
            nodes,
            links,
            path,
            title=title,
            subtitle=f"{self.total:.4f} nats in all; dashed: may be noise",
        )

    def _layout(self) -> tuple[dict[str, int], dict[str, int]]:
        """Where attributes stand: right by their distance from the root, each in a row of its own
        below the one that tells about it.
        """
        depth, row = {self.root: 0}, dict[str, int]()
        waiting = [self.root]
        while waiting:
            name = waiting.pop()
            row[name] = len(row)
            below = [edge.child for edge in self.children(name)]
            depth |= dict.fromkeys(below, depth[name] + 1)
            waiting += below[::-1]
        return depth, row

    def to_json(self) -> dict[str, Any]:
        """The tree as JSON."""
        return {
            "root": self.root,
            "total": self.total,
            "people": self.people,
            "edges": [edge.to_json() for edge in self.edges],
            "never_asked": [list(pair) for pair in self.never_asked],
        }

    def _repr_html_(self) -> str:
        """In a notebook: attributes below those that tell of them, with their figures."""

        def grown(name: str) -> str:
            below = "".join(
                f"<li>{text_html(edge.child)} <small>{text_html(edge.told)}</small>"
                f"{grown(edge.child)}</li>"
                for edge in self.children(name)
            )
            return f"<ul>{below}</ul>" if below else ""

        notes = "".join(f"<p>{text_html(line)}</p>" for line in self._notes())
        return f"<div><b>{text_html(self.root)}</b>{grown(self.root)}{notes}</div>"

    def _notes(self) -> list[str]:
        """What holds of all of it."""
        lines = [f"{self.total:.4f} nats in all, {self.people:,} people"]
        if self.never_asked:
            lines.append(
                f"never asked together: {', '.join(' x '.join(pair) for pair in self.never_asked)}"
            )
        return lines

    def __str__(self) -> str:
        lines = [self.root]

        def grow(name: str, stem: str) -> None:
            below = self.children(name)
            for number, edge in enumerate(below):
                is_last = number == len(below) - 1
                lines.append(f"{stem}{'└── ' if is_last else '├── '}{edge.child}  {edge.told}")
                grow(edge.child, stem + ("    " if is_last else "│   "))

        grow(self.root, "")
        return "\n".join([*lines, *self._notes()])


def dependency_tree(source: Source, root: str | None = None) -> Tree:
    """The tree over a plan's attributes of most mutual information (cormode2018marginal, sec. 6.2).

    What noise alone would seem to tell is taken off each pair before they are compared. Pairs that
    were never asked join the tree only where no others hold it together, and are marked.

    Args:
        source: the estimate of a ``Marginals`` question, or its aggregate.
        root: an attribute; by default the one that tells most.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(a=sv.Boolean(), b=sv.Boolean(), c=sv.Boolean())
    >>> plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=4.0, people=20_000)
    >>> people = {"a": [True, False] * 10_000, "b": [True, False] * 10_000}
    >>> people["c"] = [True, True, False, False] * 5_000
    >>> tree = sv.dependency_tree(sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)))
    >>> len(tree.edges), tree.sample(3, seed=1).shape
    (2, (3, 3))
    """
    estimate = estimate_of(source)
    names = estimate.work.names
    if len(names) < 2:
        raise InvalidInput("a tree needs at least 2 attributes")
    if root is not None:
        checked_names(names, [root])
    places = list(combinations(range(len(names)), 2))
    laws = dict(zip(combinations(names, 2), pair_laws(estimate, places), strict=True))
    ties = ties_of(estimate, dict(zip(laws, places, strict=True)))
    kept = _spanning(names, ties)
    if root is None:
        root = _most_telling(names, kept, ties)
    towards = {}  # the law of each edge, parents in rows
    edges = []
    for pair in _directed(root, kept, ties):
        is_turned = pair not in laws
        given = pair[::-1] if is_turned else pair
        towards[pair] = laws[given].turned() if is_turned else laws[given]
        edges.append(_edge(pair, towards[pair], ties[given]))
    singles = estimate.fit.tables([(place,) for place in range(len(names))])
    alone = {name: norm_sub(values) for name, values in zip(names, singles, strict=True)}
    return Tree(root, tuple(edges), estimate.people, estimate.schema, ties, alone, towards)


def _most_telling(names: Sequence[str], kept: Sequence[Pair], ties: Mapping[Pair, Tie]) -> str:
    """The attribute whose edges tell most together; of equals the first in order."""
    told = dict.fromkeys(names, 0.0)
    for pair in kept:
        for name in pair:
            told[name] += ties[pair].excess
    return max(names, key=lambda name: round(told[name], 12))


def _spanning(names: Sequence[str], ties: Mapping[Pair, Tie]) -> list[Pair]:
    """The spanning tree of most information, by Kruskal; of equals the first in order.

    Pairs that were never asked come last.
    """
    group = {name: name for name in names}

    def top(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    def rank(pair: Pair) -> tuple[bool, float]:
        return not ties[pair].is_asked, -round(ties[pair].excess, 12)

    kept = []
    for pair in sorted(ties, key=rank):
        one, two = top(pair[0]), top(pair[1])
        if one != two:
            group[two] = one
            kept.append(pair)
    return kept


def _directed(root: str, kept: Sequence[Pair], ties: Mapping[Pair, Tie]) -> list[Pair]:
    """The edges as (parent, child): parents before their children, the most telling first."""
    reached, waiting, out = {root}, list(kept), list[Pair]()
    while waiting:
        ready = [pair for pair in waiting if pair[0] in reached or pair[1] in reached]
        best = max(ready, key=lambda pair: (ties[pair].is_asked, round(ties[pair].excess, 12)))
        waiting.remove(best)
        out.append(best if best[0] in reached else best[::-1])
        reached.update(best)
    return out


def _edge(pair: Pair, law: PairLaw, tie: Tie) -> Edge:
    """An edge, with the standard error of its information under the law."""
    draws = np.random.default_rng([NOISE_SEED, 1, *pair[1].encode()])
    around = repaired_tables(law.table) + law.errors(_affordable(law.table.size), draws)
    spread = float(np.std(mutual_information(around), ddof=1))
    return Edge(
        pair[0],
        pair[1],
        tie.information,
        spread,
        tie.plain,
        tie.is_clear,
        tie.is_asked,
        tie.heard,
        tie.low,
        tie.high,
        tie.p_value,
        tie.adjusted,
    )
