"""``python -m bench.queries --out results.jsonl``: methods for queries on real tables, point by
point.

A run that is stopped goes on where it was. ``--report results.jsonl`` says how methods compare, and
with ``--docs docs/sql.md`` writes it there, with pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

from bench import query_moments
from bench.data import add_data_option, data_folder
from bench.query_sources import SOURCES

SEED = 1
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
QUICK_PEOPLE, QUICK_EPSILONS = (20_000,), ("1",)

# group, source, size, n, epsilon, predicates, method, run
Key = tuple[str, str, int, int, str, int, str, int]


@dataclass(frozen=True)
class Group:
    """What is measured of some sources."""

    name: str
    sizes: tuple[int, ...]
    volumes: tuple[str, ...]
    methods: tuple[str, ...]
    people: tuple[int, ...] = (100_000, 1_000_000)
    epsilons: tuple[str, ...] = ("0.5", "1", "2", "5")
    predicates: tuple[int, ...] = (0,)  # dimensions that queries restrict; 0 for all
    queries: int = 150  # of each volume
    runs: int = 3
    sources: tuple[str, ...] = ()  # all by default


GROUPS: dict[str, Group] = {
    group.name: group
    for group in (
        Group(
            "one",
            (64, 256, 1024),
            ("0.01", "0.05", "0.1", "0.25", "0.5", "0.8", "random"),
            ("hio", "mg", "tree", "haar", "square-wave", "ahead", "auto"),
        ),
        Group("two", (64, 256), ("0.01", "0.1", "0.25", "0.5", "random"), ("hio", "hdg", "auto")),
        Group("three", (64,), ("0.1", "0.25", "random"), ("hdg", "auto"), (1_000_000,)),
        Group(
            "mixed",
            (64,),
            ("random",),
            ("hio", "sc", "auto"),
            (1_000_000,),
            ("2", "5"),
            predicates=(1, 2),
        ),
        Group("sums", (256,), ("0.1", "0.25", "random"), ("hio", "auto"), (1_000_000,)),
    )
}


@dataclass(frozen=True)
class Task:
    """What one worker does at once: one crowd at one epsilon, by all methods that are not there
    yet.
    """

    group: Group
    source: str
    size: int
    people: int
    epsilon: str
    predicates: int
    run: int
    methods: tuple[str, ...]
    data: str
    coverage: bool


def tasks(groups: Sequence[Group], done: set[Key], data: str, coverage: bool) -> Iterator[Task]:
    """All that is left to do: every point once, then its other runs."""
    most = max(group.runs for group in groups)
    for run in range(most):
        for group in groups:
            if run >= group.runs:
                continue
            for source in group.sources or tuple(SOURCES[group.name]):
                yield from _of_source(group, source, run, done, data, coverage)


def _of_source(
    group: Group, source: str, run: int, done: set[Key], data: str, coverage: bool
) -> Iterator[Task]:
    for size in group.sizes:
        for people in group.people:
            for epsilon in group.epsilons:
                for predicates in group.predicates:
                    point = (group.name, source, size, people, epsilon, predicates)
                    left = tuple(name for name in group.methods if (*point, name, run) not in done)
                    if left:
                        own = (source, size, people, epsilon, predicates, run)
                        yield Task(group, *own, left, data, coverage)


# -- one worker


@lru_cache(maxsize=4)
def population(group: str, source: str, size: int, data: str) -> Any:
    """The people of a source; a worker keeps the last few."""
    return SOURCES[group][source].load(Path(data), size)


@lru_cache(maxsize=2)
def _crowd(
    group: Group, source: str, size: int, people: int, predicates: int, run: int, data: str
) -> Any:
    from sottovoce.measure.queries import asked_crowd
    from sottovoce.questions.queries.target import Target

    own = population(group.name, source, size, data)
    target = Target.of(own.schema, own.names, None)
    order = predicates or len(target)
    return asked_crowd(own, target, people, order, group.volumes, group.queries, SEED, run)


def work(task: Task) -> list[dict[str, Any]]:
    """The lines of a task, one for each method."""
    from sottovoce.ground.errors import InvalidInput

    lines = []
    for method in task.methods:
        line: dict[str, Any] = {
            "group": task.group.name,
            "source": task.source,
            "size": task.size,
            "n": task.people,
            "epsilon": task.epsilon,
            "predicates": task.predicates,
            "method": method,
            "run": task.run,
        }
        try:
            line |= _measured(task, method)
        except InvalidInput as wrong:  # the method does not fit
            line |= {"mse": _predicted(task, method), "reason": str(wrong)}
        except Exception as wrong:  # a mistake of ours; the line is measured again next time
            line |= {"mse": None, "error": f"{type(wrong).__name__}: {wrong}"}
        lines.append(line)
    return lines


def _measured(task: Task, method: str) -> dict[str, Any]:
    from sottovoce.measure.queries import answered, estimated, judged, planned

    own = population(task.group.name, task.source, task.size, task.data)
    where = (task.group, task.source, task.size, task.people)
    crowd = _crowd(*where, task.predicates, task.run, task.data)
    order = task.predicates or len(own.names)
    start = perf_counter()
    made = planned(own, task.people, task.epsilon, method, task.group.volumes, order)
    estimate, reports = estimated(made, crowd, own, SEED, task.run)
    answers = answered(estimate, reports, crowd)
    seconds = perf_counter() - start
    found = {
        volume: judged(joint, crowd.truth[volume], seconds, task.coverage)
        for volume, joint in answers.items()
    }
    moments = {}
    if task.group.name == "one":
        (codes,) = crowd.crowd.columns.values()
        moments = query_moments.errors(estimate.fitted, codes, task.size, float(task.epsilon))
    return {
        "mse": {volume: score.mse for volume, score in found.items()},
        "mnae": {volume: score.mnae for volume, score in found.items()},
        "mre": {volume: score.mre for volume, score in found.items()},
        "coverage": {volume: score.coverage for volume, score in found.items()},
        "seconds": seconds,
        "chosen": made.asked["method"],
        **moments,
    }


def _predicted(task: Task, method: str) -> dict[str, float] | None:
    """The error of a method that has too many cells to be run, if its variance is known."""
    from sottovoce.ground.errors import InvalidInput
    from sottovoce.protocol.terms import Terms
    from sottovoce.questions.queries.methods import method as named
    from sottovoce.questions.queries.target import Target

    own = population(task.group.name, task.source, task.size, task.data)
    if task.group.name != "mixed":
        return None
    crowd = _crowd(
        task.group, task.source, task.size, task.people, task.predicates, task.run, task.data
    )
    target = Target.of(own.schema, own.names, None)
    terms = Terms.of(task.epsilon, task.people)
    found = {}
    for volume, selections in crowd.terms.items():
        try:
            chosen = named(method)
            errors = chosen.predict_terms(target, terms, chosen.settle(target, terms), selections)
        except InvalidInput:
            return None
        if errors is None:
            return None
        found[volume] = float(errors.mean())
    return found


# -- the file of results


def key_of(line: dict[str, Any]) -> Key:
    """What makes a point."""
    where = (line["group"], line["source"], line["size"], line["n"], line["epsilon"])
    return (*where, line["predicates"], line["method"], line["run"])


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
    groups: Sequence[Group],
    out: Path,
    workers: int,
    data: str,
    coverage: bool,
    redo: Sequence[str] = (),
) -> None:
    """Measure what is left, a line at a time into the file."""
    for name in THREADS:  # read by numpy and numba when a worker starts
        os.environ[name] = "1"
    todo = list(tasks(groups, prepared(out, redo), data, coverage))
    total = sum(len(task.methods) for task in todo)
    done, start = 0, perf_counter()
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
        wrong = line.get("error") or line.get("reason")
        errors = line["mse"] or {}
        shown = wrong or format(sum(errors.values()) / len(errors), ".3g")
        parts.append(f"{line['method']} {shown}")
    where = f"{first['source']} {first['size']} n={first['n']} eps={first['epsilon']}"
    return f"{done}/{total}, {left / 60:.0f} min left: {where}: {', '.join(parts)}"


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure, or report."""
    parser = argparse.ArgumentParser(prog="python -m bench.queries", description=__doc__)
    parser.add_argument(
        "--out", metavar="FILE", help="measure into this file, one JSON object a line"
    )
    parser.add_argument(
        "--groups", metavar="a,b", help=f"which of {', '.join(GROUPS)} (all by default)"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="two sources of each group with 20,000 people"
    )
    parser.add_argument("--sources", metavar="a,b", help="some sources, of all groups")
    parser.add_argument("--methods", metavar="a,b", help="instead of the groups' own")
    parser.add_argument("--sizes", metavar="D,D")
    parser.add_argument("--people", metavar="N,N")
    parser.add_argument("--epsilons", metavar="E,E")
    parser.add_argument("--runs", type=int)
    parser.add_argument(
        "--held-out", action="store_true", help="only sources that no choice was made on"
    )
    add_data_option(parser)
    parser.add_argument(
        "--coverage", action="store_true", help="also count how often 95%% intervals hold"
    )
    parser.add_argument("--redo", metavar="a,b", default="", help="measure these methods anew")
    parser.add_argument("--report", metavar="FILE", help="say what a file of results says")
    parser.add_argument("--ours", default="auto", help="of the report: the method judged")
    parser.add_argument(
        "--docs", metavar="FILE", help="write the report into this page, with pictures beside it"
    )
    asked = parser.parse_args(arguments)
    if asked.report:
        from bench.query_report import report

        page = None if asked.docs is None else Path(asked.docs)
        return report(Path(asked.report), page, asked.ours)
    if not asked.out:
        parser.error("give --out FILE to measure, or --report FILE")
    groups = _groups(parser, asked)
    data = str(data_folder(parser, asked.data))
    redo = asked.redo.split(",")
    run(groups, Path(asked.out), asked.workers, data, asked.coverage, redo)
    return 0


