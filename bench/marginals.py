"""``python -m bench.marginals --out results.jsonl``: methods for marginals on real tables, point by
point.

A run that is stopped goes on where it was. A coarse grid comes first and is then filled. ``--report
results.jsonl`` says how methods compare, and with ``--docs docs/marginals.md`` writes it there,
with pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.data import add_data_option, data_folder
from bench.marginal_sources import MOST_CELLS, SOURCES, orders

SEED = 1
QUERIES = 50
RUNS = 5
PEOPLE = (1 << 16, 1 << 18)
ORDERS = (3, 6, 8)
EPSILONS = tuple(f"{tenths / 10:.1f}" for tenths in range(2, 21, 2))
COARSE_EPSILONS = ("0.2", "0.6", "1.0", "1.4", "2.0")
COARSE_RUNS = 2
REPAIR = "norm-sub"  # after which unbiased tables are judged a second time
QUICK: dict[str, Any] = {
    "sources": ("kosarak-8", "adult-3"),
    "people": (1 << 14,),
    "epsilons": ("0.2", "1.0", "2.0"),
    "runs": 1,
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Key = tuple[str, int, int, str, str, int]  # source, n, k, epsilon, method, run


@dataclass(frozen=True)
class Task:
    """What one worker does at once: one crowd at one epsilon, all tables and methods that are not
    there yet.
    """

    source: str
    people: int
    run: int
    epsilon: str
    points: tuple[tuple[int, str], ...]  # (k, method)
    data: str
    coverage: bool
    limit: float  # seconds that a point may take


@dataclass(frozen=True)
class Grid:
    """The points to measure."""

    sources: tuple[str, ...]
    methods: tuple[str, ...]
    people: tuple[int, ...] = PEOPLE
    orders: tuple[int, ...] = ORDERS
    epsilons: tuple[str, ...] = EPSILONS
    runs: int = RUNS

    def stages(self) -> Iterator[tuple[tuple[str, ...], range]]:
        """(epsilons, runs): the coarse grid, its other runs, then the epsilons between."""
        coarse = tuple(each for each in self.epsilons if each in COARSE_EPSILONS)
        fine = tuple(each for each in self.epsilons if each not in COARSE_EPSILONS)
        first = min(COARSE_RUNS, self.runs)
        yield coarse, range(first)
        yield coarse, range(first, self.runs)
        yield fine, range(self.runs)

    def tasks(self, done: set[Key], data: str, coverage: bool, limit: float) -> Iterator[Task]:
        """All that is left to do, in the order in which it is wanted."""
        asked = {name: orders(population(name, data), self.orders) for name in self.sources}
        for epsilons, runs in self.stages():
            for people in self.people:
                for run in runs:
                    for source in self.sources:
                        for epsilon in epsilons:
                            points = tuple(
                                (k, method)
                                for k in asked[source]
                                for method in self.methods
                                if (source, people, k, epsilon, method, run) not in done
                            )
                            if points:
                                yield Task(
                                    source, people, run, epsilon, points, data, coverage, limit
                                )


# -- one worker


@lru_cache(maxsize=4)
def population(source: str, data: str) -> Any:
    """The people of a source; a worker keeps the last few."""
    return SOURCES[source].load(Path(data))


@lru_cache(maxsize=6)
def crowd(source: str, people: int, run: int, k: int, data: str) -> Any:
    """The people of one run, and the tables of k attributes they are asked for."""
    from sottovoce.measure.marginals import random_queries

    schema = population(source, data).schema
    asked = random_queries(schema, k, QUERIES, SEED, run, MOST_CELLS)
    sizes = {name: attribute.size for name, attribute in schema.items()}
    return _people(source, people, run, data).asked(asked, sizes)


@lru_cache(maxsize=2)
def _people(source: str, people: int, run: int, data: str) -> Any:
    from sottovoce.measure.marginals import sampled

    return sampled(population(source, data), people, SEED, run)


def work(task: Task) -> list[dict[str, Any]]:
    """The lines of a task. Plans with the same cohorts share the reports, equal plans share
    everything.
    """
    from sottovoce.ground.errors import InvalidInput
    from sottovoce.measure.marginals import coded

    schema = coded(population(task.source, task.data).schema)
    heard: dict[str, Any] = {}
    known: dict[str, dict[str, Any]] = {}
    lines = []
    for k, method in task.points:
        line = {
            "source": task.source,
            "n": task.people,
            "d": len(schema),
            "k": k,
            "epsilon": float(task.epsilon),
            "method": method,
            "run": task.run,
        }
        try:
            with _at_most(task.limit):
                line |= _measured(task, schema, k, method, heard, known)
        except InvalidInput as wrong:  # the method does not fit
            line |= {"sse": None, "tvd": None, "seconds": None, "reason": str(wrong)}
        except Exception as wrong:  # a mistake of ours; the line is measured again next time
            line |= {
                "sse": None,
                "tvd": None,
                "seconds": None,
                "error": f"{type(wrong).__name__}: {wrong}",
            }
        lines.append(line)
    return lines


def _measured(
    task: Task,
    schema: Any,
    k: int,
    method: str,
    heard: dict[str, Any],
    known: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.measure import marginals

    made, planning = marginals.planned(schema, k, task.people, task.epsilon, method)
    if made.id not in known:
        asked = crowd(task.source, task.people, task.run, k, task.data)
        cohorts = json.dumps(made.cohorts.to_json())
        start = perf_counter()
        if cohorts not in heard:
            first = marginals.heard(made, asked, SEED, task.run)
            heard[cohorts] = (first.counts, perf_counter() - start)
        counts, listening = heard[cohorts]
        total = Aggregate(made)
        total.counts = counts
        start = perf_counter()
        estimate: Any = total.estimate()
        estimating = perf_counter() - start
        found = marginals.judged(estimate, asked, task.coverage)
        # the same answers after a repair, for methods whose tables are unbiased
        after = marginals.judged(estimate, asked, repair=REPAIR)
        question: Any = made.question
        known[made.id] = {
            "sse": found.sse,
            "sse_repaired": None if after.postprocess is None else after.sse,
            "tvd": found.tvd,
            "seconds": listening + estimating + found.seconds,
            "queries": len(asked.queries),
            "chosen": question.method,
            "views": len(made.cohorts),
            "view_size": marginals.view_size(made.cohorts),
            "coverage": found.coverage,
            "coverages": {str(level): share for level, share in found.coverages.items()},
            "width": found.width,
        }
    line = known[made.id]
    return line | {"seconds": line["seconds"] + planning}


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Give a point up that takes too long, at the next line of Python."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- the file of results


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of results, the last of each point; one that an interruption cut is left
    out.
    """
    if not path.exists():
        return []
    found = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
            found[key_of(line)] = line
        except (ValueError, KeyError):
            continue
    return list(found.values())


