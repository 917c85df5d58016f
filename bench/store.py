"""How fast the store itself is, without HTTP: ``python -m bench.store [rows]``."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.rows import Row, table
from bench.survey import plan_of, zipf
from bench.timing import Timing, measure
from sottovoce.device.simulation import simulate
from sottovoce.protocol.plan import Plan
from sottovoce.store import Store, open_store

PART = 1000  # reports of one request
WINDOW, WINDOWS = 100, 10  # requests of one measurement, and measurements
GROUP = 16  # single reports that wait for one commit
QUICK = 90_000  # reports per second, so that a whole collector can take 60,000
SINGLES = 4000
AT_ONCE = 1.0  # seconds


def new_ids(count: int, draws: np.random.Generator) -> NDArray[np.uint8]:
    """Ids as devices choose them now: the minute, and ten random bytes."""
    ids = draws.integers(0, 256, (count, 16), dtype=np.uint8)
    minute = int(time.time() * 1000) >> 16 << 16
    ids[:, :6] = np.frombuffer(minute.to_bytes(6, "big"), np.uint8)
    return ids


class Filler:
    """Sends a plan's reports to a store, over and over under new ids."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store, self._plan = store, plan
        self._reports = simulate(plan, {"x": zipf(GROUP * PART, 256)}, seed=1)
        self._draws = np.random.default_rng(1)
        store.add_plan(plan)

    def fill(self, rows: int, part: int, group: int) -> float:
        """Store ``rows`` reports in parts, some parts in each commit; reports per second."""
        start = time.perf_counter()
        for _ in range(rows // (part * group)):
            ids = new_ids(part * group, self._draws)
            parts = [(self._plan, ids[cut], self._reports[cut]) for cut in _cuts(part, group)]
            for outcome in self._store.append_many(parts):
                if isinstance(outcome, Exception) or outcome.any():
                    raise RuntimeError("store: a report was not stored")
        return rows / (time.perf_counter() - start)

    def rates(self, part: int = PART, group: int = 1) -> Timing:
        """Reports per second in several windows; the best, as other load only ever takes away."""
        rates = [self.fill(WINDOW * part * group, part, group) for _ in range(WINDOWS)]
        return Timing(max(rates), median(rates), WINDOWS)


def _cuts(part: int, group: int) -> list[slice]:
    return [slice(start * part, (start + 1) * part) for start in range(group)]


def store(_: Any, __: Mapping[str, Any], rows: int = 5_000_000) -> Iterator[Row]:
    """SQLite at the start and after many rows; then what it takes to add them up."""
    plan = plan_of("olh", 256, 1_000_000)
    with tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as folder:
        url = f"sqlite:///{folder}/survey.db"
        with open_store(url) as opened:
            yield from _appending(Filler(opened, plan), rows)
            opened.rebuild(plan)
            yield from _reading(opened, plan)
        yield _reopened(url, plan)


def _appending(filler: Filler, rows: int) -> Iterator[Row]:
    first = filler.rates()
    yield Row("store", f"parts of {PART:,}, one a commit", "per s", first, least=QUICK)
    yield Row(
        "store", f"single reports, {GROUP} a commit", "per s", filler.rates(1, GROUP), least=SINGLES
    )
    filler.fill(rows, PART, GROUP)
    last = filler.rates()
    yield Row("store", f"parts of {PART:,}, after {rows:,} rows", "per s", last, least=QUICK)
    ratio = Timing(last.best / first.best, last.median / first.median, WINDOWS)
    note = (
        "no target: several times faster than any collector, all rows are of one minute; see the "
        "collector's ratio"
    )
    yield Row("store", "rate then, of that at the start", "times", ratio, note=note)


def _reading(opened: Store, plan: Plan) -> Iterator[Row]:
    rows = opened.count(plan)
    timing = measure(lambda: sum(len(reports) for _, _, reports in opened.read(plan)), 3)
    yield Row("store", f"read {rows:,} rows", "s", timing, limit=rows / 1e6)
    yield Row("store", f"rebuild from {rows:,} rows", "s", measure(lambda: opened.rebuild(plan), 3))


def _reopened(url: str, plan: Plan) -> Row:
    def ask() -> Any:
        with open_store(url) as opened:
            return opened.aggregate(plan).estimate()

    return Row("store", "open, load the checkpoint, estimate", "s", measure(ask, 3), limit=AT_ONCE)


def main(arguments: list[str]) -> int:
    """Print what was measured; 1 if a target is missed."""
    from rich.console import Console

    rows = list(store(None, {}, *map(int, arguments[:1])))
    Console(width=150).print(table(rows))
    return int(any(row.passed is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
