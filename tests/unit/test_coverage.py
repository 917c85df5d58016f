"""Coverage: auto asks for every table at any number of people, and whatever was never asked says so
everywhere.
"""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import combinations
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.protocol.families import views_of
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.coverage import (
    MOST_UNHEARD,
    Coverage,
    together,
    view_shares,
)
from sottovoce.questions.marginals.methods import METHODS, method
from sottovoce.questions.marginals.models.designs import completed, drawn
from sottovoce.questions.marginals.planner import Choice, best, best_of
from sottovoce.questions.marginals.workload import Places, Workload
from tests.known import chain, known

SHAPES = {4: (2, 2, 3, 2), 6: (2, 2, 2, 4, 3, 2), 8: (2,) * 8}
SIZES = (100, 200, 500, 2000, 5000)


def workload(
    sizes: tuple[int, ...], order: int = 2, sets: tuple[Places, ...] | None = None
) -> Workload:
    return Workload(tuple("abcdefghijklmnopqrstuvwxyz"[: len(sizes)]), sizes, order, sets)


def schema(sizes: tuple[int, ...]) -> sv.Schema:
    return sv.Schema(
        **{
            name: sv.Categorical(range(size))
            for name, size in zip("abcdefghij", sizes, strict=False)
        }
    )


def asked_by(plan: sv.Plan) -> set[frozenset[str]]:
    """The pairs that some cohort of a plan is asked about together, by the attributes of its asks
    alone.
    """
    cohorts = [plan.cohorts[index] for index in range(len(plan.cohorts))]
    sets = [{name for ask in cohort.asks for name in ask.encoding.attributes} for cohort in cohorts]
    return {frozenset(pair) for own in sets for pair in combinations(own, 2)}


def women(people: int, seed: int) -> dict[str, NDArray[np.int64]]:
    """Four attributes, the first two strongly tied: as on a ship whose women were saved first."""
    draws = np.random.default_rng(seed)
    sex = draws.integers(0, 2, people)
    saved = (draws.random(people) < np.where(sex == 1, 0.75, 0.2)).astype(np.int64)
    return {
        "a": sex,
        "b": saved,
        "c": draws.integers(0, 3, people),
        "d": draws.integers(0, 2, people),
    }


# -- auto


@pytest.mark.parametrize("people", SIZES)
@pytest.mark.parametrize("attributes", SHAPES)
def test_auto_asks_for_every_pair(attributes: int, people: int) -> None:
    for epsilon in ("0.5", "1", "2"):
        choice = best(workload(SHAPES[attributes]), Terms(Decimal(epsilon), people))
        assert choice.left_out == ()
        assert choice.unheard <= MOST_UNHEARD


@pytest.mark.parametrize("people", [100, 1000])
def test_plans_of_auto_ask_for_every_pair_and_hear_of_it(people: int) -> None:
    sizes = SHAPES[4]
    for epsilon in (0.5, 2.0):
        plan = sv.plan(schema(sizes), sv.Marginals(up_to=2), epsilon=epsilon, people=people)
        assert len(asked_by(plan)) == comb(len(sizes), 2)
        assert "Never asked" not in str(plan)
        found = sv.Aggregate(plan).add(sv.simulate(plan, women(people, 1), seed=2)).estimate()
        assert isinstance(found, sv.MarginalEstimate)
        assert found.never_asked == ()
        assert not found.marginal("a", "b").never_asked


def test_auto_asks_for_the_pairs_inside_larger_and_listed_tables() -> None:
    choice = best(workload((2,) * 6, order=3), Terms(Decimal(1), 300))
    assert choice.left_out == ()
    listed = workload((2,) * 12, sets=((0, 5), (3,), (7, 11)))
    assert listed.parts == ((0,), (3,), (5,), (7,), (11,), (0, 5), (7, 11))
    assert best(listed, Terms(Decimal(1), 150)).left_out == ()


def test_auto_refuses_if_no_method_asks_for_every_table() -> None:
    calm = method("calm")
    partial = Choice(calm, {}, 0.1, "", ((0, 1),), 0.0)
    whole = Choice(method("latent"), {}, 0.3, "", (), 0.0)
    assert best_of([partial, whole]) is whole
    with pytest.raises(sv.InvalidInput, match="no method asks for every table"):
        best_of([partial])


