"""The command that proposes a survey from a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.commands import Ignored, Json, Separator, app, listed, print_json, read_separator
from sottovoce.ground.labels import visible, visible_lines


@app.command()
def survey(
    table: Annotated[
        Path, typer.Argument(metavar="people.csv", help="One row per person; CSV or Parquet.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where it goes (survey.toml)."),
    ] = None,
    bins: Annotated[
        int, typer.Option(min=2, help="Of a column of many numbers, at most; as many people each.")
    ] = 8,
    values: Annotated[
        int, typer.Option(min=2, help="Of a column of text, at most; the rarer ones are one.")
    ] = 16,
    columns: Annotated[
        str | None, typer.Option(metavar="a,b", help="Only these columns; by default all.")
    ] = None,
    ignore: Ignored = None,
    epsilon: Annotated[str, typer.Option(help="What a report may cost.")] = "1.0",
    separator: Separator = None,
    as_json: Json = False,
) -> None:
    """Propose a survey from a table: what each column is, and how its values are put together.

    Few values are listed, numbers go into bins of about as many people, rare texts into one value.
    People without an answer get one that says so. Ids, free text and dates are left out and named.
    Read the file over, and change what you know better: bins = [18, 25, 35] with low = 18 and
    high = 49 are 18 to 24, 25 to 34 and 35 to 49.

    A schema made from data tells something about these people. Make it from data that is public or
    your own.

    Example:  sottovoce survey people.csv -o survey.toml

    Example:  sottovoce survey people.csv --columns age,state --bins 5 --epsilon 2
    """
    from sottovoce.ground.files import replacing
    from sottovoce.measure.proposals import propose
    from sottovoce.oracles.thresholds import parse_epsilon

    parse_epsilon(epsilon)
    found = propose(
        table,
        bins=bins,
        values=values,
        columns=listed(columns) if columns else None,
        ignored=listed(ignore) if ignore else (),
        separator=read_separator(separator),
    )
    text = found.to_toml(epsilon)
    if output is not None:
        with replacing(output) as draft:
            draft.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"epsilon": epsilon, **found.to_json()})
        return
    if output is None:
        typer.echo(visible_lines(text), nl=False)
        return
    typer.echo(f"{len(found.schema)} attributes of {found.people:,} people")
    for each in found.columns:
        if each.attribute is None:
            typer.echo(visible(f"Left out: {each.name}: {each.note}"))
    typer.echo(f"Written: {output}")
