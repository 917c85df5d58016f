"""``python -m bench.repairs``: how often the intervals of repaired tables hold the true frequency.

Crowds that are skewed (Zipf) or even, over small and large domains, by unary encoding and by direct
answers, and tables of two attributes by methods of marginals. For each method: the share of values
that its 95% intervals hold, over all runs; beside it what quantiles of the same bootstrap would
hold, and how well its standard errors and biases do.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.postprocessing.bootstrap import RepairSpread
from sottovoce.postprocessing.methods import METHODS

Floats = NDArray[np.float64]
RUNS = 10
SMALL = 64  # values; a crowd of fewer is collected from so many times more often
LEAST, MOST = 0.92, 0.98  # the share of values that 95% intervals should hold


class Crowd(NamedTuple):
    """Who is asked, how: a law of values, their number, the people, the oracle, epsilon.

    ``sides``: the values are the cells of two attributes of these sizes, and ``oracle`` is a method
    of marginals.
    """

    law: str
    size: int
    people: int
    oracle: str
    epsilon: float
    sides: tuple[int, int] | None = None

    def codes(self) -> NDArray[np.int64]:
        """Everybody's value: the law's shares, the same in every run."""
        ranks = np.arange(1, self.size + 1)
        weights = np.ones(self.size) if self.law == "even" else ranks**-1.1
        shares = np.cumsum(weights) / weights.sum()
        middles = (np.arange(self.people) + 0.5) / self.people
        return np.searchsorted(shares, middles)

    def tables(self, runs: int) -> Iterator[sv.Table]:
        """What so many collections say of the values, unrepaired."""
        codes = self.codes()
        question: sv.Question
        if self.sides is None:
            schema = sv.Schema(x=sv.Categorical(range(self.size)))
            question = sv.Frequencies("x", oracle=self.oracle)
            columns = {"x": codes}
        else:
            kinds = {
                name: sv.Categorical(range(side))
                for name, side in zip("xy", self.sides, strict=True)
            }
            schema = sv.Schema(**kinds)
            question = sv.Marginals(up_to=2, method=self.oracle)
            columns = dict(zip("xy", np.divmod(codes, self.sides[1]), strict=True))
        plan = sv.plan(schema, question, epsilon=self.epsilon, people=self.people)
        for run in range(runs):
            heard = sv.Aggregate(plan).add(sv.simulate(plan, columns, seed=run))
            yield heard.estimate().marginal(*columns)


CROWDS = (
    Crowd("zipf", 4, 1_000, "oue", 1.0),
    Crowd("even", 4, 1_000, "grr", 1.0),
    Crowd("zipf", 32, 5_000, "grr", 2.0),
    Crowd("even", 32, 5_000, "oue", 1.0),
    Crowd("zipf", 512, 20_000, "oue", 1.0),
    Crowd("even", 512, 20_000, "oue", 1.0),
    Crowd("zipf", 512, 500_000, "oue", 2.0),
    Crowd("zipf", 512, 20_000, "ss", 2.0),
    Crowd("zipf", 24, 20_000, "fc", 1.0, (4, 6)),
    Crowd("zipf", 24, 20_000, "calm", 1.0, (4, 6)),
    Crowd("zipf", 24, 20_000, "latent", 1.0, (4, 6)),
)


@dataclass
class Held:
    """What one method's tables of one crowd held, run by run."""

    crowd: Crowd
    method: str
    held: list[float]  # the share of values inside their interval
    held_by_quantiles: list[float]
    widths: list[float]  # of intervals, over those of the unrepaired table
    outside: list[float]  # the share of repaired values that lie outside their interval
    values: list[Floats]
    errors: list[Floats]  # standard errors
    biases: list[Floats]

    def row(self, truth: Floats) -> str:
        """One line of the printed table."""
        values = np.stack(self.values)  # (runs, values)
        spread = np.sqrt(values.var(axis=0, ddof=1).mean())
        stated = np.sqrt(np.mean(np.square(self.errors)))
        # of the most frequent value
        bias = float(values[:, 0].mean() - truth[0])
        stated_bias = float(np.mean([each[0] for each in self.biases]))
        held = float(np.mean(self.held))
        mark = " " if LEAST <= held <= MOST else "*"
        return (
            f"{self.crowd.law:<5}{self.crowd.size:>5}{self.crowd.people:>9,} "
            f"{self.crowd.oracle:<7}{self.method:<21}{held:>7.1%}{mark}"
            f"{np.mean(self.held_by_quantiles):>8.1%}{np.mean(self.widths):>7.2f}"
            f"{np.mean(self.outside):>8.1%}{stated:>10.5f}{spread:>9.5f}"
            f"{stated_bias:>10.5f}{bias:>9.5f}"
        )


HEAD = (
    f"{'crowd':<26}{'method':<21}{'held':>7} {'quantls':>8}{'width':>7}{'outside':>8}"
    f"{'std error':>10}{'(true)':>9}{'bias':>10}{'(true)':>9}"
)


def measured(crowd: Crowd, methods: Sequence[str], runs: int) -> Iterator[Held]:
    """What the tables of each method hold, over so many collections from one crowd."""
    truth = np.bincount(crowd.codes(), minlength=crowd.size) / crowd.people
    found = {name: Held(crowd, name, [], [], [], [], [], [], []) for name in methods}
    for raw in crowd.tables(runs * max(1, SMALL // crowd.size)):
        for name in methods:
            if METHODS[name].fits(raw):
                _add(found[name], raw, truth)
    for each in found.values():
        if each.values:
            yield each


def _add(held: Held, raw: sv.Table, truth: Floats) -> None:
    table = sv.postprocess(raw, held.method)
    low, high = table.interval(0.95)
    raw_low, raw_high = raw.interval(0.95)
    held.held.append(float(_share_inside(truth, low, high)))
    held.widths.append(float((high - low).mean() / (raw_high - raw_low).mean()))
    held.outside.append(1 - _share_inside(table.values, low, high))
    held.values.append(table.values)
    held.errors.append(table.std_error)
    held.biases.append(np.zeros(len(table)) if table.bias is None else table.bias)
    if isinstance(table.spread, RepairSpread):
        held.held_by_quantiles.append(_share_inside(truth, *_quantiles(table, table.spread)))
    else:
        held.held_by_quantiles.append(held.held[-1])


def _quantiles(table: sv.Table, spread: RepairSpread) -> tuple[Floats, Floats]:
    """The basic bootstrap's interval: the value less the quantiles of its error, cut to [0, 1]."""
    errors = np.concatenate(list(spread.draws()))  # (replicates, values)
    low, high = np.quantile(errors, (0.025, 0.975), axis=0)
    return np.clip(table.values - high, 0, 1), np.clip(table.values - low, 0, 1)


def _share_inside(values: Floats, low: Floats, high: Floats) -> float:
    rounding = 1e-12
    return float(np.mean((low <= values + rounding) & (values <= high + rounding)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print, a line per crowd and method."""
    parser = argparse.ArgumentParser(prog="python -m bench.repairs", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="collections from each crowd")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated")
    parser.add_argument("--crowds", type=int, default=len(CROWDS), help="how many of them")
    asked = parser.parse_args(arguments)
    print(HEAD)
    for crowd in CROWDS[: asked.crowds]:
        truth = np.bincount(crowd.codes(), minlength=crowd.size) / crowd.people
        for held in measured(crowd, asked.methods.split(","), asked.runs):
            print(held.row(truth), flush=True)
    print(f"* outside {LEAST:.0%} to {MOST:.0%}; quantls: what quantiles of the bootstrap hold")


if __name__ == "__main__":
    main()
