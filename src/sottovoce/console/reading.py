"""Where a command hears a crowd from: files of reports, a store, what was shipped, a total."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sottovoce.ground.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.engine import TaskEngine
    from sottovoce.protocol.plan import Plan

LOCAL_ENGINE = "local"


def heard(
    made: Plan, source: str, quiet: bool, engine: str = LOCAL_ENGINE, master: str | None = None
) -> Aggregate:
    """The aggregate of all reports there, read in constant memory."""
    return heard_all(made, [source], quiet, engine, master)


def heard_all(
    made: Plan, sources: Sequence[str], quiet: bool, engine: str, master: str | None = None
) -> Aggregate:
    """The aggregate of all reports in some places."""
    from sottovoce.engine import open_engine

    for place, source in enumerate(sources):
        if source in sources[:place]:
            raise InvalidInput(f"reports ({source}) must be given once, or they count twice")
        if engine != LOCAL_ENGINE and not _is_files(source):
            raise InvalidInput(
                f"engine ({engine}) folds files of reports, and ({source}) is a store or a total: "
                "`sottovoce export` writes files, and the engine local adds up totals"
            )
    with open_engine(engine, master) as workers:
        total = _heard(made, sources[0], quiet, workers)
        for source in sources[1:]:
            total.absorb(_heard(made, source, quiet, workers))
    return total


def _heard(made: Plan, source: str, quiet: bool, engine: TaskEngine) -> Aggregate:
    from sottovoce.aggregation.file_fold import count_files
    from sottovoce.aggregation.totals import is_total, read_total
    from sottovoce.console.progress import progress
    from sottovoce.store.urls import is_store

    if is_store(source):
        return _stored(made, source)
    if is_total(source):
        return read_total(made, source)
    if _is_of_totals(source):
        return _collected(made, source, quiet)
    count = count_files(made, source) if engine.name == LOCAL_ENGINE else None
    with progress("listening", count, quiet) as advance:
        return engine.fold(made, source, advance)


def _is_files(source: str) -> bool:
    """Whether it is a file or a folder of reports, by path or by URL."""
    from sottovoce.aggregation.totals import is_total
    from sottovoce.store.urls import is_store

    return not is_store(source) and not is_total(source) and not _is_of_totals(source)


def _is_of_totals(source: str) -> bool:
    """Whether it is where `sottovoce ship` wrote to: a place that has folders of plans."""
    from sottovoce.shipping.places import Place

    if "://" not in source:
        return any(Path(source).glob("plan=*"))
    return any(name.startswith("plan=") for name in Place.at(source).folders())


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


def _stored(made: Plan, source: str) -> Aggregate:
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