def key_of(line: dict[str, Any]) -> Key:
    """What makes a point."""
    return (
        line["source"],
        line["n"],
        line["k"],
        f"{line['epsilon']:.1f}",
        line["method"],
        line["run"],
    )


def prepared(path: Path, redo: Sequence[str]) -> set[Key]:
    """The points that are done. The file is left with whole lines only, without errors and without
    methods to redo.
    """
    kept = [line for line in read_lines(path) if "error" not in line and line["method"] not in redo]
    if path.exists():
        draft = path.with_suffix(".draft")
        draft.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        draft.replace(path)
    return {key_of(line) for line in kept}


def run(
    grid: Grid,
    out: Path,
    workers: int,
    data: str,
    coverage: bool,
    limit: float,
    redo: Sequence[str] = (),
) -> None:
    """Measure what is left of the grid, a line at a time into the file."""
    for name in THREADS:  # read by numpy and numba when a worker starts
        os.environ[name] = "1"
    todo = list(grid.tasks(prepared(out, redo), data, coverage, limit))
    total, done, start = sum(len(task.points) for task in todo), 0, perf_counter()
    _say(f"{total} points in {len(todo)} tasks")
    waiting: set[Future[list[dict[str, Any]]]] = set()
    queue = iter(todo)
    with (
        out.open("a", encoding="utf-8") as file,
        ProcessPoolExecutor(workers, get_context("spawn")) as pool,
    ):
        while True:
            while len(waiting) < 2 * workers and (task := next(queue, None)) is not None:
                waiting.add(pool.submit(work, task))
            if not waiting:
                break
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                lines = future.result()
                file.write("".join(json.dumps(line) + "\n" for line in lines))
                file.flush()
                done += len(lines)
                _say(_progress(lines, done, total, perf_counter() - start))


