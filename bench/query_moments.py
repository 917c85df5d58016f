"""The mean and the deciles of a whispered dimension, from a table that answers queries.

``python -m bench.query_moments --data FOLDER`` measures the mean where the workload names it.
"""

from __future__ import annotations

import argparse
from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.data import add_data_option, data_folder
from bench.query_sources import SOURCES

SEED = 1
Floats = NDArray[np.float64]

DECILES = np.arange(1, 10) / 10


def errors(fitted: Any, codes: NDArray[np.int64], size: int, epsilon: float) -> dict[str, float]:
    """How far a table's mean and deciles are off.

    Args:
        fitted: of one dimension.
        codes: everybody's.
        size: how many codes there are.
        epsilon: of the reports.

    Returns:
        ``deciles``: the mean absolute error as a share of the length; ``mean``: the squared error
        over the variance of a hybrid mechanism for the same people.
    """
    places = np.arange(size) / (size - 1)  # from 0 to 1
    below = [{0: (np.arange(size) <= code).astype(float)} for code in range(size)]
    joint = fitted.joint([{0: places}, *below])
    truth = np.bincount(codes, minlength=size) / len(codes)
    found = crossing(joint.values[1:])
    wanted = crossing(np.cumsum(truth))
    error = float(joint.values[0]) - float(places @ truth)
    variance = float(truth @ hybrid_variance(2 * places - 1, epsilon)) / 4 / len(codes)
    return {
        "deciles": float(np.abs(found - wanted).mean()) / size,
        "mean": error**2 / variance,
    }


def mean_errors(data: Path, source: str, size: int, people: int, epsilon: str, runs: int) -> Floats:
    """Squared errors of the mean over the variance of a hybrid mechanism, (runs,).

    The plan is that of the default workload, which names the mean.
    """
    from sottovoce.api.planning import plan
    from sottovoce.measure.queries import asked_crowd, estimated
    from sottovoce.questions.queries.question import Queries
    from sottovoce.questions.queries.target import Target

    own = SOURCES["one"][source].load(data, size)
    target = Target.of(own.schema, own.names, None)
    made = plan(own.schema, Queries(list(own.names)), epsilon=epsilon, people=people)
    found = []
    for run in range(runs):
        crowd = asked_crowd(own, target, people, 1, ["random"], 1, SEED, run)
        estimate, _ = estimated(made, crowd, own, SEED, run)
        (codes,) = crowd.crowd.columns.values()
        found.append(errors(estimate.fitted, codes, size, float(epsilon))["mean"])
    return np.array(found)


def crossing(below: Floats) -> Floats:
    """The first code at or below which each decile of people lies.

    >>> crossing(np.array([0.05, 0.45, 1.0])).tolist()
    [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    """
    # a noisy sum may fall; what lies below a code lies below all later ones
    rising = np.maximum.accumulate(below)
    places = np.searchsorted(rising, DECILES - 1e-12)
    return np.minimum(places, len(below) - 1).astype(float)


def hybrid_variance(values: Floats, epsilon: float) -> Floats:
    """Of one report of values in [-1, 1] by the hybrid mechanism (wang2019multidimensional).

    >>> bool(hybrid_variance(np.zeros(1), 1.0)[0] < ((np.e + 1) / (np.e - 1)) ** 2)
    True
    """
    odds, half = exp(epsilon), exp(epsilon / 2)
    # one of two values:  ((E + 1)/(E - 1))^2 - t^2
    duchi = ((odds + 1) / (odds - 1)) ** 2 - values**2
    # piecewise:  t^2/(e^(eps/2) - 1) + (e^(eps/2) + 3)/(3 (e^(eps/2) - 1)^2)
    piecewise = values**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
    share = 1 - 1 / half if epsilon > 0.61 else 0.0  # of the piecewise mechanism
    return np.asarray(share * piecewise + (1 - share) * duchi)


def main(arguments: list[str] | None = None) -> int:
    """Print the errors of the mean by epsilon."""
    parser = argparse.ArgumentParser(prog="python -m bench.query_moments", description=__doc__)
    parser.add_argument("--epsilons", default="0.5,1,2,5", metavar="E,E")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=30)
    add_data_option(parser)
    asked = parser.parse_args(arguments)
    data = data_folder(parser, asked.data)
    for epsilon in asked.epsilons.split(","):
        where = (asked.size, asked.people, epsilon, asked.runs)
        found = np.concatenate([mean_errors(data, source, *where) for source in SOURCES["one"]])
        error = float(found.std()) / sqrt(found.size)
        print(
            f"epsilon {epsilon}: {found.mean():.2f} +- {error:.2f} times the variance of a "
            f"mechanism that asks for the mean alone ({found.size} crowds)",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