def _groups(parser: argparse.ArgumentParser, asked: argparse.Namespace) -> list[Group]:
    """The groups as they were asked for."""
    names = asked.groups.split(",") if asked.groups else list(GROUPS)
    changes: dict[str, Any] = {}
    for option in ("sizes", "people"):
        if getattr(asked, option):
            changes[option] = tuple(int(each) for each in getattr(asked, option).split(","))
    for option in ("epsilons", "methods"):
        if getattr(asked, option):
            changes[option] = tuple(getattr(asked, option).split(","))
    if asked.runs:
        changes["runs"] = asked.runs
    if asked.quick:
        changes = {"people": QUICK_PEOPLE, "epsilons": QUICK_EPSILONS, "runs": 1} | changes
    known = {name for sources in SOURCES.values() for name in sources}
    wanted = asked.sources.split(",") if asked.sources else []
    for name in wanted:
        if name not in known:
            parser.error(f"source ({name}) must be one of {', '.join(sorted(known))}")
    found = []
    for name in names:
        if name not in GROUPS:
            parser.error(f"group ({name}) must be one of {', '.join(GROUPS)}")
        sources = [
            each
            for each, source in SOURCES[name].items()
            if (not wanted or each in wanted) and (source.is_held_out or not asked.held_out)
        ]
        if sources:
            chosen = tuple(sources[:2] if asked.quick else sources)
            found.append(replace(GROUPS[name], **changes, sources=chosen))
    if not found:
        parser.error("no source is left of these groups")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
