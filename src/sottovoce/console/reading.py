"""Where a command hears a crowd from: Parquet, a folder of it, a store, a saved aggregate."""

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
