"""``sottovoce check-oracle``: the laws of an oracle, of this package or of one's own."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from sottovoce.cli.commands import AUDIT_FAILED, Json, Quiet, app, print_json
from sottovoce.console.screen import say


@app.command("check-oracle")
def check_oracle(
    target: Annotated[
        str,
        typer.Argument(
            metavar="module:Class", help="The class, or the name of an oracle that is installed."
        ),
    ],
    size: Annotated[int, typer.Option("--size", help="How many values there are.")] = 5,
    epsilon: Annotated[str, typer.Option(help="The privacy budget of a report.")] = "1",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check every law that an oracle obeys, from a package of your own too.

    Every way that its coins can fall is gone: epsilon, p and q, unbiasedness and the variance of
    the formula are compared exactly. Then reports are packed and unpacked, states are added up in
    any order, with weights, and devices are compared with simulation. Where reports are too many
    to list they are sampled; choose a small size. The exit code is 1 if a law is broken.

    A module is looked for in this folder, too.

    Example:  sottovoce check-oracle mypackage:MyOracle --size 5 --epsilon 1
    """
    from sottovoce.audit import contract
    from sottovoce.console.progress import progress
    from sottovoce.oracles import built_of, find

    sys.path.insert(0, os.getcwd())
    kind = contract.oracle_class(target) if ":" in target else find(target)
    oracle = built_of(kind, size, epsilon)
    with progress(f"checking {kind.names[0]}", None, quiet) as advance:
        found = contract.check_oracle(oracle, advance)
    if as_json:
        print_json(found.to_json())
    else:
        say(found)
    if not found.passed:
        raise typer.Exit(AUDIT_FAILED)
