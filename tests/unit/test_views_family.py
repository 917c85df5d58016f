"""Views told by the runs of their ranks: the same views, in a short plan."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.protocol.families import Listed, ViewFamily, blocks_of, views_of
from sottovoce.protocol.families import views as views_module
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.methods.view_designs import at_random

PEOPLE = 10**8
WIDE = sv.Schema(**{f"a{place}": sv.Boolean() for place in range(16)})
SMALL = sv.Schema(a=sv.Boolean(), b=sv.Ordinal(0, 2), c=sv.Boolean(), d=sv.Boolean())


@pytest.mark.parametrize("points", [1, 2, 5, 9])
def test_all_sets_and_some_come_back(points: int) -> None:
    draws = np.random.default_rng(points)
    every = [set_ for order in range(1, points + 1) for set_ in combinations(range(points), order)]
    blocks = blocks_of(points, every)
    assert [block["runs"] for block in blocks] == [
        f"0 {comb(points, order)}" for order in range(1, points + 1)
    ]
    assert views_of(points, blocks) == tuple(every)
    for share in (0.1, 0.5, 0.9):
        some = [every[0], *(each for each in every[1:] if draws.random() < share)]
        shuffled = [some[place] for place in draws.permutation(len(some))]
        assert views_of(points, blocks_of(points, shuffled)) == tuple(some)


def test_ranks_that_64_bits_do_not_hold() -> None:
    points, order = 300, 40
    assert comb(points, order) > 1 << 128
    views = [tuple(range(order)), tuple(range(100, 100 + order)), tuple(range(260, 300))]
    assert views_of(points, blocks_of(points, views)) == tuple(views)


def test_runs_are_counted_before_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes may stand for more sets than memory holds."""
    with pytest.raises(sv.InvalidInput, match="views must be at most 65536"):
        views_of(60, [{"order": 10, "runs": f"0 {comb(60, 10)}"}])
    monkeypatch.setattr(views_module, "MAX_VIEWS", 6)
    views_module._views_of.cache_clear()
    assert len(views_of(4, [{"order": 2, "runs": "0 6"}])) == 6
    with pytest.raises(sv.InvalidInput, match="views must be at most 6"):
        views_of(4, [{"order": 1, "runs": "0 1"}, {"order": 2, "runs": "0 6"}])


def plan_of_views(method: str = "joint", people: int = PEOPLE) -> sv.Plan:
    return sv.plan(WIDE, sv.Marginals(up_to=3, method=method), epsilon=1.0, people=people)


def test_a_plan_of_4096_views_is_short_and_asks_what_a_list_asks() -> None:
    plan = plan_of_views()
    assert len(plan.cohorts) == 4096
    assert len(plan.text) < 1 << 13
    question: Any = plan.question
    work = question.work(WIDE)
    drawn = at_random(work, 5, 4096)  # as when plans listed them
    assert [cohort.asks[0].encoding.attributes for cohort in plan.cohorts] == [
        work.attributes(view) for view in drawn
    ]
    oracle = method("joint").oracle(32, Decimal(1))  # type: ignore[attr-defined]
    assert {cohort.oracles for cohort in plan.cohorts} == {(oracle,)}
    assert plan.cohorts.weight == 4096
    assert sv.Plan.from_json(plan.text).question == question


def listed_text(plan: sv.Plan, views: list[list[int]]) -> str:
    """A plan as it was written when plans listed their views."""
    body = json.loads(plan.text)
    body["question"]["options"]["views"] = views
    question = sv.Marginals.from_json(body["question"])
    body["cohorts"] = question.cohorts(plan.schema, plan.terms).to_json()
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def test_a_plan_that_lists_its_views_is_read_and_estimates_the_same() -> None:
    views = [[0, 1], [1, 2], [0, 2], [0, 1, 3]]
    asked = sv.Marginals(up_to=2, method="joint", views=views)
    plan = sv.plan(SMALL, asked, epsilon=2.0, people=4000)
    old = sv.Plan.from_json(listed_text(plan, views))
    assert isinstance(old.cohorts, Listed)
    assert isinstance(plan.cohorts, ViewFamily)
    assert old.question.cohorts(SMALL, old.terms) == old.cohorts
    draws = np.random.default_rng(1)
    people = {name: draws.integers(0, 2, 4000) for name in SMALL}
    one, two = (
        sv.Aggregate(each).add(sv.simulate(each, people, seed=2)).estimate() for each in (old, plan)
    )
    spread = one.marginal("a", "b").std_error + two.marginal("a", "b").std_error
    assert (
        np.abs(one.marginal("a", "b").values - two.marginal("a", "b").values) < 5 * spread
    ).all()


def test_views_may_be_chosen_in_any_order_and_leave_attributes_out() -> None:
    asked = sv.Marginals(up_to=2, method="calm+", views=[[0, 2], [0, 1]])
    plan = sv.plan(SMALL, asked, epsilon=1.0, people=1000)
    assert [cohort.attributes for cohort in plan.cohorts] == [("a", "b"), ("a", "c")]
    assert plan.cohorts.attributes == ("a", "b", "c")  # nobody is asked for d
    sv.Client(plan, invalid="raise").report({"a": True, "b": 2, "c": False})
    again = sv.Marginals(up_to=2, method="calm+", views=plan.question.options["views"])  # type: ignore[attr-defined]
    assert sv.plan(SMALL, again, epsilon=1.0, people=1000).id == plan.id


@pytest.mark.parametrize(
    "views",
    [
        [{"order": 2}],
        [{"order": 2, "runs": "x 1"}],
        [{"order": 2, "runs": ["0", "1"]}],
        [{"order": "two", "runs": "0 1"}],
        [{"order": 2, "runs": "0 7"}],
        [{"order": 2, "runs": "0 1"}, [0, 1]],
    ],
)
def test_views_that_are_neither_are_refused(views: Any) -> None:
    terms = Terms(Decimal(1), 1000)
    with pytest.raises(sv.InvalidInput):
        sv.Marginals(up_to=2, method="joint", views=views).settled(SMALL, terms)
