"""The older ways to find heavy hitters: what they find, how honest their estimates are, what they
refuse.
"""

from __future__ import annotations

from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.kernels.segments import count_pairs
from sottovoce.kernels.spelling import to_words
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import LocalHashing, WideLocalHashing
from sottovoce.questions.heavyhitters import segments
from sottovoce.questions.heavyhitters.segments import SegmentDesign, joined
from sottovoce.results.findings import Findings
from tests.planted import NUMBERS, PEOPLE, PLANTED, WORDS, crowd, errors, found_by, numbers, words
from tests.statistics import z_limit

ONE_ROUND = [
    ("spm", {}),
    ("spm", {"split": "people"}),
    ("hash", {}),
    ("hash", {"split": "people"}),
    ("hash", {"strict": True}),
]


# -- one round


@pytest.mark.parametrize(("method", "options"), ONE_ROUND)
def test_planted_numbers_are_found_and_counted_honestly(
    method: str, options: dict[str, Any]
) -> None:
    found = found_by(NUMBERS, numbers(), method=method, **options)
    assert set(found.table.labels) == set(PLANTED)
    off = errors(found, PLANTED)
    assert max(map(abs, off)) < z_limit(len(off))
    assert found.significant().all()
    assert list(found.values) == sorted(found.values, reverse=True)
    # an estimator whose scale is wrong by half would not pass
    wrong = errors(found, {label: share / 1.5 for label, share in PLANTED.items()})
    assert max(map(abs, wrong)) > z_limit(len(off))


@pytest.mark.parametrize("method", ["spm", "hash"])
@pytest.mark.parametrize("alphabet", [None, "abcdefghijklmnopqrstuvwxyz"])
def test_planted_words_are_found(method: str, alphabet: str | None) -> None:
    schema = sv.Schema(x=sv.Text(bytes=8, alphabet=alphabet))
    found = found_by(schema, words(), epsilon=6.0, method=method)
    assert set(found.table.labels) == set(WORDS)
    off = errors(found, WORDS)
    assert max(map(abs, off)) < z_limit(len(off))


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie"])
def test_all_above_a_frequency(method: str) -> None:
    found = found_by(NUMBERS, numbers(), method=method, top=None, above="0.175")
    assert found.table.labels == [0xBEEF12]  # of 0.20; the next one has 0.15


def test_errors_of_repeated_crowds_have_the_variance_stated() -> None:
    """The whole values of one crowd, whispered again and again: errors are standard normal."""
    table = numbers(20_000)
    off = [
        e
        for seed in range(12)
        for e in errors(found_by(NUMBERS, table, method="hash", seed=seed), PLANTED)
    ]
    assert len(off) > 30
    # sum of squares of n standard normals: n, with a deviation of sqrt(2 n)
    assert abs(sum(e**2 for e in off) - len(off)) < z_limit(1) * sqrt(2 * len(off))
    assert abs(sum(off)) < z_limit(1) * sqrt(len(off))


@pytest.mark.parametrize(("method", "options"), ONE_ROUND)
def test_nobody_in_a_cohort_is_said(method: str, options: dict[str, Any]) -> None:
    question = sv.HeavyHitters("x", top=4, method=method, **options)
    plan = sv.plan(sv.Schema(x=sv.Integer(bits=48)), question, epsilon=1.0, people=2)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [1]}, seed=1))
    with pytest.raises(
        InvalidInput, match=r"nobody who tells .* was heard yet; more people are needed"
    ):
        heard.estimate()
    with pytest.raises(InvalidInput, match="no reports yet"):
        sv.Aggregate(plan).estimate()


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie"])
def test_few_people_give_an_answer_that_marks_nothing(method: str) -> None:
    found = found_by(NUMBERS, numbers(400), epsilon=0.5, method=method)
    assert len(found.table.labels) <= 4
    assert not (found.significant() & ~np.isin(found.table.labels, list(PLANTED))).any()
    assert str(found)


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie"])
@pytest.mark.parametrize("bits", [2, 3, 9, 128])
def test_any_number_of_bits(method: str, bits: int) -> None:
    values = [(1 << bits) - 1, 1]
    column = np.array(values * 8_000, object)
    found = found_by(
        sv.Schema(x=sv.Integer(bits=bits)), {"x": column}, epsilon=8.0, method=method, top=16
    )
    assert set(found.table.labels[:2]) == set(values)


