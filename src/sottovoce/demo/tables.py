"""The demo's tables: estimates beside the truth that no collector ever saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sottovoce.console.tables import grid, interval_text
from sottovoce.ground.labels import parts

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from sottovoce.demo.mixed import TrustModel
    from sottovoce.demo.survey import Finding, Pair


def truth_table(title: str, columns: Sequence[str], findings: Sequence[Finding]) -> RichTable:
    """Estimates beside the truth, with 95% intervals; a mark where one misses."""
    from rich.markup import escape

    heads = [escape(name) for name in columns]
    figures = ["truth", "estimate", "std error", "95% interval", "holds"]
    out = grid(title, [*heads, *figures], words=[*heads, "holds"])
    for finding in findings:
        table = finding.table
        low, high = table.interval()
        for place, (label, holds) in enumerate(zip(table.labels, finding.holds, strict=True)):
            cell = parts(label)
            out.add_row(
                *(
                    escape(part)
                    for part in (cell if len(cell) == len(heads) else (*table.attributes, *cell))
                ),
                f"{finding.truth[place]:.4f}",
                f"{table.values[place]:.4f}",
                f"{table.std_error[place]:.4f}",
                interval_text(low[place], high[place]),
                "yes" if holds else "[bold]no[/bold]",
            )
    return out


def pairs_table(pairs: Sequence[Pair]) -> RichTable:
    """The pairs of attributes that go together most, beside the truth."""
    from rich.markup import escape

    out = grid("Strongest pairs, by Cramer's V", ["pair", "estimate", "truth"], words=["pair"])
    for pair in pairs:
        out.add_row(
            escape(" - ".join(pair.attributes)), f"{pair.strength:.3f}", f"{pair.truth:.3f}"
        )
    return out


def trust_table(models: Sequence[TrustModel], names: Sequence[str]) -> RichTable:
    """One table in three trust models."""
    title = f"{', '.join(names)}: whom must people trust?"
    heads = ["model", "who sees an answer"]
    out = grid(title, [*heads, "error of a cell"], words=heads)
    for model in models:
        out.add_row(model.name, model.who, f"{model.error:.5f}")
    return out
