"""The groups that need fresh processes: a file that streams in constant memory, and the time to
start.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.survey import batches, plan_of
from bench.timing import Timing, child, fresh
from sottovoce.protocol.report_files import write_stream

STREAM_ORACLE, STREAM_SIZE = "oue", 256
# MiB by which ten times the reports may raise the peak; all at once they would take 350 MiB
CONSTANT = 16.0
IMPORT, HELP = 0.5, 0.6


def stream(
    _: Any, __: Mapping[str, Any], few: int = 1_000_000, many: int = 10_000_000
) -> Iterator[Row]:
    """The peak of aggregating few and many reports from a file, each in its own process."""
    plan = plan_of(STREAM_ORACLE, STREAM_SIZE, 1_000_000)
    figures = {}
    with tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as folder:
        for people in (few, many):
            path = Path(folder) / f"{people}.parquet"
            write_stream(path, batches(plan, people, STREAM_SIZE))
            found = child("bench.crowd_child", "stream", STREAM_ORACLE, str(STREAM_SIZE), str(path))
            if found["people"] != people:
                raise RuntimeError(f"stream: {found['people']} reports were read of {people}")
            figures[people] = found
            path.unlink()
    for people, found in figures.items():
        note = f"{STREAM_ORACLE}, d = {STREAM_SIZE}, above imports and warm-up"
        yield Row(
            "stream", f"{people:,} reports: peak memory", "MiB", _once(found["above"]), note=note
        )
        yield Row("stream", f"{people:,} reports: time", "s", _once(found["seconds"]))
    grown = max(0.0, figures[many]["above"] - figures[few]["above"])
    yield Row(
        "stream", f"growth from {few:,} to {many:,} reports", "MiB", _once(grown), limit=CONSTANT
    )


def _once(figure: float) -> Timing:
    return Timing(figure, figure, 1)


def startup(_: Any, __: Mapping[str, Any]) -> Iterator[Row]:
    """A fresh interpreter that imports, and the command that helps."""
    command = str(Path(sys.executable).with_name("sottovoce"))
    yield Row(
        "startup",
        "import sottovoce",
        "s",
        fresh([sys.executable, "-c", "import sottovoce"]),
        limit=IMPORT,
    )
    yield Row("startup", "sottovoce --help", "s", fresh([command, "--help"]), limit=HELP)