def test_auto_prefers_what_is_sure_to_be_heard_of_unless_it_errs_much_more() -> None:
    thin = Choice(method("latent"), {}, 0.10, "", (), 3.0)
    sure = Choice(method("joint"), {}, 0.15, "", (), 0.01)
    poor = Choice(method("fc"), {}, 9.0, "", (), 0.0)
    assert best_of([thin, sure, poor]) is sure
    assert best_of([thin, poor]) is thin


@pytest.mark.parametrize("name", ["joint", "calm+"])
@pytest.mark.parametrize("people", [100, 5000])
def test_our_own_views_hold_every_pair(name: str, people: int) -> None:
    work = workload((2, 3, 2, 2, 4, 2, 2))
    chosen = method(name)
    options = chosen.settle(work, Terms(Decimal(1), people))
    held = {pair for view in views_of(7, options["views"]) for pair in combinations(view, 2)}
    assert held == set(combinations(range(7), 2))
    assert chosen.coverage(work, options).left_out == ()


def test_views_are_completed() -> None:
    start = drawn(9, 3, 3)
    pairs = list(combinations(range(9), 2))
    views = completed(9, 3, start, pairs)
    assert set(start) <= set(views)
    assert {pair for view in views for pair in combinations(view, 2)} == set(pairs)
    assert max(map(len, views)) == 3
    assert completed(9, 3, views, pairs) == views


# -- what plans say


@pytest.mark.parametrize("chosen", METHODS, ids=lambda each: each.name)
def test_every_method_states_the_shares_of_its_cohorts(chosen: object) -> None:
    """Against the cohorts themselves: who is asked about a pair, counted one by one with their
    weights.
    """
    from sottovoce.questions.marginals.method import MarginalMethod

    assert isinstance(chosen, MarginalMethod)
    plan = sv.plan(
        schema((2, 3, 2, 4)), sv.Marginals(up_to=2, method=chosen.name), epsilon=1.0, people=3000
    )
    assert isinstance(plan.question, sv.Marginals)
    coverage = plan.question.coverage(plan)
    pairs = [part for part in coverage.parts if len(part) == 2]
    told = {
        frozenset(plan.question.work(plan.schema).attributes(part)): share
        for part, share in zip(coverage.parts, coverage.shares, strict=True)
        if len(part) == 2
    }
    assert len(pairs) == 6
    if chosen.name in (
        "uniform",
        "calm-binary",
    ):  # asks and does not use it; asks for bits of attributes
        assert all(share < 1 for share in told.values())
        return
    everybody = sum(cohort.weight for cohort in plan.cohorts)
    for pair, share in told.items():
        holding = []
        for cohort in plan.cohorts:
            asked = {name for ask in cohort.asks for name in ask.encoding.attributes}
            # sets of bits of more attributes say nothing of the pair by itself
            if pair == asked or (pair < asked and chosen.name != "ft"):
                holding.append(cohort.weight)
        assert share == pytest.approx(sum(holding) / everybody)


def test_calm_keeps_the_papers_rule_and_says_what_it_leaves_out() -> None:
    plan = sv.plan(schema((2,) * 6), sv.Marginals(up_to=2, method="calm"), epsilon=1.0, people=500)
    assert isinstance(plan.question, sv.Marginals)
    assert views_of(6, plan.question.options["views"]) == drawn(6, 2, 1)
    assert len(plan.question.coverage(plan).left_out) == 12
    line = next(line for line in str(plan).splitlines() if "Never asked" in line)
    assert "and 4 more (12 of 21 attributes and pairs)" in line
    assert " x " in line


def test_plans_say_what_is_reconstructed_and_what_few_people_leave_unheard() -> None:
    plan = sv.plan(
        schema((2,) * 6), sv.Marginals(up_to=3, method="latent"), epsilon=1.0, people=5000
    )
    assert "Reconstructed: every table" in str(plan)
    whole = sv.plan(
        schema((2,) * 6), sv.Marginals(up_to=3, method="inp-ht"), epsilon=1.0, people=5000
    )
    assert "Reconstructed" not in str(whole)
    few = sv.plan(schema((2,) * 8), sv.Marginals(up_to=2, method="latent"), epsilon=0.5, people=40)
    assert "Few people" in str(few)


def test_the_expected_number_of_unheard_parts() -> None:
    draws = np.random.default_rng(1)
    coverage = Coverage(((0,), (1,), (0, 1)), (0.3, 0.2, 0.0))
    none = [(draws.random(7) >= share).all() for share in (0.3, 0.2) for _ in range(20_000)]
    # a mean of 20,000 draws each: standard error below 0.004
    assert np.mean(none[:20_000]) + np.mean(none[20_000:]) == pytest.approx(
        coverage.unheard(7), abs=0.02
    )


