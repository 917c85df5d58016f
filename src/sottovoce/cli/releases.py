"""Commands for a curator who holds the table: release it privately, compare ways to."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from sottovoce.cli.commands import Json, Quiet, app, compare_app, listed, print_json
from sottovoce.cli.comparing import Plot, Seed, check_plot, compared, show
from sottovoce.cli.engines import EngineChoice, EngineName, Master
from sottovoce.cli.listing import listing, names_of
from sottovoce.console.reading import LOCAL_ENGINE
from sottovoce.console.screen import say
from sottovoce.ground.labels import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table as RichTable

    from sottovoce.accounting import Neighbours
    from sottovoce.central.comparison import ReleasesComparison
    from sottovoce.central.result import Release
    from sottovoce.schema import Schema

TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="What the curator holds: CSV, Parquet, or a folder of Parquet."
    ),
]
UserColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Says whose a row is; by default each row is a user."),
]
ItemsColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Sets instead of a table: lists, or with --user one item in each row.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(metavar="s.toml", help="[schema.NAME] of attributes whose values are public."),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="a,b", help="The attributes; by default the schema's, or all columns."),
]
Delta = Annotated[str, typer.Option(help="Well below one in the number of users.")]
UpTo = Annotated[int, typer.Option("--up-to", help="How many values together, at most.")]
Relation = Annotated[
    str,
    typer.Option(
        metavar="add-remove|replace-one", help="What is hidden: that a user is there, or as what."
    ),
]
Empty = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="A value that says nothing; may be given again."),
]
MayBeEmpty = Annotated[
    str | None,
    typer.Option(
        "--may-be-empty", metavar="a,b", help="Attributes of the schema that may have no value."
    ),
]
Force = Annotated[
    str | None,
    typer.Option(metavar="a,b", help="Take columns in which nearly every row has its own value."),
]


@app.command(cls=listing("release"))
def release(
    table: TableFile,
    epsilon: Annotated[str, typer.Option(help="The privacy budget of the whole release.")],
    delta: Delta,
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder that is not there yet.")],
    up_to: UpTo = 2,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="auto, dp-marginals, set-union, residual or priview; with options as in "
            "set-union:form=weighted.",
        ),
    ] = "auto",
    user: UserColumn = None,
    items: ItemsColumn = None,
    schema: SchemaFile = None,
    columns: Columns = None,
    neighbours: Relation = "add-remove",
    empty: Empty = None,
    may_be_empty: MayBeEmpty = None,
    force: Force = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Publish the counts of a table's values, pairs, triples, privately.

    For a curator who may see the table. Noise hides every user from whoever reads the release. The
    folder gets a tidy Parquet and CSV file for each number of values together, release.json with
    the guarantee and what was spent on what, and summary.html. It is whole or not there. The
    ledger lies beside it, as NAME.ledger.json, and is written before any noise is drawn.

    Example:  sottovoce release people.csv --epsilon 1 --delta 1e-6 --up-to 3 -o release/

    Example:  sottovoce release people.parquet --epsilon 1 --delta 1e-6 --schema schema.toml -o out

    Example:  sottovoce release clicks.csv --user visitor --items page --epsilon 1 --delta 1e-6
              --up-to 1 -o pages
    """
    from sottovoce.central.release import list_options
    from sottovoce.central.release import release as release_table
    from sottovoce.console.progress import progress
    from sottovoce.measure.choices import MethodChoice

    chosen = MethodChoice.parse(method)
    tell = None if quiet else lambda line: typer.echo(f"release: {visible(line)}", err=True)
    known = _schema(schema)
    with progress("reading", _rows(table), quiet) as advance, _notes_on_errors():
        made = release_table(
            table,
            epsilon,
            delta,
            up_to,
            chosen.method,
            user=user,
            items=items,
            schema=known,
            columns=_names(columns) or None,
            neighbours=cast("Neighbours", neighbours),  # checked there
            output=output,
            empty=empty or (),
            may_be_empty=_names(may_be_empty),
            force=_names(force),
            advance=advance,
            say=tell,
            **list_options(chosen.options),
        )
    if as_json:
        print_json(release_json(made, output))
        return
    say(made)
    typer.echo(f"Written: {output}")


def release_json(made: Release, output: Path) -> dict[str, Any]:
    """A release's figures as JSON."""
    from sottovoce.central.storage import ledger_path

    return {
        "output": str(output),
        "ledger": str(ledger_path(output)),
        "guarantee": made.guarantee.to_json(),
        "method": made.method,
        "why": made.choice["why"],
        "found": {str(k): len(counts.counts) for k, counts in sorted(made.tuples.items())},
        "notes": list(made.notes),
        "files": sorted(path.name for path in output.iterdir()),
    }


