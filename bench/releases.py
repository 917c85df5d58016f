"""``python -m bench.releases --data FOLDER``: what a trusted curator finds, beside the paper's way.

Items of sets, pairs of items, and tuples of a wide table; the table of docs/data.md that each
figure is of stands beside it. The paper's way gets its limits, the 99th percentiles, for nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.data import add_data_option, data_folder
from bench.resident import peak
from sottovoce.accounting import Ledger
from sottovoce.central.candidates import TupleCandidates
from sottovoce.central.counting import sizes_held, summed, unit_weights
from sottovoce.central.method import (
    EMPTY_CODE,
    Integers,
    MemoryTable,
    ReleasedCounts,
    ReleaseMethod,
    ReleaseTerms,
    TupleCounts,
)
from sottovoce.central.tuples import DpMarginals
from sottovoce.central.union import SetUnion
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.extras import imported

SETS = (
    "kosarak_prefix70k",
    "online_retail",
    "retail",
    "msweb",
    "bms_webview1",
    "t10i4d100k",
)
CENSUS = "census_income_kdd"
WEIGHT = "instance_weight"  # of a row of the census, no attribute
NOTHING = (
    "Not in universe",
    "?",
    "NA",
    "Not in universe or children",
    "Not in universe under 1 year old",
)
TOP = 200  # largest pairs, whose counts are judged: nearly all are found by either way
PERCENTILE = 0.99
PAPER_SHARES = ("0.15", "0.85")  # of items and pairs, where the paper's way is given the better one
ITEM_WAYS: Mapping[str, Mapping[str, Any]] = {
    "descent": {"counts": 0},
    "descent, counts too": {},
    "weighted": {"form": "weighted", "counts": 0},
    "parallel": {"form": "parallel", "counts": 0},
}

Line = dict[str, Any]


def sets(folder: Path, name: str) -> MemoryTable:
    """A table of docs/data.md whose rows are sets of items."""
    column = imported("pyarrow.parquet").read_table(folder / f"{name}.parquet")["items"]
    together = column.combine_chunks()
    starts = together.offsets.to_numpy()
    values, codes = np.unique(together.values.to_numpy(), return_inverse=True)
    users = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    items = codes[:, None].astype(np.int64)
    return MemoryTable(
        ("items",), (tuple(values.tolist()),), (False,), items, users, len(starts) - 1, True
    )


def census(folder: Path) -> MemoryTable:
    """The census, with cells that say nothing left empty."""
    facts = json.loads((folder / f"{CENSUS}.json").read_text())
    read = imported("pyarrow.parquet").read_table(folder / f"{CENSUS}.parquet")
    columns, values, names = [], [], []
    for attribute in facts["attributes"]:
        if attribute["name"] == WEIGHT:
            continue
        column = read[attribute["name"]].to_numpy().astype(np.int64)
        labels = attribute.get("labels", [])
        nothing = [code for code, label in enumerate(labels) if label.strip() in NOTHING]
        is_held = ~np.isin(column, nothing) if nothing else np.ones(len(column), bool)
        held, found = np.unique(column[is_held], return_inverse=True)
        codes = np.full(len(column), EMPTY_CODE, np.int64)
        codes[is_held] = found
        columns.append(codes)
        values.append(tuple(held.tolist()))
        names.append(attribute["name"])
    rows = len(columns[0])
    return MemoryTable(
        tuple(names),
        tuple(values),
        (False,) * len(names),
        np.column_stack(columns),
        np.arange(rows),
        rows,
    )


def released(
    method: ReleaseMethod,
    table: MemoryTable,
    options: Mapping[str, Any],
    epsilon: str,
    up_to: int,
    seed: int,
) -> ReleasedCounts:
    """One release at delta 1e-6, from a seed."""
    terms = ReleaseTerms(Decimal(epsilon), Decimal("1e-6"), up_to, options=options)
    ledger = Ledger(epsilon=epsilon, delta="1e-6")
    return method.release(table, terms, ledger, Seeded(seed))


def percentile(sizes: Integers) -> int:
    """The paper's limit, without noise: it is a gift."""
    return max(1, int(np.quantile(sizes, PERCENTILE)))


def item_lines(folder: Path, names: Sequence[str], epsilon: str, runs: int) -> Iterator[Line]:
    """Items found, by the paper's way corrected and by set union."""
    for name in names:
        table = sets(folder, name)
        everything = np.arange(len(table.values[0]))
        limit = percentile(sizes_held(table, everything, TupleCandidates.single(everything + 1)))
        paper = {"find": "counts", "accounting": "zcdp", "limit": limit}
        ways: list[tuple[str, ReleaseMethod, Mapping[str, Any]]] = [
            ("paper, corrected", DpMarginals(), paper)
        ]
        ways += [(way, SetUnion(), options) for way, options in ITEM_WAYS.items()]
        base = None
        for way, method, options in ways:
            found = []
            for seed in range(runs):
                release = released(method, table, options, epsilon, 1, seed)
                found.append(len(release.tuples[1].counts))
            mean = float(np.mean(found))
            base = mean if base is None else base
            yield {"data": name, "way": way, "items": mean, "times": mean / max(base, 1)}


