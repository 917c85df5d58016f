"""The commands about marginals: methods measured on a table, and what an error needs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.commands import Json, Quiet, app, compare_app, listed, print_json
from sottovoce.cli.comparing import Plot, Seed, check_plot, compared, show
from sottovoce.cli.engines import EngineChoice, EngineName, Master
from sottovoce.cli.listing import listing, names_of
from sottovoce.console.reading import LOCAL_ENGINE
from sottovoce.console.screen import say
from sottovoce.ground.errors import InvalidInput


@compare_app.command("marginals", cls=listing("marginals"))
def compare_marginals(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Real people, one row each; CSV or Parquet.")
    ],
    k: Annotated[int, typer.Option("--k", help="Attributes in a table.")],
    epsilon: Annotated[str, typer.Option(metavar="E,E", help="One or more epsilons.")],
    people: Annotated[
        int, typer.Option(help="Sampled from the table, with replacement, in each run.")
    ] = 65_536,
    methods: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help="By name, with options as in calm:theta=0.01; or auto.",
            autocompletion=names_of("marginals"),
        ),
    ] = "auto",
    planned_for: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Attributes in the tables that plans are made for; by default k."
        ),
    ] = None,
    postprocess: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Repair the tables of unbiased methods first: norm-sub, say."
        ),
    ] = None,
    queries: Annotated[int, typer.Option(help="Random tables in each run.")] = 50,
    runs: Annotated[int, typer.Option(help="Each with its own people and tables.")] = 5,
    seed: Seed = 1,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="s.toml", help="The domains; by default those found in the data."),
    ] = None,
    attributes: Annotated[
        str | None, typer.Option(metavar="a,b", help="Some columns; by default all.")
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(metavar="N", help="Put columns of many numbers into N quantile bins."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="The N most frequent items of a list column, each a yes or no."
        ),
    ] = None,
    merge: Annotated[
        int | None, typer.Option(metavar="N", help="At most N categories; the rare ones as one.")
    ] = None,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Also count how often 95% intervals hold.")
    ] = False,
    plot: Plot = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure methods for marginals on a table of real people.

    Prints the sum of squared errors and the total variation distance of random tables, against
    those of the people sampled, with the seconds it all took and the views the people reported.

    Example:  sottovoce compare marginals adult.csv --k 3 --epsilon 0.2,1.0 --methods
              auto,calm,inp-ht --bins 8

    Example:  sottovoce compare marginals baskets.parquet --top 16 --k 3 --epsilon 1 --people 65536
              --runs 5

    Example:  sottovoce compare marginals baskets.parquet --top 16 --k 4 --planned-for 3
              --epsilon 1 --methods calm,calm:theta=0.01,inp-ht --postprocess norm-sub
              --plot errors.svg
    """
    from sottovoce import measure
    from sottovoce.console.surveys import read_schema

    check_plot(plot)
    domains = None if schema is None else read_schema(schema)
    chosen = None if attributes is None else listed(attributes)
    crowd = measure.read_population(table, domains, chosen, bins, top, merge)
    epsilons, names = listed(epsilon), listed(methods)
    compare = partial(
        measure.compare_marginals,
        crowd,
        k,
        people,
        queries=queries,
        runs=runs,
        seed=seed,
        coverage=coverage,
        planned_for=planned_for,
        repair=postprocess,
    )
    total = runs * len(epsilons) * len(names)
    rows = compared(EngineChoice(engine, master), compare, epsilons, names, total, quiet)
    from sottovoce.console.tables import marginals_table
    from sottovoce.measure.pictures import marginal_errors

    show(rows, lambda: marginals_table(rows), lambda: marginal_errors(rows), plot, as_json)


@app.command()
def advise(
    survey: Annotated[Path, typer.Argument(metavar="survey.toml", help="The survey.")],
    error: Annotated[
        float | None,
        typer.Option(help="A standard error: 0.01 is one percentage point."),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(
            help="What errs so little at most: shares (of one attribute), pairs or tables. "
            "By default shares and pairs."
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="Of heavy hitters: who hold a value that is to be found, such as 0.01."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Instead of the survey's.")] = None,
    people: Annotated[int | None, typer.Option(help="Instead of the survey's.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which epsilon, or how many people, an error needs, or a popular value to be found.

    Errors are predicted by the planner, for the best method at each epsilon and number of people
    unless the survey names one. They are those of the worst attributes.

    Example:  sottovoce advise survey.toml --error 0.01

    Example:  sottovoce advise survey.toml --error 0.01 --of shares

    Example:  sottovoce advise words.toml --share 0.02
    """
    from sottovoce import measure
    from sottovoce.console.progress import progress
    from sottovoce.console.surveys import read_parts
    from sottovoce.measure.advice import PREDICTIONS

    asked = read_parts(survey)
    wanted = _wanted(asked.question.kind, error, share)
    with progress("predicting", PREDICTIONS, quiet) as advance:
        advice = measure.advise(
            asked.schema,
            asked.question,
            epsilon=asked.epsilon if epsilon is None else epsilon,
            people=asked.people if people is None else people,
            error=wanted,
            of=of,
            progress=advance,
        )
    if as_json:
        print_json(advice.to_json())
        return
    say(advice)


def _wanted(kind: str, error: float | None, share: float | None) -> float:
    """The error that is asked for, or of heavy hitters the share."""
    is_share = kind == "heavy-hitters"
    given, other = (share, error) if is_share else (error, share)
    if given is None or other is not None:
        option = "share" if is_share else "error"
        raise InvalidInput(
            f"advise: give --{option} for a survey whose question is {kind}, and nothing else"
        )
    return given
