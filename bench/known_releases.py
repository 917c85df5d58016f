"""``python -m bench.known_releases --data FOLDER --out FILE``: releases of known domains, measured.

The squared error of tables of three attributes, for each epsilon and method, beside what local
methods reach on the same people. A run that is stopped goes on where it was. ``--report FILE
--docs docs/central.md`` writes the section of the document, with its picture.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import combinations
from math import comb, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from bench.data import add_data_option, data_folder

K = 3
DELTA = "1e-6"
EPSILONS = ("0.2", "0.6", "1.0", "2.0")
RUNS = 3
PEOPLE = 1 << 16  # of Kosarak
LARGEST_SIZE = 24  # values of an attribute of the census
DRAWS = 1 << 22  # for the variance of a single count
SECTION = "known releases"
PICTURE = "central-known.svg"
LOCAL = ("calm", "auto")
CENTRAL_AUTO = "auto of a curator"
TREE = "spanning tree (mbi)"
Places = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class People:
    """Everybody's codes, and how many values each attribute has."""

    codes: Any  # (people, attributes)
    sizes: tuple[int, ...]

    def true_table(self, places: Places) -> Any:
        """The shares of some attributes, flat."""
        shape = [self.sizes[place] for place in places]
        cells = np.ravel_multi_index([self.codes[:, place] for place in places], shape)
        return np.bincount(cells, minlength=int(np.prod(shape))) / len(self.codes)

    def table(self) -> Any:
        """As a curator holds them, with public domains."""
        from sottovoce.central.method import MemoryTable

        count = len(self.codes)
        names = tuple(f"a{place}" for place in range(len(self.sizes)))
        values = tuple(tuple(range(size)) for size in self.sizes)
        known = (True,) * len(self.sizes)
        return MemoryTable(names, values, known, self.codes, np.arange(count), count)


def kosarak(data: Path) -> People:
    """The sixteen items that most people clicked: yes or no."""
    from sottovoce.measure.populations import read_population

    crowd = read_population(data / "kosarak_prefix70k.parquet", top=16)
    codes = np.stack([column.codes for column in crowd.columns.values()], axis=1)
    return People(codes[:PEOPLE], (2,) * 16)


def adult(data: Path) -> People:
    """Fourteen attributes, of 2 to 100 values; the domains are public."""
    import pyarrow.parquet as pq

    about = json.loads((data / "adult_discrete.json").read_text(encoding="utf-8"))
    table = pq.read_table(data / "adult_discrete.parquet")
    names = [each["name"] for each in about["attributes"]]
    codes = np.stack([table[name].to_numpy() for name in names], axis=1).astype(np.int64)
    return People(codes, tuple(each["size"] for each in about["attributes"]))


def census(data: Path) -> People:
    """All categorical attributes of at most 24 values; the domains are public."""
    import pyarrow.parquet as pq

    about = json.loads((data / "census_income_kdd.json").read_text(encoding="utf-8"))
    categorical = [each for each in about["attributes"] if each["kind"] == "categorical"]
    sizes = {each["name"]: each["size"] for each in categorical if each["size"] <= LARGEST_SIZE}
    table = pq.read_table(data / "census_income_kdd.parquet", columns=list(sizes))
    codes = np.stack([table[name].to_numpy() for name in sizes], axis=1).astype(np.int64)
    return People(codes, tuple(sizes.values()))


SOURCES: Mapping[str, Callable[[Path], People]] = {
    "kosarak-16": kosarak,
    "adult": adult,
    "census": census,
}

TRIPLES = (0.001, 0.001, 1)  # weights: tables of three are what matters
# a method of the library, up to how many attributes it releases, and its options
CENTRAL: Mapping[str, tuple[str, int, dict[str, Any]]] = {
    "residual": ("residual", 3, {}),
    "residual, fitted": ("residual", 3, {"repair": "simplex"}),
    "residual for triples": ("residual", 3, {"weights": TRIPLES}),
    "residual for triples, fitted": ("residual", 3, {"weights": TRIPLES, "repair": "simplex"}),
    "residual of pairs, fitted": ("residual", 2, {"repair": "simplex"}),
    "residual of pairs, filled": ("residual", 3, {"measured": 2}),
    CENTRAL_AUTO: ("auto", 3, {}),
    "priview, laplace": ("priview", 3, {"noise": "laplace"}),
    "priview, gaussian": ("priview", 3, {"noise": "gaussian"}),
}


