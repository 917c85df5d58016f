"""The command that says what shuffling makes of a local epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.commands import Json, Size, app, print_json
from sottovoce.ground.errors import InvalidInput

if TYPE_CHECKING:
    from decimal import Decimal

    from sottovoce.accounting import Amplified
    from sottovoce.oracles import Oracle


@app.command()
def amplify(
    oracle: Annotated[str, typer.Option("--oracle", metavar="NAME", help="By name.")],
    size: Size,
    people: Annotated[int, typer.Option(help="How many reports are shuffled together.")],
    delta: Annotated[float, typer.Option(help="Well below one in the number of people.")],
    local: Annotated[
        str | None, typer.Option("--local", metavar="EPSILON", help="Of one report, by itself.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON", help="Instead of --local: the largest one that keeps this promise."
        ),
    ] = None,
    cap: Annotated[
        str, typer.Option(metavar="EPSILON", help="The largest local epsilon of --target.")
    ] = "8",
    fakes: Annotated[
        int, typer.Option(metavar="N", help="Reports of nobody that the shufflers add.")
    ] = 0,
    colluding: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Of the others, who tell the analyst what they sent."),
    ] = 0.0,
    rounds: Annotated[int, typer.Option(metavar="R", help="How often the same people report.")] = 1,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Of the oracle; may be given again."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what reports promise once their senders' names are shuffled away.

    Prints epsilon against the analyst, a number below which no such promise is true, what a
    closed form of the literature claims, and epsilon if everybody else, or every shuffler, is with
    the analyst. Neighbours differ in one person's value.

    Example:  sottovoce amplify --oracle olh --size 1024 --local 4 --people 1000000 --delta 1e-9

    Example:  sottovoce amplify --oracle grr --size 16 --target 0.5 --people 1000000 --delta 1e-9
              --fakes 100000
    """
    from sottovoce.accounting import amplified
    from sottovoce.oracles import oracle_with

    if (local is None) == (target is None):
        raise InvalidInput("give --local, or --target, but not both")
    options = _options(option or [])
    if target is not None:
        found = _solved(oracle, size, options, target, delta, people, cap, fakes, colluding, rounds)
        built = oracle_with(oracle, size, found, options)
    else:
        built = oracle_with(oracle, size, local, options)
    result = amplified(built, people, delta, fakes, colluding, rounds)
    if as_json:
        print_json(
            {
                "upper": result.upper,
                "lower": result.lower,
                "thesis": result.thesis,
                "local": result.local,
                "colluding": result.colluding,
                "requested": str(built.requested),
            }
        )
        return
    typer.echo(_told(result, built, people, delta))


def _solved(
    name: str,
    size: int,
    options: dict[str, object],
    target: str,
    delta: float,
    people: int,
    cap: str,
    fakes: int,
    colluding: float,
    rounds: int,
) -> Decimal:
    from sottovoce.accounting import local_epsilon_for, oracle_mixture

    if rounds != 1:
        raise InvalidInput(f"rounds ({rounds}) must be 1 with --target")
    build = oracle_mixture(name, size, **options)
    return local_epsilon_for(build, target, delta, people, cap, fakes, colluding)


def _options(pairs: list[str]) -> dict[str, object]:
    from sottovoce.ground.arguments import plain_option

    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"option ({pair}) must be KEY=VALUE")
        found[key] = plain_option(value)
    return found


def _told(result: Amplified, oracle: Oracle, people: int, delta: float) -> str:
    given = ", ".join(f"{key} {value}" for key, value in oracle.options().items())
    head = f"{oracle.names[0]} over {oracle.size:,} values" + (f" ({given})" if given else "")
    told = f"{head}, local epsilon {oracle.requested}, {people:,} people, delta {delta:g}"
    return f"{told}\n{result}"
