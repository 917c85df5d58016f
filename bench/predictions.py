"""What plans promise beside what crowds show: ``python -m bench.predictions``.

For each schema, population, epsilon and number of people ``auto`` plans tables of two attributes;
every run draws fresh reports of the same people, and the errors of all single shares and of all
cells of pairs are taken against what these people hold.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.questions.base import predicted

CROWD_SCHEMAS = {"yes or no": (2,) * 8, "mixed": (2, 2, 2, 6, 8, 4)}
GROUP = 0.4  # of the people, whose values differ from the others'
# how much more likely a value is in the group than in all, and the next less: 0.15 hardly ties
TILTS = {"even": 0.15, "skewed": 0.15, "tied": 0.9}
EPSILONS = ("0.5", "1", "2")
CROWDS = (2_000, 20_000)
CROWD_SEED = 1


@dataclass(frozen=True)
class Compared:
    """Predicted and measured root mean squared errors of single shares and of pairs' cells."""

    schema: str
    population: str
    epsilon: str
    people: int
    method: str
    shares: tuple[float, float]
    pairs: tuple[float, float]
    stated: float  # root mean square of the standard errors that estimates of shares have

    def __str__(self) -> str:
        row = [self.schema, self.population, self.epsilon, f"{self.people:,}", self.method]
        for promised, made in (self.shares, self.pairs):
            row += [f"{promised:.4f}", f"{made:.4f}", f"{promised / made:.2f}"]
        return f"| {' | '.join([*row, f'{self.stated:.4f}'])} |"


def frequencies(size: int, place: int, population: str) -> NDArray[np.float64]:
    """Of the values of one attribute, (size,)."""
    if population != "skewed":
        return np.full(size, 1 / size)
    if size == 2:
        rare = 0.1 + 0.03 * place
        return np.array([1 - rare, rare])
    halves = 0.5 ** np.arange(size)
    return np.asarray(halves / halves.sum())


def crowd(sizes: tuple[int, ...], population: str, people: int) -> list[NDArray[np.int64]]:
    """The values of each attribute, (people,) each; a group ties them."""
    draws = np.random.default_rng(CROWD_SEED)
    is_in_group = draws.random(people) < GROUP
    columns = []
    for place, size in enumerate(sizes):
        usual = frequencies(size, place, population)
        tilt = 1 + TILTS[population] * np.where(np.arange(size) % 2, -1, 1)  # (size,)
        tilted = usual * tilt / (usual * tilt).sum()
        inside = draws.choice(size, people, p=tilted)
        outside = draws.choice(size, people, p=usual)
        columns.append(np.where(is_in_group, inside, outside))
    return columns


def compare(schema: str, population: str, epsilon: str, people: int, runs: int) -> Compared:
    """Plan once, and measure over ``runs`` crowds of reports."""
    sizes = CROWD_SCHEMAS[schema]
    names = [f"a{place}" for place in range(len(sizes))]
    attributes: dict[str, Any] = {}
    for name, size in zip(names, sizes, strict=True):
        attributes[name] = sv.Categorical(range(size))
    plan = sv.plan(sv.Schema(**attributes), sv.Marginals(up_to=2), epsilon=epsilon, people=people)
    columns = dict(zip(names, crowd(sizes, population, people), strict=True))

    squares: dict[int, list[float]] = {1: [], 2: []}  # by the attributes of a table, of each cell
    variances: list[float] = []  # as stated, of single shares
    for run in range(runs):
        estimate = sv.Aggregate(plan).add(sv.simulate(plan, columns, seed=100 + run)).estimate()
        for order in squares:
            for chosen in combinations(range(len(sizes)), order):
                table = estimate.marginal(*(names[place] for place in chosen))
                shape = [sizes[place] for place in chosen]
                values = [columns[names[place]] for place in chosen]
                cells = np.ravel_multi_index(tuple(values), tuple(shape))
                truth = np.bincount(cells, minlength=int(np.prod(shape))) / people
                squares[order] += ((table.values - truth) ** 2).tolist()
                if order == 1:
                    variances += np.asarray(table.variances).tolist()
    shares, pairs = predicted(plan).figures
    made = {order: float(np.sqrt(np.mean(errors))) for order, errors in squares.items()}
    return Compared(
        schema,
        population,
        epsilon,
        people,
        predicted(plan).method,
        (shares.error, made[1]),
        (pairs.error, made[2]),
        float(np.sqrt(np.mean(variances))),
    )


def comparisons(runs: int) -> Iterator[Compared]:
    """Every schema, population, epsilon and number of people."""
    for schema, population in product(CROWD_SCHEMAS, TILTS):
        for people, epsilon in product(CROWDS, EPSILONS):
            yield compare(schema, population, epsilon, people, runs)


def main() -> None:
    """Print a row for each, and how far off the worst are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    head = "schema | population | epsilon | people | method | share: predicted | measured | ratio"
    print(f"| {head} | pair: predicted | measured | ratio | stated (share) |")
    print("| --- " * 12 + "|")
    shares, pairs = [], []
    for row in comparisons(runs):
        print(row, flush=True)
        shares.append(row.shares[0] / row.shares[1])
        pairs.append(row.pairs[0] / row.pairs[1])
    print(f"\nPredicted over measured: shares {min(shares):.2f} to {max(shares):.2f}, ", end="")
    print(f"pairs {min(pairs):.2f} to {max(pairs):.2f}")


if __name__ == "__main__":
    main()