# -- the parts of segment pairs


def linear(bits: int, epsilon: float) -> LocalHashing:
    source = oracle("olh", size=1 << bits, epsilon=epsilon)
    assert isinstance(source, LocalHashing)
    return source


def test_pairs_are_counted_as_one_by_one() -> None:
    one, other = linear(5, 1.0), linear(7, 3.0)
    payloads = one.simulate(np.arange(200) % 32, 1), other.simulate(np.arange(200) % 128, 2)
    patterns = np.array([0, 3, 31], np.uint64), np.array([7, 127], np.uint64)
    shapes = (one.width, one.hash_bits), (other.width, other.hash_bits)
    both, first, second = count_pairs(payloads, shapes, patterns)
    said = [
        [
            [source.supports(source.unpack(row.tobytes()), int(value)) for value in values]
            for row in payload
        ]
        for source, payload, values in zip((one, other), payloads, patterns, strict=True)
    ]
    a, b = (np.array(each, np.int64) for each in said)
    assert np.array_equal(both, a.T @ b)
    assert np.array_equal(first, a.sum(axis=0))
    assert np.array_equal(second, b.sum(axis=0))


@pytest.mark.parametrize("bits", [20, 100])
def test_many_values_are_counted_as_one_by_one(bits: int) -> None:
    source = oracle("olh-wide", size=1 << bits, epsilon=2.0)
    assert isinstance(source, WideLocalHashing)
    values = [1, (1 << bits) - 1, 77]
    payload = source.simulate(np.repeat(to_words(values), 70, axis=0), 3)
    outputs = [source.unpack(row.tobytes()) for row in payload]
    support = [sum(source.supports(output, value) for output in outputs) for value in values]
    assert source.support(payload, to_words(values)).tolist() == support


def test_the_frequency_of_a_pair_is_unbiased() -> None:
    """The product of a person's two answers, against the variance that her own values give it."""
    people = numbers(30_000)["x"]
    question = sv.HeavyHitters("x", top=4, method="spm", segment=12)
    plan = sv.plan(NUMBERS, question, epsilon=3.0, people=len(people))
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": people}, seed=2))
    design = SegmentDesign.of(question.target(plan.schema), plan.question.options)
    patterns = np.array([0xBEE, 0x00C, 0x5A5]), np.array([0xF12, 0x0DE, 0x5A5])
    estimated = segments._joint(design, heard, (0, 1), patterns)
    source = plan.cohorts[0].asks[1].oracle
    p, q, gap = source.p, source.q, source.gap
    # of a centred answer, for another pattern or one's own
    squares = (
        q * (1 - q) / gap**2,
        p * (1 - p) / gap**2 + 1,
    )
    off = []
    for a, b in product(range(3), repeat=2):
        holds = (
            (people >> 12 == patterns[0][a]).astype(int),
            (people & 0xFFF == patterns[1][b]).astype(int),
        )
        truth = (holds[0] * holds[1]).mean()
        variance = (
            np.array(squares)[holds[0]] * np.array(squares)[holds[1]] - holds[0] * holds[1]
        ).mean()
        off.append((estimated[a, b] - truth) / sqrt(variance / len(people)))
    assert max(map(abs, off)) < z_limit(len(off))
    # without the correction for chance support the estimate would be far off
    assert abs((q / gap) ** 2) / sqrt(squares[0] ** 2 / len(people)) > z_limit(len(off))


def brute(sizes: list[int], pairs: dict[tuple[int, int], Any]) -> dict[tuple[int, ...], float]:
    return {
        pick: min(float(pairs[i, j][pick[i], pick[j]]) for i, j in pairs)
        for pick in product(*(range(size) for size in sizes))
    }


