"""Synthetic records: people who never were, with the tables of those who were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.analysis.pairs import Source, estimate_of
from sottovoce.analysis.records import (
    Integers,
    checked_names,
    conditionals_of,
    draw_cells,
    draw_given,
    frame,
    generator,
)
from sottovoce.analysis.trees import Tree, dependency_tree
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.results.estimate import Floats
from sottovoce.results.joint import JointEstimate

MOST_DIRECT = 100_000  # cells of a table that is drawn from as a whole


def synthesize(
    source: Source, people: int, seed: int, attributes: Sequence[str] | None = None
) -> Any:
    """Synthetic records of the attributes (all by default), as a data frame of the schema's labels.

    Up to 100,000 cells, records are drawn from the table of all attributes together. Beyond,
    attribute by attribute in the order of the dependency tree, each given the ``up_to - 1`` earlier
    ones that tell most about it. They cost no privacy: only the estimate is read.

    ``records.attrs["never_asked"]`` lists the attributes drawn, and the pairs of them, that no
    report tells of: values of such a pair are drawn as if nothing but other tables tied them.

    Args:
        source: the estimate of a ``Marginals`` question, or its aggregate.
        people: how many records.
        seed: the same seed gives the same records.
        attributes: their names; all by default.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(smoker=sv.Boolean(), region=sv.Categorical(["N", "S", "W"]))
    >>> plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=1.0, people=10_000)
    >>> people = {"smoker": [True] * 900, "region": ["N"] * 900}
    >>> heard = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1))
    >>> records = sv.synthesize(heard, people=5, seed=2)
    >>> list(records.columns), len(records)
    (['smoker', 'region'], 5)
    >>> records.attrs["never_asked"]
    []
    """
    estimate = estimate_of(source)
    records = frame(estimate.schema, draw_records(estimate, people, seed, attributes))
    records.attrs["never_asked"] = [
        list(part) for part in estimate.never_asked_of(*records.columns)
    ]
    return records


def draw_records(
    estimate: JointEstimate, people: int, seed: int, attributes: Sequence[str] | None = None
) -> dict[str, Integers]:
    """The codes of synthetic records."""
    draws = generator(people, seed)
    names = checked_names(estimate.work.names, attributes)
    cells = estimate.work.cells(estimate.work.places(names))
    if cells > MOST_DIRECT and estimate.work.order < 2:
        # no pair was asked: each attribute by itself
        singles = estimate.values_of([[name] for name in names])
        codes = {}
        for name, table in zip(names, singles, strict=True):
            codes[name] = draw_cells(norm_sub(table), people, draws)
        return codes
    if cells > MOST_DIRECT:
        return _along(dependency_tree(estimate), estimate, names, people, draws)
    (table,) = estimate.values_of([names])
    drawn = draw_cells(norm_sub(table), people, draws)  # cells, (people,)
    shape = [estimate.schema[name].size for name in names]
    columns = np.unravel_index(drawn, shape)
    return {name: column.astype(np.int64) for name, column in zip(names, columns, strict=True)}


def _along(
    tree: Tree,
    estimate: JointEstimate,
    names: Sequence[str],
    people: int,
    draws: np.random.Generator,
) -> dict[str, Integers]:
    """Records drawn attribute by attribute, in the tree's order."""
    drawn: dict[str, Integers] = {}
    for name in (each for each in tree.attributes if each in names):
        parents = _parents(tree, estimate, name, list(drawn))
        if not parents:
            drawn[name] = draw_cells(tree.singles[name], people, draws)
            continue
        (table,) = estimate.values_of([[*parents, name]])
        joint = norm_sub(table).reshape(-1, estimate.schema[name].size)  # (parents' cells, values)
        rows = conditionals_of(joint, tree.singles[name])
        shape = [estimate.schema[parent].size for parent in parents]
        given = np.ravel_multi_index([drawn[parent] for parent in parents], shape)
        drawn[name] = draw_given(rows, given.astype(np.int64), draws)
    return {name: drawn[name] for name in names}


def _parents(tree: Tree, estimate: JointEstimate, name: str, earlier: Sequence[str]) -> list[str]:
    """The earlier attributes that tell most, as many as the plan's tables hold and a table can."""
    asked = [other for other in earlier if tree.tie(name, other).is_asked]
    told = sorted(asked, key=lambda other: -round(tree.tie(name, other).excess, 12))
    cells = estimate.schema[name].size
    parents: list[str] = []
    for other in told:
        wider = cells * estimate.schema[other].size
        if len(parents) + 1 < estimate.work.order and wider <= MOST_DIRECT:
            parents.append(other)
            cells = wider
    return parents


