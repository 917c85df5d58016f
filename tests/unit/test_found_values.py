"""Values that were found: the limits that they passed, and the intervals that follow."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtrc
from scipy.stats import binom, norm

import sottovoce as sv
from sottovoce.questions.heavyhitters.found import FoundSpread
from sottovoce.questions.heavyhitters.passing import Passage
from sottovoce.questions.heavyhitters.sensitivity import noise_score
from sottovoce.questions.selection import least_passing
from sottovoce.results.findings import SIGNIFICANT, Findings


def passage(people: list[int] | None = None) -> Passage:
    return Passage([10, 6, 4], people or [4_000, 4_000, 4_000], 4, [64, 32, 16], 10)


@pytest.mark.parametrize("tail", [0.2, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize(("people", "buckets"), [(20_000, 4), (20_000, 64), (200_000, 64)])
def test_scores_of_noise_are_those_of_its_binomial_law(
    tail: float, people: int, buckets: int
) -> None:
    support = binom.isf(tail, people, 1 / buckets)
    step = 1.5 * buckets  # scores of neighbouring supports differ by 2^b
    exact = buckets * support - people
    skewed = float(noise_score(tail, people, buckets))
    normal = np.sqrt(people * (buckets - 1)) * norm.isf(tail)
    assert skewed == pytest.approx(exact, abs=step + 0.01 * exact)
    if tail < 1e-5 and buckets > 4 and people < 100_000:
        assert normal < exact - step - 0.01 * exact  # a normal law would find too much


def test_a_limit_is_found_where_a_test_begins_to_be_passed() -> None:
    limits = np.array([0.5, 3.0, 7.9])
    found = least_passing(lambda each: each >= limits, np.zeros(3), np.full(3, 8.0))
    assert found == pytest.approx(limits, abs=1e-9)


def test_moved_scores_have_the_total_asked_for_and_keep_what_windows_say_beside_it() -> None:
    ways = passage([1_000, 3_000, 4_000])
    scores = np.array([[100.0, 20, 60], [50, 200, 10]])
    moved = ways.moved(scores, np.array([400.0, 100]))
    assert moved.sum(axis=1) == pytest.approx([400, 100])
    beside = scores - scores.sum(axis=1)[:, None] * ways.shares
    assert moved - moved.sum(axis=1)[:, None] * ways.shares == pytest.approx(beside)


def test_a_value_is_kept_from_its_least_total_on_and_not_below() -> None:
    ways = passage()
    rng = np.random.default_rng(4)
    scores = ways.beginnings[-1] / 3 + rng.normal(0, 60, (50, 3)) + 250
    tested = np.full(50, 2.0**20)
    least = ways.least_totals(scores, tested)
    is_limited = np.isfinite(least)
    assert is_limited.sum() > 40

    def passes(totals: Any) -> Any:
        sums = np.cumsum(ways.moved(scores, totals), axis=1)
        rest = sums[:, -1:] - sums[:, :-1]
        ghosts = noise_score(np.log(2) / ways.ghosts(tested), np.array([8_000, 4_000]), 4)
        return (sums >= ways.beginnings).all(axis=1) & (rest >= ghosts).all(axis=1)

    did_pass = passes(scores.sum(axis=1)) & is_limited
    assert did_pass.sum() > 30
    assert passes(least + 1e-6)[did_pass].all()
    assert not passes(least - 1e-3)[did_pass].any()


def test_a_ghost_of_a_popular_value_is_no_sure_find() -> None:
    """It has the popular value's score in two windows of three, and the best noise in the last."""
    ways = Passage([24, 12, 12], [66_000] * 3, 8, [16_384, 4_096, 1_024], 24)
    spread = np.sqrt(66_000 * 7)
    scores = np.array([[6.5, 6.5, 3.7], [6.0, 6.0, 6.0]]) * spread
    tested = np.full(2, 2.0**48)
    ghost, value = ways.chances(scores, tested, popular=32)
    assert value < SIGNIFICANT < 1 < ghost
    # by the totals alone both would be sure
    alone = 2.0**48 * bdtrc((scores.sum(axis=1) + 198_000) // 8 - 1, 198_000, 1 / 8)
    assert (alone < SIGNIFICANT).all()


def test_more_people_and_fewer_values_lower_what_is_needed() -> None:
    ways, more = passage(), passage([16_000] * 3)
    few, many = 2.0**12, 2.0**20
    plain = ways.threshold(many, 8, gain=2.0, slope=0.0, chance=0.5)
    assert more.threshold(many, 8, gain=2.0, slope=0.0, chance=0.5) == pytest.approx(
        plain / 2, rel=0.03
    )
    assert ways.threshold(few, 8, gain=2.0, slope=0.0, chance=0.5) < plain
    assert ways.threshold(many, 8, gain=2.0, slope=0.0, chance=0.9) > plain
    assert ways.threshold(many, 8, gain=2.0, slope=50.0, chance=0.9) > plain


def spread_of(starred: bool = True) -> FoundSpread:
    values = np.array([0.30, 0.101, 0.11, -0.02])
    return FoundSpread(values, np.full(4, 0.01), np.full(4, 0.1), np.full(4, starred))


@pytest.mark.parametrize("level", [0.2, 0.5, 0.95, 0.999])
def test_intervals_of_found_values_lie_in_the_unit_interval(level: float) -> None:
    for is_starred in (True, False):
        low, high = spread_of(is_starred).interval(level)
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert (low < high).all()
        assert (low[:3] <= spread_of().values[:3]).all()
        assert (high[:3] >= spread_of().values[:3]).all()
        if not is_starred:
            assert not low.any()


def test_far_above_the_threshold_an_interval_is_the_normal_one() -> None:
    low, high = spread_of().interval(0.95)
    assert (low[0], high[0]) == pytest.approx((0.3 - 0.0196, 0.3 + 0.0196), abs=1e-5)
    assert low[1] < 0.101 - 0.0196 - 0.01


def test_sums_of_found_values_have_the_largest_error_that_is_possible() -> None:
    spread = spread_of()
    one, two = spread.total([1], 0.101), spread.total([0, 1], 0.401)
    assert not one.is_bound
    assert two.is_bound
    assert two.std_error == pytest.approx(0.02)
    low, high = spread.interval(0.9)
    assert one.interval(0.9) == (low[1], high[1])


METHODS: list[tuple[str, dict[str, Any]]] = [
    ("windows", {"width": 12}),
    ("pem", {"lengths": [8, 16]}),
    ("hash", {}),
    ("spm", {}),
    ("priv-trie", {"batches": 4}),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_what_is_found_passed_the_threshold_that_its_interval_goes_by(
    method: str, options: dict[str, Any]
) -> None:
    schema = sv.Schema(x=sv.Integer(bits=16))
    question = sv.HeavyHitters("x", top=6, method=method, **options)
    plan = sv.plan(schema, question, epsilon=3.0, people=6_000)
    counts = {7: 1500, 300: 900, 41_000: 500, 5: 260, 900: 200, 77: 160}
    others = np.arange(6_000 - sum(counts.values())) + 20_000
    column = np.concatenate([np.repeat(list(counts), list(counts.values())), others])
    found = sv.simulate_rounds(plan, {"x": column}, seed=3)
    assert isinstance(found, Findings)
    spread = found.table.spread
    assert isinstance(spread, FoundSpread)
    assert (spread.thresholds <= found.table.values + 1e-9).all()
    assert (spread.is_starred == found.significant()).all()
    assert found.significant()[:2].all()
    low, high = found.table.interval()
    assert (low[found.significant()] > 0).any()
    assert "given that a value was found" in str(found)
    (row,) = [row for row in found.rows() if row["value"] == 7]
    place = found.table.labels.index(7)
    assert (row["low"], row["high"]) == (low[place], high[place])


@pytest.mark.parametrize("method", ["o-rr", "rappor"])
def test_a_list_of_which_nothing_is_left_out_has_the_usual_intervals(method: str) -> None:
    schema = sv.Schema(x=sv.Integer(bits=40))
    column = np.repeat([1, 2, 3, 4], [1_500, 900, 400, 200])
    for top, is_chosen in ((4, False), (2, True)):
        question = sv.HeavyHitters("x", top=top, method=method)
        plan = sv.plan(schema, question, epsilon=2.0, people=3_000)
        aggregate = sv.Aggregate(plan).add(sv.simulate(plan, {"x": column}, seed=2))
        found = aggregate.estimate(candidates=[1, 2, 3, 4])
        assert isinstance(found, Findings)
        assert (found.table.spread is not None) == is_chosen


@pytest.mark.parametrize("method", ["pem", "pem1", "tree-hist"])
@pytest.mark.parametrize("people", [20, 1_000])
def test_plans_of_large_epsilon_say_how_frequent_a_value_must_be(method: str, people: int) -> None:
    schema = sv.Schema(word=sv.Text(bytes=6))
    question = sv.HeavyHitters("word", top=16, method=method)
    assert "found" in str(sv.plan(schema, question, epsilon=8, people=people))


def test_a_total_of_a_found_value_is_kept_in_a_file() -> None:
    spread = FoundSpread(np.array([0.3]), np.array([0.01]), np.array([0.1]), np.array([True]))
    total = spread.total([0], 0.3)
    assert pickle.loads(pickle.dumps(total)).interval(0.95) == total.interval(0.95)
