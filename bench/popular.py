"""``python -m bench.popular --out results.jsonl``: what methods find popular in real data, point by
point.

A run that is stopped goes on where it was. ``--report results.jsonl`` says how methods compare, and
with ``--docs docs/popular.md`` writes it there, with pictures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import add_data_option, data_folder
from sottovoce.measure.heavyhitters import Holdings, compare_heavyhitters, read_holdings
from sottovoce.measure.itemsets import compare_itemsets, read_baskets
from sottovoce.measure.popular import PopularComparison
from sottovoce.schema import Integer

SEED = 2026
MILLION = 1_000_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
EPSILONS = ("0.5", "1", "2", "4")
BEST, OLDER = ("windows", "pem", "genie"), ("pem1", "tree-hist", "spm", "hash", "priv-trie")
ITEMS, SETS = ("auto", "svim", "ldpminer"), ("auto", "svsm", "ldpminer")


@dataclass(frozen=True)
class Task:
    """Some methods on one source: each epsilon is a point of its own."""

    kind: str  # values, items, sets
    source: str
    top: int
    epsilons: tuple[str, ...]
    methods: tuple[str, ...]
    runs: int
    people: int | None = None


TASKS: tuple[Task, ...] = (
    *(
        Task("values", source, top, EPSILONS, BEST, 5, MILLION)
        for source in ("words-6", "exponential-64", "words-16")
        for top in (16, 32)
    ),
    *(
        Task(kind, source, 64, ("1", "2"), methods, 5)
        for source in ("kosarak_prefix70k", "retail", "online_retail", "lastfm_genres")
        for kind, methods in (("items", ITEMS), ("sets", SETS))
    ),
    *(
        Task(kind, source, 64, ("1", "2"), methods, 5)
        for source in ("msweb", "bms_webview1", "t10i4d100k")  # with which no choice was made
        for kind, methods in (("items", ITEMS), ("sets", SETS))
    ),
    *(
        Task("values", source, 16, ("1", "2", "4"), OLDER, 3, MILLION)
        for source in ("exponential-64", "words-6")
    ),
    Task("values", "words-6, a to z", 32, EPSILONS, ("windows",), 5, MILLION),
    Task("values", "words-6, a list", 32, EPSILONS, ("windows",), 5, MILLION),
    Task("values", "words-6", 32, EPSILONS, ("pem:scramble=true",), 5, MILLION),
)


def exponential(values: int = 400, scale: float = 0.05) -> Holdings:
    """The thesis's synthetic data: random 64-bit values whose frequencies fall by a factor of
    e^-scale each.
    """
    draws = np.random.default_rng(64)
    codes = draws.integers(0, 1 << 64, values, dtype=np.uint64).tolist()
    weights = np.exp(-scale * np.arange(values))
    return Holdings.of(Integer(bits=64), codes, np.round(1e9 * weights).astype(int).tolist())


@cache
def _held(source: str, data: Path) -> Holdings:
    if source.startswith("exponential"):
        return exponential()
    size = int(source.split(",", maxsplit=1)[0].split("-")[1])
    alphabet = LETTERS if source.endswith("a to z") else None
    return read_holdings(
        data / "english_words.parquet", "word", "count", bytes=size, alphabet=alphabet
    )


@cache
def _baskets(source: str, data: Path) -> Any:
    return read_baskets(data / f"{source}.parquet", "items")


def _rows(task: Task, epsilon: str, method: str, data: Path) -> Iterator[PopularComparison]:
    if task.kind == "values":
        held = _held(task.source, data)
        listed = list(held.values) if task.source.endswith("a list") else None
        return compare_heavyhitters(
            held, task.top, [epsilon], [method], task.runs, SEED, task.people, candidates=listed
        )
    is_sets = task.kind == "sets"
    return compare_itemsets(
        _baskets(task.source, data),
        task.top,
        [epsilon],
        [method],
        task.runs,
        SEED,
        task.people,
        of_sets=is_sets,
    )


def run(out: Path, say: Callable[[str], None], data: Path, tasks: Sequence[Task] = TASKS) -> None:
    """Every point that is not in the file yet."""
    done = set()
    if out.exists():
        done = {_key(json.loads(line)) for line in out.read_text().splitlines()}
    with out.open("a") as file:
        for task in tasks:
            for epsilon in task.epsilons:
                for method in task.methods:
                    point = {
                        "kind": task.kind,
                        "source": task.source,
                        "top": task.top,
                        "method": method,
                    }
                    if _key(point | {"epsilon": float(epsilon)}) in done:
                        continue
                    (row,) = _rows(task, epsilon, method, data)
                    file.write(json.dumps(point | row.to_json()) + "\n")
                    file.flush()
                    say(
                        f"{task.source} {task.kind} top {task.top} eps {epsilon} {method}: found "
                        f"{row.found}"
                    )


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[part] for part in ("kind", "source", "top", "method", "epsilon"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.popular", description=__doc__)
    parser.add_argument("--out", type=Path, help="measure, and add the points to this file")
    parser.add_argument("--report", type=Path, help="say what a file of points shows")
    parser.add_argument(
        "--docs", type=Path, help="and write it into this page, with pictures beside it"
    )
    add_data_option(parser)
    asked = parser.parse_args(arguments)
    if asked.out is None and asked.report is None:
        parser.error("give --out or --report")
    if asked.out is not None:
        data = data_folder(parser, asked.data)
        run(asked.out, lambda text: print(text, file=sys.stderr, flush=True), data)
    if asked.report is not None:
        from bench.popular_report import report

        report(asked.report, asked.docs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
