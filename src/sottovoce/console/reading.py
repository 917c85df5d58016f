"""Where a command hears a crowd from: Parquet, a folder of it, a store, totals, an aggregate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.protocol.plan import Plan

SAVED = ".sva"  # how the name of a saved aggregate ends: Aggregate.to_bytes in a file


def heard(made: Plan, source: str, quiet: bool) -> Aggregate:
    """The aggregate of all reports there, read in constant memory; or one that was saved."""
    from sottovoce.aggregation.file_fold import count_files, fold_files
    from sottovoce.console.progress import progress

    if _is_of_totals(source):
        return _collected(made, source, quiet)
    if "://" in source:
        from sottovoce.store import open_store

        store = open_store(source, create=False)
        try:
            total = store.aggregate(store.entry(made.id).plan)
            missing = store.kept(made).missing
            if missing:
                typer.echo(
                    f"Note: {missing:,} damaged reports are left out; see `sottovoce rebuild`",
                    err=True,
                )
            return total
        finally:
            store.close()
    if source.endswith(SAVED):
        from sottovoce.aggregation.aggregate import Aggregate

        return Aggregate.from_bytes(made, Path(source).read_bytes())
    with progress("listening", count_files(made, source), quiet) as advance:
        return fold_files(made, source, advance=advance)


def _is_of_totals(source: str) -> bool:
    """Whether it is where `sottovoce ship` wrote to: a folder of plans, or a URL of no store."""
    from sottovoce.store import is_store

    return any(Path(source).glob("plan=*")) if "://" not in source else not is_store(source)


def _collected(made: Plan, source: str, quiet: bool) -> Aggregate:
    """The sum of what was folded there, and a note of what was set aside."""
    from sottovoce.console.progress import progress
    from sottovoce.shipping.places import Place
    from sottovoce.shipping.totals import collected

    with progress("adding up days", None, quiet) as advance:
        found = collected(made, Place.at(source), advance)
    if found.damaged or found.late:
        typer.echo(
            f"Note: segments were set aside and are left out: {found.damaged:,} damaged ones, "
            f"{found.late:,} that came too late",
            err=True,
        )
    return found.aggregate
