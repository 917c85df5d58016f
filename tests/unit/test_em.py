"""Expectation maximization over answers kept together: its step, its start, its failures and its
errors.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods import em
from sottovoce.questions.marginals.methods.climbing import (
    CELL_TOLERANCE,
    Channel,
    climb,
    joint_law,
    unbiased,
)
from sottovoce.questions.marginals.methods.em import EmFit, InputEM, SplitEM
from sottovoce.questions.marginals.workload import Workload
from tests.statistics import chi_limit

METHODS: dict[str, Any] = {"inp-em": InputEM(), "em": SplitEM()}
each_method = pytest.mark.parametrize("name", list(METHODS))


def schema_of(sizes: tuple[int, ...]) -> sv.Schema:
    return sv.Schema(
        **{f"x{place}": sv.Categorical(range(size)) for place, size in enumerate(sizes)}
    )


def people(sizes: tuple[int, ...], count: int, seed: int = 1) -> dict[str, np.ndarray]:
    """People whose attributes lean the same way."""
    draws = np.random.default_rng(seed)
    lean = draws.random(count)
    columns = [
        np.minimum((0.5 * (lean + draws.random(count))) * size, size - 1).astype(int)
        for size in sizes
    ]
    return {f"x{place}": column for place, column in enumerate(columns)}


def fit_of(
    name: str,
    sizes: tuple[int, ...],
    order: int,
    epsilon: float,
    count: int,
    seed: int = 1,
    tolerance: Any = None,
) -> EmFit:
    question = sv.Marginals(up_to=order, method=name, tolerance=tolerance)
    plan = sv.plan(schema_of(sizes), question, epsilon=epsilon, people=count)
    reports = sv.simulate(plan, people(sizes, count), seed=seed)
    fit: EmFit = sv.Aggregate(plan).add(reports).estimate().fit  # type: ignore[attr-defined]
    return fit


def truth_of(sizes: tuple[int, ...], count: int, places: tuple[int, ...]) -> np.ndarray:
    table = people(sizes, count)
    shape = tuple(sizes[place] for place in places)
    cells = np.ravel_multi_index([table[f"x{place}"] for place in places], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))) / count


# -- the pieces


@pytest.mark.parametrize(
    ("name", "size"), [("grr", 2), ("grr", 5), ("rr", 2), ("hr", 2), ("hr", 5), ("hr", 8)]
)
def test_a_channel_is_its_oracles(name: str, size: int) -> None:
    oracle: Any = sv.oracle(name, size=size, epsilon=0.8)
    channel = Channel.of(oracle)
    assert channel.law == pytest.approx(oracle.channel(), abs=1e-12)
    assert channel.inverse @ channel.law.T == pytest.approx(np.eye(size), abs=1e-9)


def channels_of(*sizes: int) -> list[Channel]:
    names = ["grr" if size < 5 else "hr" for size in sizes]
    return [
        Channel.of(sv.oracle(name, size=size, epsilon=1.0))
        for name, size in zip(names, sizes, strict=True)
    ]  # type: ignore[arg-type]


def test_answers_that_follow_the_law_exactly_give_back_the_table() -> None:
    channels = channels_of(2, 5, 3)
    truth = np.random.default_rng(1).dirichlet(np.ones(30)).reshape(2, 5, 3)
    heard = (truth.ravel() @ joint_law([channel.law for channel in channels])).reshape(
        [channel.law.shape[1] for channel in channels]
    )
    assert unbiased(heard, channels) == pytest.approx(truth, abs=1e-9)


def brute_step(heard: np.ndarray, laws: list[np.ndarray], guess: np.ndarray) -> np.ndarray:
    """One step of EM, answer by answer: the posterior of each joint answer, averaged over the
    answers.
    """
    out = np.zeros_like(guess)
    for answer in product(*(range(law.shape[1]) for law in laws)):
        posterior = np.zeros_like(guess)
        for cell in product(*(range(size) for size in guess.shape)):
            chance = np.prod(
                [law[value, told] for law, value, told in zip(laws, cell, answer, strict=True)]
            )
            posterior[cell] = guess[cell] * chance
        out += heard[answer] * posterior / posterior.sum()
    return out


@pytest.mark.parametrize(
    "copies", [1, 600]
)  # one matrix for all answers, or one after another along the axes
def test_a_step_is_the_mean_posterior(copies: int) -> None:
    channels = channels_of(2, 5, 3)
    laws = [channel.law for channel in channels]
    draws = np.random.default_rng(2)
    heard = draws.dirichlet(np.ones(48)).reshape(2, 8, 3)
    guess = draws.dirichlet(np.ones(30)).reshape(2, 5, 3)
    expected = brute_step(heard, laws, guess)
    got, steps = climb(np.stack([heard] * copies), laws, np.stack([guess] * copies), steps=1)
    assert got[0] == pytest.approx(expected, abs=1e-12)
    assert got[-1] == pytest.approx(expected, abs=1e-12)
    assert steps.tolist() == [1] * copies


def test_steps_raise_the_likelihood_and_rows_stop_by_themselves() -> None:
    channels = channels_of(3, 2)
    laws = [channel.law for channel in channels]
    law = joint_law(laws)
    draws = np.random.default_rng(3)
    truths = draws.dirichlet(np.ones(6), 4)
    heard = (truths @ law).reshape(4, 3, 2)
    start = np.full((4, 3, 2), 1 / 6)
    before = np.full(4, -np.inf)
    for count in (1, 2, 5, 20, 100, 1000):
        guess, _ = climb(heard, laws, start, steps=count)
        after = (heard.reshape(4, -1) * np.log(guess.reshape(4, -1) @ law)).sum(axis=1)
        assert (after >= before - 1e-12).all()
        before = after
    together, steps = climb(heard, laws, start)
    for row in range(4):
        alone, own = climb(heard[row : row + 1], laws, start[row : row + 1])
        assert alone[0] == pytest.approx(together[row], abs=1e-12)
        assert own[0] == steps[row]
    assert len(set(steps.tolist())) > 1
    even, once = climb(np.full((1, 3, 2), 1 / 6), laws, start[:1])
    assert once.tolist() == [1]
    assert even[0] == pytest.approx(start[0])


# -- the methods


@each_method
def test_answers_are_counted_together(name: str) -> None:
    sizes = (2, 3, 9)
    plan = sv.plan(schema_of(sizes), sv.Marginals(up_to=2, method=name), epsilon=3.0, people=500)
    assert plan.cohorts.keep == "rows"
    reports = sv.simulate(plan, people(sizes, 500), seed=1)
    fit: Any = sv.Aggregate(plan).add(reports).estimate().fit  # type: ignore[attr-defined]
    oracles = plan.cohorts[0].oracles
    parts = [slice(*each.indices(1 << 10)[:2]) for each in plan.cohorts[0].slices]
    told = [
        [o.unpack(row[part].tobytes()) for o, part in zip(oracles, parts, strict=True)]
        for row in reports.payload
    ]
    for places in [(0,), (1, 2), (0, 1, 2)]:
        brute = np.zeros([fit._channels[place].law.shape[1] for place in places])
        for answers in told:
            brute[tuple(answers[place] for place in places)] += 1 / 500
        assert fit.heard([places])[0] == pytest.approx(brute)
        both = fit.heard([places, places[::-1], places][:: len(places)])  # of the same channels
        assert all(each == pytest.approx(brute) for each in both)


@pytest.mark.parametrize("name", ["inp-em", "em"])
def test_the_guarantee_is_the_budget_and_by_enumeration_no_more(name: str) -> None:
    sizes = (2, 3, 7)
    plan = sv.plan(schema_of(sizes), sv.Marginals(up_to=2, method=name), epsilon=1.0, people=1000)
    assert 0.99 < plan.guarantee.per_report <= 1.0
    law = joint_law([Channel.of(oracle).law for oracle in plan.cohorts[0].oracles])
    assert float(np.log(law.max(axis=0) / law.min(axis=0)).max()) <= 1.0 + 1e-12
    assert sv.Plan.from_json(plan.to_json(), id=plan.id) == plan
    names = [oracle.names[0] for oracle in plan.cohorts[0].oracles]
    assert names == (["grr"] * 3 if name == "inp-em" else ["grr", "grr", "hr"])


def test_at_a_small_epsilon_pairs_stop_at_the_uniform_table() -> None:
    """As cormode2018marginal, table 3, saw it: 120 of 120 pairs at d = 16 and epsilon 0.1, few at a
    larger one.
    """
    small = fit_of("inp-em", (2,) * 8, 2, 0.004, 4000)
    assert small.failures() == 28
    assert small.tables([(0, 1)])[0] == pytest.approx([0.25] * 4, abs=CELL_TOLERANCE)
    assert small.steps((0, 1)) == 1
    large = fit_of("inp-em", (2,) * 8, 2, 4.0, 4000)
    assert large.failures() == 0
    assert large.failures([(0, 1), (2, 3)]) == 0


def test_a_table_says_that_it_stopped_where_it_began() -> None:
    sizes, count = (2,) * 4, 4000
    said = []
    for tolerance in (None, "0.000000001"):
        question = sv.Marginals(up_to=2, method="inp-em", tolerance=tolerance)
        plan = sv.plan(schema_of(sizes), question, epsilon=0.004, people=count)
        assert sv.Plan.from_json(plan.to_json(), id=plan.id) == plan
        estimate = (
            sv.Aggregate(plan).add(sv.simulate(plan, people(sizes, count), seed=1)).estimate()
        )
        said.append(estimate.marginal("x0", "x1"))
    stopped, moved = said
    assert "stopped where it began" in stopped.remark
    assert "1e-05" in stopped.remark
    assert stopped.remark in stopped.notes
    assert stopped.to_json()["remark"] == stopped.remark
    assert moved.remark == moved.to_json()["remark"] == ""
    assert np.abs(moved.values - 0.25).max() > CELL_TOLERANCE


def test_a_tolerance_that_is_given_stands_in_the_plan_and_no_other() -> None:
    for name, extra in (("inp-em", set()), ("em", {"oracles"})):
        for tolerance, kept in ((None, set()), (1e-4, {"tolerance"})):
            question = sv.Marginals(up_to=2, method=name, tolerance=tolerance)
            plan = sv.plan(schema_of((2, 3)), question, epsilon=1.0, people=1000)
            assert isinstance(plan.question, sv.Marginals)
            assert set(plan.question.options) == extra | kept
    for wrong in (0, 2, "x"):
        question = sv.Marginals(up_to=2, method="inp-em", tolerance=wrong)
        with pytest.raises(sv.InvalidInput, match="tolerance"):
            sv.plan(schema_of((2, 3)), question, epsilon=1.0, people=1000)


def test_a_guess_that_never_moved_is_not_taken_for_exact() -> None:
    """In no cell, not even where the unbiased table happens to lie where the guess does."""
    fit = fit_of("inp-em", (2,) * 8, 2, 0.4, 4000, tolerance=1e-3)
    pairs = list(combinations(range(8), 2))
    assert fit.failures(pairs) == 28
    assert min(float(each.min()) for each in fit.variances(pairs)) > 0.025


@each_method
def test_estimates_have_the_error_of_maximum_likelihood(name: str) -> None:
    """n times the squared distance in the metric of the answers' Fisher information is chi-squared,
    3 a pair and crowd.

    The people are drawn anew for every crowd, from a table within the simplex; a wrong channel is
    told apart.
    """
    sizes, count, crowds = (2, 2), 20_000, 20
    truth = np.array([0.35, 0.15, 0.2, 0.3])
    plan = sv.plan(schema_of(sizes), sv.Marginals(up_to=2, method=name), epsilon=4.0, people=count)
    wrong = sv.plan(schema_of(sizes), sv.Marginals(up_to=2, method=name), epsilon=4.4, people=count)

    def statistic(asked: sv.Plan) -> float:
        law = joint_law([Channel.of(oracle).law for oracle in plan.cohorts[0].oracles])
        information = (law / (truth @ law)) @ law.T
        total = 0.0
        for crowd in range(crowds):
            cells = np.random.default_rng(crowd).choice(4, count, p=truth)
            reports = sv.simulate(asked, {"x0": cells // 2, "x1": cells % 2}, seed=crowd)
            mine = sv.Reports(plan.id, reports.cohorts, reports.payload)
            estimate = sv.Aggregate(plan).add(mine).estimate().fit.tables([(0, 1)])[0]  # type: ignore[attr-defined]
            total += count * float((estimate - truth) @ information @ (estimate - truth))
        return total

    limit = chi_limit(3 * crowds, 2)
    assert statistic(plan) < limit < statistic(wrong)


@each_method
def test_errors_are_as_large_as_stated(name: str) -> None:
    """Mean squared error over mean stated variance of six pairs in ten crowds: a ratio near 1, and
    never far above.
    """
    sizes, count = (2, 3, 2, 4), 8000
    sets = list(combinations(range(4), 2))
    squared, stated = 0.0, 0.0
    for seed in range(10):
        fit = fit_of(name, sizes, 2, 4.0, count, seed)
        assert fit.errors == "parametric bootstrap"
        tables, variances = fit.tables(sets), fit.variances(sets)
        squared += sum(
            float(((t - truth_of(sizes, count, s)) ** 2).sum())
            for t, s in zip(tables, sets, strict=True)
        )
        stated += sum(float(each.sum()) for each in variances)
    # some 30 degrees of freedom a crowd leave 0.08 to chance; the rest is the bootstrap's, whose
    # truths lie nearer to the edge of the simplex, where EM errs less
    assert 0.6 < squared / stated < 1.5
    assert squared / (stated / 2) > 1.5


@each_method
def test_tables_of_any_set(name: str) -> None:
    sizes = (2, 3, 6, 2)
    fit = fit_of(name, sizes, 2, 4.0, 3000)
    for places in [(2,), (0, 3), (0, 1, 2), (0, 1, 2, 3)]:
        table, variances = fit.tables([places])[0], fit.variances([places])[0]
        assert table.shape == variances.shape == (int(np.prod([sizes[place] for place in places])),)
        assert float(table.sum()) == pytest.approx(1)
        assert float(table.min()) >= 0
        assert float(variances.min()) > 0
        assert fit.variances([places])[0] is variances  # worked out once
        assert not fit.is_unbiased(places)
    again = fit_of(name, sizes, 2, 4.0, 3000)
    assert np.array_equal(again.variances([(0, 3)])[0], fit.variances([(0, 3)])[0])
    one_by_one = [again.tables([places])[0] for places in [(0, 1), (0, 3), (1, 3)]]
    at_once = fit_of(name, sizes, 2, 4.0, 3000).tables([(0, 1), (0, 3), (1, 3)])
    assert all(
        one == pytest.approx(two, abs=1e-12) for one, two in zip(one_by_one, at_once, strict=True)
    )


@each_method
@pytest.mark.parametrize(("epsilon", "count"), [(0.5, 4000), (8.0, 4000)])
def test_predictions_are_of_the_right_size(name: str, epsilon: float, count: int) -> None:
    """Within a factor of 4 of what crowds show: a typical table is not this one, and EM has no
    formula.
    """
    sizes = (2, 2, 3, 2, 2)
    work = Workload.of(schema_of(sizes), None, 2)
    fits = [fit_of(name, sizes, 2, epsilon, count, seed) for seed in range(3)]
    seen = np.mean(
        [
            ((table - truth_of(sizes, count, places)) ** 2).sum()
            for fit in fits
            for table, places in zip(fit.tables(work.sample), work.sample, strict=True)
        ]
    )
    method = METHODS[name]
    options = method.settle(work, Terms(Decimal(str(epsilon)), count))
    predicted = method.predict(work, Terms(Decimal(str(epsilon)), count), options)
    assert seen / 4 < predicted < seen * 4


def test_what_does_not_fit_is_refused() -> None:
    def work(sizes: tuple[int, ...], order: int) -> Workload:
        return Workload.of(schema_of(sizes), None, order)

    pairs, many = InputEM(), SplitEM()
    assert pairs.refuse(work((2,) * 4, 3), Terms(Decimal(1), 100)) == (
        "it answers tables of at most 2 attributes, and up_to is 3"
    )
    assert many.refuse(work((2,) * 4, 3), Terms(Decimal(1), 100)) is None
    for method in (pairs, many):
        assert "5,000 values" in (method.refuse(work((2, 5000), 2), Terms(Decimal(1), 100)) or "")
        assert "epsilon/2" in (method.refuse(work((2, 2), 2), Terms(Decimal("1e-30"), 100)) or "")
    assert "joint answers" in (
        many.refuse(work((1000, 1000, 1000), 3), Terms(Decimal(1), 100)) or ""
    )
    with pytest.raises(sv.InvalidInput, match="grr or hr"):
        many.oracles(work((2, 2), 2), Decimal(1), {"oracles": ["grr", "oue"]})


def test_too_many_joint_answers_are_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fit_of("em", (2, 3, 6, 2), 2, 4.0, 300)
    monkeypatch.setattr(em, "MOST_ANSWERS", 10)
    with pytest.raises(sv.InvalidInput, match="joint answers"):
        fit.tables([(0, 1, 2)])