@lru_cache(maxsize=2)
def people_of(source: str, data: Path) -> People:
    return SOURCES[source](data)


def judged_sets(people: People) -> list[Places]:
    """The tables that are judged: all of three attributes."""
    return list(combinations(range(len(people.sizes)), K))


def squared_error(people: People, fit: Any, sets: Sequence[Places]) -> float:
    """The mean over tables of the squared errors of their shares, summed over cells."""
    total = 0.0
    for places in sets:
        (told,) = fit.tables([places])
        total += float(((told - people.true_table(places)) ** 2).sum())
    return total / len(sets)


def central_line(
    people: People, name: str, epsilon: str, run: int, delta: str = DELTA
) -> dict[str, Any]:
    """One release, simulated with a seed, and how far it is off."""
    from sottovoce.accounting import Ledger
    from sottovoce.central.choice import choose
    from sottovoce.central.method import ReleaseTerms
    from sottovoce.central.methods import METHODS
    from sottovoce.ground.entropy import Seeded

    kind, order, options = CENTRAL[name]
    if kind == "priview":
        options = {**options, "expected_people": len(people.codes)}
    asked = ReleaseTerms(Decimal(epsilon), Decimal(delta), order, "add-remove", options)
    ledger = Ledger(epsilon=epsilon, delta=delta)
    start = perf_counter()
    choice = choose(kind, METHODS, people.table(), asked)
    method: Any = choice.method  # one for known domains, which has a fit
    fit = method.fit(people.table(), choice.terms(asked), ledger, Seeded(run + 1))
    sets = judged_sets(people)
    error = squared_error(people, fit, sets)
    return {"sse": error, "tables": len(sets), "seconds": perf_counter() - start}


def tree_line(people: People, epsilon: str, run: int) -> dict[str, Any]:
    """The spanning tree mechanism with the inference of mbi (private-pgm), in its own environment;
    beside its noise it is told the number of people.
    """
    from bench.peers import python_of
    from bench.timing import child

    with TemporaryDirectory() as folder:
        path = Path(folder) / "people.npz"
        np.savez(path, codes=people.codes, sizes=people.sizes)
        arguments = ("bench.pgm_child", str(path), epsilon, DELTA, str(run + 1))
        return dict(child(*arguments, python=python_of("mbi")))


def local_line(people: People, method: str, epsilon: str, run: int) -> dict[str, Any]:
    """The same people, who whisper: no curator is trusted, and epsilon is pure."""
    import sottovoce as sv

    names = [f"a{place}" for place in range(len(people.sizes))]
    attributes = {
        name: sv.Categorical(range(size)) for name, size in zip(names, people.sizes, strict=True)
    }
    schema = sv.Schema(**attributes)
    crowd = {name: people.codes[:, place] for place, name in enumerate(names)}
    start = perf_counter()
    question = sv.Marginals(up_to=K, method=method)
    plan = sv.plan(schema, question, epsilon=epsilon, people=len(people.codes))
    heard = sv.Aggregate(plan).add(sv.simulate(plan, crowd, seed=run + 1))
    sets = judged_sets(people)
    error = squared_error(people, heard.estimate().fit, sets)  # type: ignore[attr-defined]
    return {"sse": error, "tables": len(sets), "seconds": perf_counter() - start}


