"""Where a command hears a crowd from: Parquet, a folder of it, a store, totals, an aggregate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sottovoce.ground.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.reports import Reports

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


def file_reports(made: Plan, source: str, quiet: bool) -> Reports:
    """All reports of a file or a folder."""
    from sottovoce.console.progress import progress
    from sottovoce.protocol.report_files import stream
    from sottovoce.protocol.reports import Reports
    from sottovoce.sending.people import row_count

    parts: list[Reports] = []
    with progress("listening", lambda: row_count(Path(source)), quiet) as advance:
        for batch in stream(source, plan_id=made.id):
            parts.append(batch.checked(made))
            advance(sum(map(len, parts)))
    return Reports.concat(parts)


def stored_reports(made: Plan, source: str, quiet: bool) -> tuple[Any, Reports]:
    """(the ids, the reports) of a store."""
    import numpy as np

    from sottovoce.console.progress import progress
    from sottovoce.protocol.report_files import REPORT_ID_BYTES
    from sottovoce.protocol.reports import Reports
    from sottovoce.store import open_store

    parts: list[Reports] = [Reports.empty(made)]
    ids = [np.zeros((0, REPORT_ID_BYTES), np.uint8)]
    store = open_store(source, create=False)
    try:
        kept = store.entry(made.id).plan
        with progress("listening", store.count(kept), quiet) as advance:
            for _, names, batch in store.read(kept):
                parts.append(batch)
                ids.append(names)
                advance(sum(map(len, parts)))
    finally:
        store.close()
    return np.concatenate(ids), Reports.concat(parts)


def all_reports(made: Plan, source: str, quiet: bool) -> Reports:
    """All reports of a file, a folder or a store, row by row."""
    if source.endswith(SAVED):
        raise InvalidInput(f"reports ({source}): a saved aggregate no longer knows who is who")
    if "://" in source:
        return stored_reports(made, source, quiet)[1]
    return file_reports(made, source, quiet)
