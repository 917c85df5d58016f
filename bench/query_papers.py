"""Methods for queries at the settings of their own papers, beside what the papers say.

``python -m bench.query_papers`` draws the synthetic data of li2020numerical (square wave),
yang2020ranges (hybrid grids) and du2021ahead (adaptive trees) and prints one table. Pictures of the
papers were not at hand: where no number is known, it says what was stated in words.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.api.planning import simulate_rounds
from sottovoce.postprocessing.smoothing import smoothed_em
from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.fitted import FittedTable, Term
from sottovoce.questions.queries.methods.hybrid_grids import grid_sizes
from sottovoce.questions.queries.methods.square_wave import WaveTable

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

UNKNOWN = "number not available here"

# li2020numerical: Beta(5, 2), 100,000 people
BETA_PEOPLE, BETA_SIZE = 100_000, 256
BETA_EPSILONS = (0.5, 1.0, 2.0)
BETA_METHODS = ("square-wave", "tree", "haar", "mg")

# yang2020ranges: six dimensions of 64 values, every two with a covariance of 0.8, 10^6 people;
# queries take half of each dimension, with ends at sixteenths of it as its authors' code draws them
GRID_PEOPLE, GRID_SIZE, GRID_DIMENSIONS, GRID_COVARIANCE = 1_000_000, 64, 6, 0.8
GRID_EPSILONS = (0.2, 1.0, 2.0)
GRID_QUERIES, GRID_PARTS = 50, 16
GRID_SPAN = 4.0  # standard deviations to either side that the values are spread over: our choice
PREDICATES = (2, 4)

# du2021ahead: 1,024 values; its authors' repository (link-zju/ccs21-AHEAD) keeps a normal crowd and
# the mean squared error of 200 random ranges in one run at epsilon 1
TREE_PEOPLE, TREE_QUERIES = 100_000, 200
TREE_SIZES = (256, 1024)
TREE_EPSILONS = (0.2, 0.5, 1.0, 1.5)
TREE_METHODS = ("ahead", "tree", "haar", "hio")
AUTHORS_MSE = 0.00025572441509962186
# of its first 871 values of 1,024: mean 478, standard deviation 117
NORMAL_MEAN, NORMAL_DEVIATION = 478 / 1024, 117 / 1024
ZIPF_POWER = 1.1


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    paper: str
    experiment: str
    setting: str
    stated: str  # by the paper or its authors' code
    ours: str

    def cells(self) -> tuple[str, ...]:
        return (self.paper, self.experiment, self.setting, self.stated, self.ours)


@dataclass(frozen=True)
class Scale:
    """How much is measured; the papers' numbers of people by default."""

    runs: int = 3
    divided_by: int = 1  # people, for a quick look

    def people(self, papers: int) -> int:
        return max(1_000, papers // self.divided_by)


def fitted(
    codes: Mapping[str, Codes], size: int, method: str, epsilon: float, seed: int, **options: Any
) -> FittedTable:
    """What simulated devices tell by a method, by all its rounds."""
    people = len(next(iter(codes.values())))
    schema = sv.Schema(**{name: sv.Ordinal(0, size - 1) for name in codes})
    question = sv.Queries(list(codes), method=method, **options)
    plan = sv.plan(schema, question, epsilon=epsilon, people=people)
    return cast(QueryEstimate, simulate_rounds(plan, dict(codes), seed)).fitted


def interval(size: int, start: int, stop: int) -> Floats:
    """Weights of the codes from start to before stop."""
    order = np.arange(size)
    return ((order >= start) & (order < stop)).astype(float)


def shown(values: Sequence[float]) -> str:
    """A mean over runs."""
    return f"{float(np.mean(values)):.3g}"


# -- square wave


def beta_codes(people: int, seed: int) -> Codes:
    """Beta(5, 2), in bins of equal width."""
    draws = np.random.default_rng((1, seed))
    return np.asarray(draws.beta(5, 2, people) * BETA_SIZE, np.int64)


def distances(cumulated: Floats, truth: Floats) -> tuple[float, float]:
    """The Wasserstein distance of two distributions on the unit interval, and Kolmogorov-Smirnov's.

    Args:
        cumulated: the shares up to each of the inner edges of the bins.
        truth: the same.
    """
    errors = np.abs(cumulated - truth)
    return float(errors.sum() / (len(errors) + 1)), float(errors.max())


def range_error(cumulated: Floats, truth: Floats, width: float) -> float:
    """The mean absolute error of all ranges of a width, as a share of the unit interval."""
    errors = np.concatenate([[0.0], cumulated - truth, [0.0]])
    bins = round(width * (len(errors) - 1))
    return float(np.abs(errors[bins:] - errors[:-bins]).mean())


def wave_curves(codes: Codes, epsilon: float, seed: int) -> dict[str, Floats]:
    """The cumulated shares that each method tells, by its name."""
    prefixes: list[Term] = [{0: interval(BETA_SIZE, 0, stop)} for stop in range(1, BETA_SIZE)]
    found = {}
    for method in BETA_METHODS:
        table = fitted({"x": codes}, BETA_SIZE, method, epsilon, seed)
        if isinstance(table, WaveTable):
            plain = smoothed_em(table.source, table.heard, is_smoothed=False)
            found["EM"] = np.cumsum(plain)[:-1]
            found["EMS"] = np.cumsum(table.shares)[:-1]
        else:
            found[method] = table.joint(prefixes).values
    return found


def square_wave(scale: Scale) -> Iterator[Line]:
    """Distances and ranges of Beta(5, 2)."""
    people = scale.people(BETA_PEOPLE)
    for epsilon in BETA_EPSILONS:
        scores: dict[str, list[tuple[float, ...]]] = {}
        for run in range(scale.runs):
            codes = beta_codes(people, run)
            truth = np.cumsum(np.bincount(codes, minlength=BETA_SIZE) / people)[:-1]
            for name, curve in wave_curves(codes, epsilon, run).items():
                ranges = [range_error(curve, truth, width) for width in (0.1, 0.4)]
                scores.setdefault(name, []).append((*distances(curve, truth), *ranges))
        for place, metric in enumerate(("Wasserstein", "KS", "ranges of 0.1", "ranges of 0.4")):
            columns = {name: [score[place] for score in own] for name, own in scores.items()}
            yield Line(
                "li2020numerical",
                f"{metric} by epsilon",
                f"Beta(5, 2), n {people:,}, {BETA_SIZE} values, epsilon {epsilon}",
                f"EMS before all others (abstract); {UNKNOWN}",
                ", ".join(f"{name} {shown(values)}" for name, values in columns.items()),
            )


# -- hybrid grids


def correlated_codes(kind: str, people: int, seed: int) -> dict[str, Codes]:
    """Normal or Laplace variables of variance 1, every two with the covariance; in equal bins."""
    draws = np.random.default_rng((2, seed))
    common = draws.normal(size=(people, 1))
    own = draws.normal(size=(people, GRID_DIMENSIONS))
    values = sqrt(GRID_COVARIANCE) * common + sqrt(1 - GRID_COVARIANCE) * own
    if kind == "Laplace":
        # a normal vector times the root of an exponential variable of mean 1
        values = values * np.sqrt(draws.exponential(size=(people, 1)))
    bins = np.floor((values + GRID_SPAN) * GRID_SIZE / (2 * GRID_SPAN))
    codes = np.clip(bins, 0, GRID_SIZE - 1).astype(np.int64)
    return {f"x{axis}": np.ascontiguousarray(codes[:, axis]) for axis in range(GRID_DIMENSIONS)}


def half_boxes(predicates: int, seed: int) -> list[Term]:
    """Random selections of half of each of so many dimensions."""
    draws = np.random.default_rng((3, predicates, seed))
    step, half = GRID_SIZE // GRID_PARTS, GRID_PARTS // 2
    terms: list[Term] = []
    for _ in range(GRID_QUERIES):
        axes = np.sort(draws.choice(GRID_DIMENSIONS, predicates, replace=False))
        starts = draws.integers(0, half + 1, predicates)
        terms.append(
            {
                int(axis): interval(GRID_SIZE, start * step, (start + half) * step)
                for axis, start in zip(axes, starts, strict=True)
            }
        )
    return terms


def true_shares(codes: Mapping[str, Codes], terms: Sequence[Term]) -> Floats:
    """The share of the people that each selection holds."""
    columns = list(codes.values())
    found = []
    for term in terms:
        inside = np.ones(len(columns[0]), bool)
        for axis, weights in term.items():
            inside &= np.asarray(weights, bool)[columns[axis]]
        found.append(inside.mean())
    return np.array(found)


def product_of_waves(
    codes: Mapping[str, Codes], terms: Sequence[Term], epsilon: float, seed: int
) -> Floats:
    """Each dimension by itself, from a part of the people, and answers as products."""
    names, parts = list(codes), len(codes)
    tables = [
        fitted({name: codes[name][place::parts]}, GRID_SIZE, "square-wave", epsilon, seed)
        for place, name in enumerate(names)
    ]
    shares = [cast(WaveTable, table).shares for table in tables]
    return np.array(
        [np.prod([np.asarray(term[axis]) @ shares[axis] for axis in term]) for term in terms]
    )


def grid_answers(
    codes: Mapping[str, Codes], terms: Sequence[Term], epsilon: float, seed: int
) -> dict[str, Floats]:
    """The answers of each method, by its name."""
    people, predicates = len(codes["x0"]), len(terms[0])
    _, coarse = grid_sizes(GRID_DIMENSIONS, epsilon, people)
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "hdg": ("hdg", {}),
        "coarse grids alone": ("hdg", {"fine": coarse, "coarse": coarse}),
        "hio": ("hio", {}),
    }
    if predicates == 2:
        asked["pair tables"] = ("mg", {"workload": {"volumes": ["random"], "dimensions": [2]}})
    found = {}
    for name, (method, options) in asked.items():
        table = fitted(codes, GRID_SIZE, method, epsilon, seed, **options)
        found[name] = np.array([table.joint([term]).values[0] for term in terms])
    found["product of square waves"] = product_of_waves(codes, terms, epsilon, seed)
    found["even guess"] = np.full(len(terms), 0.5**predicates)
    return found