def test_the_expected_number_of_unheard_coefficients() -> None:
    """A pair of eight values each is asked by 49 products of signs, one in a report."""
    draws = np.random.default_rng(2)
    coverage = Coverage(((0, 1),), (0.5,), (49,))
    told = np.where(draws.random((4000, 60)) < 0.5, draws.integers(0, 49, (4000, 60)), -1)
    untold = [49 - len(set(row) - {-1}) for row in told.tolist()]
    # one run's standard deviation is below sqrt(49)/2, that of a mean of 4,000 below 0.06
    assert np.mean(untold) == pytest.approx(coverage.unheard(60), abs=0.24)
    assert coverage.asked == 49
    for name in ("latent", "fourier", "inp-ht", "efron-stein"):
        assert method(name).coefficients(workload((8, 3)), (0, 1)) == 21
    assert method("joint").coefficients(workload((8, 3)), (0, 1)) == 1


# -- what answers say


@pytest.fixture(scope="module")
def partial() -> sv.Aggregate:
    """A crowd of whom nobody was asked about the tied pair together."""
    question = sv.Marginals(up_to=2, method="calm", views=[[0, 2], [1, 3]])
    plan = sv.plan(schema((2, 2, 3, 2)), question, epsilon=2.0, people=1300)
    return sv.Aggregate(plan).add(sv.simulate(plan, women(1300, 1), seed=1))


def estimate(heard: sv.Aggregate) -> sv.MarginalEstimate:
    found = heard.estimate()
    assert isinstance(found, sv.MarginalEstimate)
    return found


def test_tables_say_what_was_never_asked(partial: sv.Aggregate) -> None:
    found = estimate(partial)
    assert found.never_asked == (("a", "b"), ("a", "d"), ("b", "c"), ("c", "d"))
    assert found.is_asked("a", "c")
    assert not found.is_asked("a", "c", "d")
    table = found.marginal("b", "a")
    assert table.is_reconstructed
    assert table.never_asked == (("a", "b"),)
    assert "never asked: a x b" in str(table)
    assert table.to_json()["never_asked"] == [["a", "b"]]
    assert found.marginal("a", "b", "c").never_asked == (("a", "b"), ("b", "c"))
    asked = found.marginal("a", "c")
    assert asked.never_asked == ()
    assert "never asked" not in str(asked)


@pytest.mark.parametrize("name", ["calm", "calm+", "joint"])
def test_the_interval_of_a_pair_never_asked_is_not_that_of_independence(name: str) -> None:
    question = sv.Marginals(up_to=2, method=name, views=[[0, 2], [1, 3]])
    plan = sv.plan(schema((2, 2, 3, 2)), question, epsilon=2.0, people=1300)
    people = women(1300, 1)
    table = estimate(sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1))).marginal("a", "b")
    truth = np.bincount(2 * people["a"] + people["b"], minlength=4) / 1300
    low, high = table.interval()
    assert ((low <= truth) & (truth <= high)).all()
    # all that two attributes with these margins can hold:
    # f between max(0, f_a + f_b - 1) and min(f_a, f_b)
    cells = table.values.reshape(2, 2)
    rows, columns = cells.sum(1), cells.sum(0)
    assert (high >= np.minimum.outer(rows, columns).ravel()).all()
    assert (low <= np.maximum(np.add.outer(rows, columns) - 1, 0).ravel()).all()


@pytest.mark.parametrize("name", ["latent", "fourier", "am", "inp-ht", "efron-stein"])
def test_a_cohort_that_turns_out_empty_is_marked(name: str) -> None:
    """Three people cannot tell of six pairs: whatever nobody was heard on is marked, with a wide
    interval.
    """
    plan = sv.plan(
        schema((2, 2, 2, 2)), sv.Marginals(up_to=2, method=name), epsilon=1.0, people=3000
    )
    three = {name: column[:3] % 2 for name, column in women(3, 1).items()}
    found = estimate(sv.Aggregate(plan).add(sv.simulate(plan, three, seed=3)))
    unheard = [part for part in found.never_asked if len(part) == 2]
    assert unheard
    for pair in unheard:
        table = found.marginal(*pair)
        assert table.is_reconstructed
        assert pair in table.never_asked
        low, high = table.interval()
        assert (high - low).min() > 0.5