def single_counts(attributes: int) -> tuple[float, float]:
    """How much less a single count varies than if every table had its own noise.

    Yes-or-no attributes, tables of up to three released, (1, 1e-6).

    Returns:
        The ratio of variances by the algebra, and as measured over ``DRAWS`` draws.
    """
    from sottovoce.accounting import mu_of
    from sottovoce.central.method import ReleaseTerms
    from sottovoce.central.residual_plan import ResidualPlan
    from sottovoce.ground.entropy import Seeded
    from sottovoce.ground.noise import lattice_gaussian

    plan = ResidualPlan.of((2,) * attributes, ReleaseTerms(Decimal(1), Decimal(DELTA), K))
    # Var_k = C(d, k) / (mu^2 share_k), share_k ~ sqrt(C(d, k))     gopi2024marginals, algorithm 1
    roots = [sqrt(comb(attributes, count)) for count in range(1, K + 1)]
    direct = attributes * sum(roots) / roots[0] / mu_of(1.0, float(DELTA)) ** 2
    entropy = Seeded(1)

    def noise(places: Places, count: int) -> Any:
        steps = plan.steps_per_unit(places)
        return lattice_gaussian(plan.variance(places), steps, count, entropy) / steps

    cells = noise((0,), 2 * DRAWS).reshape(2, DRAWS)
    errors = (cells[0] - cells[1]) / 2 + noise((), DRAWS) / 2
    measured = float((errors**2).mean())
    return direct / float(plan.cell_variance((0,))), direct / measured


# -- the file of results


def run_all(args: argparse.Namespace, data: Path) -> None:
    """Measure what is not in the file yet, a line at a time."""
    out = Path(args.out)
    done = {_key(line) for line in read_lines(out)}
    with out.open("a", encoding="utf-8") as file:
        for run in range(args.runs):
            for source in args.sources:
                for epsilon in args.epsilons:
                    for method in args.methods:
                        key = (source, method, epsilon, run)
                        if key in done or (method in LOCAL and source != "kosarak-16"):
                            continue
                        people = people_of(source, data)
                        line = {
                            "source": source,
                            "method": method,
                            "epsilon": epsilon,
                            "k": K,
                            "run": run,
                            **measured_line(people, method, epsilon, run),
                        }
                        file.write(json.dumps(line) + "\n")
                        file.flush()
                        print(json.dumps(line), file=sys.stderr, flush=True)


def measured_line(people: People, method: str, epsilon: str, run: int) -> dict[str, Any]:
    """One run of any method."""
    if method == TREE:
        return tree_line(people, epsilon, run)
    measure = local_line if method in LOCAL else central_line
    return measure(people, method, epsilon, run)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines that are whole."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def _key(line: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return line["source"], line["method"], line["epsilon"], line["run"]


# -- the page


def report(lines: Sequence[Mapping[str, Any]], ratios: Mapping[int, tuple[float, float]]) -> str:
    """The section in Markdown: what was measured, in tables."""
    text = [
        "Squared error of a table of three attributes, summed over its cells as shares, "
        "in the mean over tables and runs.",
        f"Central methods keep (epsilon, {DELTA}) where people come or go, "
        "but Laplace noise keeps epsilon alone, and so does every local method.",
        '"fitted" is `repair="simplex"`; "for triples" gives tables of three all the weight; '
        '"of pairs" releases tables of two, and those of three are of maximum entropy; "filled" is '
        "`measured=2`, which leaves tables of two unbiased.",
        f'"{CENTRAL_AUTO}" is what `method="auto"` takes, told nothing of how many people there '
        "are.",
        f'"{TREE}" is the maximum spanning tree mechanism of mckenna2021winning, written again for '
        "this comparison, with the inference of private-pgm (the package mbi 2.0.0), at the rho of "
        "zCDP that promises the same; it is told the number of people.",
        "`python -m bench.known_releases` prints it.",
        "",
    ]
    for source in dict.fromkeys(line["source"] for line in lines):
        own = [line for line in lines if line["source"] == source]
        text += [*_table(source, own), "", _least(source, own), ""]
    if ratios:
        text.append(
            "A single count of yes-or-no attributes, tables of up to three released at "
            f"(1, {DELTA}), varies less than if every table had noise of its own with the best "
            "shares of the budget:"
        )
        text.append("")
        for attributes, (algebra, measured) in ratios.items():
            text.append(
                f"- {attributes} attributes: {algebra:.2f} times less by the algebra, "
                f"{measured:.2f} times less measured over {DRAWS:,} draws."
            )
        text.append("")
    return "\n".join(text)


