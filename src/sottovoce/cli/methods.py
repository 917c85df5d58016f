"""The command that lists what there is: oracles, methods, decoders, post-processing, questions."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.commands import Json, app, print_json
from sottovoce.cli.listing import names_of
from sottovoce.console.screen import say
from sottovoce.ground.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.console.catalogue import CatalogueEntry

NARROWEST_TEXT, WIDEST_TEXT = 40, 100  # columns of text


@app.command()
def methods(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND or NAME]...",
            help="Some; by default all, by kind.",
            autocompletion=names_of(),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List every oracle, method, decoder, post-processing and question, with its options.

    With one line for each, its source, its options and their defaults; `chosen` are those that
    follow from the numbers of a survey. What other packages bring is there too, with their names.
    Options are given as `theta = 0.01` in a survey and as `theta=0.01` in Python; those of methods
    as `calm:theta=0.01` in comparisons.

    Example:  sottovoce methods

    Example:  sottovoce methods marginals post-processing

    Example:  sottovoce methods calm --json
    """
    from sottovoce.console.catalogue import KINDS, catalogue

    wanted = names or list(KINDS)
    kinds = [kind for kind in KINDS if kind in wanted]
    found = catalogue(KINDS if set(wanted) - set(KINDS) else kinds)
    chosen = [entry for entry in found if {entry.kind, entry.name, *entry.aliases} & set(wanted)]
    for name in wanted:
        if not any(name in (entry.kind, entry.name, *entry.aliases) for entry in chosen):
            raise InvalidInput(
                f"name ({name}) must be that of an oracle, a method, a decoder, a post-processing "
                f"or a question, or one of {', '.join(KINDS)}"
            )
    if as_json:
        print_json([entry.to_json() for entry in chosen])
        return
    say("\n".join(_lines(chosen)))


def _lines(entries: Sequence[CatalogueEntry]) -> list[str]:
    """Lines by kind, as wide as the terminal."""
    width = max(NARROWEST_TEXT, min(WIDEST_TEXT, shutil.get_terminal_size().columns))
    lines: list[str] = []
    for kind in dict.fromkeys(entry.kind for entry in entries):
        lines += ["", kind] if lines else [kind]
        for entry in entries:
            if entry.kind == kind:
                lines += _entry_lines(entry, width)
    return lines


def _entry_lines(entry: CatalogueEntry, width: int) -> list[str]:
    also = f" ({', '.join(entry.aliases)})" if entry.aliases else ""
    brought = f"of the package {entry.package}" if entry.package else ""
    about = "; ".join(part for part in (entry.about, entry.source, brought) if part)
    lines = _wrapped(f"{entry.name}{also}: {about}", width, 2)
    for option in entry.options:
        default = f" [{option.default}]" if option.default is not None else ""
        lines += _wrapped(f"{option.name}{default}: {option.about}", width, 6)
    return lines


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    first, rest = " " * indent, " " * (indent + 4)
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