def hybrid_grids(scale: Scale) -> Iterator[Line]:
    """Mean absolute errors of boxes over two and four of six dimensions; one run."""
    people = scale.people(GRID_PEOPLE)
    for kind in ("Normal", "Laplace"):
        codes = correlated_codes(kind, people, 0)
        for predicates in PREDICATES:
            terms = half_boxes(predicates, 0)
            truth = true_shares(codes, terms)
            for epsilon in GRID_EPSILONS:
                answers = grid_answers(codes, terms, epsilon, 0)
                errors = {name: float(np.abs(own - truth).mean()) for name, own in answers.items()}
                ordered = sorted(errors.items(), key=lambda item: item[1])
                yield Line(
                    "yang2020ranges",
                    f"MAE by epsilon, {predicates} predicates",
                    f"{kind}, covariance {GRID_COVARIANCE}, n {people:,}, {GRID_DIMENSIONS} of"
                    f" {GRID_SIZE} values, volume 0.5 each, epsilon {epsilon}",
                    f"HDG before coarse grids alone and earlier ways (abstract); {UNKNOWN}",
                    ", ".join(f"{name} {error:.3g}" for name, error in ordered),
                )


# -- adaptive trees


def tree_codes(kind: str, people: int, size: int, seed: int) -> Codes:
    """People of one dimension."""
    draws = np.random.default_rng((4, seed))
    if kind == "Zipf":
        chances = np.arange(1, size + 1, dtype=float) ** -ZIPF_POWER
        return np.asarray(draws.choice(size, people, p=chances / chances.sum()), np.int64)
    if kind == "Laplace":
        values = draws.laplace(0.5, 1 / 16, people)
    else:
        values = draws.normal(NORMAL_MEAN, NORMAL_DEVIATION, people)
    return np.clip(np.floor(values * size), 0, size - 1).astype(np.int64)


