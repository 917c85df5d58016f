"""The commands that measure methods for popular values on real tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.commands import Json, Quiet, compare_app, listed
from sottovoce.cli.comparing import Plot, Seed, check_plot, compared, show
from sottovoce.cli.engines import EngineChoice, EngineName, Master
from sottovoce.cli.listing import listing, names_of
from sottovoce.console.reading import LOCAL_ENGINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sottovoce.measure import PopularComparison

Top = Annotated[int, typer.Option(help="How many of the most frequent.")]
Epsilons = Annotated[str, typer.Option(metavar="E,E", help="One or more epsilons.")]
People = Annotated[
    int | None,
    typer.Option(help="Sampled with replacement in each run; by default everybody answers once."),
]
Runs = Annotated[
    int, typer.Option(help="Each with its own people, if they are sampled, and its own coins.")
]


@compare_app.command("heavyhitters", cls=listing("heavy-hitters"))
def compare_heavyhitters(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Values, or values with counts; CSV or Parquet.")
    ],
    value: Annotated[str, typer.Option(metavar="COLUMN", help="The column of the values.")],
    top: Top,
    epsilon: Epsilons,
    count: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="How many people hold each; by default a row is a person."
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            "--bytes", metavar="N", help="Text is cut to N bytes of UTF-8; equal parts add up."
        ),
    ] = None,
    bits: Annotated[
        int | None, typer.Option(metavar="N", help="Instead: values are whole numbers of N bits.")
    ] = None,
    alphabet: Annotated[
        str | None, typer.Option(metavar="abc", help="The only characters of the text.")
    ] = None,
    people: People = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help="By name, with options as in pem:queries=1048576; or auto, or genie.",
            autocompletion=names_of("heavy-hitters"),
        ),
    ] = "auto",
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Values to look for, one a line, given to every method."),
    ] = None,
    runs: Runs = 5,
    seed: Seed = 1,
    plot: Plot = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure methods for heavy hitters on a table of values.

    Prints F1, the normalised cumulative rank (NCR), the mean squared error of the counts of what
    was found, and seconds; means over runs, against the true top of the people of each run. The
    method genie tests every value with everybody's reports, which nobody can: it shows what is
    possible.

    Example:  sottovoce compare heavyhitters words.parquet --value word --count count --bytes 6
              --top 32 --people
    1000000 --epsilon 1,2,4 --methods windows,pem,genie --runs 5

    Example:  sottovoce compare heavyhitters addresses.csv --value ip --bits 32 --top 16 --epsilon 2
    """
    from sottovoce import measure
    from sottovoce.cli.answers import read_lines

    check_plot(plot)
    held = measure.read_holdings(table, value, count, bytes=size, bits=bits, alphabet=alphabet)
    words = None if candidates is None else read_lines(candidates)
    epsilons, names = listed(epsilon), listed(methods)
    options: dict[str, Any] = {"runs": runs, "seed": seed, "people": people, "candidates": words}
    compare = partial(measure.compare_heavyhitters, held, top, **options)
    total = runs * len(epsilons) * len(names)
    rows = compared(EngineChoice(engine, master), compare, epsilons, names, total, quiet)
    _show(rows, "values", plot, as_json)


@compare_app.command("itemsets", cls=listing("top-items", "top-itemsets"))
def compare_itemsets(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A set for each person; CSV or Parquet.")
    ],
    column: Annotated[
        str, typer.Option(metavar="COLUMN", help="Lists of items; of a CSV with ; between them.")
    ],
    top: Top,
    epsilon: Epsilons,
    methods: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help="By name, with options as in psfo:length=4; or auto.",
            autocompletion=names_of("top-items", "top-itemsets"),
        ),
    ] = "auto",
    of_sets: Annotated[
        bool, typer.Option("--sets", help="Sets of items, of any size, instead of single items.")
    ] = False,
    people: People = None,
    runs: Runs = 5,
    seed: Seed = 1,
    plot: Plot = None,
    engine: EngineName = LOCAL_ENGINE,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure methods for popular items, or sets of items, on a table of baskets.

    Prints the normalised cumulative rank (NCR), the mean squared error of the counts of what was
    found, and seconds; means over runs, against the true top of the people of each run, which is
    mined exactly.

    Example:  sottovoce compare itemsets baskets.parquet --column items --top 64 --epsilon 1,2
              --methods svim,ldpminer

    Example:  sottovoce compare itemsets baskets.csv --column basket --sets --top 32 --epsilon 2
              --methods svsm
    """
    from sottovoce import measure

    check_plot(plot)
    held = measure.read_baskets(table, column)
    epsilons, names = listed(epsilon), listed(methods)
    options: dict[str, Any] = {"runs": runs, "seed": seed, "people": people, "of_sets": of_sets}
    compare = partial(measure.compare_itemsets, held, top, **options)
    total = runs * len(epsilons) * len(names)
    rows = compared(EngineChoice(engine, master), compare, epsilons, names, total, quiet)
    _show(rows, "itemsets" if of_sets else "items", plot, as_json)


def _show(rows: Sequence[PopularComparison], what: str, plot: Path | None, as_json: bool) -> None:
    from sottovoce.cli.finding import popular_table
    from sottovoce.measure.pictures import popular_scores

    show(rows, lambda: popular_table(rows, what), lambda: popular_scores(rows, what), plot, as_json)
