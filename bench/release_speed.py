"""How long a trusted curator waits for a release, and how much memory it takes.

``python -m bench.release_speed CASE ROWS [FOLDER]`` is one case in a process of its own; FOLDER has
the public tables that it is made from.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

import sottovoce as sv
from bench.data import VARIABLE
from bench.releases import CENSUS, NOTHING, WEIGHT
from bench.resident import peak
from bench.rows import Row
from bench.timing import Timing, child, measure
from sottovoce.ground.entropy import System
from sottovoce.ground.extras import imported
from sottovoce.ground.noise import discrete_gaussian

CLICKS = "kosarak_prefix70k"
CLICK_SECONDS = 60.0
CENSUS_SECONDS, CENSUS_MIB = 60.0, 4096.0
STREAM_MIB = 1024.0  # whatever the number of rows
STREAM_SIZES = (2, 2, 3, 3, 4, 4, 5, 6)  # values of each attribute
STREAM_PART = 5_000_000  # rows of a file
EPSILON = 1
SEED = 1
NOISE_VARIANCE = Fraction(400)
DRAW_SECONDS = 2e-6
TIMEOUT = 1800.0


@dataclass(frozen=True)
class Shape:
    """How large the cases are; the targets hold for the defaults."""

    clicks: int = 990_000  # sets, as many as Kosarak has
    census: int = 199_523  # people, all of them
    stream: int = 100_000_000  # rows
    draws: int = 1 << 20  # of noise


@dataclass(frozen=True)
class Case:
    """A table, and what is released of it."""

    up_to: int
    method: str
    delta: str  # below one in the number of users
    options: Mapping[str, Any]


CASES = {
    "clicks": Case(2, "dp-marginals", "1e-6", {"items": "items"}),
    "census": Case(3, "dp-marginals", "1e-6", {}),
    "stream": Case(2, "residual", "1e-9", {}),
}


def releases(
    _: Any, __: Mapping[str, Any], shape: Shape = Shape(), folder: str | None = None
) -> Iterator[Row]:
    """Every target of releases; those of public tables only where there is a folder of them."""
    what = f"discrete Gaussian noise from the system's words, {shape.draws:,} draws"
    seconds = measure(lambda: discrete_gaussian(NOISE_VARIANCE, shape.draws, System()))
    yield Row("releases", what, "s", seconds, limit=DRAW_SECONDS * shape.draws)
    data = folder or os.environ.get(VARIABLE)
    if data:
        what = f"{shape.clicks:,} click sets, up to pairs"
        yield from _rows("clicks", shape.clicks, data, what, CLICK_SECONDS, None)
        what = f"census, {shape.census:,} people, up to triples"
        yield from _rows("census", shape.census, data, what, CENSUS_SECONDS, CENSUS_MIB)
    else:
        print(f"bench: click sets and the census need {VARIABLE} (docs/data.md)", file=sys.stderr)
    what = f"{shape.stream:,} rows of {len(STREAM_SIZES)} attributes from files, up to pairs"
    yield from _rows("stream", shape.stream, "", what, None, STREAM_MIB)


def _rows(
    name: str, size: int, data: str, what: str, seconds: float | None, mib: float | None
) -> Iterator[Row]:
    """Seconds, those of the processor, and memory of one case."""
    found = child("bench.release_speed", name, str(size), data, timeout=TIMEOUT)
    told = ", ".join(f"{count:,} of {k}" for k, count in found["tuples"].items())
    note = f"{CASES[name].method}; tuples told: {told}"
    yield Row("releases", f"{what}: time", "s", _once(found["seconds"]), limit=seconds, note=note)
    yield Row("releases", f"{what}: processor time", "s", _once(found["cpu"]))
    yield Row("releases", f"{what}: peak memory", "MiB", _once(found["mib"]), limit=mib)


def _once(figure: float) -> Timing:
    return Timing(figure, figure, 1)


def case(name: str, size: int, data: str) -> dict[str, Any]:
    """A release from a file to a folder, in a process that has compiled nothing yet.

    Args:
        name: of CASES.
        size: how many rows the table has.
        data: the folder of public tables.

    Returns:
        Seconds, seconds of the processor, the peak in MiB, and how many tuples of each k were told.
    """
    asked = CASES[name]
    with TemporaryDirectory(prefix="sottovoce-bench-") as place:
        table = Path(place) / "table"
        made = child("bench.release_speed", f"make-{name}", str(size), data, str(table))
        schema = stream_schema() if made["is_known"] else None
        start, busy = perf_counter(), process_time()
        told = sv.release(
            table,
            epsilon=EPSILON,
            delta=asked.delta,
            up_to=asked.up_to,
            method=asked.method,
            schema=schema,
            output=Path(place) / "release",
            **asked.options,
        )
        return {
            "seconds": perf_counter() - start,
            "cpu": process_time() - busy,
            "mib": peak(),
            "tuples": {k: len(found.counts) for k, found in told.tuples.items()},
        }


def make(name: str, size: int, data: str, table: Path) -> dict[str, Any]:
    """Write the table of a case, a folder of Parquet files."""
    table.mkdir()
    pq = imported("pyarrow.parquet")
    if name == "clicks":
        pq.write_table(click_sets(Path(data), size), table / "part.parquet")
    elif name == "census":
        pq.write_table(census_people(Path(data), size), table / "part.parquet")
    else:
        for number, start in enumerate(range(0, size, STREAM_PART)):
            part = stream_rows(min(STREAM_PART, size - start), number)
            pq.write_table(part, table / f"{number:04d}.parquet", compression="zstd")
    return {"is_known": name == "stream"}


def click_sets(folder: Path, size: int) -> Any:
    """Click sets of Kosarak's shape: its first users, drawn again and again."""
    table = imported("pyarrow.parquet").read_table(folder / f"{CLICKS}.parquet", columns=["items"])
    users = np.random.default_rng(SEED).integers(0, table.num_rows, size)
    return table.take(users)


def census_people(folder: Path, size: int) -> Any:
    """People of the census, with labels; those that say nothing are null."""
    pa = imported("pyarrow")
    facts = json.loads((folder / f"{CENSUS}.json").read_text())
    read = imported("pyarrow.parquet").read_table(folder / f"{CENSUS}.parquet").slice(0, size)
    columns = {}
    for attribute in facts["attributes"]:
        name = attribute["name"]
        if name == WEIGHT:
            continue
        column = read[name]
        if "labels" in attribute:
            labels = [label.strip() for label in attribute["labels"]]
            told = pa.array([None if label in NOTHING else label for label in labels])
            column = told.take(column.combine_chunks())
        columns[name] = column
    return pa.table(columns)


def stream_rows(size: int, seed: int) -> Any:
    """Rows of small attributes, each of which goes with the one before."""
    draws = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    last = draws.integers(0, STREAM_SIZES[0], size, np.int8)
    for place, values in enumerate(STREAM_SIZES):
        step = draws.integers(0, 2, size, np.int8)
        last = (last + step) % np.int8(values)
        columns[f"a{place}"] = last
    return imported("pyarrow").table(columns)


def stream_schema() -> sv.Schema:
    """The public values of the rows that stream."""
    attributes = {
        f"a{place}": sv.Categorical(list(range(values)))
        for place, values in enumerate(STREAM_SIZES)
    }
    return sv.Schema(**attributes)


def main(arguments: list[str]) -> dict[str, Any]:
    """One case, or the table of one in a process of its own, whose memory is not the release's."""
    name, size, data, *table = arguments
    if table:
        return make(name.removeprefix("make-"), int(size), data, Path(table[0]))
    return case(name, int(size), data)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