def test_joins_come_in_the_order_of_their_weakest_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(4)
    sizes = [3, 4, 5]
    pairs = {
        (i, j): draws.normal(size=(sizes[i], sizes[j])) for i in range(3) for j in range(i + 1, 3)
    }
    expected = sorted(brute(sizes, pairs).items(), key=lambda item: -item[1])
    picks, weakest, dropped = joined(sizes, pairs)
    assert len(picks) == 60
    assert weakest.tolist() == [value for _, value in expected]
    assert {tuple(pick) for pick in picks[:10].tolist()} == {pick for pick, _ in expected[:10]}
    assert dropped == -np.inf
    monkeypatch.setattr(segments, "MOST_JOINED", 6)
    picks, weakest, dropped = joined(sizes, pairs)
    assert len(picks) == 6
    left_out = [value for pick, value in expected if pick not in {tuple(p) for p in picks.tolist()}]
    assert max(left_out) <= dropped


def test_a_bound_on_candidates_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MAX_TESTED_CANDIDATES", 3)
    found = found_by(NUMBERS, numbers(), method="spm")
    assert any("some were left out" in note for note in found.notes)
    monkeypatch.setattr(segments, "MOST_PATTERNS", 2)
    found = found_by(NUMBERS, numbers(), method="spm")
    assert any("only the 2 most frequent patterns" in note for note in found.notes)


def test_segments_are_as_long_as_can_be_enumerated() -> None:
    def lengths(bits: int, **options: Any) -> list[int]:
        question = sv.HeavyHitters("x", top=4, method="spm", split="people", **options)
        plan = sv.plan(sv.Schema(x=sv.Integer(bits=bits)), question, epsilon=1.0, people=100)
        asks = {
            ask.encoding.to_json()["start"]: ask.encoding
            for cohort in plan.cohorts[1:]
            for ask in cohort.asks
        }
        assert sum(encoding.fresh for encoding in asks.values()) == bits
        return [asks[start].fresh for start in sorted(asks)]

    assert lengths(48) == [16, 16, 16]
    assert lengths(128) == [16] * 8
    assert lengths(40) == [14, 14, 12]
    assert lengths(6) == [3, 3]
    assert lengths(24, segment=10) == [10, 10, 4]


def test_channels_are_a_power_of_two_above_the_paper_s() -> None:
    for top, channels in ((1, 1), (2, 4), (4, 8), (16, 64), (32, 256)):
        plan = sv.plan(
            NUMBERS, sv.HeavyHitters("x", top=top, method="hash"), epsilon=1.0, people=100
        )
        assert plan.cohorts[0].asks[1].encoding.size == channels << 8
        assert channels >= top**1.5 > channels / 4 or top == 1


def test_strict_channels_hold_values_of_their_own() -> None:
    """Of 64 channels four have a frequent value, and the others what noise put together."""
    loose = found_by(NUMBERS, numbers(), method="hash", top=16)
    strict = found_by(NUMBERS, numbers(), method="hash", top=16, strict=True)
    assert set(PLANTED) <= set(strict.table.labels) & set(loose.table.labels)
    assert len(strict.table.labels) < 12 < len(loose.table.labels)
    assert any("of the 16 values asked for were found" in note for note in strict.notes)


# -- lists


