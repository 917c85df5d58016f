"""Rows for a person's eyes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sottovoce.ground.labels import visible, written
from sottovoce.protocol.guarantee import at_most
from sottovoce.results.words import CLOSED_FORM

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from sottovoce.measure import Comparison, Figures, MarginalsComparison
    from sottovoce.questions.prediction import Rank
    from sottovoce.results.estimate import Floats, Table

MAX_PRINTED_VALUES = 64  # values of one table that are printed; JSON and files hold all
NARROWEST = 110  # columns to assume where nobody says how wide the screen is
# columns that are not numbers
WORDS = (
    "value",
    "oracle",
    "thesis cost",
    "holds",
    "method",
    "reason",
    "note",
)


def console() -> Console:
    """Standard output; wide enough for every table when it is not a terminal."""
    import shutil

    from rich.console import Console

    plain = Console(highlight=False)
    if plain.is_terminal:
        return plain
    return Console(
        highlight=False, width=max(NARROWEST, shutil.get_terminal_size((160, 24)).columns)
    )


def shown(values: Floats) -> list[int]:
    """The places of the values to print, in order: all, or the largest if there are too many."""
    if len(values) <= MAX_PRINTED_VALUES:
        return list(range(len(values)))
    import numpy as np

    return sorted(np.argsort(-values, kind="stable")[:MAX_PRINTED_VALUES].tolist())


def estimate_table(table: Table, level: float, *, population: bool = False) -> RichTable:
    """Values with standard errors and intervals; a column for each attribute of several."""
    from rich.markup import escape

    low, high = table.interval(level, population=population)
    several = len(table.attributes) > 1
    names = [escape(name) for name in table.attributes] if several else ["value"]
    biased = [] if table.bias is None else ["bias"]
    marks = ", reconstructed" if table.is_reconstructed else ""
    out = grid(
        f"{', '.join(table.attributes)}: {table.people:,} people, {table.origin}{marks}",
        [*names, "frequency", "std error", *biased, f"{100 * level:.4g}% interval"],
        words=names,
    )
    for place in shown(table.values):
        label: object = table.labels[place]
        cells = label if several and isinstance(label, tuple) else (label,)
        out.add_row(
            *(escape(written(cell)) for cell in cells),
            f"{table.values[place]:.4f}",
            f"{table.std_error[place]:.4f}",
            *([] if table.bias is None else [f"{table.bias[place]:+.4f}"]),
            interval_text(low[place], high[place]),
        )
    notes = []
    if len(table.values) > MAX_PRINTED_VALUES:
        notes.append(
            f"the {MAX_PRINTED_VALUES} largest of {len(table.values):,}; --json has them all"
        )
    if table.unasked:
        notes.append(escape(table.unasked))
    if table.partly:
        notes.append(escape(table.partly))
    if table.left:
        notes.append(table.left)
    if table.is_reconstructed:
        notes.append(
            "reconstructed: some of this table was never asked for, and follows from an assumption"
        )
    if table.remark:
        notes.append(escape(visible(table.remark)))
    if table.errors != CLOSED_FORM or table.is_reconstructed or len(table.attributes) > 1:
        notes.append(f"standard errors: {table.errors}")
    if notes:
        out.caption = "; ".join(notes)
    return out


def figures_table(rows: Sequence[Figures], size: int, epsilon: str) -> RichTable:
    """Thesis tables 3.1 and 3.2 for one size and epsilon, beside what the integer coins realise."""
    out = grid(
        f"size {size:,}, epsilon {epsilon}: variance of a rare value's count, per person",
        [
            "oracle",
            "thesis cost",
            "thesis Var/n",
            "bits",
            "Var/n",
            "half-sum",
            "epsilon",
            "p",
            "q",
        ],
        padding=0,  # nine columns fit into eighty characters
    )
    for row in rows:
        out.add_row(
            f"{row.oracle} *" if row.recommended else row.oracle,
            row.thesis_communication or "",
            "" if row.thesis_variance is None else _two_decimals(row.thesis_variance),
            f"{row.bits:,}",
            _figure(row.variance),
            _figure(row.half_sum_variance, 3),
            f"{row.epsilon:.4g}",
            _figure(row.p, 3),
            _figure(row.q, 3),
            style="bold" if row.recommended else None,
        )
    out.caption = (
        "* recommended. Thesis: tables 3.1 and 3.2, real d' and theta = 1. Then realised: g a "
        "power of two, best theta, integer coins; half-sum: the summed count of half the values; "
        "blank where the candidates decide"
    )
    return out


def comparison_table(rows: Sequence[Comparison]) -> RichTable:
    """Measured error beside theory."""
    first = rows[0]
    out = grid(
        f"size {first.size:,}, {first.people:,} people (Zipf), {first.runs} runs: mean squared "
        "error of a frequency",
        ["epsilon", "oracle", "measured", "theory", "ratio", "whisper s", "estimate s", "bytes"],
    )
    for row in rows:
        out.add_row(
            f"{row.epsilon:g}",
            row.oracle,
            f"{row.measured:.4g}",
            f"{row.theory:.4g}",
            f"{row.ratio:.3f} ± {row.ratio_spread:.3f}",
            f"{row.simulate_seconds:.4f}",
            f"{row.estimate_seconds:.4f}",
            f"{row.bytes:,}",
        )
    out.caption = "ratio: measured / theory, 1 expected, ± one standard deviation"
    return out


def marginals_table(rows: Sequence[MarginalsComparison]) -> RichTable:
    """Measured errors of methods for marginals, by epsilon."""
    from rich.markup import escape

    with_coverage = any(row.coverage is not None for row in rows)
    title = f"tables of {rows[0].k} attributes"
    if rows[0].planned_for not in (None, rows[0].k):
        title += f", by plans for tables of {rows[0].planned_for}"
    columns = [
        "epsilon",
        "method",
        "squared error",
        "variation distance",
        "seconds",
        "views",
        "view size",
    ]
    out = grid(
        title,
        [*columns, *(["95% holds"] if with_coverage else []), "note"],
    )
    for row in rows:
        if row.sse is None:
            blanks = [""] * (len(columns) - 2 + with_coverage)
            out.add_row(f"{row.epsilon:g}", escape(row.method), *blanks, escape(row.reason or ""))
            continue
        out.add_row(
            f"{row.epsilon:g}",
            escape(row.method),
            spread(row.sse, row.sse_std),
            spread(row.tvd or 0.0, row.tvd_std),
            f"{row.seconds:.2f}",
            f"{row.views:,}",
            f"{row.view_size}",
            *([f"{row.coverage:.1%}" if row.coverage is not None else ""] if with_coverage else []),
            escape(_note(row)),
        )
    measured = next((row for row in rows if row.sse is not None), None)
    if measured is not None:
        runs = f"{measured.runs} runs of" if measured.runs != 1 else "1 run of"
        told = "means ± the standard deviation over runs" if measured.runs != 1 else "means"
        out.caption = (
            f"{measured.people:,} people, {runs} {measured.queries} random tables: {told}; view "
            "size in attributes"
        )
        if any(row.postprocess for row in rows):
            out.caption += "; after NAME: each table was repaired so before it was judged"
    return out


def _note(row: MarginalsComparison) -> str:
    """What else is to be known of a row: the method that was chosen, and the repair."""
    name = row.method.partition(":")[0]
    parts = [f"chose {row.chosen}"] if row.chosen != name else []
    if row.postprocess is not None:
        parts.append(f"after {row.postprocess}")
    return ", ".join(parts)


def ranking_table(ranks: Sequence[Rank], ranked: str) -> RichTable:
    """The planner's ranking, the chosen method marked; ``ranked`` says what errors are of."""
    from rich.markup import escape

    out = grid(
        "Methods by predicted error", ["method", "squared error", "per cell", "ratio", "reason"]
    )
    for rank in ranks:
        out.add_row(
            f"{rank.method} *" if rank.chosen else rank.method,
            _figure(rank.predicted_sse, 3),
            _figure(rank.per_cell, 2),
            _figure(rank.ratio, 3),
            escape(_rank_reason(rank)),
            style="bold" if rank.chosen else None,
        )
    out.caption = f"* in the plan. Squared error of {ranked}; ratio to the best"
    if any(rank.never_asked for rank in ranks):
        out.caption += "; what leaves out attributes or pairs is not chosen by auto"
    return out


