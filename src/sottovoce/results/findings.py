"""Findings: what is popular, how surely, and the prefixes that led there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible
from sottovoce.results.cells import Mark
from sottovoce.results.estimate import Estimate, Floats, Table

SIGNIFICANT = 0.05  # values that nobody holds, expected among those as strong


@dataclass(frozen=True)
class PrefixStep:
    """A prefix on the way to what was found: its length, reading, and frequency in its round."""

    length: int  # in bits
    label: str
    parent: int | None  # the place of the prefix that it extends, in the list of steps
    frequency: float
    std_error: float


@dataclass(frozen=True, eq=False, repr=False)
class Findings(Estimate):
    """The popular values in one table, the most frequent first.

    ``chance``: for each value, how many values that nobody holds are expected to look as popular,
    among all that were tested: well below one means that it was found, near or above one that noise
    alone may have put it there.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(x=sv.Integer(bits=20))
    >>> plan = sv.plan(schema, sv.HeavyHitters("x", top=3), epsilon=2.0, people=20_000)
    >>> people = {"x": [7] * 9_000 + [1_000_000] * 11_000}
    >>> found = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    >>> found.table.labels[:2], found.significant().tolist()
    ([1000000, 7], [True, True, False])
    """

    is_part: ClassVar[bool] = True
    apart: ClassVar[str] = (
        "asks what is popular of one attribute, so there is nothing to set beside it"
    )

    chance: Floats  # for each value, how many that nobody holds look as popular, in expectation
    steps: Sequence[PrefixStep] = ()  # the prefixes on the way
    # what a reader should know, such as an answer smaller than was asked for
    notes: Sequence[str] = ()

    def significant(self, alpha: float = SIGNIFICANT) -> NDArray[np.bool_]:
        """Which values noise alone does not explain: at most ``alpha`` false ones are expected.

        Args:
            alpha: how many false ones are expected at most.
        """
        return np.asarray(self.chance <= alpha)

    @property
    def remarks(self) -> Sequence[str]:
        return self.notes

    @property
    def marks(self) -> list[Mark]:
        """For each value whether noise alone explains it."""
        pairs = zip(self.chance.tolist(), self.significant().tolist(), strict=True)
        return [Mark(chance, found) for chance, found in pairs]

    def prefixes(self) -> Sequence[PrefixStep]:
        if not self.steps:
            raise InvalidInput(
                "tree: this method keeps no prefixes on its way; pem, pem1, tree-hist and "
                "priv-trie do"
            )
        return self.steps

    def at(self, places: NDArray[np.int64]) -> Findings:
        """Some of the values, in the order given, with their marks."""
        tables = {names: table.at(places) for names, table in self.tables.items()}
        return replace(self, tables=tables, chance=self.chance[places])

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One mapping per value, ready for JSON: as of a table, with the mark of significance."""
        marked = zip(self.table.rows(level), self.marks, strict=True)
        return [row | asdict(mark) for row, mark in marked]

    def page(self, table: Table, places: NDArray[np.int64], level: float = 0.95) -> dict[str, Any]:
        return self.at(places).to_json(level)

    def chart(self, *, with_prefixes: bool = False) -> Any:
        """Bars of what was found, with the tree of prefixes below if it is wanted."""
        from sottovoce.results.plots import beneath, popular, prefixes

        if not with_prefixes:
            return popular(self)
        self.prefixes()
        return beneath([popular(self), prefixes(self)])

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        """The table with its marks, what a reader should know, and the prefixes on the way."""
        return {
            "tables": [self.table.to_json(level) | {"rows": self.rows(level)}],
            "notes": list(self.notes),
            "steps": [asdict(step) for step in self.steps],
            "has_next": self.next is not None,
        }

    def _repr_html_(self) -> str:
        """In a notebook: what was found, with a star for what noise alone does not explain."""
        from sottovoce.results.html import findings_html

        return findings_html(self)

    def __str__(self) -> str:
        return "\n".join([_marked(self.table, self.significant()), *map(visible, self.notes)])


def _marked(table: Table, significant: NDArray[np.bool_]) -> str:
    """The table as text, with a star for what noise alone does not explain."""
    head, *lines = str(table).split("\n")
    marked = [
        f"{line} {'*' if mark else ' '}" for line, mark in zip(lines, significant, strict=False)
    ]
    return "\n".join([head, *marked, *lines[len(marked) :], "* significant"])