@pytest.mark.parametrize(
    ("method", "options"), [("o-rr", {}), ("rappor", {}), ("rappor", {"decoder": "nnls"})]
)
def test_a_list_of_candidates_is_decoded(method: str, options: dict[str, Any]) -> None:
    schema = sv.Schema(x=sv.Text(bytes=8, longer="cut"))
    rest = [f"name{number}" for number in range(12)]
    table = {"x": np.array(crowd(WORDS, rest), object)}
    question = sv.HeavyHitters("x", top=4, method=method, **options)
    plan = sv.plan(schema, question, epsilon=4.0, people=PEOPLE)
    assert sv.Plan.from_json(plan.to_json()) == plan
    heard = sv.Aggregate(plan).add(sv.simulate(plan, table, seed=3))
    found = heard.estimate(candidates=[*WORDS, *rest, "alma", "celeste and her brother"])
    assert isinstance(found, Findings)
    if not options:
        assert found.is_unbiased
        off = errors(found, WORDS)
        assert max(map(abs, off)) < z_limit(len(off))
    else:
        assert not found.is_unbiased
    assert [label for label in found.table.labels if label in WORDS][:3] == [
        "alma",
        "bea",
        "celeste",
    ]
    assert found.significant()[:3].all()
    with pytest.raises(InvalidInput, match=f"candidates are required for {method}"):
        heard.estimate()
    for few in ([], ["alma"]):
        with pytest.raises(InvalidInput, match="must be 2 to 4096 different values"):
            heard.estimate(candidates=few)
    with pytest.raises(InvalidInput, match="candidates: value must be text"):
        heard.estimate(candidates=["alma", 5])


# -- what is refused


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("spm", {"split": "money"}, r"split \(money\) must be one of people, budget"),
        ("spm", {"segment": 0}, r"segment \(0\) must lie between 1 and 16"),
        ("spm", {"segment": 17}, r"segment \(17\) must lie between 1 and 16"),
        ("spm", {"block": 2}, "option 'block' is not one of spm's"),
        ("hash", {"block": 17}, r"block \(17\) must lie between 1 and 16"),
        ("hash", {"block": "wide"}, r"block \(wide\) must be a whole number"),
        ("hash", {"split": 1}, r"split \(1\) must be one of"),
        ("hash", {"strict": "yes"}, r"strict \(yes\) must be true or false"),
        ("priv-trie", {"batches": 0}, r"batches \(0\) must lie between 1 and 1024"),
        (
            "priv-trie",
            {"batches": 101},
            r"people \(100\) must be at least one for each of 101 batches",
        ),
        ("priv-trie", {"factor": "-1"}, r"factor \(-1\) must be greater than 0"),
        ("priv-trie", {"factor": "much"}, r"factor \(much\) must be a number"),
        ("rappor", {"decoder": "magic"}, r"decoder \(magic\) must be one of"),
        ("o-rr", {"hashes": 2}, r"hashes \(2\) must be 1 for o-rr"),
        ("o-rr", {"instantaneous": ["1", "0"]}, "option 'instantaneous' is not one of o-rr's"),
    ],
)
def test_bad_options_are_refused(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sv.plan(
            NUMBERS, sv.HeavyHitters("x", top=4, method=method, **options), epsilon=1.0, people=100
        )


@pytest.mark.parametrize(
    ("method", "attribute", "message"),
    [
        ("spm", sv.Integer(bits=1), "spm needs values of 2 bits or more"),
        ("spm", sv.Text(bytes=20), "at most 128 bits"),
        ("hash", sv.Text(bytes=20), "at most 128 bits"),
        ("priv-trie", sv.Text(bytes=20), "at most 128 bits"),
        ("rappor", sv.Integer(bits=65), "codes of more than 64 bits, which rappor does not take"),
    ],
)
def test_attributes_that_do_not_fit_are_refused(method: str, attribute: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sv.plan(
            sv.Schema(x=attribute),
            sv.HeavyHitters("x", top=4, method=method),
            epsilon=1.0,
            people=100,
        )


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie"])
def test_a_list_is_for_other_methods(method: str) -> None:
    plan = sv.plan(NUMBERS, sv.HeavyHitters("x", top=4, method=method), epsilon=1.0, people=100)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [1] * 100}, seed=1))
    with pytest.raises(InvalidInput, match=f"not for {method}"):
        heard.estimate(candidates=[1, 2])


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie", "rappor", "o-rr"])
def test_a_plan_says_what_it_asks(method: str) -> None:
    plan = sv.plan(NUMBERS, sv.HeavyHitters("x", top=4, method=method), epsilon=1.0, people=10_000)
    said = str(plan)
    assert f"Method: {method}" in said
    assert {"spm": "Segments of 12, 12 bits", "hash": "8 channels", "priv-trie": "12 batches"}.get(
        method, ""
    ) in said