@pytest.fixture(scope="module")
def tied() -> sv.Aggregate:
    """60 people, two attributes of eight values that are the same, and a third: 49 products of
    signs a pair.
    """
    question = sv.Marginals(up_to=2, method="fourier")
    plan = sv.plan(schema((8, 8, 8)), question, epsilon=4.0, people=60)
    assert "coefficients of attributes and pairs asked, nobody is expected to be heard on" in str(
        plan
    )
    draws = np.random.default_rng(1)
    same = draws.integers(0, 8, 60)
    return sv.Aggregate(plan).add(
        sv.simulate(plan, {"a": same, "b": same, "c": draws.integers(0, 8, 60)}, seed=1)
    )


def test_a_pair_of_which_some_signs_were_never_told_is_marked(tied: sv.Aggregate) -> None:
    found = estimate(tied)
    table = found.marginal("b", "a")
    assert table.never_asked == ()
    assert found.is_asked("a", "b")
    assert table.is_reconstructed
    share = table.partly_heard["a", "b"]
    assert 0 < share < 1
    assert "partly heard: " in str(table)
    assert f"a x b ({share:.0%})" in str(table)
    assert {"attributes": ["a", "b"], "share": share} in table.to_json()["partly_heard"]
    many = sv.plan(
        schema((8, 8)), sv.Marginals(up_to=2, method="fourier"), epsilon=2.0, people=2000
    )
    columns = {name: np.arange(2000) % 8 for name in "ab"}
    whole = estimate(sv.Aggregate(many).add(sv.simulate(many, columns, seed=1))).marginal("a", "b")
    assert not whole.partly_heard
    assert not whole.is_reconstructed
    assert "partly heard" not in str(whole)


def test_the_interval_of_a_pair_widens_with_the_signs_that_were_never_told(
    tied: sv.Aggregate,
) -> None:
    """Each of 49 products of signs adds its own unknown variance: u r^2 odds_a odds_b f^2 of a
    share u untold.
    """
    table = estimate(tied).marginal("a", "b")
    unheard = 1 - table.partly_heard["a", "b"]
    cells = table.values.reshape(8, 8)
    rows, columns = np.clip(cells.sum(1), 0.5 / 64, 1), np.clip(cells.sum(0), 0.5 / 64, 1)
    least = unheard / 3 * np.outer((1 - rows) / rows, (1 - columns) / columns) * cells**2
    assert (table.variances >= least.ravel()).all()


def test_the_interval_of_a_pair_told_with_more_noise_than_any_tie_is_wide() -> None:
    """Every product of signs is told, by about eight people each: shrinkage hides the tie, the
    interval must not.
    """
    plan = sv.plan(schema((8, 8)), sv.Marginals(up_to=2, method="fourier"), epsilon=1.0, people=400)
    same = np.random.default_rng(3).integers(0, 8, 400)
    table = estimate(
        sv.Aggregate(plan).add(sv.simulate(plan, {"a": same, "b": same}, seed=3))
    ).marginal("a", "b")
    assert not table.partly_heard
    low, high = (bound.reshape(8, 8).diagonal() for bound in table.interval())
    truth = np.bincount(same, minlength=8) / 400
    assert ((low <= truth) & (truth <= high)).mean() >= 0.5


def twins(people: int, seed: int) -> sv.Aggregate:
    """Two attributes that are one and the same, heard by too few people to tell of all that is
    asked of the two.
    """
    values = sv.Categorical(range(32))
    schema = sv.Schema(a=values, b=values, c=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="efron-stein"), epsilon=4, people=3000)
    draws = np.random.default_rng(seed)
    same = draws.integers(0, 32, people)
    crowd = {"a": same, "b": same, "c": draws.random(people) < 0.5}
    return sv.Aggregate(plan).add(sv.simulate(plan, crowd, seed=seed))


def test_pairs_of_which_less_than_half_was_heard_have_no_strength() -> None:
    """They read as V 0, though the two attributes are the same."""
    estimate = twins(300, seed=1).estimate()
    share = estimate.heard_share("a", "b")
    assert 0 < share < 0.5
    assert share == min(estimate.marginal("a", "b").partly_heard.values())
    assert np.isnan(estimate.correlations().loc["a", "b"])
    told = sv.associate(estimate, ["a", "b"], null="asymptotic")[0]
    assert told.is_asked
    assert np.isnan(told.cramers_v)
    assert f"V unknown, statistic {told.statistic:.2f}" in str(told)
    assert f"{share:.0%} heard" in str(told)
    assert told.to_json()["cramers_v"] is None
    assert told.to_json()["heard"] == share
    tree = sv.dependency_tree(estimate)
    assert tree.tie("a", "b").heard == share
    partly = next(edge for edge in tree.edges if edge.heard < 1)
    assert f"({partly.heard:.0%} heard)" in partly.figure
    assert partly.to_json()["heard"] == partly.heard


