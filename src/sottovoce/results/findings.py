"""Findings: what is popular, how surely, and the prefixes that led there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.labels import visible
from sottovoce.results.estimate import Estimate, Floats, Table

SIGNIFICANT = 0.05  # values that nobody holds, expected among those as strong


@dataclass(frozen=True)
class Step:
    """A prefix on the way to what was found: how long it is, how it reads, how frequent it seemed in its round."""

    length: int  # in bits
    label: str
    parent: int | None  # the place of the prefix that it extends, in the list of steps
    frequency: float
    std_error: float


@dataclass(frozen=True, eq=False)
class Findings(Estimate):
    """The popular values in one table, the most frequent first.

    ``chance``: for each value, how many values that nobody holds are expected to look as popular, among all that were
    tested: well below one means that it was found, near or above one that noise alone may have put it there.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Integer(bits=20)), sv.HeavyHitters("x", top=3), epsilon=2.0, people=20_000)
    >>> found = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [7] * 9_000 + [1_000_000] * 11_000}, seed=1)).estimate()
    >>> found.table.labels[:2], found.significant().tolist()
    ([1000000, 7], [True, True, False])
    """

    chance: Floats
    steps: Sequence[Step] = ()
    notes: Sequence[str] = ()  # what a reader should know, such as an answer smaller than was asked for

    def significant(self, alpha: float = SIGNIFICANT) -> NDArray[np.bool_]:
        """Which values noise alone does not explain: at most ``alpha`` false ones are expected to be as strong."""
        return np.asarray(self.chance <= alpha)

    def at(self, places: NDArray[np.int64]) -> Findings:
        """Some of the values, in the order given, with their marks."""
        tables = {names: table.at(places) for names, table in self.tables.items()}
        return replace(self, tables=tables, chance=self.chance[places])

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One mapping per value, ready for JSON: as of a table, with the mark of significance."""
        marks = zip(self.table.rows(level), self.chance.tolist(), self.significant().tolist(), strict=True)
        return [row | {"expected_false": chance, "significant": found} for row, chance, found in marks]

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        """The table with its marks, what a reader should know, and the prefixes on the way."""
        return {
            "tables": [self.table.to_json(level) | {"rows": self.rows(level)}],
            "notes": list(self.notes),
            "steps": [asdict(step) for step in self.steps],
            "has_next": self.next is not None,
        }

    def __str__(self) -> str:
        return "\n".join([_marked(self.table, self.significant()), *map(visible, self.notes)])


def _marked(table: Table, significant: NDArray[np.bool_]) -> str:
    """The table as text, with a star for what noise alone does not explain."""
    head, *lines = str(table).split("\n")
    marked = [f"{line} {'*' if mark else ' '}" for line, mark in zip(lines, significant, strict=False)]
    return "\n".join([head, *marked, *lines[len(marked) :], "* significant"])
