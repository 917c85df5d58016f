"""``python -m bench.shuffled_plans --out results.jsonl``: shuffled plans on real data, measured.

A run that is stopped goes on where it was. ``--report results.jsonl`` says how methods compare, and
with ``--docs docs/shuffle.md`` writes it there, with a picture.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from bench import shuffled_sources, shuffled_tables
from bench.data import add_data_option, data_folder
from bench.known_releases import read_lines
from bench.shuffled_sources import LARGEST, SHAPES

DELTA = "1e-9"
CAP = 12  # of what a report costs by itself, so that it does not decide
SAMPLED = 2_048  # values of which the thesis's hashing is asked, beside the largest
WORDS, TOP = 500_000, 32  # people, and words to find
SPREAD = 1 << 18  # people who are asked for marginals

# group, source, epsilon, method, run
Key = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class Group:
    """What is measured of some sources."""

    sources: tuple[str, ...]
    epsilons: tuple[str, ...]
    methods: tuple[str, ...]
    runs: int


FREQUENCIES: Mapping[str, Mapping[str, Any]] = {
    "auto": {},
    "auto, cap 8": {},
    "auto, head": {"focus": "head"},
    "solh, thesis": {"oracle": "solh", "thesis": True},
}
MARGINALS = ("shuffled", "local", "central, auto", "central, residual fitted")
FINDERS = ("tree-hist", "windows", "thesis", "local")
FINE = ("0.1", "0.2", "0.4", "0.8", "1")

GROUPS: Mapping[str, Group] = {
    "kosarak": Group(("kosarak",), FINE, tuple(FREQUENCIES), 3),
    "ipums": Group(("ipums",), FINE, tuple(FREQUENCIES), 3),
    "marginals": Group(("kosarak-16", "adult-3"), ("0.5",), MARGINALS, 3),
    "words": Group(("words",), ("0.2", "1"), FINDERS, 5),
    "table": Group(("formulas",), shuffled_tables.EPSILONS, ("9.2",), 1),
}


# -- frequencies


@lru_cache(maxsize=2)
def _values(source: str, run: int, data: Path) -> Any:
    return shuffled_sources.held_values(source, run, data)


@lru_cache(maxsize=4)
def _plan(source: str, epsilon: str, method: str) -> Any:
    import sottovoce as sv

    people, size = SHAPES[source]
    return sv.plan(
        sv.Schema(x=sv.Ordinal(0, size - 1)),
        sv.Frequencies("x", **FREQUENCIES[method]),
        epsilon=epsilon,
        delta=DELTA,
        people=people,
        least=people,
        cap=8 if method.endswith("cap 8") else CAP,
        trust="shuffled",
    )


def frequencies(source: str, epsilon: str, method: str, run: int, data: Path) -> dict[str, Any]:
    """The squared error of a value, and of one of the largest, from reports."""
    import sottovoce as sv

    values = _values(source, run, data)
    people, size = SHAPES[source]
    truth = np.bincount(values, minlength=size) / people
    start = perf_counter()
    plan = _plan(source, epsilon, method)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": values}, seed=run + 1))
    largest = np.argsort(-truth, kind="stable")[:LARGEST]
    others = np.setdiff1d(np.arange(size), largest)
    is_slow = method == "solh, thesis"
    if is_slow and len(others) > SAMPLED:  # a hash for each report and value
        others = np.random.default_rng(run).choice(others, SAMPLED, replace=False)
    asked = np.concatenate([largest, others])
    if len(asked) < size:
        table = heard.estimate(candidates={"x": asked.tolist()}).marginal("x")
        told = table.values
    else:
        told = heard.estimate().marginal("x").values[asked]
    squares = (told - truth[asked]) ** 2
    head, rest = squares[:LARGEST].mean(), squares[LARGEST:].mean()
    return {
        # of a sample every value stands for as many as there are
        "mse": float((LARGEST * head + (size - LARGEST) * rest) / size),
        "head_mse": float(head),
        **_told(plan),
        "seconds": perf_counter() - start,
    }


def _told(plan: Any) -> dict[str, Any]:
    """Both epsilons, and what is asked."""
    source = plan.cohorts[0].asks[0].oracle
    return {
        "local": float(plan.epsilon),
        "least": plan.shuffling.least,
        "oracle": source.names[0],
        "options": {name: value for name, value in source.options().items() if name != "salt"},
    }


# -- marginals


def marginals(source: str, epsilon: str, method: str, run: int, data: Path) -> dict[str, Any]:
    """The squared error of tables of three attributes, summed over cells."""
    import sottovoce as sv
    from bench.known_releases import CENTRAL_AUTO, K, central_line, judged_sets, squared_error

    people = shuffled_sources.table_people(source, SPREAD, run, data)
    if method.startswith("central"):
        name = CENTRAL_AUTO if method == "central, auto" else "residual, fitted"
        return central_line(people, name, epsilon, run, DELTA)
    names = [f"a{place}" for place in range(len(people.sizes))]
    domains = [sv.Categorical(range(size)) for size in people.sizes]
    schema = sv.Schema(**dict(zip(names, domains, strict=True)))
    options = {"trust": "shuffled", "delta": DELTA, "least": SPREAD, "cap": CAP}
    shuffling: Mapping[str, Any] = options if method == "shuffled" else {}
    start = perf_counter()
    plan = sv.plan(schema, sv.Marginals(up_to=K), epsilon=epsilon, people=SPREAD, **shuffling)
    crowd = {name: people.codes[:, place] for place, name in enumerate(names)}
    heard = sv.Aggregate(plan).add(sv.simulate(plan, crowd, seed=run + 1))
    fit: Any = heard.estimate().joint.fit
    sets = judged_sets(people)
    error = squared_error(people, fit, sets)
    seconds = perf_counter() - start
    chosen = plan.question.to_json().get("method")
    line = {"sse": error, "tables": len(sets), "seconds": seconds, "chosen": chosen}
    return line | {"local": float(plan.epsilon)}


# -- words


def found_words(source: str, epsilon: str, method: str, run: int, data: Path) -> dict[str, Any]:
    """How many of the most frequent words are found."""
    import sottovoce as sv

    held = shuffled_sources.words(data)
    crowd = held.sampled(WORDS, TOP, 1, run)
    start = perf_counter()
    if method == "thesis":
        found, local = shuffled_tables.thesis_words(crowd, float(epsilon), float(DELTA), run)
    else:
        options: Mapping[str, Any] = {"trust": "shuffled", "delta": DELTA, "least": WORDS}
        is_local = method == "local"
        name = "windows" if is_local else method
        plan = sv.plan(
            sv.Schema(value=held.attribute),
            sv.HeavyHitters("value", top=TOP, method=name),
            epsilon=epsilon,
            people=WORDS,
            **({} if is_local else {**options, "cap": CAP}),
        )
        heard = sv.Aggregate(plan).add(sv.simulate(plan, crowd.table(), seed=run + 1))
        found, local = set(heard.estimate().table.labels), float(plan.epsilon)
    hits = len(found & set(crowd.truth))
    return {"found": hits, "local": local, "seconds": perf_counter() - start}


# -- points


Measure = Callable[[str, str, str, int, Path], Mapping[str, Any]]
MEASURES: Mapping[str, Measure] = {
    "kosarak": frequencies,
    "ipums": frequencies,
    "marginals": marginals,
    "words": found_words,
    "table": lambda source, epsilon, method, run, data: shuffled_tables.table(epsilon),
}


def points(names: Sequence[str], runs: int | None) -> Iterator[Key]:
    """What is measured: every point once, then its other runs."""
    for name in names:
        group = GROUPS[name]
        for run in range(group.runs if runs is None else min(runs, group.runs)):
            for source in group.sources:
                for epsilon in group.epsilons:
                    for method in group.methods:
                        yield name, source, epsilon, method, run


def _key(line: Mapping[str, Any]) -> Key:
    return line["group"], line["source"], line["epsilon"], line["method"], line["run"]


def run_all(out: Path, todo: Sequence[Key], data: Path) -> None:
    """Measure what is not in the file yet, a line at a time."""
    done = {_key(line) for line in read_lines(out)}
    left = [point for point in todo if point not in done]
    start = perf_counter()
    with out.open("a", encoding="utf-8") as file:
        for number, point in enumerate(left, start=1):
            group, source, epsilon, method, run = point
            line: dict[str, Any] = {
                "group": group,
                "source": source,
                "epsilon": epsilon,
                "method": method,
                "run": run,
            }
            line |= MEASURES[group](source, epsilon, method, run, data)
            file.write(json.dumps(line) + "\n")
            file.flush()
            minutes = (perf_counter() - start) / number * (len(left) - number) / 60
            shown = {name: line[name] for name in SHOWN if name in line}
            where = f"{source} eps={epsilon} {method} run {run}: {shown}"
            print(
                f"bench: {number}/{len(left)}, {minutes:.0f} min left: {where}",
                file=sys.stderr,
                flush=True,
            )


SHOWN = ("mse", "head_mse", "sse", "found", "local")


def main(arguments: list[str] | None = None) -> int:
    """Measure, or report."""
    parser = argparse.ArgumentParser(prog="python -m bench.shuffled_plans", description=__doc__)
    parser.add_argument("--out", metavar="FILE", help="measure into this file, JSON lines")
    parser.add_argument(
        "--group",
        metavar="a,b",
        default=",".join(GROUPS),
        help=f"which of {', '.join(GROUPS)} (all by default)",
    )
    parser.add_argument("--runs", type=int, help="at most so many of each point")
    add_data_option(parser)
    parser.add_argument("--report", metavar="FILE", help="print what a file of results says")
    parser.add_argument("--docs", metavar="PAGE", help="write the report into this page")
    asked = parser.parse_args(arguments)
    if not asked.out and not asked.report:
        parser.error("give --out FILE to measure, or --report FILE")
    names = asked.group.split(",")
    for name in names:
        if name not in GROUPS:
            parser.error(f"group ({name}) must be one of {', '.join(GROUPS)}")
    if asked.out:
        todo = list(points(names, asked.runs))
        run_all(Path(asked.out), todo, data_folder(parser, asked.data))
    if asked.report:
        from bench.shuffled_report import report, write_page

        lines = read_lines(Path(asked.report))
        if asked.docs:
            write_page(lines, Path(asked.docs))
        print(report(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
