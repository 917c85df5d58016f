"""Sums over sets of values, printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from sottovoce.analysis.sums import Sum


def sums_table(sums: Sequence[Sum], level: float) -> RichTable:
    """Sums with standard errors and intervals, for a person's eyes."""
    from rich.markup import escape

    from sottovoce.console.tables import grid, interval_text
    from sottovoce.ground.labels import visible

    columns = ["sum", "values", "frequency", "std error", f"{100 * level:.4g}% interval"]
    out = grid("Sums", columns, words=("sum",))
    for each in sums:
        bound = "at most " if each.total.is_bound else ""
        out.add_row(
            escape(visible(each.asked)),
            f"{len(each.labels):,}",
            f"{float(each.total):.4f}",
            f"{bound}{each.total.std_error:.4f}",
            interval_text(*each.total.interval(level)),
        )
    if any(each.total.is_bound for each in sums):
        out.caption = "at most: it is not known how the cells of this table err together"
    return out