@dataclass(frozen=True)
class Classification:
    """The share of held-out people whose label a classifier gets wrong, by what it was trained on.

    ``private``: synthetic records from the estimate. ``no_noise``: the true records, which nobody
    has who asked in private: the best case. ``majority``: no features at all, the most frequent
    label for everybody.
    """

    label: str
    features: tuple[str, ...]
    private: float
    no_noise: float
    majority: float
    trained: int
    tested: int

    def __str__(self) -> str:
        return (
            f"{self.label} from {', '.join(self.features)}: "
            f"wrong for {self.private:.1%} of {self.tested:,} people "
            f"(trained without noise {self.no_noise:.1%}, majority {self.majority:.1%})"
        )


def classify(
    source: Source,
    label: str,
    features: Sequence[str] | None = None,
    *,
    trained: Any,
    tested: Any,
    seed: int,
    people: int | None = None,
) -> Classification:
    """Train a linear support vector machine on synthetic records and try it on people it never saw.

    ``trained`` are the true records of the people asked and ``tested`` those of others, as tables
    of columns; as many synthetic ``people`` are drawn as were asked. Features enter one-hot
    (zhang2018calm, section 5.4).
    """
    estimate = estimate_of(source)
    (label,) = checked_names(estimate.work.names, [label])
    others = [name for name in estimate.work.names if name != label]
    chosen = checked_names(estimate.work.names, others if features is None else features)
    if label in chosen:
        raise InvalidInput(f"features: {label!r} is the label")
    names = [*chosen, label]
    sizes = [estimate.schema[name].size for name in names]
    made = draw_records(estimate, estimate.people if people is None else people, seed, names)
    learnt = _columns(estimate, trained, names)
    held = _columns(estimate, tested, names)
    truth = held[label]  # (people,)
    by_synthetic = _predicted(made, held, names, sizes)
    by_true = _predicted(learnt, held, names, sizes)
    most_frequent = np.bincount(learnt[label]).argmax()
    return Classification(
        label,
        chosen,
        private=float((by_synthetic != truth).mean()),
        no_noise=float((by_true != truth).mean()),
        majority=float((most_frequent != truth).mean()),
        trained=len(learnt[label]),
        tested=len(truth),
    )


def _columns(estimate: JointEstimate, table: Any, names: Sequence[str]) -> dict[str, Integers]:
    columns = estimate.schema.encode_table(table, names)
    if not len(columns[names[-1]]):
        raise InvalidInput("trained and tested must hold at least one record each")
    return {name: column.astype(np.int64) for name, column in columns.items()}


def _predicted(
    learnt: Mapping[str, Integers],
    held: Mapping[str, Integers],
    names: Sequence[str],
    sizes: Sequence[int],
) -> Integers:
    """The labels that a classifier trained on some records gives to others.

    Args:
        learnt: Columns to train on.
        held: Columns of the people whose label is asked.
        names: The features, and the label last.
        sizes: How many values each has.

    Returns:
        Labels, (people held,).
    """
    LinearSVC = imported("sklearn.svm").LinearSVC

    # equal records are one with their number as its weight: the same machine, sooner
    records = np.stack([learnt[name] for name in names], axis=1)  # (people, names)
    rows, counts = np.unique(records, axis=0, return_counts=True)
    labels = rows[:, -1]
    if len(np.unique(labels)) == 1:
        return np.full(len(held[names[-1]]), labels[0])
    machine = LinearSVC(dual=False)
    weights = counts * (len(rows) / counts.sum())
    machine.fit(_one_hot(rows[:, :-1], sizes), labels, sample_weight=weights)
    # each different row of features is asked once
    features = np.stack([held[name] for name in names[:-1]], axis=1)  # (people held, features)
    asked, place = np.unique(features, axis=0, return_inverse=True)
    predicted = np.asarray(machine.predict(_one_hot(asked, sizes)))
    return predicted[place.ravel()].astype(np.int64)


def _one_hot(rows: Integers, sizes: Sequence[int]) -> Floats:
    """A column for every value of every feature, (rows, values of all)."""
    columns = [np.eye(sizes[place])[rows[:, place]] for place in range(rows.shape[1])]
    return np.concatenate(columns, axis=1)
