"""Open alphabets: the algebra of lists that do not hold all that people say, against plain least
squares; shapes by predicted error; what is left for anything else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.oracles import CohortOracle, decoding
from sottovoce.oracles.cohort_shapes import predicted_variance
from sottovoce.oracles.decoding import Design
from sottovoce.results.findings import Findings
from tests.statistics import chi_limit, z_limit

NAMES = ("o-rr", "o-rappor", "rappor")
LISTED = np.array([3, 70_000, 5, 11, 2**40, 1], np.uint64)
WORDS = sv.Schema(word=sv.Text(bytes=8))
PEOPLE = 100_000


def opened(name: str, **options: Any) -> CohortOracle:
    """An oracle for an open alphabet, with two hashes where it takes them."""
    shape = {"cohorts": 8, "buckets": 5, **({} if name == "o-rr" else {"hashes": 2})}
    made = sv.oracle(name, size=1 << 64, epsilon=2.0, **{**shape, **options})
    assert isinstance(made, CohortOracle)
    return made


def cells(design: Design) -> np.ndarray:
    """T, (cohorts * buckets, candidates)."""
    touched = np.concatenate([block for _, block in design.blocks()])
    return touched.reshape(-1, design.candidates)


def half_off(name: str, people: int = PEOPLE, **options: Any) -> sv.Aggregate:
    """Thirty and twenty of a hundred on the list, the others off it, on many values."""
    words = ["piano"] * (3 * people // 10) + ["forte"] * (people // 5)
    words += [f"w{number % 5_000}" for number in range(people // 2)]
    question = sv.Frequencies("word", oracle=name, **options)
    plan = sv.plan(WORDS, question, epsilon=2.0, people=people)
    return sv.Aggregate(plan).add(sv.simulate(plan, {"word": words}, seed=1))


# -- the algebra


@pytest.mark.parametrize("name", NAMES)
def test_touched_cells_are_those_of_the_device(name: str) -> None:
    oracle = opened(name)
    design = oracle.design(LISTED, is_complete=False)
    touched = cells(design).reshape(oracle.cohorts, oracle.buckets, -1)
    for cohort in range(oracle.cohorts):
        for column, value in enumerate(LISTED.tolist()):
            own = np.flatnonzero(touched[cohort, :, column]).tolist()
            assert own == sorted(set(oracle.places(cohort, value)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_complete", [False, True])
def test_answers_are_those_of_plain_least_squares(name: str, is_complete: bool) -> None:
    """Without the list being complete: with a column of ones for each cohort. Else: under the
    constraint that frequencies sum to one.
    """
    oracle = opened(name)
    design = oracle.design(LISTED, is_complete=is_complete)
    seen = np.random.default_rng(1).normal(size=(oracle.cohorts, oracle.buckets))
    table = cells(design)
    if is_complete:
        rows = np.vstack([table, 1e6 * np.ones(len(LISTED))])
        target = np.append(seen.ravel(), 1e6)
    else:
        ones = np.kron(np.eye(oracle.cohorts), np.ones((oracle.buckets, 1)))
        rows, target = np.hstack([table, ones]), seen.ravel()
    expected = np.linalg.lstsq(rows, target, rcond=None)[0][: len(LISTED)]
    assert np.allclose(design.solve(seen), expected, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_seen_of_people_off_the_list_is_flat_over_hashes(name: str) -> None:
    """Averaged over salts, a value off the list touches all cells alike, and the overlap is the
    variance of what it touches.
    """
    salts, sums, squares = 400, np.zeros(5), 0.0
    for salt in range(salts):
        oracle = opened(name, salt=salt)
        off = cells(oracle.design(np.array([99], np.uint64), is_complete=False))
        by_cell = off.reshape(oracle.cohorts, oracle.buckets)
        sums += by_cell.sum(axis=0)
        squares += float(((by_cell - by_cell.mean(axis=1, keepdims=True)) ** 2).sum())
    draws = salts * oracle.cohorts
    share = sums.sum() / (5 * draws)
    assert np.abs(sums / draws - share).max() < z_limit(15) * np.sqrt(share * (1 - share) / draws)
    per_direction = squares / (draws * (oracle.buckets - 1))
    # one hash: the same in every cohort; two: a share of cohorts where they meet
    reach = 0 if name == "o-rr" else z_limit(3) * 0.4 / np.sqrt(draws)
    assert abs(per_direction - oracle._overlap) <= reach + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_variances_are_those_of_the_reports_law(name: str) -> None:
    """For a crowd all of whose values are listed, the variance of an estimate is that of the mean
    of independent reports: enumerated over every way one report can fall.
    """
    small = {"cohorts": 2, "buckets": 4}
    oracle = opened(name, **small)
    listed = LISTED[:3]
    design = oracle.design(listed, is_complete=False)
    shares = np.array([0.5, 0.3, 0.2])
    by_value = []
    for value in listed.tolist():
        law = _law(oracle, value)
        answers = np.array([design.solve(oracle.seen(_state(oracle, out), 1)) for out in law])
        chances = np.array(list(law.values()))
        mean = chances @ answers
        by_value.append(chances @ answers**2 - mean**2)
    expected = shares @ np.array(by_value)
    got = oracle._moments(design, design.inverse, shares[:, None], np.zeros(1))[0][:, 0]
    assert np.allclose(got, expected)
    halved = got / 2
    assert not np.allclose(halved, expected)


def _law(oracle: CohortOracle, value: int) -> dict[Any, float]:
    """The exact chance of every report on a value, of an alphabet too large to list."""
    from sottovoce.ground.entropy import exact_law

    def report(entropy: Any) -> Any:
        return oracle.randomize(value, entropy)

    return {out: float(chance) for out, chance in exact_law(report, 1 << 17).items()}


def _state(oracle: CohortOracle, output: Any) -> np.ndarray:
    row = np.frombuffer(oracle.pack(output), np.uint8).reshape(1, -1)
    return oracle.accumulate(oracle.empty(), row)


@pytest.mark.parametrize("name", NAMES)
def test_large_designs_are_taken_in_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = opened(name)
    state = oracle.accumulate(oracle.empty(), oracle.simulate(np.arange(4000) % 9, seed=1))
    whole = oracle.decode(state, 4000, LISTED)
    support = oracle.support_of(state, LISTED)
    monkeypatch.setattr(decoding, "MAX_DESIGN_NUMBERS", 70)
    assert len(list(oracle.design(LISTED, is_complete=False).blocks())) > 3
    blocked = oracle.decode(state, 4000, LISTED)
    assert np.allclose(blocked.frequencies, whole.frequencies)
    assert np.allclose(blocked.variances, whole.variances)
    assert blocked.rest == pytest.approx(whole.rest)
    assert np.array_equal(oracle.support_of(state, LISTED), support)


# -- half of the people off the list


@pytest.mark.parametrize("name", NAMES)
def test_a_list_is_not_taken_for_all_that_people_say(name: str) -> None:
    """Thirty and twenty of a hundred; the constraint would share out the other fifty."""
    heard = half_off(name)
    words = ["piano", "forte", "mezzo", "largo"]
    truth = np.array([0.3, 0.2, 0, 0])
    table = heard.estimate(candidates=words).table
    limit = z_limit(2 * 5 * 3)
    assert np.abs((table.values - truth) / table.std_error).max() < limit
    assert table.is_unbiased
    assert not table.is_complete
    assert not table.significant()[2:].any()
    assert table.off_list is not None
    assert abs(table.off_list - 0.5) / table.off_list.std_error < limit
    assert float(table.off_list) == pytest.approx(1 - table.values.sum())
    wrong = heard.estimate(candidates=words, complete=True).table
    assert np.abs((wrong.values - truth) / wrong.std_error).max() > limit
    assert wrong.is_complete
    assert wrong.off_list is None
    assert wrong.values.sum() == pytest.approx(1)


def test_what_is_left_is_shown() -> None:
    table = half_off("o-rr", 20_000).estimate(candidates=["piano", "forte"]).table
    left = table.off_list
    assert left is not None
    said = f"anything off the list: {left:.4f} ± {left.std_error:.4f}"
    assert said in str(table)
    assert said in table._repr_html_()
    low, high = left.interval(0.9)
    assert table.to_json(0.9)["off_list"] == {
        "frequency": float(left),
        "std_error": left.std_error,
        "low": low,
        "high": high,
    }
    assert table.at(np.array([0])).off_list == left
    repaired = sv.postprocess(table, "norm-sub")
    assert repaired.off_list is None  # it says that nothing is left
    assert repaired.to_json()["off_list"] is None


def test_the_error_of_what_is_left_has_covariances() -> None:
    """Candidates that share all their cells but few err against each other: their sum errs less."""
    oracle = opened("o-rr", cohorts=2, buckets=3)
    values = np.array([0, 1, 2], np.uint64)
    state = oracle.accumulate(oracle.empty(), oracle.simulate(np.zeros(3000, int), seed=1))
    decoded = oracle.decode(state, 3000, values)
    design = oracle.design(values, is_complete=False)
    assert decoded.rest is not None
    summed = np.ones((1, 3)) @ design.inverse
    apart = float(decoded.variances.sum())
    assert decoded.rest[1] != pytest.approx(apart, rel=0.2)
    assert np.sign(decoded.rest[1] - apart) == np.sign(summed.sum() - np.trace(design.inverse))


@pytest.mark.parametrize("method", ["o-rr", "rappor"])
def test_popular_values_of_a_list_leave_room_for_others(method: str) -> None:
    words = ["piano"] * 30_000 + ["forte"] * 20_000
    words += [f"w{number % 5_000}" for number in range(50_000)]
    question = sv.HeavyHitters("word", top=4, method=method)
    plan = sv.plan(WORDS, question, epsilon=2.0, people=PEOPLE)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"word": words}, seed=2))
    listed = ["piano", "forte", "mezzo", "largo"]
    found = heard.estimate(candidates=listed)
    assert isinstance(found, Findings)
    assert found.table.labels[:2] == ["piano", "forte"]
    assert found.significant().tolist() == [True, True, False, False]
    assert not found.table.is_complete
    left = found.table.off_list
    assert left is not None
    assert abs(left - 0.5) / left.std_error < z_limit(2)
    assert not found.notes
    every = heard.estimate(candidates=listed, complete=True)
    assert isinstance(every, Findings)
    assert every.significant().all()  # stars for noise: what the declaration costs if it is wrong
    assert every.notes == ("the candidates are taken to hold all that people say",)
    assert every.table.off_list is None


def test_only_lists_can_be_declared_complete() -> None:
    schema = sv.Schema(x=sv.Integer(bits=32))
    plan = sv.plan(schema, sv.HeavyHitters("x", top=2), epsilon=2.0, people=1000)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [5] * 1000}, seed=1))
    with pytest.raises(sv.InvalidInput, match="complete is for methods rappor and o-rr"):
        heard.estimate(candidates=[5], complete=True)
    plan = sv.plan(schema, sv.Frequencies("x", oracle="olh-seeded"), epsilon=2.0, people=1000)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [5] * 1000}, seed=1))
    with pytest.raises(sv.InvalidInput, match=r"complete \(True\) is for rappor, o-rr"):
        heard.estimate(candidates=[5], complete=True)
    with pytest.raises(sv.InvalidInput, match="complete is said of candidates"):
        half_off("o-rr", 1000).estimate(complete=True)


# -- a schema that lists all values


@pytest.mark.parametrize("name", NAMES)
def test_some_values_of_a_closed_attribute_are_read_as_all_of_them(name: str) -> None:
    schema = sv.Schema(x=sv.Categorical(range(12)))
    plan = sv.plan(schema, sv.Frequencies("x", oracle=name), epsilon=2.0, people=5000)
    values = np.arange(5000) % 12 // 3 * 2
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": values}, seed=3))
    every = heard.estimate().table
    assert every.is_complete
    assert every.off_list is None
    assert every.values.sum() == pytest.approx(1)
    some = heard.estimate(candidates=[4, 1]).table
    assert np.array_equal(some.values, every.values[[4, 1]])
    assert np.allclose(some.variances, every.variances[[4, 1]])
    assert not some.is_complete
    assert some.off_list is not None
    rest = [value for value in range(12) if value not in (4, 1)]
    others = heard.estimate(candidates=rest).table.off_list
    assert others is not None
    assert float(some.off_list) == pytest.approx(every.values[rest].sum())
    # what is left for the others errs as the sum of the two
    assert float(others) == pytest.approx(every.values[[4, 1]].sum())
    assert others.std_error == pytest.approx(some.off_list.std_error)
    assert heard.estimate(candidates=range(12)).table.is_complete


# -- fewer cells than values


def test_of_all_answers_that_fit_the_smallest_is_given() -> None:
    oracle = sv.oracle("o-rr", size=64, epsilon=3.0, cohorts=2, buckets=8)
    assert isinstance(oracle, CohortOracle)
    people = 50_000
    values = np.repeat([3, 40], [30_000, 20_000])
    state = oracle.accumulate(oracle.empty(), oracle.simulate(values, seed=1))
    decoded = oracle.decode(state, people)
    assert not decoded.is_unbiased
    seen = oracle.seen(state, people)
    design = oracle.design(np.arange(64, dtype=np.uint64), is_complete=True)
    table = cells(design)
    constrained = np.vstack([table, 1e6 * np.ones(64)])
    even = table.mean(axis=1, keepdims=True)
    rows = table - even
    target = seen.ravel() + 1 / 8 - even[:, 0]
    smallest = 1 / 64 + np.linalg.lstsq(rows, target, rcond=1e-9)[0]
    assert np.allclose(decoded.frequencies, smallest)
    assert np.linalg.matrix_rank(constrained) < 64  # so that others fit as well
    truth = np.bincount(values, minlength=64) / people
    squares = (decoded.frequencies - truth) ** 2
    # what is missing is part of the error: coins alone do not explain it
    shares = np.clip(decoded.frequencies, 0, 1)[:, None]
    coins = oracle._moments(design, design.inverse, shares / shares.sum(), np.zeros(1))[0][:, 0]
    assert (squares / decoded.variances).sum() < chi_limit(64) < (squares / coins * people).sum()


def test_a_table_of_too_few_cells_is_marked() -> None:
    schema = sv.Schema(x=sv.Categorical(range(64)))
    question = sv.Frequencies("x", oracle="o-rr", cohorts=1, buckets=4)
    plan = sv.plan(schema, question, epsilon=2.0, people=1000)
    table = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [5] * 1000}, seed=1)).estimate().table
    assert not table.is_unbiased
    assert table.is_reconstructed
    assert "reconstructed" in str(table)
    assert (table.std_error > 0.1).all()  # three sums are known of 64 values


# -- how many cohorts, how many buckets


def test_cohorts_are_chosen_by_their_error() -> None:
    """At epsilon 1 and 256 values, 256 cohorts have 46% more variance than 4096, and more than
    k-RAPPOR (kairouz2016discrete, figure 3b); what is chosen has neither.
    """

    def variance(name: str, **options: int) -> float:
        return float(sv.oracle(name, size=256, epsilon=1.0, **options).variance(1, 1 / 256))

    chosen, few, many = (
        variance("o-rr"),
        variance("o-rr", cohorts=256),
        variance("o-rr", cohorts=4096),
    )
    assert few / many > 1.4
    assert chosen < 1.05 * many
    assert chosen < variance("sue") < few


@pytest.mark.parametrize(("size", "epsilon"), [(16, 0.5), (64, 1.0), (256, 1.0), (200, 2.0)])
@pytest.mark.parametrize("cohorts", [512, 2048])
def test_the_predicted_error_is_the_stated_one(size: int, epsilon: float, cohorts: int) -> None:
    oracle = sv.oracle("o-rr", size=size, epsilon=epsilon, cohorts=cohorts)
    assert isinstance(oracle, CohortOracle)
    odds, buckets = np.exp(epsilon), oracle.buckets
    single = (odds + buckets - 1) ** 2 / ((odds - 1) ** 2 * (buckets - 1))
    predicted = predicted_variance(float(single), cohorts, buckets, size, 1)
    stated = float(oracle.variance(1, 1 / size))
    # values of a closed alphabet share cells less than by chance: (1 - 1/S)^2 of the variance
    assert stated == pytest.approx(predicted * (1 - 1 / size) ** 2, rel=0.03)


def test_more_people_are_given_more_cohorts() -> None:
    def cohorts(name: str, people: int, size: int = 1 << 64) -> int:
        made = sv.oracle(name, size=size, epsilon=2.0, people=people)
        assert isinstance(made, CohortOracle)
        return made.cohorts

    for name in NAMES:
        assert cohorts(name, 100) < cohorts(name, 1_000_000)
        assert cohorts(name, 100, 100) == cohorts(name, 1_000_000, 100)  # none is off the list
    plan = sv.plan(WORDS, sv.Frequencies("word", oracle="o-rr"), epsilon=2.0, people=500)
    assert plan.cohorts[0].oracles[0].options()["cohorts"] == cohorts("o-rr", 500)
    assert sv.Plan.from_json(plan.to_json()).question == plan.question


@pytest.mark.parametrize("method", ["o-rr", "rappor"])
def test_a_plan_for_popular_values_holds_the_shape_of_its_people(method: str) -> None:
    def shape(people: int, **options: int) -> tuple[dict[str, Any], dict[str, Any]]:
        question = sv.HeavyHitters("word", top=4, method=method, **options)
        plan = sv.plan(WORDS, question, epsilon=2.0, people=people)
        again = sv.Plan.from_json(plan.text)
        assert again.question == plan.question
        return dict(again.question.options), again.cohorts[0].oracles[0].options()

    for people in (400, PEOPLE):
        expected = sv.oracle(method, size=1 << 64, epsilon=2.0, people=people).options()
        held, built = shape(people)
        assert (built["cohorts"], built["buckets"]) == (expected["cohorts"], expected["buckets"])
        assert held.get("cohorts", built["cohorts"]) == built["cohorts"]
    assert shape(PEOPLE)[1]["cohorts"] > shape(400)[1]["cohorts"]
    assert shape(PEOPLE, cohorts=4)[1]["cohorts"] == 4


def test_what_is_asked_for_is_kept() -> None:
    made = sv.oracle("o-rr", size=256, epsilon=1.0, buckets=16).options()
    assert made["buckets"] == 16
    made = sv.oracle("o-rr", size=256, epsilon=1.0, cohorts=64).options()
    assert (made["cohorts"], made["buckets"]) == (64, 4)
    made = sv.oracle("rappor", size=256, epsilon=1.0, cohorts=2).options()
    assert made["cohorts"] == 2
    with pytest.raises(sv.InvalidInput, match=r"people \(0\) must lie between 1 and"):
        sv.oracle("o-rr", size=256, epsilon=1.0, people=0)
