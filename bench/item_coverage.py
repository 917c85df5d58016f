"""``python -m bench.item_coverage``: how often the intervals of items and itemsets hold the truth.

Each source, method and epsilon is a point; the intervals of all runs are pooled. ``printed`` are
all rows of an answer, ``starred`` those that noise alone does not explain. ``--json`` keeps the
points; ``--before`` sets those of another version beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.data import add_data_option, data_folder
from sottovoce.api.planning import plan, simulate_rounds
from sottovoce.measure.itemsets import Baskets, SetCrowd, read_baskets
from sottovoce.measure.popular import whispers_seed
from sottovoce.measure.runs import seeded
from sottovoce.questions.itemsets import TopItems, TopItemsets
from sottovoce.results.findings import Findings
from sottovoce.schema import Items, Schema, Sets

CROWD = "six items"
WIDELY_HELD = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
CROWD_PEOPLE = 20_000
TUNED = ("kosarak_prefix70k", "retail", "online_retail", "lastfm_genres")
UNTOUCHED = ("msweb", "bms_webview1", "t10i4d100k")
SOURCES = (CROWD, *TUNED, *UNTOUCHED)
METHODS = ("items:auto", "items:svim", "sets:auto", "sets:svsm")
COVERAGE_SEED = 12
LEVEL = 0.95


@dataclass(frozen=True)
class Held:
    """How many intervals there were, and the part of them that holds the truth."""

    intervals: int
    share: float
    error: float  # binomial
    rms: float  # root mean square of the errors made
    stated: float  # and of those stated
    width: float  # mean width of the intervals

    def __str__(self) -> str:
        if not self.intervals:
            return f"{'-':>34}"
        return (
            f"{self.share:6.1%} +- {self.error:4.1%} of {self.intervals:5} "
            f"{self.rms:7.4f} /{self.stated:7.4f}"
        )


@dataclass(frozen=True)
class CoveragePoint:
    """What the runs of one method at one epsilon show."""

    source: str
    method: str
    epsilon: float
    runs: int
    people: int
    printed: Held
    starred: Held
    found: float  # of the true top, a run
    squares: float  # mean squared error of their frequencies
    seconds: float  # a run


@cache
def six_items(people: int) -> Baskets:
    """People who hold each of six items independently, with chances of 40% to 90%."""
    draws = np.random.default_rng(6)
    holds = draws.random((people, len(WIDELY_HELD))) < np.array(WIDELY_HELD)
    owners, codes = np.nonzero(holds)
    sets = Sets.of(people, owners, codes.astype(np.uint64), len(WIDELY_HELD))
    return Baskets(tuple(range(len(WIDELY_HELD))), sets)


@cache
def baskets(source: str, people: int | None, data: Path | None) -> Baskets:
    """The people of a source; a table with more than ``people`` is sampled once."""
    if source == CROWD:
        return six_items(people or CROWD_PEOPLE)
    assert data is not None
    held = read_baskets(data / f"{source}.parquet", "items")
    if people is None or people >= held.people:
        return held
    rows = np.sort(seeded(COVERAGE_SEED, 0).permutation(held.people)[:people])
    return Baskets(held.items, held.sets[rows])


class Truth:
    """How many people hold each item, or set of items."""

    def __init__(self, sets: Sets) -> None:
        self.people = len(sets)
        codes = sets.codes.astype(np.int64)
        owners = np.repeat(np.arange(len(sets)), sets.lengths)
        order = np.argsort(codes, kind="stable")
        self._owners = owners[order]
        self._codes = codes[order]

    def frequency(self, label: Any) -> float:
        """The share of people who hold it."""
        items = label if isinstance(label, tuple) else (label,)
        holders = self._holders(items[0])
        for item in items[1:]:
            holders = np.intersect1d(holders, self._holders(item), assume_unique=True)
        return len(holders) / self.people

    def _holders(self, item: int) -> NDArray[np.int64]:
        start, end = np.searchsorted(self._codes, [item, item + 1])
        return self._owners[start:end]


def _held(parts: Sequence[tuple[NDArray[np.float64], ...]]) -> Held:
    """Pool (errors, standard errors, low ends, high ends) of all runs; ends less the truth."""
    errors, stated, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
    given = np.isfinite(low) & np.isfinite(high)
    errors, stated, low, high = errors[given], stated[given], low[given], high[given]
    count = len(errors)
    if not count:
        return Held(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    share = float(((low <= 0) & (high >= 0)).mean())
    return Held(
        count,
        share,
        float(np.sqrt(share * (1 - share) / count)),
        float(np.sqrt(np.mean(errors**2))),
        float(np.sqrt(np.mean(stated**2))),
        float(np.mean(high - low)),
    )


def measure(
    source: str, method: str, epsilon: str, runs: int, top: int, held: Baskets
) -> CoveragePoint:
    """One point: everybody answers once in each run."""
    kind, name = method.split(":")
    is_sets = kind == "sets"
    asked = TopItemsets if is_sets else TopItems
    schema = Schema(items=Items(range(len(held.items))))
    crowd = SetCrowd(held, None, top, is_sets)
    truth = Truth(held.sets)
    first = plan(schema, asked("items", top, name), epsilon=epsilon, people=held.people)
    printed, starred, hits = [], [], []
    squares: list[float] = []
    start = perf_counter()
    for run in range(runs):
        found = simulate_rounds(first, crowd.table(), whispers_seed(COVERAGE_SEED, run))
        assert isinstance(found, Findings)
        table = found.table
        exact = np.array([truth.frequency(label) for label in table.labels])
        errors = table.values - exact
        low, high = table.interval(LEVEL)
        row = (errors, table.std_error, low - exact, high - exact)
        marks = found.significant()
        printed.append(row)
        starred.append(tuple(part[marks] for part in row))
        labels = [tuple(sorted(each)) if is_sets else each for each in table.labels]
        is_hit = np.array([label in crowd.truth for label in labels])
        hits.append(int(is_hit.sum()))
        squares += (errors[is_hit] ** 2).tolist()
    return CoveragePoint(
        source,
        method,
        float(epsilon),
        runs,
        held.people,
        _held(printed),
        _held(starred),
        float(np.mean(hits)),
        float(np.mean(squares)) if squares else 0.0,
        (perf_counter() - start) / runs,
    )


def points(asked: argparse.Namespace, data: Path | None) -> Iterator[CoveragePoint]:
    """Every point that was asked for."""
    for source in asked.sources:
        held = baskets(source, asked.people, data)
        for method in asked.methods:
            for epsilon in asked.epsilons:
                top = 6 if source == CROWD else asked.top
                yield measure(source, method, epsilon, asked.runs, top, held)


def _line(point: CoveragePoint, before: dict[str, Any] | None) -> str:
    text = (
        f"{point.source:18} {point.method:11} {point.epsilon:3g} | {point.printed} | "
        f"{point.starred} | {point.found:5.1f} [{point.squares:.1e}] {point.seconds:5.1f} s"
    )
    if before is None:
        return text
    earlier = Held(**before["starred"])
    return f"{text} | before {earlier.share:6.1%}, {before['found']:5.1f} [{before['squares']:.1e}]"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.item_coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="of each point")
    parser.add_argument("--people", type=int, help="at most so many of each source")
    parser.add_argument("--top", type=int, default=64, help="how many are asked for")
    parser.add_argument("--epsilons", nargs="+", default=["1", "2", "4"])
    parser.add_argument("--sources", nargs="+", default=SOURCES, choices=SOURCES)
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="items:NAME or sets:NAME")
    parser.add_argument("--json", type=Path, help="add the points to this file")
    parser.add_argument("--before", type=Path, help="such a file, of another version")
    add_data_option(parser)
    asked = parser.parse_args(arguments)
    data = None if set(asked.sources) == {CROWD} else data_folder(parser, asked.data)
    earlier = {}
    if asked.before is not None:
        for line in asked.before.read_text().splitlines():
            row = json.loads(line)
            earlier[row["source"], row["method"], row["epsilon"]] = row
    print(
        f"{'source':18} {'method':11} eps | {'printed: held, rms error / stated':42} | "
        f"{'starred':42} | found [squared error]"
    )
    for point in points(asked, data):
        key = (point.source, point.method, point.epsilon)
        print(_line(point, earlier.get(key)), flush=True)
        if asked.json is not None:
            with asked.json.open("a") as file:
                file.write(json.dumps(asdict(point)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
