"""What folding by the minute costs: reading with ids, each id once, adding up, writing totals."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import sottovoce as sv
from bench.folding import FoldCase, FoldShape, case_of
from bench.rows import Row
from bench.timing import Timing
from sottovoce.protocol.reports import STREAM_BATCH
from sottovoce.shipping.layout import plan_folder
from sottovoce.shipping.minutes import fold_minutes
from sottovoce.shipping.places import Place
from sottovoce.shipping.ship import segments_of
from sottovoce.shipping.totals import collected
from sottovoce.store.base import Ids, Stretch

FIRST_MINUTE = 0x0199_0000
CASES = ("olh", "signs", "views", "windows")
CPU_LIMIT = 450.0  # ns a report
SENT_AGAIN = 100  # one report in so many


@dataclass(frozen=True)
class MinuteShape:
    """How much is folded: by default 10^7 reports, a minute's as many as of 10^9 a day."""

    minutes: int = 15
    reports: int = 694_444  # of a minute
    collectors: int = 10
    cases: tuple[str, ...] = CASES


def minutes(_: Any, __: Mapping[str, Any], shape: MinuteShape = MinuteShape()) -> Iterator[Row]:
    """Every case, once: all of its minutes are new."""
    for name in shape.cases:
        case = case_of(name, FoldShape())
        with tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as folder:
            place = Place.at(folder)
            _fill(place, case, shape)
            start = time.process_time()
            fold_minutes(case.plan, place, time.time(), forget_days=None)
            seconds = time.process_time() - start
            found = collected(case.plan, place)
        people = shape.minutes * shape.reports
        if found.people != people:
            raise RuntimeError(f"minutes: {found.people} people were counted, not {people}")
        each = Timing.of([1e9 * seconds / (people + found.duplicates)])
        note = f"CPU a report, {people:,} and {found.duplicates:,} copies, {shape.minutes} minutes"
        what = f"{case.what}: each id once, folded by the minute"
        yield Row("minutes", what, "ns", each, limit=CPU_LIMIT, note=note)


def _fill(place: Place, case: FoldCase, shape: MinuteShape) -> None:
    """Segments as collectors ship them; some reports were sent to the next collector again."""
    draws = np.random.default_rng(1)
    some = sv.simulate(case.plan, case.table(draws, STREAM_BATCH), seed=1)
    for minute in range(FIRST_MINUTE, FIRST_MINUTE + shape.minutes):
        before: tuple[Ids, sv.Reports] | None = None
        each = -(-shape.reports // shape.collectors)
        for collector in range(shape.collectors):
            count = min(each, shape.reports - collector * each)
            ids = draws.integers(0, 256, (count, 16), dtype=np.uint8)
            ids[:, :6] = np.frombuffer((minute << 16).to_bytes(6, "big"), np.uint8)
            reports = some[draws.integers(0, len(some), count)]
            if before is None:
                sent, told = ids, reports
            else:
                again = slice(0, len(before[0]), SENT_AGAIN)
                sent = np.concatenate([ids, before[0][again]])
                told = sv.Reports.concat([reports, before[1][again]])
            before = ids, reports
            for segment, data in segments_of(
                Stretch(len(sent), sent, told, 0), f"{collector:032x}", 1
            ):
                place.put(f"{plan_folder(case.plan.id)}/{segment.name}", data)
