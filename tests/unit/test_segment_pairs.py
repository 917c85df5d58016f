"""The parts of segment pairs: how pairs are counted, joined and bounded."""

from __future__ import annotations

from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.kernels.segments import count_pairs
from sottovoce.kernels.spelling import to_words
from sottovoce.oracles import oracle
from sottovoce.oracles.hashing import LocalHashing, WideLocalHashing
from sottovoce.questions.heavyhitters import segments
from sottovoce.questions.heavyhitters.segments import joined
from tests.planted import NUMBERS, PLANTED, found_by, numbers
from tests.statistics import z_limit


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
    state = source.accumulate(source.empty(), payload)
    support = [sum(source.supports(output, value) for output in outputs) for value in values]
    assert source.support_of(state, to_words(values)).tolist() == support


def test_the_frequency_of_a_pair_is_unbiased() -> None:
    """The product of a person's two answers, against the variance that her own values give it."""
    people = numbers(30_000)["x"]
    question = sv.HeavyHitters("x", top=4, method="spm", segment=12)
    plan = sv.plan(NUMBERS, question, epsilon=3.0, people=len(people))
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": people}, seed=2))
    method = plan.question._method(plan.schema)  # type: ignore[attr-defined]
    told = method._told(heard.counts)
    patterns = [np.array([0xBEE, 0x00C, 0x5A5]), np.array([0xF12, 0x0DE, 0x5A5])]
    estimated = method._joint(plan, (0, 1), told[0, 1], patterns)
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
