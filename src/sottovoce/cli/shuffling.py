"""The command that says what shuffling makes of a local epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.commands import Json, Size, app, listed, print_json
from sottovoce.ground.errors import InvalidInput

if TYPE_CHECKING:
    from decimal import Decimal

    from sottovoce.accounting import Amplified
    from sottovoce.oracles import Oracle


@app.command()
def amplify(
    size: Size,
    people: Annotated[int, typer.Option(help="How many reports are shuffled together.")],
    delta: Annotated[float, typer.Option(help="Well below one in the number of people.")],
    oracle: Annotated[str | None, typer.Option("--oracle", metavar="NAME", help="By name.")] = None,
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
    targets: Annotated[
        str | None,
        typer.Option(
            metavar="A,C,L",
            help="Instead of --oracle: the oracle, local epsilon and fakes of least error that "
            "keep three epsilons, against the analyst, with everybody else, with all shufflers.",
        ),
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

    Example:  sottovoce amplify --targets 0.5,2,8 --size 1024 --people 1000000 --delta 1e-9
    """
    if targets is not None:
        if any(given is not None for given in (oracle, local, target, option)) or fakes:
            raise InvalidInput("targets finds oracle, local and fakes: give none of them")
        if colluding or rounds != 1:
            raise InvalidInput("targets is for one round, and says itself who colludes")
        _search(targets, size, people, delta, as_json=as_json)
        return
    if oracle is None:
        raise InvalidInput("give --oracle, or --targets")
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
    _note_delta(delta, people)
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


def _search(targets: str, size: int, people: int, delta: float, *, as_json: bool) -> None:
    """Find what keeps three promises, and print it."""
    from sottovoce.api.shuffled_targets import search_targets

    wanted = listed(targets)
    if len(wanted) != 3:
        raise InvalidInput(f"targets ({targets}) must be three epsilons, such as 0.5,2,8")
    found = search_targets(*wanted, people=people, size=size, delta=delta)
    built = found.oracle
    _note_delta(delta, people)
    if as_json:
        print_json(
            {
                "oracle": built.names[0],
                "options": built.options(),
                "fakes": found.fakes,
                "analyst": found.analyst,
                "colluding": found.colluding,
                "local": found.local,
                "mse": found.mse,
            }
        )
        return
    options = "".join(f", {key} {value}" for key, value in built.options().items())
    typer.echo(
        f"{built.names[0]} over {built.size:,} values{options}, local epsilon {built.requested}, "
        f"{found.fakes:,} fakes, {people:,} people, delta {delta:g}\n"
        f"Against the analyst:                     epsilon {found.analyst:.4g}\n"
        f"Against the analyst with everybody else: epsilon {found.colluding:.4g}\n"
        f"Against the analyst with all shufflers:  epsilon {found.local:.4g}\n"
        f"Mean squared error of a frequency:       {found.mse:.3g}"
    )


def _note_delta(delta: float, people: int) -> None:
    """Say so if delta allows to show somebody's whole report."""
    if delta * people > 1:
        typer.echo(
            f"note: delta ({delta:g}) is above one in the number of people: showing a whole report "
            "at random would satisfy it; choose it well below",
            err=True,
        )


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
