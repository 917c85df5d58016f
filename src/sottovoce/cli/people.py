"""The commands that read a file of people: what to ask them, and what they whisper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.commands import (
    Json,
    PlanFile,
    PlanId,
    Quiet,
    SeriesFile,
    app,
    listed,
    print_json,
)
from sottovoce.cli.engines import EngineChoice, EngineName, Master
from sottovoce.console.reading import LOCAL_ENGINE
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible, visible_lines

Ignored = Annotated[
    str | None,
    typer.Option(metavar="a,b", help="Columns to leave alone; * for all that the plan lacks."),
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="CHAR", help="Of a CSV file's columns: , or ; or tab; by default found."),
]


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
    edges: Annotated[
        list[str] | None,
        typer.Option(
            metavar="a:18,25,35", help="Bins of a column that start here; again for more."
        ),
    ] = None,
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

    Example:  sottovoce survey people.csv --edges age:18,25,35,50
    """
    from sottovoce.ground.files import replacing
    from sottovoce.measure.proposals import propose
    from sottovoce.oracles.thresholds import parse_epsilon

    parse_epsilon(epsilon)
    found = propose(
        table,
        bins=bins,
        values=values,
        edges=dict(map(read_edges, edges or [])),
        columns=listed(columns) if columns else None,
        ignored=read_ignored(ignore),
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


@app.command()
def whisper(
    plan_file: PlanFile,
    people: Annotated[
        Path, typer.Argument(metavar="people.csv", help="One row per person; CSV or Parquet.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the reports go (Parquet).")],
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Simulate, reproducibly. Never for real people's reports."),
    ] = None,
    ignore: Ignored = None,
    separator: Separator = None,
    series: SeriesFile = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    plan_id: PlanId = None,
    quiet: Quiet = False,
) -> None:
    """Let everybody in a file whisper.

    Each row becomes the report of one device. Without --seed every report draws its coins from the
    operating system's entropy.

    In a plan of several rounds a row is drawn into one of them and answers only there. --series
    FILE keeps who that is: give the same file, and the same people in the same order, in every
    round. With --seed the same seed does it.

    Example:  sottovoce whisper plan.json people.csv -o reports.parquet

    An empty cell, and a value that the plan does not have, is the attribute's `other` if it has
    one, and is refused if not. 22.0 is 22, and 22.5 is in the bin of 22.

    Example:  sottovoce whisper plan.json people.csv -o reports.parquet --ignore '*'

    Example:  sottovoce whisper next.json people.csv -o second.parquet --series rounds.parquet

    With an engine other than local its workers read the people, a Parquet file that all of them
    see, and write the reports into a new folder; the same reports as here, with the same --seed.

    Example:  sottovoce whisper plan.json people.parquet -o reports --seed 1 --engine spark --master
    spark://host:7077
    """
    from sottovoce.console.surveys import read_plan
    from sottovoce.console.writing import check_crowd, write_whispers
    from sottovoce.sending.people import PeopleFileOptions

    made = read_plan(plan_file, plan_id)
    reading = PeopleFileOptions(read_separator(separator), read_ignored(ignore))
    chosen = EngineChoice(engine, master)
    if chosen.is_local:
        count = write_whispers(made, people, output, seed, quiet, series, reading)
    else:
        from sottovoce.sending.crowd_files import write_simulated

        own_seed = check_crowd(seed, series, chosen.name)
        with chosen.opened() as workers:
            count = write_simulated(workers, made, people, output, own_seed, reading)
    fakes = 0 if made.shuffling is None else made.shuffling.fakes
    added = f" ({fakes:,} of them fakes, which its shufflers add)" if fakes else ""
    typer.echo(f"{count:,} reports written to {output}{added}")


def read_edges(text: str) -> tuple[str, list[int]]:
    """A column, and the smallest number of each of its bins.

    >>> read_edges("age:18,25,35")
    ('age', [18, 25, 35])
    """
    name, colon, starts = text.rpartition(":")
    try:
        found = [int(start) for start in starts.split(",")]
    except ValueError:
        found = []
    if not colon or not name or len(found) < 2:
        raise InvalidInput(
            f"edges ({text}) must be a column, a colon and two whole numbers or more"
        )
    return name, found


def read_ignored(text: str | None) -> tuple[str, ...]:
    """The columns to leave alone, as they are typed."""
    return tuple(listed(text)) if text else ()


def read_separator(text: str | None) -> str | None:
    """A separator as it is typed: a tab by its name, too."""
    return "\t" if text in ("tab", "\\t") else text
