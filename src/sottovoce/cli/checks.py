"""``sottovoce check-oracle``, ``check-method`` and ``check-question``: the laws of what is
sottovoce's own or brought by another package.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.commands import AUDIT_FAILED, Json, Quiet, app, print_json
from sottovoce.cli.listing import listing
from sottovoce.console.screen import say

if TYPE_CHECKING:
    from sottovoce.audit import PartCheck
    from sottovoce.audit.contract import ContractCheck


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
    _say(found, as_json)


@app.command("check-method", cls=listing("marginals"))
def check_method(
    name: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            help="A method for marginals that is installed, with options as in star:centre=1.",
        ),
    ],
    epsilon: Annotated[str, typer.Option(help="The privacy budget of a report.")] = "1",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check every law that a method for marginals obeys, from a package of your own too.

    On a small survey: the plan is written and read back, reports are enumerated, tables are whole,
    and those that are said to be unbiased are right on average and err as they say, over many
    simulated runs of one crowd. The exit code is 1 if a law is broken.

    Example:  sottovoce check-method calm

    Example:  sottovoce check-method star:centre=1 --epsilon 2
    """
    from sottovoce.audit import check_method as check
    from sottovoce.console.progress import progress
    from sottovoce.measure.choices import MethodChoice

    choice = MethodChoice.parse(name)
    with progress(f"checking {choice.method}", None, quiet) as advance:
        found = check(choice.method, epsilon, choice.options, advance)
    _say(found, as_json)


@app.command("check-question")
def check_question(
    survey: Annotated[
        Path, typer.Argument(metavar="survey.toml", help="A small survey that asks it.")
    ],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check every law that a question obeys, from a package of your own too.

    On people who are made up for the survey: the plan is written and read back, reports are
    enumerated, answers are tables, and those that are said to be unbiased are on average the same
    at a larger epsilon, and err as they say. The exit code is 1 if a law is broken.

    Example:  sottovoce check-question survey.toml
    """
    from sottovoce.audit import check_question as check
    from sottovoce.console.progress import progress
    from sottovoce.console.surveys import read_parts

    asked = read_parts(survey)
    with progress(f"checking {asked.question.kind}", None, quiet) as advance:
        found = check(asked, advance)
    _say(found, as_json)


def _say(found: ContractCheck | PartCheck, as_json: bool) -> None:
    if as_json:
        print_json(found.to_json())
    else:
        say(found)
    if not found.passed:
        raise typer.Exit(AUDIT_FAILED)
