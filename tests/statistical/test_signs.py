"""Reports on signs: unbiased means of signs and their products, with the variance that theory
gives.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.oracles.rules import sign_noise, sign_oracle
from sottovoce.questions.marginals.methods import latent
from sottovoce.questions.marginals.models.signs import Moments, moments
from sottovoce.questions.marginals.workload import Workload
from tests.statistics import chi_limit

SIZES = (2, 3, 2, 4, 2)
PEOPLE = 30_000
RUNS = 4
SHAPES = [
    ("parity", 1),
    ("parity", 2),
    ("parity", 3),
    ("corner", 2),
    ("corner", 3),
    ("corner", 4),
    ("star", 3),
]


def crowd() -> dict[str, NDArray[np.int64]]:
    draws = np.random.default_rng(1)
    kind = draws.integers(0, 3, PEOPLE)
    return {
        f"a{place}": np.minimum(
            (draws.random(PEOPLE) * size + 0.5 * (kind == place % 3)).astype(np.int64), size - 1
        )
        for place, size in enumerate(SIZES)
    }


CROWD = crowd()
SCHEMA = sv.Schema(
    **{
        f"a{place}": sv.Boolean() if size == 2 else sv.Categorical(range(size))
        for place, size in enumerate(SIZES)
    }
)
WORK = Workload.of(SCHEMA, None, 3)


def heard(
    shape: tuple[str, int], epsilon: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> Moments:
    monkeypatch.setattr(latent, "collection", lambda *_: {shape: 1.0})
    monkeypatch.setattr(latent, "ENOUGH_FOR_TRIPLES", 0.0)
    plan = sv.plan(SCHEMA, sv.Marginals(up_to=3, method="latent"), epsilon=epsilon, people=PEOPLE)
    return moments(WORK, sv.Aggregate(plan).add(sv.simulate(plan, CROWD, seed=seed)))


def squares(found: Moments) -> tuple[float, int]:
    """Sum of squared standardised errors of all products that were told, and how many there are."""
    space = found.space
    signs = [space.rows[place][:, CROWD[f"a{place}"]] for place in range(len(SIZES))]
    total, count = 0.0, 0
    for order, told in ((1, found.first), (2, found.second), (3, found.third)):
        if told is None or not told[1].any():
            continue
        mean, information = found.mean(order), told[1]
        for places in combinations(range(len(SIZES)), order):
            for rows in product(*(range(len(signs[place])) for place in places)):
                at: Any = tuple(
                    int(space.starts[place]) + row for place, row in zip(places, rows, strict=True)
                )
                column = np.ones(PEOPLE)
                for place, row in zip(places, rows, strict=True):
                    column = column * signs[place][row]
                truth = column.mean()
                if information[at] > 0:
                    total += (mean[at] - truth) ** 2 * information[at]
                    count += 1
    return total, count


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_moments_are_unbiased_with_the_variance_of_theory(
    shape: tuple[str, int], epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standardised errors have mean square (noise - mean^2)/noise, at most 1."""
    parts = [squares(heard(shape, epsilon, seed, monkeypatch)) for seed in range(RUNS)]
    total, count = (sum(part[place] for part in parts) for place in (0, 1))
    # products told by one report are uncorrelated but not independent: twice the degrees' variance
    # is allowed for
    assert total < count + 2 * (chi_limit(count, len(SHAPES) * 2) - count)
    assert total > count / 3  # noise is not claimed that is not there
    # nor a ninth of what is
    assert 9 * total > count + 2 * (chi_limit(count, len(SHAPES) * 2) - count)


@pytest.mark.parametrize(
    ("signs", "epsilon"),
    [(signs, epsilon) for signs in (1, 2, 3) for epsilon in ("0.2", "1", "2", "4")]
    + [(4, "1.5"), (4, "4")],
)
def test_noise_of_a_sign_from_the_channel(signs: int, epsilon: str) -> None:
    """Every character of the values, averaged over all reports by their exact chances."""
    source = sign_oracle(signs, Decimal(epsilon))
    size = 1 << signs
    characters = 1 - 2 * (np.bitwise_count(np.arange(size)[:, None] & np.arange(size)) & 1).astype(
        float
    )
    outputs, channel = source.outputs(), source.channel()
    support = np.array(
        [[source.supports(output, value) for value in range(size)] for output in outputs], float
    )
    told = support @ characters[1:].T  # outputs x characters
    mean = channel @ told
    assert np.allclose(mean, source.gap * characters[1:].T)
    assert np.allclose(channel @ told**2 / source.gap**2, sign_noise(source))


def test_sign_oracles_are_the_best_of_their_kind() -> None:
    for signs, epsilon in product((2, 3, 4), ("0.3", "1", "2")):
        chosen = sign_noise(sign_oracle(signs, Decimal(epsilon)))
        for other in ("grr", "ss"):
            rival: Any = sv.oracle(other, size=1 << signs, epsilon=epsilon)
            assert chosen <= sign_noise(rival) * (1 + 1e-12)


def test_cohorts_come_as_often_as_they_weigh() -> None:
    plan = sv.plan(SCHEMA, sv.Marginals(up_to=3, method="latent"), epsilon=1.0, people=PEOPLE)
    cohorts = sv.simulate(plan, CROWD, seed=5).cohorts
    counts = np.bincount(cohorts, minlength=len(plan.cohorts))
    expected = np.array([cohort.weight for cohort in plan.cohorts]) / plan.cohorts.weight * PEOPLE
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < chi_limit(len(expected) - 1)
    even = np.full(len(expected), PEOPLE / len(expected))
    assert float(((counts - even) ** 2 / even).sum()) > chi_limit(len(expected) - 1)
