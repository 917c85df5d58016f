"""How a grid's cells err together: the law that fits use, beside the oracle's channel."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from sottovoce.oracles import PureOracle, oracle
from sottovoce.questions.queries.evidence import Floats, GridEvidence, error_law
from sottovoce.questions.queries.models.cells import cells_of
from sottovoce.questions.queries.models.unbiased import linear_covariance

PEOPLE = 1000.0


def channel_covariance(told: PureOracle, held: Floats) -> Floats:
    """The covariance of all values' estimated shares, by coins alone, (size, size)."""
    p, q = float(told.exact_p), float(told.exact_q)
    covariance = np.zeros((told.size, told.size))
    for share, law in zip(held, told.exact_channel(), strict=True):
        chances = np.array([float(chance) for chance in law.values()])
        supports = np.array(
            [[told.supports(output, value) for value in range(told.size)] for output in law], float
        )
        mean = chances @ supports
        covariance += share * ((supports * chances[:, None]).T @ supports - np.outer(mean, mean))
    result: Floats = covariance / (p - q) ** 2 / PEOPLE
    return result


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize(
    ("kind", "shape"),
    [("ss", (2,)), ("ss", (3,)), ("ss", (5,)), ("olh", (4,)), ("ss", (3, 2)), ("ss", (2, 3))],
)
def test_cells_err_together_as_the_channel_says(
    kind: str, shape: tuple[int, ...], epsilon: str
) -> None:
    size = int(np.prod(shape))
    told = oracle(kind, size=size, epsilon=Decimal(epsilon))
    assert isinstance(told, PureOracle)
    floor, slope, cross = error_law(told, PEOPLE)
    held = np.random.default_rng(size).dirichlet(np.full(size, 0.5))
    edges = tuple(np.arange(cells + 1) for cells in shape)
    values = held.reshape(shape)
    if kind != "ss":
        values = values + 0.01  # hashed estimates do not add up to 1
    axes = tuple(range(len(shape)))
    grid = GridEvidence(axes, edges, values, floor, slope, PEOPLE, cross)
    cells = cells_of([grid], 0)
    summed: Floats = np.repeat(np.eye(shape[0]), size // shape[0], axis=1)  # (cells, values)
    rows = summed @ held
    # without the crowd: its covariance over the same people is what a sample adds
    sampled: Floats = (np.diag(rows) - np.outer(rows, rows)) / PEOPLE
    found = linear_covariance(cells, rows, np.eye(shape[0]), np.zeros_like(sampled), PEOPLE)
    exact = summed @ channel_covariance(told, held) @ summed.T
    assert found - sampled == pytest.approx(exact, abs=1e-9 * exact.max())
