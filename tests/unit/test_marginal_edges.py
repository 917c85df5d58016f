"""Marginals at their edges: large attributes, few people, edited plans, questions that were never
asked.
"""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.measure.advice import advise
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.planner import best
from sottovoce.questions.marginals.workload import Workload


def booleans(count: int) -> sv.Schema:
    return sv.Schema(**{f"b{place}": sv.Boolean() for place in range(count)})


def chosen(plan: sv.Plan) -> str:
    assert isinstance(plan.question, sv.Marginals)
    return plan.question.method


def test_a_large_attribute_is_planned_without_its_matrix() -> None:
    schema = sv.Schema(a=sv.Ordinal(0, 19_999), b=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2), epsilon=1.0, people=100_000)
    assert not method(chosen(plan)).is_baseline
    with pytest.raises(sv.InvalidInput, match=r"latent.*signs, more than"):
        sv.plan(schema, sv.Marginals(up_to=2, method="latent"), epsilon=1.0, people=100_000)


def test_a_table_nobody_could_hold_is_refused_at_once() -> None:
    with pytest.raises(sv.InvalidInput, match="a table of 200,000,002 cells"):
        sv.plan(
            sv.Schema(a=sv.Ordinal(0, 10**8), b=sv.Boolean()),
            sv.Marginals(up_to=2),
            epsilon=1.0,
            people=1000,
        )


def test_many_categories_are_asked_what_a_report_can_name() -> None:
    schema = sv.Schema(**{f"c{place}": sv.Categorical(range(18)) for place in range(18)})
    plan = sv.plan(schema, sv.Marginals(up_to=3, method="latent"), epsilon=2.0, people=100_000)
    assert len(plan.cohorts) < 1 << 32
    mixed = sv.Schema(
        **{f"b{place}": sv.Boolean() for place in range(12)},
        **{f"c{place}": sv.Categorical(range(60)) for place in range(8)},
    )
    assert (
        len(
            sv.plan(
                mixed, sv.Marginals(up_to=3, method="latent"), epsilon=2.0, people=10**7
            ).cohorts
        )
        < 1 << 32
    )


def test_a_handful_of_people() -> None:
    plan = sv.plan(booleans(5), sv.Marginals(up_to=1), epsilon=1.0, people=3)
    assert not method(chosen(plan)).is_baseline


@pytest.mark.parametrize(
    ("sizes", "people", "epsilon"), [((20,) * 6, 60_000, "0.5"), ((50,) * 4, 2000, "0.3")]
)
def test_what_stops_at_its_start_is_never_chosen(
    sizes: tuple[int, ...], people: int, epsilon: str
) -> None:
    work = Workload(tuple(f"c{place}" for place in range(len(sizes))), sizes, 2)
    assert best(work, Terms(Decimal(epsilon), people)).method.name not in (
        "uniform",
        "inp-em",
        "em",
    )
    schema = sv.Schema(
        **{name: sv.Categorical(range(size)) for name, size in zip(work.names, sizes, strict=True)}
    )
    advice = advise(schema, sv.Marginals(up_to=2), epsilon=epsilon, people=people, error=0.01)
    assert advice.epsilon_needed.method not in ("uniform", "inp-em", "em")


@pytest.mark.parametrize("name", ["marg-ps", "inp-ht", "latent", "efron-stein"])
def test_edited_plans_are_refused(name: str) -> None:
    plan = sv.plan(booleans(4), sv.Marginals(up_to=2, method=name), epsilon=1.0, people=1000)
    for path, value in (
        (("cohorts", "epsilon"), "a"),
        (("cohorts", "epsilon"), "2"),
        (("question", "up_to"), 3),
    ):
        body: Any = json.loads(plan.to_json())
        part = body
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
        if path[0] == "question" and name == "latent":
            continue  # the same cohorts serve tables of three
        with pytest.raises(sv.InvalidInput):
            sv.Plan.from_json(json.dumps(body))


