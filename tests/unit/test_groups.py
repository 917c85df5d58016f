"""Groups: shares within one, differences between two, averages, changes; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.results.differences import Side, difference_ends
from sottovoce.results.groups import GroupSums, Ratio, covariances
from tests.known import chain, known

PEOPLE = 8000
SCHEMA = sv.Schema(
    g=sv.Boolean(),
    a=sv.Categorical(["x", "y", "z"]),
    age=sv.Ordinal(20, 59, bins=4),
    n=sv.Ordinal(1, 5),
    rare=sv.Boolean(),
)


def crowd() -> dict[str, Any]:
    draws = np.random.default_rng(3)
    g = draws.random(PEOPLE) < 0.4
    a = np.where(g, draws.choice(3, PEOPLE, p=[0.7, 0.2, 0.1]), draws.choice(3, PEOPLE))
    age = draws.integers(20, 60, PEOPLE)
    return {
        "g": g,
        "a": np.array(["x", "y", "z"], object)[a],
        "age": age,
        "n": draws.integers(1, 6, PEOPLE),
        "rare": np.arange(PEOPLE) < 3,
    }


PEOPLE_ASKED = crowd()


def estimated(question: Any, epsilon: float = 4.0, seed: int = 1) -> Any:
    plan = sv.plan(SCHEMA, question, epsilon=epsilon, people=PEOPLE)
    return sv.Aggregate(plan).add(sv.simulate(plan, PEOPLE_ASKED, seed=seed)).estimate()


@pytest.fixture(scope="module")
def linear() -> Any:
    return estimated(sv.Marginals(up_to=2, method="marg-ps"))


@pytest.fixture(scope="module")
def latent() -> Any:
    return estimated(sv.Marginals(up_to=2, method="latent"))


@pytest.fixture(scope="module")
def queries() -> Any:
    return estimated(sv.Queries(["age", "g"], method="tree"))


def truth(attribute: str, value: Any, mask: Any) -> float:
    return float(np.mean(PEOPLE_ASKED[attribute][mask] == value))


def test_shares_within_a_group_are_ratios_of_its_cells(linear: Any) -> None:
    table = linear.within("a", {"g": True})
    cells = linear.marginal("g", "a")
    shares = np.array([cells.values[list(cells.labels).index((True, each))] for each in "xyz"])
    assert np.allclose(table.values, shares / shares.sum())
    assert np.isclose(table.values.sum(), 1)
    assert (table.attributes, list(table.labels)) == (("a",), ["x", "y", "z"])
    assert table.people == round(shares.sum() * PEOPLE)
    assert "among g: yes" in table.remark
    low, high = table.interval()
    for place, each in enumerate("xyz"):
        assert low[place] <= truth("a", each, PEOPLE_ASKED["g"]) <= high[place]
    assert np.all(table.interval(0.99)[0] <= low)
    wide = table.interval(population=True)
    assert np.all(wide[0] <= low)
    assert np.all(wide[1] >= high)


def test_a_share_of_several_values_and_of_all(linear: Any) -> None:
    table = linear.within("a", {"g": True})
    some = table.total(["x", "y"])
    rest = table.total(["z"])
    assert np.isclose(float(some), 1 - float(rest))
    assert np.isclose(some.std_error, rest.std_error)  # 1 - r errs as r does
    every = table.total(["x", "y", "z"])
    assert (round(float(every), 9), round(every.std_error, 9)) == (1.0, 0.0)


def test_groups_of_several_attributes_and_values(latent: Any) -> None:
    table = latent.within("a", {"g": [True, False], "n": 3})
    everybody = latent.within("a", {"n": 3})
    assert table.is_reconstructed  # three attributes, of which reports tell two at a time
    assert not everybody.is_reconstructed
    assert "n: 3" in everybody.remark


def test_where_errors_together_are_not_known_the_largest_are_told(latent: Any) -> None:
    table = latent.within("a", {"g": True})
    assert table.spread.sums.is_bound
    assert "errors are the largest there can be" in table.remark
    both = latent.within("rare", {"g": True})  # of two answers it follows from three errors
    assert not both.spread.sums.is_bound
    differences = latent.compare("a", {"g": True}, {"g": False})
    assert differences.total(["x"]).is_bound
    low, high = differences.interval()
    true = truth("a", "x", PEOPLE_ASKED["g"]) - truth("a", "x", ~PEOPLE_ASKED["g"])
    assert low[0] <= true <= high[0]


def test_the_largest_error_is_never_exceeded() -> None:
    """Of random laws of cells the error of any ratio is at most the one that is told."""
    draws = np.random.default_rng(1)
    for _ in range(200):
        size = int(draws.integers(2, 5))
        root = draws.normal(size=(size, size)) * draws.uniform(0.1, 1, size)[:, None] / 50
        covariance = root @ root.T
        values = draws.dirichlet(np.ones(size)) * 0.5
        errors = np.sqrt(np.diag(covariance))
        share_error = float(np.sqrt(covariance.sum()))
        weights = draws.normal(size=size)
        exact = Ratio(GroupSums(values, errors, covariance, share_error, 100), weights)
        bound = Ratio(GroupSums(values, errors, None, share_error, 100), weights)
        assert exact.std_error <= bound.std_error * (1 + 1e-9)
        (low, high), (least, most) = exact.interval(0.95), bound.interval(0.95)
        assert least <= low + 1e-9
        assert most >= high - 1e-9


def test_fieller_ends_are_where_the_numerator_is_as_far_off_as_its_error() -> None:
    covariance = np.array([[4e-4, 1e-4], [1e-4, 3e-4]])
    errors = np.sqrt(np.diag(covariance))
    sums = GroupSums(np.array([0.1, 0.2]), errors, covariance, 0.03, 100)
    ratio = sums.shares[0]
    for end in ratio.interval(0.95):
        gap = abs(0.1 - end * 0.3)
        assert np.isclose(gap, 1.959963984540054 * ratio.error_at(end))
    few = GroupSums(np.array([0.02, 0.04]), errors, covariance, 0.03, 100)
    assert few.shares[0].interval(0.95)[1] < np.inf
    assert few.shares[0].interval(0.99) == (-np.inf, np.inf)  # at this level it may be nobody


def test_cells_of_one_answer_err_against_each_other() -> None:
    """Of one answer a person all shares add up to one: what one cell errs, the others take back."""
    table = estimated(sv.Frequencies("a", oracle="grr"), epsilon=1.0).marginal("a")
    covariance, errors = covariances(table, [[0], [1], [2]])
    assert covariance is not None
    assert np.allclose(covariance.sum(axis=1), 0, atol=1e-3 * errors.min() ** 2)
    assert np.all(covariance[np.triu_indices(3, 1)] < 0)


def test_a_group_lost_in_the_noise_is_refused(linear: Any) -> None:
    with pytest.raises(InvalidInput, match=r"group \(rare: yes\) is too small to be told"):
        linear.within("a", {"rare": True})
    with pytest.raises(InvalidInput, match="too small to be told"):
        linear.compare("a", {"rare": False}, {"rare": True})
    with pytest.raises(InvalidInput, match="too small to be told"):
        linear.mean("n", {"rare": True})


def test_differences_are_those_of_the_groups(linear: Any) -> None:
    one, other = ({"g": side} for side in (True, False))
    table = linear.compare("a", one, other)
    assert isinstance(table, sv.Table)
    expected = linear.within("a", one).values - linear.within("a", other).values
    assert np.allclose(table.values, expected)
    assert np.isclose(table.values.sum(), 0)
    back = linear.compare("a", other, one)
    assert np.allclose(back.values, -expected)
    low, high = table.interval()
    assert np.allclose(back.interval()[0], -high)
    assert np.allclose(back.interval()[1], -low)
    bottom, top = table.interval(0.9999)
    for place, each in enumerate("xyz"):
        true = truth("a", each, PEOPLE_ASKED["g"]) - truth("a", each, ~PEOPLE_ASKED["g"])
        assert bottom[place] <= true <= top[place]
    sampled = table.interval(population=True)
    assert np.all(sampled[0] < low)
    assert np.all(sampled[1] > high)
    assert [row["value"] for row in table.rows()] == ["x", "y", "z"]
    assert table.at(np.array([1])).sampling.shape == (1,)


def test_ends_of_a_difference_are_those_of_both_sides() -> None:
    one = Side(0.5, 0.1, lambda level: (0.3, 0.8))
    other = Side(0.2, 0.1, lambda level: (0.1, 0.4))
    low, high = difference_ends(one, other, 0.0, 0.95)
    assert (round(low, 6), round(high, 6)) == (
        round(0.3 - np.hypot(0.2, 0.2), 6),
        round(0.3 + np.hypot(0.3, 0.1), 6),
    )
    # errors of opposite signs, if nothing is known
    assert difference_ends(one, other, None, 0.95) == pytest.approx((0.3 - 0.4, 0.3 + 0.4))
    nobody = Side(0.2, 9.0, lambda level: (-np.inf, np.inf))
    assert difference_ends(one, nobody, 0.0, 0.95) == (-1.0, 1.0)


def test_a_mean_is_that_of_its_numbers_and_of_bins_honest(linear: Any) -> None:
    numbers = linear.mean("n")
    assert not numbers.is_binned
    low, high = numbers.interval()
    assert low <= PEOPLE_ASKED["n"].mean() <= high
    ages = linear.mean("age")
    assert ages.is_binned
    wide, even = ages.interval(), ages.interval(evenly=True)
    assert wide[0] < even[0] < float(ages) < even[1] < wide[1]
    assert wide[1] - wide[0] > 9  # a bin holds ten years
    assert even[0] <= PEOPLE_ASKED["age"].mean() <= even[1]
    assert "spread evenly" in str(ages)
    told = ages.to_json()
    assert (told["value"], told["even_low"]) == (float(ages), even[0])


def test_a_median_has_half_on_each_side(linear: Any, queries: Any) -> None:
    middle = linear.median("n", {"g": True})
    low, high = middle.interval()
    assert low <= np.median(PEOPLE_ASKED["n"][PEOPLE_ASKED["g"]]) <= high
    assert float(middle) in range(1, 6)
    for found in (linear.median("age"), queries.median("age")):
        low, high = found.interval()
        assert low <= np.median(PEOPLE_ASKED["age"]) <= high
        assert low <= float(found) <= high
    wider = linear.median("n").interval(0.99)
    assert wider[0] <= linear.median("n").interval(0.5)[0]


def test_frequencies_and_queries_have_averages_too(queries: Any) -> None:
    single = estimated(sv.Frequencies("n"))
    low, high = single.mean("n").interval()
    assert low <= PEOPLE_ASKED["n"].mean() <= high
    low, high = queries.mean("age", {"g": False}).interval(0.999)
    assert low <= PEOPLE_ASKED["age"][~PEOPLE_ASKED["g"]].mean() <= high
    low, high = queries.within("g", {"age": ["20 to 29", "30 to 39"]}).interval(0.999)
    assert low[1] <= PEOPLE_ASKED["g"][PEOPLE_ASKED["age"] < 40].mean() <= high[1]


def test_a_change_has_the_errors_of_both_waves() -> None:
    before, after = (estimated(sv.Frequencies("a"), seed=seed) for seed in (1, 2))
    change = after.change_since(before, "a")
    assert np.allclose(change.values, after.marginal("a").values - before.marginal("a").values)
    variances = [each.marginal("a").variances for each in (before, after)]
    assert np.allclose(change.variances, sum(variances))
    low, high = change.interval(0.9999)
    assert np.all((low <= 0) & (high >= 0))
    shares = [np.clip(each.marginal("a").values, 0, 1) for each in (before, after)]
    people = before.marginal("a").people
    assert np.allclose(change.sampling, sum(each * (1 - each) for each in shares) / people)


def test_what_cannot_be_said_is_refused(linear: Any) -> None:
    with pytest.raises(InvalidInput, match="must name an attribute"):
        linear.within("a", {})
    with pytest.raises(InvalidInput, match="cannot make the group"):
        linear.within("a", {"a": "x"})
    with pytest.raises(InvalidInput, match="a value of 'g' is not in the table"):
        linear.within("a", {"g": "maybe"})
    with pytest.raises(InvalidInput, match="'g' must name a value"):
        linear.within("a", {"g": []})
    with pytest.raises(InvalidInput, match="must not share people"):
        linear.compare("a", {"g": True}, {"n": 3})
    with pytest.raises(InvalidInput, match="are no numbers"):
        linear.mean("a")
    with pytest.raises(InvalidInput, match="is not in the schema"):
        linear.median("b")
    with pytest.raises(InvalidInput, match="was not asked for"):
        estimated(sv.Frequencies("a", "g")).within("a", {"g": True})
    other = sv.Schema(a=sv.Categorical(["x", "y"]))
    plan = sv.plan(other, sv.Frequencies("a"), epsilon=1.0, people=100)
    apart = sv.Aggregate(plan).add(sv.simulate(plan, {"a": ["x"] * 100}, seed=1)).estimate()
    with pytest.raises(InvalidInput, match="not the same in both waves"):
        apart.change_since(estimated(sv.Frequencies("a")), "a")


def test_what_was_never_asked_together_is_refused() -> None:
    found = known(chain((2, 2, 3), seed=2), 1e-4, unheard=[(0, 2)])
    with pytest.raises(InvalidInput, match="never asked: a x c"):
        found.within("c", {"a": found.marginal("a").labels[0]})


@pytest.mark.parametrize("method", ["inp-ht", "latent"])
def test_who_gave_no_answer_is_in_no_average(method: str) -> None:
    """Half of the people say nothing, which -1 stands for; the page leaves it out by itself."""
    draw = np.random.default_rng(1)
    ages = np.where(draw.random(20_000) < 0.5, -1, draw.integers(20, 60, 20_000))
    age = sv.Ordinal(-1, 59, bins=[-1, 0, 20, 30, 40, 50], other=-1)
    schema = sv.Schema(age=age, car=sv.Boolean())
    people = {"age": ages, "car": draw.random(20_000) < 0.5}
    plan = sv.plan(schema, sv.Marginals(up_to=2, method=method), epsilon=4.0, people=20_000)
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    answered = ages[ages >= 0]
    mean, median = (of("age", without=-1) for of in (estimate.mean, estimate.median))
    low, high = mean.interval(1 - 1e-6, evenly=True)
    assert low < answered.mean() < high
    assert not low < ages.mean() < high
    low, high = median.interval(1 - 1e-6)
    assert low <= np.median(answered) <= high
    assert str(mean).startswith("mean age of everybody, without -1: ")
    assert mean.to_json()["without"] == -1
    drivers = answered[people["car"][ages >= 0]]
    low, high = estimate.mean("age", {"car": True}, without=-1).interval(1 - 1e-6, evenly=True)
    assert low < drivers.mean() < high
    page = str(sv.report(plan, estimate))
    assert f"Without -1, which stands for no answer too: mean <b>{mean.value:.4g}</b>" in page
