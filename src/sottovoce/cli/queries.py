"""The command that measures methods for queries on real tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.commands import Json, Quiet, compare_app, listed
from sottovoce.cli.comparing import Plot, Seed, check_plot, compared, show
from sottovoce.cli.engines import EngineChoice, EngineName, Master
from sottovoce.cli.listing import listing, names_of
from sottovoce.console.reading import LOCAL_ENGINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table as RichTable

    from sottovoce.measure.queries import QueriesComparison


@compare_app.command("queries", cls=listing("queries"))
def compare_queries(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Real people, one row each; CSV or Parquet.")
    ],
    dimensions: Annotated[
        str,
        typer.Option(
            metavar="age:64,state",
            help="Sensitive columns, of numbers with how many equal-width bins they are cut into.",
        ),
    ],
    epsilon: Annotated[str, typer.Option(metavar="E,E", help="One or more epsilons.")],
    measure: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Sums of this public number instead of counts."),
    ] = None,
    volume: Annotated[
        str,
        typer.Option(
            metavar="V,V",
            help="Shares of all combinations of values that queries select; or random.",
        ),
    ] = "0.25",
    people: Annotated[
        int, typer.Option(help="Sampled from the table, with replacement, in each run.")
    ] = 1_000_000,
    methods: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help="By name, with options as in hio:fanout=4; or auto.",
            autocompletion=names_of("queries"),
        ),
    ] = "auto",
    queries: Annotated[int, typer.Option(help="Random ones in each run, for each volume.")] = 30,
    predicates: Annotated[
        int | None,
        typer.Option(metavar="N", help="Dimensions that a query restricts; by default all."),
    ] = None,
    runs: Annotated[int, typer.Option(help="Each with its own people and queries.")] = 3,
    seed: Seed = 1,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Also count how often 95% intervals hold.")
    ] = False,
    plot: Plot = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure methods for queries on a table of real people.

    Prints the mean squared and the mean absolute error of the share that random queries select, of
    the people or of the measure's absolute total (MNAE), and the mean relative error (MRE), with
    the seconds it all took.

    Example:  sottovoce compare queries adult.csv --dimensions age:64,hours-per-week:64 --volume
              0.01,0.1,random --epsilon 1,2 --people 100000 --methods hio,hdg,auto

    Example:  sottovoce compare queries adult.csv --dimensions age:64 --measure capital-gain
              --epsilon 2 --methods hio,auto --coverage
    """
    from sottovoce import measure as measures
    from sottovoce.measure.pictures import query_errors

    check_plot(plot)
    crowd = measures.read_query_population(table, listed(dimensions), measure)
    epsilons, names, volumes = listed(epsilon), listed(methods), listed(volume)
    compare = partial(
        measures.compare_queries,
        crowd,
        people,
        volumes=volumes,
        queries=queries,
        runs=runs,
        seed=seed,
        coverage=coverage,
        predicates=predicates,
    )
    total = runs * len(epsilons) * len(names)
    rows = compared(EngineChoice(engine, master), compare, epsilons, names, total, quiet)
    what = "people" if measure is None else f"the total of |{measure}|"
    show(rows, lambda: queries_table(rows, what), lambda: query_errors(rows), plot, as_json)


def queries_table(rows: Sequence[QueriesComparison], what: str) -> RichTable:
    """Measured errors of methods for queries, by epsilon and volume."""
    from rich.markup import escape

    from sottovoce.console.tables import grid, spread

    with_coverage = any(row.coverage is not None for row in rows)
    columns = ["epsilon", "volume", "method", "squared error", "MNAE", "MRE", "seconds"]
    out = grid(
        f"shares of {what} that queries select",
        [*columns, *(["95% holds"] if with_coverage else []), "note"],
    )
    for row in rows:
        place = (f"{row.epsilon:g}", f"{row.volume}", escape(row.method))
        if row.mse is None:
            blanks = [""] * (len(columns) - 3 + with_coverage)
            out.add_row(*place, *blanks, escape(row.reason or ""))
            continue
        name = row.method.partition(":")[0]
        out.add_row(
            *place,
            spread(row.mse, row.mse_std),
            f"{row.mnae:.3g}",
            "" if row.mre is None else f"{row.mre:.3g}",
            f"{row.seconds:.2f}",
            *([f"{row.coverage:.1%}" if row.coverage is not None else ""] if with_coverage else []),
            "" if row.chosen == name else f"chose {row.chosen}",
        )
    known = next((row for row in rows if row.mse is not None), None)
    if known is not None:
        runs = f"{known.runs} runs of" if known.runs != 1 else "1 run of"
        told = "means ± the standard deviation over runs" if known.runs != 1 else "means"
        out.caption = (
            f"{known.people:,} people, {runs} {known.queries} random queries: {told}; MNAE: mean "
            "absolute error, MRE: mean relative error"
        )
    return out
