"""One measured figure beside its target and the others' figures; tables and JSON of many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.published import IMPORTS, NOTE
from bench.timing import Timing

GROUPS = {
    "olh": "Local hashing: aggregate and estimate all values, epsilon = 1",
    "crowd": "Unary encoding and subset selection: 100,000 people, 1,024 values, epsilon = 1",
    "others": "Other oracles, for comparison: 100,000 people, 1,024 values, epsilon = 1",
    "folding": "Folding many reports, epsilon = 1",
    "engines": "Engines: Spark beside one process, epsilon = 1, local hashing",
    "minutes": "Folding what many collectors shipped, each id once, epsilon = 1",
    "pieces": "Pieces of large tables, epsilon = 1, four parts of a million people",
    "device": "One report on a device, system entropy",
    "whispering": "Whispering for 3,000,000 people of a CSV file, epsilon = 1, into Parquet",
    "likelihood": "Maximum likelihood for grr: 100,000 people, 1,024 values, "
    "from reports to frequencies",
    "planning": "Planning marginals with auto: 2^18 people, epsilon = 1, empty caches",
    "marginals": "Marginals, epsilon = 1",
    "popular": "What is popular: top 32 values at epsilon = 1, top 64 items at epsilon = 2",
    "queries": "Queries over whispered dimensions, epsilon = 1",
    "releases": "Releases by a trusted curator, epsilon = 1, from files to a folder",
    "shuffled": "Shuffled reports: bounds at delta 1e-9, sealing and mixing",
    "store": "The store by itself: SQLite",
    "collector": "The collector: reports over HTTP, durable before they are acknowledged, SQLite",
    "pages": "The studio's pages",
    "estimates": "Reading a wide estimate: what it costs the collector",
    "stream": "Aggregation of a Parquet file in constant memory",
    "startup": "Fresh processes, from start to end",
}
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


@dataclass(frozen=True)
class Row:
    """A figure. It passes if it is at most ``limit``, at least ``least``, or ``times`` times better
    than the peer: the one of this run if it ran, else the published one.
    """

    group: str
    what: str
    unit: str  # s, MiB, wrong (cases that differ), per s, times
    measured: Timing
    limit: float | None = None
    least: float | None = None  # of a figure that is better the larger it is
    times: float | None = None
    published: float | None = None  # the best peer's figure, other machine
    plain: float | None = None  # plain numpy, this run
    peer: float | None = None  # the peer's own code, this run
    note: str = ""

    @property
    def reference(self) -> float | None:
        """The figure that ``times`` refers to."""
        return self.published if self.peer is None else self.peer

    @property
    def passed(self) -> bool | None:
        """None if there is no target, or nothing to compare with."""
        if self.limit is not None:
            return self.measured.best <= self.limit
        if self.least is not None:
            return self.measured.best >= self.least
        if self.times is None or self.reference is None:
            return None
        return self.measured.best * self.times <= self.reference

    @property
    def verdict(self) -> str:
        return {None: "", True: "PASS", False: "FAIL"}[self.passed]

    @property
    def target(self) -> str:
        if self.limit is not None:
            return f"<= {shown(self.limit, self.unit)}" if self.limit else "0"
        if self.least is not None:
            return f">= {shown(self.least, self.unit)}"
        if self.times is None:
            return ""
        return f">= {self.times:,.0f}x peer" if self.unit == "s" else f"<= 1/{self.times:,.0f} peer"

    def ratio(self, other: float | None) -> float | None:
        """How many times ours the other figure is."""
        return other / self.measured.best if other is not None and self.measured.best > 0 else None

    def to_json(self) -> dict[str, Any]:
        others = {"published": self.published, "plain": self.plain, "peer": self.peer}
        return {
            "group": self.group,
            "what": self.what,
            "unit": self.unit,
            "best": self.measured.best,
            "median": self.measured.median,
            "repeats": self.measured.repeats,
            "target": self.target,
            "verdict": self.verdict,
            **others,
            **{f"{name}_ratio": self.ratio(other) for name, other in others.items()},
            "note": self.note,
        }


def shown(figure: float, unit: str) -> str:
    """A figure with three digits and a fitting unit."""
    if unit != "s":
        return f"{_digits(figure)} {unit}"
    name, scale = next((step for step in _SECONDS if figure >= step[1]), _SECONDS[-1])
    return f"{_digits(figure / scale)} {name}"


def _digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.3g}"


def _beside(row: Row, other: float | None) -> str:
    if other is None:
        return ""
    ratio = row.ratio(other)
    return (
        shown(other, row.unit) if ratio is None else f"{shown(other, row.unit)} ({_digits(ratio)}x)"
    )


def table(rows: Iterable[Row]) -> Table:
    """The rows of one group; columns that nobody fills are left out."""
    rows = list(rows)
    columns: list[tuple[str, list[str]]] = [
        ("what", [row.what for row in rows]),
        ("best", [shown(row.measured.best, row.unit) for row in rows]),
        ("median", [shown(row.measured.median, row.unit) for row in rows]),
        ("target", [row.target for row in rows]),
        ("verdict", [row.verdict for row in rows]),
        ("peer, published", [_beside(row, row.published) for row in rows]),
        ("peer, this run", [_beside(row, row.peer) for row in rows]),
        ("plain numpy, this run", [_beside(row, row.plain) for row in rows]),
        ("note", [row.note for row in rows]),
    ]
    kept = [(name, cells) for name, cells in columns if any(cells)]
    out = Table()
    for name, _ in kept:
        out.add_column(name, justify="left" if name in ("what", "note", "target") else "right")
    for cells in zip(*(cells for _, cells in kept), strict=True):
        out.add_row(*(_coloured(cell) for cell in cells))
    return out


def _coloured(cell: str) -> str:
    return {"PASS": "[green]PASS[/green]", "FAIL": "[bold red]FAIL[/bold red]"}.get(cell, cell)


def show(console: Console, rows: Iterable[Row]) -> None:
    """All tables, and one line that sums them up."""
    rows = list(rows)
    for group, title in GROUPS.items():
        of_group = [row for row in rows if row.group == group]
        if of_group:
            console.print(f"\n[bold]{title}[/bold]", highlight=False)
            console.print(table(of_group))
    judged = [row for row in rows if row.passed is not None]
    console.print(
        f"{sum(bool(row.passed) for row in judged)} of {len(judged)} targets met; the best repeat "
        "is judged."
    )
    console.print(f"(…x): how many times ours the other's figure is. Published peers: {NOTE};")
    console.print(f"their memory above imports takes {IMPORTS:.0f} MiB off the published peak.")