def range_errors(method: str, kind: str, size: int, epsilon: float, scale: Scale) -> list[float]:
    """Mean squared errors of random ranges, one for each run."""
    people = scale.people(TREE_PEOPLE)
    found = []
    for run in range(scale.runs):
        codes = tree_codes(kind, people, size, run)
        ends = np.sort(np.random.default_rng((5, run)).integers(0, size, (TREE_QUERIES, 2)), axis=1)
        cumulated = np.concatenate([[0.0], np.cumsum(np.bincount(codes, minlength=size) / people)])
        truth = cumulated[ends[:, 1] + 1] - cumulated[ends[:, 0]]
        terms: list[Term] = [{0: interval(size, low, high + 1)} for low, high in ends]
        table = fitted({"x": codes}, size, method, epsilon, run)
        found.append(float(((table.joint(terms).values - truth) ** 2).mean()))
    return found


def adaptive_trees(scale: Scale) -> Iterator[Line]:
    """Mean squared errors of random ranges over one dimension."""
    people = scale.people(TREE_PEOPLE)
    many = Scale(4 * scale.runs, scale.divided_by)
    own = range_errors("ahead", "Normal", 1024, 1.0, many)
    yield Line(
        "du2021ahead",
        "MSE, kept in its authors' repository",
        f"Normal, n {people:,}, 1,024 values, epsilon 1, {TREE_QUERIES} random ranges",
        f"ahead {AUTHORS_MSE:.3g}, one run of {TREE_PEOPLE:,}",
        f"ahead {shown(own)}, {min(own):.3g} to {max(own):.3g} in {len(own)} runs",
    )
    for kind in ("Normal", "Laplace", "Zipf"):
        for size in TREE_SIZES:
            for epsilon in TREE_EPSILONS:
                errors = {
                    method: range_errors(method, kind, size, epsilon, scale)
                    for method in TREE_METHODS
                }
                yield Line(
                    "du2021ahead",
                    "MSE by epsilon",
                    f"{kind}, n {people:,}, {size:,} values, epsilon {epsilon}",
                    f"AHEAD and DHT (haar) before HIO (by arXiv:2407.13532); {UNKNOWN}",
                    ", ".join(f"{name} {shown(values)}" for name, values in errors.items()),
                )


PAPERS = {"square-wave": square_wave, "hdg": hybrid_grids, "ahead": adaptive_trees}


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.query_papers", description=__doc__)
    parser.add_argument(
        "--only", metavar="a,b", help=f"which of {', '.join(PAPERS)} (all by default)"
    )
    parser.add_argument("--runs", type=int, default=3, help="of a point in one dimension")
    parser.add_argument("--quick", action="store_true", help="one run with a hundredth of people")
    asked = parser.parse_args(arguments)
    names = asked.only.split(",") if asked.only else list(PAPERS)
    for name in names:
        if name not in PAPERS:
            parser.error(f"paper ({name}) must be one of {', '.join(PAPERS)}")
    if asked.runs < 1:
        parser.error(f"runs ({asked.runs}) must be at least 1")
    scale = Scale(1, 100) if asked.quick else Scale(asked.runs)
    print("| paper | experiment | setting | stated | ours |")
    print("| --- | --- | --- | --- | --- |")
    for name in names:
        for line in PAPERS[name](scale):
            print(f"| {' | '.join(line.cells())} |")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
