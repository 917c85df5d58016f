"""``python -m bench.alphabets``: lists that do not hold all that people say, and whether the errors
that are stated hold.

For each oracle and crowd, over many runs with a salt and coins of their own: how far estimates are
off on average, how often 95% intervals hold the truth, for the candidates and for what is left for
anything off the list, and how many stars candidates get that nobody holds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm, poisson

import sottovoce as sv
from sottovoce.results.findings import Findings

Floats = NDArray[np.float64]

ORACLES = ("o-rr", "o-rappor", "rappor")
SCHEMA = sv.Schema(x=sv.Integer(bits=48))
HELD = np.array([0.3, 0.2, 0.1, 0.05, 0.03, 0.01])  # by the first candidates, before the rest
CANDIDATES = tuple(range(1, 21))
FIRST_OFF = 1 << 20  # the first value that is on no list
LEVEL = 0.95
STARS = 0.05  # false ones that a run promises at most
ALPHA = 1e-3  # chance that a figure of code that is right is marked


@dataclass(frozen=True)
class Crowd:
    """What share of people is off the list, and on how many values; None for five people each."""

    off_list: float
    values: int | None

    def __str__(self) -> str:
        if not self.off_list:
            return "all on the list"
        spread = "many values" if self.values is None else f"on {self.values}"
        return f"{self.off_list:.0%} off the list, {spread}"

    @property
    def seed(self) -> int:
        """From which its runs count on, so that no two crowds share their coins."""
        return 10_000 * (100 * (self.values or 0) + round(100 * self.off_list))

    def people(self, count: int) -> tuple[NDArray[np.int64], Floats]:
        """Everybody's value, and the true frequencies of the candidates."""
        off = round(count * self.off_list)
        shares = HELD / HELD.sum() * (count - off)
        held = np.zeros(len(CANDIDATES), np.int64)
        held[: len(HELD)] = shares
        held[0] += count - off - held.sum()
        other = np.arange(off) // 5 if self.values is None else np.arange(off) % self.values
        listed = np.repeat(CANDIDATES, held)
        return np.concatenate([listed, FIRST_OFF + other]), held / count


CROWDS = (
    Crowd(0.0, None),
    Crowd(0.2, None),
    Crowd(0.2, 3),
    Crowd(0.5, None),
    Crowd(0.5, 3),
    Crowd(0.5, 1),
    Crowd(1.0, None),  # nobody holds a candidate: every star is false
    Crowd(1.0, 3),
)


@dataclass(frozen=True)
class Outcome:
    """What some runs gave: errors over their standard errors, and false stars."""

    standard: Floats  # (runs, candidates)
    rest: Floats  # of what is left for anything off the list, (runs,)
    std_error: float  # of a candidate, on average
    stars: int  # of candidates that nobody holds, in all runs
    nobodys: int  # candidates that nobody holds

    @property
    def coverage(self) -> tuple[float, float]:
        """The share of 95% intervals that hold the truth: of candidates, and of the rest."""
        reach = norm.isf((1 - LEVEL) / 2)
        return float((abs(self.standard) < reach).mean()), float((abs(self.rest) < reach).mean())

    @property
    def bias(self) -> float:
        """The largest mean of an error, over the standard error of such a mean."""
        runs = len(self.standard)
        means = np.append(self.standard.mean(axis=0), self.rest.mean())
        return float(np.abs(means).max() * np.sqrt(runs))

    def marks(self) -> list[str]:
        """What chance does not explain, by exact quantiles."""
        runs, candidates = self.standard.shape
        wrong = []
        for share, count, what in zip(
            self.coverage, (runs * candidates, runs), ("candidates", "rest"), strict=True
        ):
            low, high = binom.ppf([ALPHA / 2, 1 - ALPHA / 2], count, LEVEL) / count
            if not low <= share <= high:
                wrong.append(f"coverage of {what}")
        if self.bias > norm.isf(ALPHA / (2 * (candidates + 1))):
            wrong.append("bias")
        expected = runs * STARS * self.nobodys / candidates
        if self.stars > poisson.isf(ALPHA, expected):
            wrong.append("stars")
        return wrong


def measured(
    name: str,
    crowd: Crowd,
    runs: int,
    people: int,
    epsilon: float,
    *,
    complete: bool = False,
    cohorts: int | None = None,
    buckets: int | None = None,
) -> Outcome:
    """Runs of one oracle on one crowd; ``complete`` takes the list for all that people say."""
    values, truth = crowd.people(people)
    standard, rest, errors, stars = [], [], [], 0
    for seed in range(crowd.seed, crowd.seed + runs):
        question = (
            sv.Frequencies("x", oracle=name, salt=seed, cohorts=cohorts, buckets=buckets)
            if name == "o-rappor" or cohorts is not None
            else sv.HeavyHitters("x", top=len(CANDIDATES), method=name, salt=seed)
        )
        plan = sv.plan(SCHEMA, question, epsilon=epsilon, people=people)
        heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": values}, seed=seed))
        found = heard.estimate(candidates=CANDIDATES, complete=complete)
        table = found.table
        is_starred = (
            found.significant() if isinstance(found, Findings) else table.significant(STARS)
        )
        order = np.array([CANDIDATES.index(int(str(label))) for label in table.labels])
        standard.append(np.empty(len(CANDIDATES)))
        standard[-1][order] = (table.values - truth[order]) / table.std_error
        stars += int(is_starred[truth[order] == 0].sum())
        errors.append(float(table.std_error.mean()))
        left = table.off_list
        rest.append(0.0 if left is None else (left - crowd.off_list) / left.std_error)
    return Outcome(
        np.array(standard),
        np.array(rest),
        float(np.mean(errors)),
        stars,
        int((truth == 0).sum()),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a line for each oracle and crowd."""
    parser = argparse.ArgumentParser(prog="bench.alphabets", description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--oracles", nargs="+", choices=ORACLES, default=ORACLES)
    given = parser.parse_args(arguments)
    print(
        f"{given.runs} runs, {given.people:,} people, epsilon {given.epsilon:g}, "
        f"{len(CANDIDATES)} candidates, {LEVEL:.0%} intervals"
    )
    print(
        f"{'oracle':<9} {'crowd':<30} {'std error':>9} {'squared':>8} {'bias':>5} {'held':>6} "
        f"{'rest held':>9} {'stars':>6} {'promised':>8}"
    )
    for name in given.oracles:
        for crowd in CROWDS:
            got = measured(name, crowd, given.runs, given.people, given.epsilon)
            held, rest_held = got.coverage
            promised = STARS * got.nobodys / len(CANDIDATES)
            print(
                f"{name:<9} {crowd!s:<30} {got.std_error:>9.4f} "
                f"{(got.standard**2).mean():>8.3f} {got.bias:>5.2f} {held:>6.1%} "
                f"{rest_held:>9.1%} {got.stars / given.runs:>6.3f} {promised:>8.3f}  "
                + ", ".join(got.marks()),
                flush=True,
            )


if __name__ == "__main__":
    main()
