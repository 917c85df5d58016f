"""The command that measures shuffled plans on a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.commands import Json, Quiet, compare_app, listed
from sottovoce.cli.comparing import Plot, Seed, check_plot, compared, show
from sottovoce.cli.engines import EngineChoice, EngineName, Master
from sottovoce.console.reading import LOCAL_ENGINE

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from sottovoce.measure.shuffled import ShuffledComparison


@compare_app.command("shuffled")
def compare_shuffled(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Real people, one row each; CSV or Parquet.")
    ],
    attribute: Annotated[str, typer.Option(metavar="NAME", help="Whose frequencies are learnt.")],
    epsilon: Annotated[
        str, typer.Option(metavar="E,E", help="One or more epsilons, against the analyst.")
    ],
    people: Annotated[
        int, typer.Option(help="Sampled from the table, with replacement, in each run.")
    ] = 100_000,
    methods: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help="auto, auto-head, solh, solh-thesis, sh, rap or another oracle; aue and rap-r, "
            "which are not LDP and simulated only; central, a trusted curator.",
        ),
    ] = "auto,solh,solh-thesis,sh,aue,central",
    delta: Annotated[str, typer.Option(help="Of the promises against the analyst.")] = "1e-9",
    cap: Annotated[
        str, typer.Option(metavar="EPSILON", help="The most that a report may cost by itself.")
    ] = "8",
    runs: Annotated[int, typer.Option(help="Each with its own people.")] = 3,
    seed: Seed = 1,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="s.toml", help="The domains; by default those found in the data."),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(metavar="N", help="Put a column of many numbers into N quantile bins."),
    ] = None,
    plot: Plot = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well an attribute's frequencies are learnt from shuffled reports.

    Prints what a report costs by itself, the mean squared error of a value and of the ten largest,
    and the seconds of a run. Where a method's reports are not private by themselves, its row
    says so.

    Example:  sottovoce compare shuffled adult.csv --attribute education --epsilon 0.1,0.5
              --people 1000000 --methods auto,solh,solh-thesis,sh,rap,aue,central
    """
    from sottovoce.console.surveys import read_schema
    from sottovoce.measure import read_population
    from sottovoce.measure.shuffled import compare_shuffled as compare

    check_plot(plot)
    domains = None if schema is None else read_schema(schema)
    crowd = read_population(table, domains, [attribute], bins)
    epsilons, names = listed(epsilon), listed(methods)
    terms: dict[str, Any] = {"people": people, "delta": delta, "cap": cap}
    measured = partial(compare, crowd, attribute, runs=runs, seed=seed, **terms)
    total = runs * len(epsilons) * len(names)
    rows = compared(EngineChoice(engine, master), measured, epsilons, names, total, quiet)
    from sottovoce.measure.pictures import shuffled_errors

    show(
        rows,
        lambda: _shuffled_table(rows, attribute),
        lambda: shuffled_errors(rows, attribute),
        plot,
        as_json,
    )


def _shuffled_table(rows: Sequence[ShuffledComparison], attribute: str) -> RichTable:
    """Measured methods, by epsilon."""
    from rich.markup import escape

    from sottovoce.console.tables import grid, spread
    from sottovoce.ground.labels import visible

    heads = ["epsilon", "method", "local", "squared error", "of the largest", "seconds", "note"]
    out = grid(f"frequencies of {escape(visible(attribute))}, shuffled", heads)
    for row in rows:
        place = (f"{row.epsilon:g}", escape(row.method))
        if row.mse is None or row.head_mse is None:
            out.add_row(*place, *[""] * 4, escape(row.reason or ""))
            continue
        out.add_row(
            *place,
            "no bound" if row.local is None else f"{row.local:.4g}",
            spread(row.mse, row.mse_std),
            spread(row.head_mse, row.head_mse_std),
            f"{row.seconds:.2f}",
            escape(row.about or ""),
        )
    return out
