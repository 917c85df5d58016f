"""The commands about frequency oracles: which there are, and how they err."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from sottovoce.cli.commands import Json, Quiet, Size, app, compare_app, listed, print_json
from sottovoce.cli.comparing import Plot, Seed, check_plot, compared, show
from sottovoce.cli.engines import EngineChoice, EngineName, Master
from sottovoce.cli.listing import listing, names_of
from sottovoce.console.reading import LOCAL_ENGINE


@app.command()
def oracles(
    size: Size,
    epsilon: Annotated[str, typer.Option(help="The privacy budget.")],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the frequency oracles for your numbers.

    The thesis's tables 3.1 and 3.2 beside what the integer coins realise, the recommended oracle
    marked.

    Example:  sottovoce oracles --size 64 --epsilon 1
    """
    from sottovoce.console.progress import progress
    from sottovoce.measure import figures, fitting

    with progress("computing", len(fitting(size)), quiet) as advance:
        rows = figures(size, epsilon, advance)
    if as_json:
        print_json([row.to_json() for row in rows])
        return
    from sottovoce.console.tables import console, figures_table

    console().print(figures_table(rows, size, epsilon))


@compare_app.command("oracles", cls=listing("oracle"))
def compare_oracles(
    size: Size,
    epsilon: Annotated[str, typer.Option(metavar="E,E", help="One or more epsilons.")],
    people: Annotated[int, typer.Option(help="In each run.")],
    runs: Annotated[int, typer.Option(help="Each with its own seed and salt.")],
    names: Annotated[
        str | None,
        typer.Option(
            "--oracles",
            metavar="a,b",
            help="Some; by default all that fit.",
            autocompletion=names_of("oracle"),
        ),
    ] = None,
    seed: Seed = 1,
    plot: Plot = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure each oracle's error on a Zipf(1.1) crowd.

    Prints it beside theory, with seconds and bytes per report.

    Example:  sottovoce compare oracles --size 64 --epsilon 0.5,1 --people 100000 --runs 10
              --oracles grr,olh --plot errors.svg
    """
    from sottovoce import measure

    check_plot(plot)
    chosen = listed(names) if names else None
    epsilons = listed(epsilon)
    compare = partial(measure.compare_oracles, size=size, people=people, runs=runs, seed=seed)
    total = runs * len(epsilons) * len(chosen or measure.fitting(size))
    rows = compared(EngineChoice(engine, master), compare, epsilons, chosen, total, quiet)
    from sottovoce.console.tables import comparison_table
    from sottovoce.measure.pictures import oracle_errors

    show(rows, lambda: comparison_table(rows), lambda: oracle_errors(rows), plot, as_json)