def _names(text: str | None) -> list[str]:
    """The parts of a,b; none of nothing."""
    return [] if text is None else listed(text)


def _schema(path: Path | None) -> Schema | None:
    from sottovoce.console.surveys import read_schema

    return None if path is None else read_schema(path)


def _rows(table: Path) -> int | None:
    """How many rows there are to read, if that is known."""
    from sottovoce.sending.people import row_count

    return row_count(table) if table.is_file() else None


@contextmanager
def _notes_on_errors() -> Iterator[None]:
    """Warnings to the curator as notes on standard error, which no reader of the release sees."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    for warning in heard:
        typer.echo(f"Note: {warning.message}", err=True)


@compare_app.command("releases", cls=listing("release"))
def compare_releases(
    table: TableFile,
    epsilon: Annotated[str, typer.Option(metavar="E,E", help="One or more epsilons.")],
    methods: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help="By name, with options as in set-union:form=weighted; or auto.",
            autocompletion=names_of("release"),
        ),
    ] = "auto",
    delta: Delta = "1e-6",
    up_to: UpTo = 2,
    user: UserColumn = None,
    items: ItemsColumn = None,
    schema: SchemaFile = None,
    columns: Columns = None,
    neighbours: Relation = "add-remove",
    empty: Empty = None,
    may_be_empty: MayBeEmpty = None,
    force: Force = None,
    above: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Recall counts tuples that so many of the users hold."),
    ] = "0.01",
    runs: Annotated[int, typer.Option(min=1, help="Each with its own noise.")] = 1,
    seed: Seed = 1,
    plot: Plot = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure ways to release a table: simulated, so nothing of it may be published.

    Prints for each number of values together how many tuples are found, how many of them nobody
    holds, the share found of those that many users hold, the squared error of a table of shares
    (what is not released counts as 0), that of a released count, and the seconds it took.

    Example:  sottovoce compare releases people.csv --methods dp-marginals,auto --epsilon 0.5,1

    Example:  sottovoce compare releases clicks.csv --user visitor --items page --up-to 1
              --methods set-union,dp-marginals --epsilon 1
    """
    from sottovoce.central.comparison import compare_releases as compare
    from sottovoce.central.tables import read_table
    from sottovoce.console.progress import progress
    from sottovoce.measure.pictures import release_errors

    check_plot(plot)
    with progress("reading", _rows(table), quiet) as advance:
        held = read_table(
            table,
            user=user,
            items=items,
            schema=_schema(schema),
            columns=_names(columns) or None,
            empty=empty or (),
            force=_names(force),
            advance=advance,
        )
    epsilons, names = listed(epsilon), listed(methods)
    measured = partial(
        compare,
        held,
        delta=delta,
        up_to=up_to,
        neighbours=cast("Neighbours", neighbours),  # checked there
        may_be_empty=_names(may_be_empty),
        above=above,
        runs=runs,
        seed=seed,
    )
    chosen, total = EngineChoice(engine, master), runs * len(epsilons) * len(names)
    rows = compared(chosen, measured, epsilons, names, total, quiet, methods_together=True)
    show(rows, lambda: releases_table(rows), lambda: release_errors(rows), plot, as_json)


def releases_table(rows: Sequence[ReleasesComparison]) -> RichTable:
    """Measured releases, by epsilon, method and k."""
    from rich.markup import escape

    from sottovoce.console.tables import grid, spread

    heads = ["epsilon", "method", "k", "found", "spurious", "recall", "squared error"]
    out = grid("releases of a table", [*heads, "of a count", "seconds", "note"])
    for row in rows:
        place = (f"{row.epsilon:g}", escape(row.method))
        if row.k is None:
            out.add_row(*place, *[""] * 7, escape(row.reason or ""))
            continue
        out.add_row(
            *place,
            str(row.k),
            f"{row.found:,.6g}",
            f"{row.spurious:,.4g}",
            "" if row.recall is None else f"{row.recall:.1%}",
            "" if row.sse is None else spread(row.sse, row.sse_std),
            "" if row.count_mse is None else spread(row.count_mse, row.count_mse_std),
            f"{row.seconds:.2f}",
            "" if row.chosen == row.method.partition(":")[0] else f"chose {row.chosen}",
        )
    return out
