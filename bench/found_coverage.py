"""``python -m bench.found_coverage``: whether the intervals of values that were found hold the
truth, and whether the frequency that a plan states is found half of the time.

Crowds hold random values of 48 bits: some of them around the frequency at which the plan says that
a value is found half of the time (or some times that of ``pem``, for methods that state none), or
with ``--crowd below`` mostly below it. Everybody else holds a value of her own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.measure.runs import seeded
from sottovoce.questions.heavyhitters import methods
from sottovoce.results.findings import Findings

FOUND_METHODS = ("windows", "pem", "tree-hist", "hash", "priv-trie")
FOUND_EPSILONS = (1.0, 2.0, 4.0)
# frequencies of the planted values, in those at which a value is found half of the time: around it,
# or nearly all below, where what is found was lucky
PLANTED_CROWDS = {
    "around": (0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.1, 1.2, 1.35, 1.6, 2.0),
    "below": (1.0, 1.0, 0.9, 0.8, 0.7, 0.85, 0.75, 0.65) * 5,
}
MOST_PLANTED = 0.9  # of the people
SCALE = "pem"  # whose threshold stands for that of methods without one, so many times larger
SCALES = {"priv-trie": 3.0, "hash": 4.0, "spm": 4.0}
STATED_LEVEL = 0.95
# the truth, in frequencies at which a value is found half of the time: up to so many
CLOSENESS = {"below": 0.95, "at": 1.05, "to 1.4": 1.4, "beyond": float("inf")}


@dataclass
class Tally:
    """How many of so many."""

    hits: int = 0
    tries: int = 0

    def add(self, hit: bool) -> None:
        self.hits += hit
        self.tries += 1

    @property
    def share(self) -> float:
        return self.hits / self.tries if self.tries else float("nan")

    @property
    def error(self) -> float:
        """One binomial standard error; never none, since a rate is never known to be 0 or 1."""
        smoothed = (self.hits + 1) / (self.tries + 2)
        return sqrt(smoothed * (1 - smoothed) / max(self.tries, 1))

    def __str__(self) -> str:
        if not self.tries:
            return "-"
        return f"{self.share:.1%} ± {self.error:.1%} of {self.tries}"


@dataclass
class FoundPoint:
    """One method at one epsilon."""

    method: str
    epsilon: float
    people: int
    runs: int
    stated: float | None  # frequency at which a value is found half of the time
    scale: float  # what it is for a method that states none
    held: Tally = field(default_factory=Tally)  # intervals of found values that hold the truth
    starred: Tally = field(default_factory=Tally)  # those of values with a star
    normal: Tally = field(default_factory=Tally)  # estimates within 1.96 standard errors
    close: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in CLOSENESS})
    close_normal: dict[str, Tally] = field(
        default_factory=lambda: {name: Tally() for name in CLOSENESS}
    )
    at_stated: Tally = field(default_factory=Tally)  # values of the stated frequency that are found
    false_stars: int = 0
    width: float = 0.0  # of intervals, in normal ones', summed over found values

    def to_json(self) -> dict[str, Any]:
        """All counts, by name."""
        return asdict(self)


def stated_share(plan: sv.Plan) -> float | None:
    """The frequency at which a plan says that a value is found half of the time."""
    question = plan.question
    assert isinstance(question, sv.HeavyHitters)
    chosen = methods.method(question.method)
    return chosen.threshold(question.target(plan.schema), plan.terms, question.options, 0.5)


def planned(method: str, epsilon: float, people: int, bits: int, top: int) -> sv.Plan:
    """A plan for whole numbers of so many bits."""
    schema = sv.Schema(x=sv.Integer(bits=bits))
    question = sv.HeavyHitters("x", top=top, method=method)
    return sv.plan(schema, question, epsilon=epsilon, people=people)


def planted_crowd(
    ratios: Sequence[float], scale: float, people: int, bits: int, draws: np.random.Generator
) -> tuple[NDArray[np.uint64], Mapping[int, int], list[int]]:
    """Everybody's value; how many hold each planted one; and those of the stated frequency.

    As many of the planted ones as fit are there.
    """
    values = draws.integers(0, 1 << bits, len(ratios), dtype=np.uint64)
    held: dict[int, int] = {}
    stated: list[int] = []
    left = MOST_PLANTED * people
    for value, ratio in zip(values.tolist(), ratios, strict=True):
        count = round(scale * ratio * people)
        if count > left:
            continue
        left -= count
        held[value] = count
        if ratio == 1.0:
            stated.append(value)
    others = draws.integers(0, 1 << bits, people - sum(held.values()), dtype=np.uint64)
    planted = np.repeat(np.array(list(held), np.uint64), list(held.values()))
    everybody = draws.permutation(np.concatenate([planted, others]))
    return everybody, held, stated


def score(point: FoundPoint, found: Findings, held: Mapping[int, int], stated: list[int]) -> None:
    """Add what one run found."""
    table = found.table
    low, high = table.interval(STATED_LEVEL)
    errors = table.std_error
    is_starred = found.significant()
    places = {label: place for place, label in enumerate(table.labels)}
    for value in stated:
        point.at_stated.add(value in places)
    for label, place in places.items():
        if label not in held:
            point.false_stars += bool(is_starred[place])
            continue
        truth = held[label] / point.people  # type: ignore[index]
        is_held = bool(low[place] <= truth <= high[place])
        point.held.add(is_held)
        if is_starred[place]:
            point.starred.add(is_held)
        is_near = bool(abs(table.values[place] - truth) <= 1.96 * errors[place])
        point.normal.add(is_near)
        point.width += float(high[place] - low[place]) / (2 * 1.96 * float(errors[place]))
        ratio = truth / point.scale
        name = next(name for name, most in CLOSENESS.items() if ratio < most)
        point.close[name].add(is_held)
        point.close_normal[name].add(is_near)


def measured_points(
    names: Sequence[str],
    ratios: Sequence[float],
    epsilons: Sequence[float],
    runs: int,
    people: int,
    bits: int,
    top: int,
    seed: int,
) -> Iterator[FoundPoint]:
    """A point for each method and epsilon, over the same crowds if they state the same."""
    for name in names:
        for epsilon in epsilons:
            plan = planned(name, epsilon, people, bits, top)
            stated = stated_share(plan)
            scale = stated
            if scale is None:
                scale = stated_share(planned(SCALE, epsilon, people, bits, top))
                assert scale is not None
                scale *= SCALES.get(name, 1.0)
            point = FoundPoint(name, epsilon, people, runs, stated, scale)
            for run in range(runs):
                draws = seeded(seed, run)
                everybody, held, of_stated = planted_crowd(ratios, scale, people, bits, draws)
                found = sv.simulate_rounds(plan, {"x": everybody}, int(draws.integers(1 << 40)))
                assert isinstance(found, Findings)
                score(point, found, held, of_stated if stated is not None else [])
            yield point


def shown_point(point: FoundPoint) -> str:
    """A point as lines of text."""
    stated = "none" if point.stated is None else f"{point.stated:.3%}"
    width = point.width / max(point.held.tries, 1)
    close = "; ".join(
        f"{name} {tally} (normal {point.close_normal[name].share:.1%})"
        for name, tally in point.close.items()
    )
    return (
        f"{point.method} at epsilon {point.epsilon:g}: held {point.held}, "
        f"with a star {point.starred}, normal ones {point.normal}, width {width:.2f} of theirs\n"
        f"  by the frequency, in that where half are found: {close}\n"
        f"  stated {stated}, found there {point.at_stated}; "
        f"false stars {point.false_stars} in {point.runs} runs"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print some lines for each method and epsilon."""
    parser = argparse.ArgumentParser(prog="bench.found_coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--people", type=int, default=200_000)
    parser.add_argument("--epsilons", nargs="+", type=float, default=FOUND_EPSILONS)
    parser.add_argument("--methods", nargs="+", default=FOUND_METHODS)
    parser.add_argument("--crowd", choices=PLANTED_CROWDS, default="around")
    parser.add_argument("--bits", type=int, default=48)
    parser.add_argument("--top", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="a line of JSON for each point")
    given = parser.parse_args(arguments)
    print(
        f"{given.runs} runs, {given.people:,} people, {given.bits} bits, top {given.top}, "
        f"values {given.crowd} the threshold, "
        f"{STATED_LEVEL:.0%} intervals; ± is one binomial standard error"
    )
    points = measured_points(
        given.methods,
        PLANTED_CROWDS[given.crowd],
        given.epsilons,
        given.runs,
        given.people,
        given.bits,
        given.top,
        given.seed,
    )
    for point in points:
        print(shown_point(point), flush=True)
        if given.json:
            with open(given.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(point.to_json()) + "\n")


if __name__ == "__main__":
    main()
