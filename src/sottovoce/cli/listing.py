"""Help that lists the methods a command takes, and the names that a shell completes: read off the
methods when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand


def listing(*kinds: str) -> type[TyperCommand]:
    """A command whose help ends in everything of these kinds, with the names of its options."""

    class ListingCommand(TyperCommand):
        def format_epilog(self, ctx: Any, formatter: Any) -> None:
            super().format_epilog(ctx, formatter)
            try:
                from sottovoce.console.catalogue import catalogue

                found = catalogue(kinds, with_defaults=False)
                rows = [(entry.signature, entry.about) for entry in found]
            except ImportError:  # help must not need the analysis libraries
                rows = []
            with formatter.section(f"Known ({', '.join(kinds)})"):
                formatter.write_dl(rows)
                formatter.write_text("`sottovoce methods NAME` explains one, with its options.")

    return ListingCommand


def names_of(*kinds: str) -> Callable[[str], list[str]]:
    """What completes the last of several names with commas between; of all kinds if none is named.

    >>> names_of("decoder")("nnls,la")
    ['nnls,lasso']
    """

    def complete(incomplete: str) -> list[str]:
        try:
            from sottovoce.console.catalogue import KINDS, catalogue

            found = catalogue(kinds or KINDS, with_defaults=False)
        except ImportError:
            return []
        before, comma, last = incomplete.rpartition(",")
        names = dict.fromkeys(entry.name for entry in found)
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete
