"""Which method suits these queries? All are tried on a synthetic crowd like the real one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.postprocessing.bootstrap import chunks
from sottovoce.postprocessing.crowds import collected, plausible_crowd
from sottovoce.postprocessing.methods import METHODS, find
from sottovoce.results.estimate import Floats, Table
from sottovoce.schema import Label

REPEATED = ("em",)  # left out unless named: it approaches maximum-likelihood, slowly


@dataclass(frozen=True)
class RepairChoice:
    """The method with the least mean squared error on the synthetic crowd, and the errors of all.

    >>> print(RepairChoice("norm", {"base": 0.04, "norm": 0.01}))
    method     mean squared error
    norm                 1.00e-02  <- best
    base                 4.00e-02
    """

    best: str
    errors: dict[str, float]

    def __str__(self) -> str:
        width = max(len("method"), *map(len, self.errors)) + 4
        lines = [f"{'method':<{width}} {'mean squared error':>18}"]
        for name, error in sorted(self.errors.items(), key=lambda pair: pair[1]):
            lines.append(
                f"{name:<{width}} {error:>18.2e}{'  <- best' if name == self.best else ''}"
            )
        return "\n".join(lines)


def choose_postprocess(
    table: Table,
    queries: str | Sequence[Sequence[Label]],
    methods: Sequence[str] | None = None,
    runs: int = 20,
    *,
    seed: int,
) -> RepairChoice:
    """Choose the method by simulation (wang2021thesis, section 8.2.4). Only estimates are read.

    The table's values, repaired by norm-sub, are taken for the truth of a synthetic crowd; its
    reports are simulated, and each method's answers compared with the truth.

    Args:
        table: an unrepaired one.
        queries: lists of labels, whose summed frequency is asked, or ``"cells"`` for every value by
            itself, or ``"top-10"`` (any number) for the most frequent.
        methods: names; by default all that fit the table.
        runs: how many times the reports are simulated.
        seed: of the simulations.

    >>> from sottovoce.oracles import Noise
    >>> values = np.array([0.7, 0.2, 0.1, 0.05, -0.05, 0.03, -0.03, 0.1])
    >>> table = Table(("x",), range(8), values, np.full(8, 0.001), 1000, Noise(0.001, 0.0))
    >>> choose_postprocess(table, [[0, 2, 4, 6], [1, 3, 5, 7]], ["base", "norm"], seed=1).best
    'norm'
    """
    _check(table, runs, seed)
    names = tuple(methods) if methods is not None else _fitting(table)
    if not names:
        raise InvalidInput("methods must name at least one method")
    chosen = [find(name) for name in names]
    crowd = plausible_crowd(table)  # (values,)
    truth = crowd / table.people
    asked = _Queries(_places(table, truth, queries))
    true_answers = asked.sums(truth)  # (queries,)
    squares = dict.fromkeys(names, 0.0)  # mean squared errors, added up over the runs
    random = np.random.default_rng(seed)
    for rows in chunks(runs, truth.size):
        heard = collected(table, crowd, rows, random)
        for name, (known, method) in zip(names, chosen, strict=True):
            sums = asked.sums(method.repair(heard))  # (rows, queries)
            # as Table.total answers
            answers = np.maximum(sums, 0.0) if known == "post-pos" else sums
            squares[name] += float(((answers - true_answers) ** 2).mean(axis=1).sum())
    errors = {name: total / runs for name, total in squares.items()}
    return RepairChoice(min(errors, key=errors.__getitem__), errors)


def _check(table: Table, runs: int, seed: int) -> None:
    if table.repair is not None:
        raise InvalidInput(
            f"table (repaired by {table.repair}) must be unrepaired to choose a method for it"
        )
    if runs < 1:
        raise InvalidInput(f"runs ({runs}) must be at least 1")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInput(f"seed ({seed}) must be an integer of at least 0")


def _fitting(table: Table) -> tuple[str, ...]:
    return tuple(
        name for name, method in METHODS.items() if name not in REPEATED and method.fits(table)
    )


class _Queries:
    """Sets of places in a table, and their sums."""

    def __init__(self, sets: list[list[int]]) -> None:
        # the places of all sets, one set after another, and where each set begins
        self._members = np.concatenate([np.array(places, np.int64) for places in sets])
        self._starts = np.cumsum([0, *(len(places) for places in sets[:-1])])

    def sums(self, values: Floats) -> Floats:
        """The sum of a table's values, (..., values), over each set, (..., sets)."""
        return np.asarray(np.add.reduceat(values[..., self._members], self._starts, axis=-1))


def _places(
    table: Table, truth: Floats, queries: str | Sequence[Sequence[Label]]
) -> list[list[int]]:
    """The places of each query's labels in the table."""
    if isinstance(queries, str):
        if queries == "cells":
            return [[place] for place in range(truth.size)]
        top = re.fullmatch(r"top-([1-9]\d*)", queries)
        if not top:
            raise InvalidInput(f"queries ({queries}) must be lists of labels, 'cells' or 'top-10'")
        falling = np.argsort(-truth, kind="stable")
        return [[int(place)] for place in falling[: int(top.group(1))]]
    place_of = {label: place for place, label in enumerate(table.labels)}
    sets = []
    for query in queries:
        if isinstance(query, str) or not len(query):
            raise InvalidInput("queries must be lists of labels, none of them empty")
        for label in query:
            if label not in place_of:
                raise InvalidInput(f"label {label!r} is not in the table")
        sets.append([place_of[label] for label in query])
    if not sets:
        raise InvalidInput("queries must hold at least one list of labels")
    return sets
