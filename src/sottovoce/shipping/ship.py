"""From a store to a place: what came since the last time, as files that are never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_files import open_writer
from sottovoce.protocol.reports import Reports
from sottovoce.shipping.layout import CLOSED, PLAN_FILE, Segment, plan_folder
from sottovoce.shipping.places import Place
from sottovoce.store import Entry, Store
from sottovoce.store.base import Ids, Stretch
from sottovoce.store.exports import table_of
from sottovoce.store.id_index import minutes_of
from sottovoce.store.shipped import Shipment, identity, note_shipment, shipment

SHIPMENT_REPORTS = 1 << 18  # reports that are read, and named, together
NOTHING = Shipment(0, 0, 0)
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Shipped:
    """What one pass did."""

    reports: int
    files: int
    damaged: int  # reports whose checksum did not hold: they stay behind
    closed: int  # surveys that were closed here because they are closed there


def ship(
    store: Store,
    place: Place,
    plans: Sequence[Plan] | None = None,
    progress: Progress | None = None,
    *,
    again: bool = False,
) -> Shipped:
    """Write all reports that came since the last time into files at ``place``.

    What is under way is noted in the store before it leaves, and that it arrived afterwards. So a
    pass that was killed is repeated by the next one: the same files, with the same bytes.
    A survey that is closed here or there is closed in both. Shuffled plans are passed over: each
    has one batch, in one store, whose ids tell no minute.

    Args:
        store: whose reports they are.
        place: where the files go; several stores may share it.
        plans: which surveys; by default all.
        progress: gets how many reports were shipped so far.
        again: ship all that the store holds, as if it never had.
    """
    asked = None if plans is None else {plan.id for plan in plans}
    entries = [
        entry
        for entry in store.entries()
        if entry.plan.shuffling is None and (asked is None or entry.plan.id in asked)
    ]
    reports = files = damaged = closed = 0
    for entry in entries:
        closed += _share_survey(store, place, entry)
        if store.kept(entry.plan).only_sums:
            continue
        if again:
            note_shipment(store, entry.plan.id, place.key, NOTHING)
        for stretch, written in _shipped(store, place, entry.plan):
            reports, files = reports + len(stretch.ids), files + written
            damaged += stretch.damaged
            if progress is not None:
                progress(reports)
    return Shipped(reports, files, damaged, closed)


def _share_survey(store: Store, place: Place, entry: Entry) -> bool:
    """Put a plan there, and see that it is open or closed in both; whether it is closed here now.

    The mark is put before its store's last reports, and read before the next ones: a collector that
    shares the place takes reports until its own next pass.
    """
    folder = plan_folder(entry.plan.id)
    if not place.has(f"{folder}/{PLAN_FILE}"):
        place.put(f"{folder}/{PLAN_FILE}", entry.plan.to_json().encode())
    is_closed = place.has(f"{folder}/{CLOSED}")
    if entry.closed and not is_closed:
        place.put(f"{folder}/{CLOSED}", b"")
    if is_closed and not entry.closed:
        store.close_survey(entry.plan.id)
        return True
    return False


def _shipped(store: Store, place: Place, plan: Plan) -> Iterator[tuple[Stretch, int]]:
    """(reports, files) that arrived, one stretch after another."""
    own = identity(store)
    known = shipment(store, plan.id, place.key) or NOTHING
    while True:
        stretch = None
        if known.rows:  # it was under way when somebody was killed
            found = next(store.scan(plan, known.after, known.rows), None)
            if found is not None and found.last == known.until:
                stretch = found
        if stretch is None:
            after = known.after if known.rows else known.until
            stretch = next(store.scan(plan, after, SHIPMENT_REPORTS), None)
            if stretch is None:
                return
            rows = len(stretch.ids) + stretch.damaged
            known = Shipment(after, stretch.last, rows)
            note_shipment(store, plan.id, place.key, known)
        files = 0
        for segment, data in segments_of(stretch, own, known.after + 1):
            place.put(f"{plan_folder(plan.id)}/{segment.name}", data)
            files += 1
        known = Shipment(known.until, known.until, 0)
        note_shipment(store, plan.id, place.key, known)
        yield stretch, files


def segments_of(stretch: Stretch, store: str, first: int) -> Iterator[tuple[Segment, bytes]]:
    """Reports in files, one for each minute that their ids tell."""
    minutes = minutes_of(stretch.ids)
    order = np.argsort(minutes, kind="stable")
    cuts = np.flatnonzero(np.diff(minutes[order])) + 1
    for start, stop in pairwise([0, *cuts.tolist(), len(order)] if len(order) else []):
        rows = order[start:stop]
        data = _file_of(stretch.ids[rows], stretch.reports[rows])
        yield Segment.new(int(minutes[rows[0]]), store, first, stretch.last, data), data


def _file_of(ids: Ids, reports: Reports) -> bytes:
    """A Parquet file as `sottovoce export` writes it, in memory: the same bytes for the same."""
    pa = imported("pyarrow")

    table = table_of(ids, reports)
    sink = pa.BufferOutputStream()
    with open_writer(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
