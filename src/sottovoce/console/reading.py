"""Where a command hears a crowd from: files of reports, a store, what was shipped, a total."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import typer

from sottovoce.ground.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.engine import TaskEngine
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.reports import Reports
    from sottovoce.protocol.texts import Texts

LOCAL_ENGINE = "local"


def heard(made: Plan, source: str, quiet: bool, engine: TaskEngine | None = None) -> Aggregate:
    """The aggregate of all reports there, read in constant memory; to be asked and estimated, as
    long as its engine is open.
    """
    from sottovoce.engine import LocalEngine

    workers = LocalEngine() if engine is None else engine
    check_sources([source], workers.name)
    return _heard(made, source, quiet, workers, workers.asked)


def heard_all(made: Plan, sources: Sequence[str], quiet: bool, engine: TaskEngine) -> Aggregate:
    """The aggregate of all reports in some places, with all that it holds."""
    total = _heard(made, sources[0], quiet, engine, engine.fold)
    for source in sources[1:]:
        total.absorb(_heard(made, source, quiet, engine, engine.fold))
    return total


def check_sources(sources: Sequence[str], engine: str) -> None:
    """Refuse places that would count twice, or that an engine of this name cannot fold."""
    from sottovoce.protocol.report_places import place_of, shown

    before: dict[str, str] = {}  # by which source a file was given
    for source in sources:
        place_of(source)  # refuses what is no URL
        _check_source(source, engine)
        for place in _places(source, alone=len(sources) == 1):
            settled = _settled(str(place))
            if settled in before:
                first = shown(before[settled])
                within = "" if shown(place) == shown(source) == first else f", by {first}"
                raise InvalidInput(
                    f"reports ({shown(place)}) must be given once{within}, or they count twice"
                )
            before[settled] = source


def _places(source: str, alone: bool) -> Sequence[Any]:
    """The files of a source of reports; whatever else it is, itself."""
    from sottovoce.protocol.report_files import report_paths

    if (alone and "://" in source) or not _is_files(source):
        return [source]
    return report_paths(source, None)


def _settled(source: str) -> str:
    """A source however its path is written, through links; of a URL what names the file."""
    from sottovoce.protocol.report_places import shown
    from sottovoce.store.urls import SqliteAddress

    if source.startswith("sqlite://"):
        return str(SqliteAddress.parse(source).path.resolve())
    parts = urlsplit(source) if source.startswith("file://") else None
    if parts is None and "://" in source:
        servers = parse_qs(urlsplit(source).query).get("endpoint_override", [])
        return "@".join([unquote(shown(source)), *servers])
    return str(Path(source if parts is None else unquote(parts.path)).resolve())


def _check_source(source: str, engine: str) -> None:
    from sottovoce.protocol.report_places import shown

    if engine != LOCAL_ENGINE and not _is_files(source):
        raise InvalidInput(
            f"engine ({engine}) folds files of reports, and ({shown(source)}) is a store or a "
            "total: `sottovoce export` writes files, and the engine local adds up totals"
        )


def _heard(
    made: Plan, source: str, quiet: bool, engine: TaskEngine, fold: Callable[..., Aggregate]
) -> Aggregate:
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
        return fold(made, source, advance)


def _is_files(source: str) -> bool:
    """Whether it is a file or a folder of reports, by path or by URL."""
    from sottovoce.aggregation.totals import is_total
    from sottovoce.store.urls import is_store

    return not is_store(source) and not is_total(source) and not _is_of_totals(source)


def stored_texts(plan: Plan, source: str) -> Texts:
    """What a survey says to people, if its reports are in a store."""
    from sottovoce.protocol.texts import NO_TEXTS
    from sottovoce.store.urls import is_store

    if not is_store(source):
        return NO_TEXTS
    from sottovoce.store import open_store

    with open_store(source, create=False) as store:
        return store.entry(plan.id).texts


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
    from sottovoce.aggregation.totals import is_total
    from sottovoce.store.urls import is_store

    if is_total(source):
        raise InvalidInput(f"reports ({source}): a total no longer knows who is who")
    if is_store(source):
        return stored_reports(made, source, quiet)[1]
    return file_reports(made, source, quiet)
