"""``python -m bench.findings``: what cormode2018marginal found on taxi rides, found again (figure
5, table 3).
"""

from __future__ import annotations

import argparse
from itertools import combinations
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import sottovoce as sv
from bench.data import add_data_option, data_folder
from sottovoce.measure import compare_marginals
from sottovoce.measure.populations import read_population

# parallel randomized response with the coins of the paper's experiments, section 5.1
SIX = ("inp-ht", "inp-ps", "inp-rr:coins=oue", "marg-ht", "marg-ps", "marg-rr:coins=oue")
PEOPLE, RUNS = 1 << 18, 5
# people, attributes, k, epsilon; tables the paper's EM left where they started, of all
#     table 3
FAILURES = (
    (1 << 16, 8, 1, 0.2, "3/8"),
    (1 << 18, 8, 2, 0.1, "15/28"),
    (1 << 16, 8, 2, 0.2, "3/28"),
    (1 << 16, 12, 2, 0.2, "19/66"),
    (1 << 18, 16, 2, 0.1, "120/120"),
    (1 << 18, 16, 2, 0.2, "72/120"),
    (1 << 19, 24, 2, 0.2, "276/276"),
)


def varying_k(console: Console, data: Path) -> None:
    """Figure 5: mean total variation distance of the six methods, d = 8, e^epsilon = 3."""
    rides = read_population(data / "nyc_taxi_binary.parquet")
    shown = Table(
        "k",
        *SIX,
        title=f"Total variation distance, d = 8, {PEOPLE:,} people, epsilon = ln 3, {RUNS} runs",
    )
    for k in range(1, 8):
        rows = compare_marginals(
            rides, k, PEOPLE, [f"{log(3):.6f}"], SIX, queries=50, runs=RUNS, seed=1
        )
        figures = {row.method: row.tvd for row in rows if row.tvd is not None}
        best = min(figures.values())
        shown.add_row(str(k), *(_cell(figures.get(name), best) for name in SIX))
    console.print(shown)


def _cell(figure: float | None, best: float) -> str:
    return (
        ""
        if figure is None
        else f"[bold]{figure:.4f}[/bold]"
        if figure == best
        else f"{figure:.4f}"
    )


def failures(console: Console, data: Path) -> None:
    """Table 3: tables that expectation maximisation left at the uniform start; columns repeat
    beyond eight.
    """
    rides = read_population(data / "nyc_taxi_binary.parquet")
    codes = [column.codes for column in rides.columns.values()]
    shown = Table(
        "people", "d", "k", "epsilon", "failed", "paper's", title="inp-em left where it started"
    )
    for people, d, k, epsilon, theirs in FAILURES:
        rows = np.random.default_rng(1).integers(0, rides.people, people)
        columns = {f"a{place}": codes[place % len(codes)][rows].astype(bool) for place in range(d)}
        schema = sv.Schema(**{name: sv.Boolean() for name in columns})
        plan = sv.plan(
            schema, sv.Marginals(up_to=2, method="inp-em"), epsilon=epsilon, people=people
        )
        fit: Any = sv.Aggregate(plan).add(sv.simulate(plan, columns, seed=1)).estimate().fit  # type: ignore[attr-defined]
        tables = list(combinations(range(d), k))
        shown.add_row(
            f"{people:,}",
            str(d),
            str(k),
            str(epsilon),
            f"{fit.failures(tables)}/{len(tables)}",
            theirs,
        )
    console.print(shown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.findings", description=__doc__)
    add_data_option(parser)
    folder = data_folder(parser, parser.parse_args().data)
    screen = Console(width=120)
    varying_k(screen, folder)
    failures(screen, folder)