def tied(people: int) -> dict[str, NDArray[np.int64]]:
    """The second attribute is nearly the first."""
    draws = np.random.default_rng(1)
    first = draws.integers(0, 2, people)
    return {
        "b0": first,
        "b1": first ^ (draws.random(people) < 0.05),
        "b2": draws.integers(0, 2, people),
    }


@pytest.mark.parametrize("name", ["marg-ps", "inp-ht", "efron-stein"])
def test_pairs_that_nobody_was_asked(name: str) -> None:
    plan = sv.plan(booleans(3), sv.Marginals(up_to=1, method=name), epsilon=2.0, people=20_000)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, tied(20_000), seed=1))
    table = heard.estimate().marginal("b0", "b1")
    assert table.is_reconstructed
    assert "reconstructed" in str(table)
    assert table.std_error.min() > 0.02
    with pytest.raises(sv.InvalidInput, match="single attributes only"):
        sv.associate(heard)
    with pytest.raises(sv.InvalidInput, match="single attributes only"):
        sv.dependency_tree(heard)


def test_names_in_a_list_and_lists_too_long() -> None:
    schema = sv.Schema(**{f"c{place}": sv.Categorical(range(400)) for place in range(3)})
    plan = sv.plan(schema, sv.Marginals(up_to=1, method="marg-ps"), epsilon=2.0, people=3000)
    people = {name: np.zeros(3000, np.int64) for name in schema}
    found = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    assert isinstance(found, sv.MarginalEstimate)
    listed: Any = ["c0"]
    assert found.marginal(listed).attributes == ("c0",)
    with pytest.raises(sv.InvalidInput, match="cells"):
        found.marginals(3)
    with pytest.raises(sv.InvalidInput, match="cells"):
        found.marginal("c0", "c1", "c2")


@pytest.mark.parametrize(
    "asked",
    [{"attributes": 5}, {"workload": [1, 2]}, {"workload": ["b0", "b1"]}, {"method": ["latent"]}],
)
def test_wrong_types_are_named(asked: dict[str, Any]) -> None:
    with pytest.raises(sv.InvalidInput):
        sv.plan(booleans(3), sv.Marginals(up_to=2, **asked), epsilon=1.0, people=1000)


def test_one_person_has_correlations_only_of_what_she_was_asked() -> None:
    plan = sv.plan(booleans(3), sv.Marginals(up_to=2, method="am"), epsilon=1.0, people=1000)
    one = {name: [1] for name in plan.schema}
    found = sv.Aggregate(plan).add(sv.simulate(plan, one, seed=1)).estimate()
    assert isinstance(found, sv.MarginalEstimate)
    pairs = list(combinations(plan.schema, 2))
    correlations = found.correlations()
    assert sum(found.is_asked(*pair) for pair in pairs) == 1
    assert all(
        np.isfinite(correlations.loc[one, two]) == found.is_asked(one, two) for one, two in pairs
    )


@pytest.mark.parametrize("name", ["latent", "fourier"])
def test_intervals_of_skewed_categories(name: str) -> None:
    """Few frequent values and many rare ones, tied by a hidden kind: cells are covered about as
    often as promised.
    """
    draws = np.random.default_rng(2)
    count, size = 30_000, 10
    chances = 1 / np.arange(1, size + 1) ** 2
    shared = draws.choice(size, count, p=chances / chances.sum())
    people = {
        f"c{place}": np.where(
            draws.random(count) < 0.5, shared, draws.choice(size, count, p=chances / chances.sum())
        )
        for place in range(3)
    }
    schema = sv.Schema(**{key: sv.Categorical(range(size)) for key in people})
    plan = sv.plan(schema, sv.Marginals(up_to=2, method=name), epsilon=1.0, people=count)
    found = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=3)).estimate()
    inside = []
    for names in (("c0",), ("c1",), ("c0", "c1"), ("c1", "c2")):
        cells = np.zeros(count, np.int64)
        for key in names:
            cells = cells * size + people[key]
        table = found.marginal(*names)
        low, high = table.interval()
        truth = np.bincount(cells, minlength=len(low)) / count
        inside.append((low <= truth) & (truth <= high))
    assert np.concatenate(inside).mean() > 0.85