def _progress(lines: Sequence[dict[str, Any]], done: int, total: int, seconds: float) -> str:
    first = lines[0]
    left = seconds / done * (total - done)
    parts = []
    for line in lines:
        error = line.get("error") or line.get("reason")
        parts.append(f"{line['method']}/{line['k']} {error or format(line['sse'], '.3g')}")
    where = f"{first['source']} n={first['n']} eps={first['epsilon']} run {first['run']}"
    return f"{done}/{total}, {left / 60:.0f} min left: {where}: {', '.join(parts)}"


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure, or report."""
    parser = argparse.ArgumentParser(prog="python -m bench.marginals", description=__doc__)
    parser.add_argument(
        "--out", metavar="FILE", help="measure into this file, one JSON object a line"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="a few points with 2^14 people, to see that all runs"
    )
    parser.add_argument(
        "--sources", metavar="a,b", help=f"which of {', '.join(SOURCES)} (all by default)"
    )
    parser.add_argument("--methods", metavar="a,b", default="calm,auto")
    parser.add_argument("--people", metavar="N,N", help="by default 65536,262144")
    parser.add_argument("--k", metavar="k,k", help="by default 3,6,8 where they fit")
    parser.add_argument("--epsilons", metavar="E,E", help="by default 0.2,0.4,...,2.0")
    parser.add_argument("--runs", type=int)
    add_data_option(parser)
    parser.add_argument(
        "--coverage", action="store_true", help="also count how often 95%% intervals hold"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds that one point may take")
    parser.add_argument("--redo", metavar="a,b", default="", help="measure these methods anew")
    parser.add_argument("--report", metavar="FILE", help="say what a file of results says")
    parser.add_argument("--ours", default="auto", help="of the report: the method judged")
    parser.add_argument("--base", default="calm", help="of the report: the method it is judged by")
    parser.add_argument(
        "--docs", metavar="FILE", help="write the report into this page, with pictures beside it"
    )
    asked = parser.parse_args(arguments)
    if asked.report:
        from bench.marginal_report import report

        return report(
            Path(asked.report),
            None if asked.docs is None else Path(asked.docs),
            asked.ours,
            asked.base,
        )
    if not asked.out:
        parser.error("give --out FILE to measure, or --report FILE")
    grid = _grid(parser, asked)
    data = str(data_folder(parser, asked.data))
    run(
        grid,
        Path(asked.out),
        asked.workers,
        data,
        asked.coverage,
        asked.limit,
        asked.redo.split(","),
    )
    return 0


def _grid(parser: argparse.ArgumentParser, asked: argparse.Namespace) -> Grid:
    from sottovoce.ground.errors import InvalidInput
    from sottovoce.measure.choices import MethodChoice
    from sottovoce.questions.marginals.methods import method
    from sottovoce.questions.method import AUTO

    sources = (
        tuple(asked.sources.split(","))
        if asked.sources
        else QUICK["sources"]
        if asked.quick
        else tuple(SOURCES)
    )
    for name in sources:
        if name not in SOURCES:
            parser.error(f"source ({name}) must be one of {', '.join(SOURCES)}")
    for name in (methods := tuple(asked.methods.split(","))):
        try:
            choice = MethodChoice.parse(name).method
            _ = choice == AUTO or method(choice)
        except InvalidInput as wrong:
            parser.error(str(wrong))
    chosen: dict[str, Any] = (
        {key: QUICK[key] for key in ("people", "epsilons", "runs")} if asked.quick else {}
    )
    if asked.people:
        chosen["people"] = tuple(int(each) for each in asked.people.split(","))
    if asked.k:
        chosen["orders"] = tuple(int(each) for each in asked.k.split(","))
    if asked.epsilons:
        chosen["epsilons"] = tuple(f"{float(each):.1f}" for each in asked.epsilons.split(","))
    if asked.runs:
        chosen["runs"] = asked.runs
    return Grid(sources, methods, **chosen)


if __name__ == "__main__":
    raise SystemExit(main())