def _rank_reason(rank: Rank) -> str:
    from sottovoce.questions.prediction import UNPREDICTED

    if rank.reason == UNPREDICTED:
        return rank.reason
    if rank.predicted_sse is None:
        return f"does not fit: {rank.reason}"
    return f"{rank.reason}; leaves out {rank.never_asked:,}" if rank.never_asked else rank.reason


def store_table(surveys: Sequence[Mapping[str, Any]]) -> RichTable:
    """What a store holds, a row per survey."""
    from rich.markup import escape

    any_damaged = any(each["damaged"] for each in surveys)
    columns = [
        "plan",
        "title",
        "question",
        "epsilon",
        "reports",
        *(["damaged"] if any_damaged else []),
        "of",
        "state",
    ]
    out = grid("Surveys", columns, words=("plan", "title", "question", "state"))
    for each in surveys:
        state = "closed" if each["closed"] else "open"
        out.add_row(
            each["id"][:16],
            escape(each["title"]),
            each["question"],
            each["epsilon"]
            + (f", delta {at_most(delta)}" if (delta := each["guarantee"]["delta"]) else ""),
            f"{each['people']:,}",
            *([f"{each['damaged']:,}"] if any_damaged else []),
            f"{each['people_expected']:,}",
            "only sums" if each["only_sums"] else state,
        )
    return out


def spread(mean: float, deviation: float | None) -> str:
    """A mean, and the standard deviation if there is one."""
    return f"{mean:.4g}" if deviation is None else f"{mean:.4g} ± {deviation:.2g}"


def grid(
    title: str, columns: Sequence[str], padding: int = 1, words: Sequence[str] = WORDS
) -> RichTable:
    """A table without rows; the columns in ``words`` are to the left, figures to the right."""
    from rich import box
    from rich.markup import escape

    from sottovoce.console.grids import PrintedGrid

    shown = escape(visible(title))
    made = PrintedGrid(
        title=shown,
        box=box.SIMPLE_HEAD,
        padding=(0, padding),
        title_justify="left",
        caption_justify="left",
    )
    for name in columns:
        made.add_column(name, justify="left" if name in words else "right", overflow="fold")
    return made


def interval_text(low: float, high: float) -> str:
    """An interval, in four digits."""
    return f"{low:.4f} to {high:.4f}"


def _two_decimals(number: float) -> str:
    """As the thesis prints it, unless nothing would be left."""
    return f"{number:.2f}" if number >= 0.005 else f"{number:.2g}"


def _figure(number: float | None, digits: int = 4) -> str:
    return "" if number is None else f"{number:.{digits}g}"
