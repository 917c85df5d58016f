"""Planning settles only what it may choose, and chooses what a full ranking would."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals import planner
from sottovoce.questions.marginals.methods import METHODS, method
from sottovoce.questions.marginals.methods.joint import JointViews
from sottovoce.questions.marginals.planner import CHOOSABLE, best, best_of, ranking
from sottovoce.questions.marginals.workload import Places, Workload

BINARY = (2,) * 8
DEMO = (4, 3, 2, 2, 3, 2, 2, 2)
MIXED = (3, 16, 5, 4, 8)
WIDE = (700, 300, 2)  # too many signs for latent classes


def workload(
    sizes: tuple[int, ...], order: int, sets: tuple[Places, ...] | None = None
) -> Workload:
    return Workload(tuple(f"a{place}" for place in range(len(sizes))), sizes, order, sets)


@pytest.mark.parametrize("epsilon", ["0.4", "1", "2", "4"])
@pytest.mark.parametrize("people", [60, 2_000, 65_536, 1_000_000])
@pytest.mark.parametrize(
    "work",
    [
        workload(BINARY, 2),
        workload((2,) * 6, 3),
        workload((3,) * 5, 2),
        workload((5, 2, 2), 1),
        workload(DEMO, 3),
        workload(MIXED, 2),
        workload(WIDE, 2),
        workload(DEMO, 2, ((0, 1), (1, 2), (3,))),
    ],
    ids=lambda work: f"{work.sizes}-{work.order}-{work.sets}",
)
def test_the_best_is_the_best_of_all(work: Workload, people: int, epsilon: str) -> None:
    terms = Terms.of(epsilon, people)
    choices = ranking(work, terms, CHOOSABLE)
    if any(not choice.left_out for choice in choices):
        assert best(work, terms) == best_of(choices)
    else:
        with pytest.raises(sv.InvalidInput, match="no method asks for every table"):
            best(work, terms)


def test_settings_are_such_that_many_methods_win() -> None:
    chosen = {
        best(workload(sizes, 2), Terms.of(epsilon, people)).method.name
        for sizes in (BINARY, MIXED, WIDE)
        for epsilon, people in (("0.4", 2_000), ("4", 65_536), ("4", 60))
    }
    assert len(chosen) >= 3


@pytest.mark.parametrize("sizes", [BINARY, DEMO, MIXED])
def test_offers_are_those_of_the_ranking_unless_they_err_more(sizes: tuple[int, ...]) -> None:
    work, terms = workload(sizes, 2), Terms.of("1", 20_000)
    for choice in ranking(work, terms, CHOOSABLE):
        for most in (inf, 1.01 * choice.error, choice.error, 0.99 * choice.error, 0.0):
            offer = choice.method.offer(work, terms, most)
            if offer is None:
                assert choice.error > most or (choice.left_out and most < inf)
            else:
                assert offer == (choice.options, choice.error)


@pytest.mark.parametrize(("sizes", "order"), [(BINARY, 2), (DEMO, 3), (MIXED, 2)])
def test_views_are_not_chosen_if_they_cannot_win(
    sizes: tuple[int, ...], order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(*_: Any) -> None:
        raise AssertionError("it chose views")

    work, terms = workload(sizes, order), Terms.of("1", 65_536)
    expected = best(work, terms)
    monkeypatch.setattr(JointViews, "choose", choose)
    assert best(work, terms) == expected
    with pytest.raises(AssertionError, match="it chose views"):
        ranking(work, terms)


def test_a_method_that_is_not_sure_leaves_room_for_one_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work, terms = workload(BINARY, 2), Terms.of("1", 65_536)
    asked: list[float] = []
    right = JointViews.offer

    def offer(self: JointViews, work: Workload, terms: Terms, most: float) -> Any:
        asked.append(most)
        return right(self, work, terms, most)

    monkeypatch.setattr(JointViews, "offer", offer)
    latent = method("latent").predict(work, terms, method("latent").settle(work, terms))
    best(work, terms)
    monkeypatch.setattr(planner, "MOST_UNHEARD", -1.0)
    best(work, terms)
    assert asked == [latent, planner.MOST_DEARER * latent]


def test_a_plan_ranks_every_method_when_it_is_asked() -> None:
    schema = sv.Schema(**{f"a{place}": sv.Boolean() for place in range(6)})
    plan = sv.plan(schema, sv.Marginals(up_to=2), epsilon=1, people=50_000)
    ranks = plan.question.rank(plan)
    assert {rank.method for rank in ranks} == {each.name for each in CHOOSABLE}
    assert all(rank.predicted_sse is not None for rank in ranks)
    assert [rank.method for rank in ranks if rank.chosen] == [plan.question.method]
    every = plan.question.rank(plan, baselines=True)
    assert {rank.method for rank in every} == {each.name for each in METHODS}
    chosen = next(rank for rank in ranks if rank.chosen)
    assert plan.question.predict(schema, plan.terms).error == chosen.per_cell
