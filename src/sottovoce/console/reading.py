"""Where a command hears a crowd from: a Parquet file, a folder of them, or a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.protocol.plan import Plan


def heard(made: Plan, source: str, quiet: bool) -> Aggregate:
    """The aggregate of all reports there, read in constant memory."""
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
    with progress("listening", count_files(made, source), quiet) as advance:
        return fold_files(made, source, advance=advance)