def all_pairs(table: MemoryTable, values: Integers) -> tuple[TupleCandidates, Integers]:
    """All pairs of some items, and the numbers of these items."""
    size = len(values)
    numbers = np.full(len(table.values[0]), -1, np.int64)
    numbers[values] = np.arange(size)
    pairs = TupleCandidates.single(np.arange(1, size + 1)).grown(np.arange(size))
    return pairs, numbers


def paper_pairs(table: MemoryTable, epsilon: str, seed: int) -> ReleasedCounts:
    """The paper's way with exact accounting, the better share and free percentiles."""
    everything = np.arange(len(table.values[0]))
    first = percentile(sizes_held(table, everything, TupleCandidates.single(everything + 1)))
    options: dict[str, Any] = {"find": "counts", "shares": PAPER_SHARES, "limit": [first, 100]}
    values = released(DpMarginals(), table, options, epsilon, 2, seed).tuples[1].codes[:, 0]
    pairs, numbers = all_pairs(table, np.sort(values))
    options["limit"] = [first, percentile(sizes_held(table, numbers, pairs))]
    return released(DpMarginals(), table, options, epsilon, 2, seed)


def judged_pairs(found: TupleCounts, size: int, keys: Integers, true: Integers) -> Line:
    """Pairs found, false ones, and the error of counts of the largest."""
    own = found.codes[:, 0] * size + found.codes[:, 1]
    places = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    counts = np.where(keys[places] == own, true[places], 0)
    is_large = counts >= np.sort(true)[-min(TOP, len(true))]
    errors = (found.counts - counts)[is_large]
    rms = float(np.sqrt(np.mean(errors**2))) if len(errors) else float("nan")
    spurious = int((counts == 0).sum())
    return {"pairs": len(own) - spurious, "spurious": spurious, "error": rms}


def pair_lines(folder: Path, names: Sequence[str], epsilon: str, runs: int) -> Iterator[Line]:
    """Pairs found and counted, by the paper's way and by ours."""
    for name in names:
        table = sets(folder, name)
        size = len(table.values[0])
        pairs, numbers = all_pairs(table, np.arange(size))
        most = int(sizes_held(table, numbers, pairs).max())
        keys, true = summed(table, numbers, pairs, most, unit_weights(most), Seeded(0))
        for way in ("paper, exact", "ours"):
            lines = []
            for seed in range(runs):
                if way == "ours":
                    release = released(DpMarginals(), table, {}, epsilon, 2, seed)
                else:
                    release = paper_pairs(table, epsilon, seed)
                line = judged_pairs(release.tuples[2], size, keys, true)
                lines.append({"items": len(release.tuples[1].counts), **line})
            means = {key: float(np.nanmean([line[key] for line in lines])) for key in lines[0]}
            yield {"data": name, "way": way, **means}


def census_lines(folder: Path, epsilon: str, up_to: int) -> Iterator[Line]:
    """Tuples of the census, seconds and memory. The second run has nothing to compile."""
    table = census(folder)
    for run in ("first", "second"):
        start, busy = time.perf_counter(), time.process_time()
        release = released(DpMarginals(), table, {}, epsilon, up_to, 1)
        yield {
            "data": CENSUS,
            "way": f"dp-marginals, {run} run",
            **{f"k = {k}": len(found.counts) for k, found in release.tuples.items()},
            "seconds": time.perf_counter() - start,
            "CPU seconds": time.process_time() - busy,
            "peak MiB": peak(),
        }


def show(title: str, lines: Sequence[Line], console: Console) -> None:
    """A table of lines that have the same keys."""
    table = Table(title=title)
    for key in lines[0]:
        table.add_column(key, justify="left" if key in ("data", "way") else "right")
    for line in lines:
        cells = [f"{each:,.1f}" if isinstance(each, float) else str(each) for each in line.values()]
        table.add_row(*cells)
    console.print(table)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--runs", type=int, default=3, help="releases a figure (3)")
    parser.add_argument("--epsilon", default="1", help="of a release (1); delta is 1e-6")
    parser.add_argument("--only", choices=("items", "pairs", "census"), help="one part only")
    parser.add_argument("--sets", nargs="+", default=SETS, help="tables of sets")
    parser.add_argument("--json", metavar="FILE", help="write all lines there too")
    given = parser.parse_args()
    folder = data_folder(parser, given.data)
    console = Console()
    parts = {
        "items": lambda: item_lines(folder, given.sets, given.epsilon, given.runs),
        "pairs": lambda: pair_lines(folder, given.sets, given.epsilon, given.runs),
        "census": lambda: census_lines(folder, given.epsilon, 3),
    }
    every: dict[str, list[Line]] = {}
    for part, measure in parts.items():
        if given.only in (None, part):
            every[part] = list(measure())
            show(f"{part}, epsilon {given.epsilon}, delta 1e-6", every[part], console)
    if given.json:
        Path(given.json).write_text(json.dumps(every, indent=2) + "\n")


if __name__ == "__main__":
    main()