def test_correlations_follow_what_was_asked_of_both_attributes() -> None:
    """A pair may be told of where one of its attributes is not: of such a pair nothing is known."""
    found = 0
    for seed in range(8):
        estimate = twins(15, seed).estimate()
        shown = estimate.correlations()
        for pair in combinations("abc", 2):
            if not estimate.is_asked(*pair):
                found += 1
                assert np.isnan(shown.loc[pair])
    assert found


def test_correlations_of_pairs_never_asked_are_unknown(partial: sv.Aggregate) -> None:
    correlations = estimate(partial).correlations()
    assert np.isnan(correlations.loc["a", "b"])
    assert np.isnan(correlations.loc["d", "c"])
    assert np.isfinite(correlations.loc["a", "c"])
    drawn = estimate(partial).plot().to_dict()
    assert "NaN" not in json.dumps(drawn)


# -- what is made of them


def test_associations_of_pairs_never_asked_have_no_figures(partial: sv.Aggregate) -> None:
    found = {each.attributes: each for each in sv.associate(partial, null="asymptotic")}
    assert len(found) == 6
    assert found["a", "c"].is_asked
    assert 0 <= found["a", "c"].p_value <= 1
    unasked = found["a", "b"]
    assert not unasked.is_asked
    assert np.isnan([unasked.p_value, unasked.adjusted, unasked.cramers_v, unasked.statistic]).all()
    told = json.loads(json.dumps(unasked.to_json(), allow_nan=False))
    assert told["p_value"] is told["cramers_v"] is told["adjusted"] is None
    assert told["is_asked"] is False
    assert "never asked" in str(unasked)
    # corrected for the two that were tested
    assert found["a", "c"].adjusted <= 2 * found["a", "c"].p_value + 1e-12
    with pytest.raises(sv.InvalidInput, match="'a' and 'b' were never asked together"):
        sv.associate(partial, ["a", "b"], null="asymptotic")


def test_associations_if_nothing_was_asked_together() -> None:
    pairs = list(combinations(range(3), 2))
    found = sv.associate(known(chain((2, 2, 2), seed=1), 1e-4, unheard=pairs))
    assert [each.is_asked for each in found] == [False] * 3


def test_a_tree_takes_pairs_never_asked_only_to_hold_together() -> None:
    joint = chain((2, 3, 2, 2), seed=5)
    whole = sv.dependency_tree(known(joint, 1e-9))
    strongest = max(whole.edges, key=lambda edge: edge.information)
    places = tuple(sorted("abcd".index(name) for name in (strongest.parent, strongest.child)))
    without = sv.dependency_tree(known(joint, 1e-9, unheard=[places]))
    assert {strongest.parent, strongest.child} not in [
        {edge.parent, edge.child} for edge in without.edges
    ]
    assert all(edge.is_asked for edge in without.edges)
    assert np.isnan(without.information(strongest.parent, strongest.child))
    alone = sv.dependency_tree(known(joint, 1e-9, unheard=[(0, 3), (1, 3), (2, 3)]))
    (held,) = [edge for edge in alone.edges if not edge.is_asked]
    assert "d" in (held.parent, held.child)
    assert "never asked together" in str(alone)
    assert len(alone.never_asked) == 3
    told = json.loads(json.dumps(alone.to_json(), allow_nan=False))
    assert [edge["information"] for edge in told["edges"] if not edge["is_asked"]] == [None]
    assert len(told["never_asked"]) == 3
    assert alone.total == pytest.approx(
        sum(edge.information for edge in alone.edges if edge.is_asked)
    )
    assert alone.joint("a", "d").never_asked == (("a", "d"),)
    assert len(alone.sample(5, seed=1)) == 5


def test_shares_are_those_of_counting_view_by_view() -> None:
    views = [(0, 1, 2), (1, 3), (2,), (0, 3, 4)]
    parts = [*combinations(range(6), 1), *combinations(range(6), 2)]
    plain = [sum(set(part) <= set(view) for view in views) / len(views) for part in parts]
    assert view_shares(views, parts) == plain
    assert together(views, 5).tolist() == [
        [sum({one, two} <= set(view) for view in views) for two in range(5)] for one in range(5)
    ]
