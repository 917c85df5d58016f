"""What is popular, for a person's eyes: values with marks, prefixes, methods compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sottovoce.console.tables import MAX_PRINTED_VALUES, grid, interval_text, spread
from sottovoce.ground.labels import written

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from sottovoce.measure import PopularComparison
    from sottovoce.results.estimate import Estimate
    from sottovoce.results.findings import PrefixStep

MAX_PRINTED_PREFIXES = 400  # prefixes that are printed; JSON holds all


def findings_table(found: Estimate, level: float) -> RichTable:
    """Values with intervals, a star for what noise does not explain, and what noise would show."""
    from rich.markup import escape

    table = found.table
    low, high = table.interval(level)
    out = grid(
        f"{', '.join(table.attributes)}: {table.people:,} people",
        ["value", "", "frequency", "std error", f"{100 * level:.4g}% interval", "expected false"],
        words=["value", ""],
    )
    marks = found.marks or ()
    for place, mark in enumerate(marks[:MAX_PRINTED_VALUES]):
        out.add_row(
            escape(written(table.labels[place])),
            "*" if mark.significant else "",
            f"{table.values[place]:.4f}",
            f"{table.std_error[place]:.4f}",
            interval_text(low[place], high[place]),
            f"{mark.expected_false:.2g}",
            style="bold" if mark.significant else None,
        )
    notes = [
        "* significant; expected false: values that nobody holds and that would look as frequent, "
        "by noise alone"
    ]
    if len(marks) > MAX_PRINTED_VALUES:
        notes.append(
            f"the {MAX_PRINTED_VALUES} most frequent of {len(marks):,}; --json has them all"
        )
    if not table.is_unbiased:
        notes.append(table.origin)
    out.caption = "; ".join(notes)
    return out


def tree_lines(found: Estimate) -> list[str]:
    """The prefixes that led to what was found, with counts, the longer below what they extend."""
    steps = found.prefixes()
    below: dict[int | None, list[int]] = {}
    for place, step in enumerate(steps):
        below.setdefault(step.parent, []).append(place)
    for places in below.values():
        places.sort(key=lambda place: -steps[place].frequency)
    lines: list[str] = []

    def add(place: int, indent: str, is_last: bool, is_root: bool) -> None:
        branch = "" if is_root else ("└─ " if is_last else "├─ ")
        lines.append(f"{indent}{branch}{_told(steps[place], found.people)}")
        inner = indent if is_root else indent + ("   " if is_last else "│  ")
        extended = below.get(place, [])
        for child in extended:
            add(child, inner, child == extended[-1], False)

    for root in below.get(None, []):
        add(root, "", True, True)
    more = len(lines) - MAX_PRINTED_PREFIXES
    return (
        lines
        if more <= 0
        else [*lines[:MAX_PRINTED_PREFIXES], f"... and {more:,} more; --json has them all"]
    )


def _told(step: PrefixStep, people: int) -> str:
    return f"{written(step.label)}  {step.frequency * people:,.0f} ± {step.std_error * people:,.0f}"


def popular_table(rows: Sequence[PopularComparison], what: str) -> RichTable:
    """Methods measured on crowds whose popular values are known."""
    from rich.markup import escape

    measured = next((row for row in rows if row.f1 is not None), None)
    columns = ["epsilon", "method", "found", "F1", "NCR", "variance", "seconds", "note"]
    out = grid(f"the {rows[0].top} most frequent {what}", columns, padding=1)
    for row in rows:
        if row.f1 is None or row.ncr is None:
            out.add_row(f"{row.epsilon:g}", escape(row.method), *[""] * 5, escape(row.reason or ""))
            continue
        out.add_row(
            f"{row.epsilon:g}",
            escape(row.method),
            spread(row.found or 0.0, row.found_std),
            spread(row.f1, row.f1_std),
            spread(row.ncr, row.ncr_std),
            "" if row.variance is None else spread(row.variance, row.variance_std),
            f"{row.seconds:.2f}",
            "",
        )
    if measured is not None:
        runs = f"{measured.runs} runs" if measured.runs != 1 else "1 run"
        told = "means ± the standard deviation over runs" if measured.runs != 1 else "means"
        out.caption = (
            f"{measured.people:,} people, {runs}: {told}; found: of the true top; NCR: normalised "
            "cumulative rank; variance: mean squared error of the counts of what was found"
        )
    return out