def _table(source: str, lines: Sequence[Mapping[str, Any]]) -> list[str]:
    epsilons = sorted({line["epsilon"] for line in lines}, key=float)
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    tables: dict[str, int] = {}
    for line in lines:
        figures[line["method"]][line["epsilon"]].append(line["sse"])
        tables[line["method"]] = line["tables"]
    head = " | ".join(f"eps {float(epsilon):g}" for epsilon in epsilons)
    rows = [f"| {source} | tables | runs | {head} |", "| --- " * (3 + len(epsilons)) + "|"]
    for method in (name for name in (*CENTRAL, TREE, *LOCAL) if name in figures):
        by_epsilon = figures[method]
        runs = min(len(each) for each in by_epsilon.values())
        told = []
        for epsilon in epsilons:
            each = by_epsilon.get(epsilon)
            told.append(f"{np.mean(each):.2g}" if each else "")
        rows.append(f"| {method} | {tables[method]} | {runs} | {' | '.join(told)} |")
    return rows


def _least(source: str, lines: Sequence[Mapping[str, Any]]) -> str:
    """Which method errs least at each epsilon, in a sentence."""
    best = {}
    for epsilon in sorted({line["epsilon"] for line in lines}, key=float):
        errors: dict[str, list[float]] = defaultdict(list)
        for line in lines:
            if line["epsilon"] == epsilon:
                errors[line["method"]].append(line["sse"])
        best[epsilon] = min(errors, key=lambda name: float(np.mean(errors[name])))
    told = [f"{name} at epsilon {float(epsilon):g}" for epsilon, name in best.items()]
    return f"Least on {source}: {'; '.join(told)}."


def picture(lines: Sequence[Mapping[str, Any]]) -> Any:
    """Local and central methods over epsilon, on the people that have both."""
    from bench.marginal_report import error_chart

    shown = ("calm", "auto", "priview, laplace", "priview, gaussian", "residual, fitted")
    own = [
        {**line, "epsilon": float(line["epsilon"])}
        for line in lines
        if line["source"] == "kosarak-16" and line["method"] in shown
    ]
    named = {"calm": "local: calm", "auto": "local: auto"}
    rows = [{**line, "method": named.get(line["method"], line["method"])} for line in own]
    return error_chart(rows, f"{PEOPLE:,} people, whispering or trusting a curator")


def write_page(lines: Sequence[Mapping[str, Any]], docs: Path) -> None:
    """Put the section between its marks, and the picture beside."""
    from bench.page import write_section

    ratios = {attributes: single_counts(attributes) for attributes in (16, 32)}
    caption = "Squared error over epsilon: local calm and auto, central priview and residual"
    write_section(docs, SECTION, [report(lines, ratios)], {PICTURE: (caption, picture(lines))})


def main(arguments: list[str] | None = None) -> int:
    """Measure, or report."""
    parser = argparse.ArgumentParser(prog="python -m bench.known_releases", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--out", metavar="FILE", help="measure into this file, JSON lines")
    parser.add_argument("--report", metavar="FILE", help="print what a file of results says")
    parser.add_argument("--docs", metavar="PAGE", help="write the report into this page")
    parser.add_argument("--sources", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    every = [*CENTRAL, TREE, *LOCAL]
    parser.add_argument("--methods", nargs="+", default=every, choices=every)
    parser.add_argument("--epsilons", nargs="+", default=list(EPSILONS))
    parser.add_argument("--runs", type=int, default=RUNS)
    args = parser.parse_args(arguments)
    if not args.out and not args.report:
        parser.error("give --out FILE to measure, or --report FILE")
    if args.out:
        run_all(args, data_folder(parser, args.data))
    if args.report:
        lines = read_lines(Path(args.report))
        if args.docs:
            write_page(lines, Path(args.docs))
        print(report(lines, {}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
