"""Help that lists the methods a command takes, read off the methods when somebody asks for help."""

from __future__ import annotations

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
