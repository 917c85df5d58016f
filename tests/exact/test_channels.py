"""Privacy by enumeration: the channel of every randomizer's own code, at small sizes."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce import audit
from sottovoce.ground.entropy import Entropy, Seeded
from sottovoce.oracles import PureOracle
from sottovoce.oracles.bloom import Rappor
from sottovoce.oracles.direct import GeneralizedRandomizedResponse
from sottovoce.oracles.sketch import _Sketch
from sottovoce.oracles.unary import OptimizedUnaryEncoding
from tests.oracles import ENUMERABLE, EPSILONS, sizes, small
from tests.statistics import chi_limit, chi_squared

CASES = [
    (name, size, epsilon)
    for name in ENUMERABLE
    for size in sizes(name, (2, 3, 4, 5, 6, 7, 8))
    for epsilon in EPSILONS
    # 65,536 outputs each: only in `make slow`
    if not (name == "olh" and size > 4 and epsilon > 2)
    # two steps of coins: every size, and every epsilon
    if name != "rappor" or size == 3 or epsilon == 1.0
]


@pytest.mark.parametrize(("name", "size", "epsilon"), CASES)
def test_no_output_tells_two_inputs_apart_by_more_than_epsilon(
    name: str, size: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = small(name, size, epsilon)
    laws = oracle.exact_channel()
    for law in laws:
        assert sum(law.values()) == 1
    monkeypatch.setattr(type(oracle), "exact_channel", lambda _: laws)  # enumerated once
    found = audit.exact(oracle)
    assert found.passed, str(found)
    assert found.epsilon_found <= oracle.epsilon <= epsilon


@pytest.mark.parametrize("name", ENUMERABLE)
def test_the_stated_ratio_is_reached(name: str) -> None:
    """The realised epsilon is not merely a bound (Bloom filters reach it only if two do not
    overlap).
    """
    oracle = small(name, sizes(name, (6,))[0], 1.0)
    worst = audit.worst_ratio(oracle)
    assert worst is not None
    assert worst == oracle.worst_ratio or (name == "rappor" and worst <= oracle.worst_ratio)


@pytest.mark.parametrize(
    "name", [name for name in ENUMERABLE if issubclass(type(small(name, 2, 1.0)), PureOracle)]
)
@pytest.mark.parametrize("epsilon", EPSILONS[:4])
def test_p_and_q_are_those_of_the_channel(name: str, epsilon: float) -> None:
    oracle = small(name, sizes(name, (5,))[0], epsilon)
    assert isinstance(oracle, PureOracle)
    hits = np.zeros((oracle.size, oracle.size), object)
    for value, law in enumerate(oracle.exact_channel()):
        for output, chance in law.items():
            for asked in range(oracle.size):
                hits[value, asked] += chance if oracle.supports(output, asked) else 0
    if isinstance(oracle, _Sketch):  # q holds over salts: here between no collision and all
        others = hits[~np.eye(oracle.size, dtype=bool)]
        assert min(others) >= oracle.exact_q0
        assert max(others) <= oracle.exact_p
        assert set(np.diag(hits)) == {oracle.exact_p}
        return
    for value in range(oracle.size):
        for asked in range(oracle.size):
            assert hits[value, asked] == (oracle.exact_p if value == asked else oracle.exact_q)


def test_sketches_reach_q_over_salts() -> None:
    """The mean over salts of the chance to support another value, within what its spread allows."""
    salts, size = 400, 6
    shares = []
    for salt in range(salts):
        oracle = sv.oracle("hcms", size=size, epsilon=1.0, hashes=4, width=4, salt=salt)
        assert isinstance(oracle, _Sketch)
        collisions = [
            oracle._bucket(function, 0) == oracle._bucket(function, 3) for function in range(4)
        ]
        shares.append(
            float(oracle.exact_q0) + float(oracle.exact_p - oracle.exact_q0) * np.mean(collisions)
        )
    q, gap = oracle.q, float(oracle.exact_p - oracle.exact_q0)
    error = gap * np.sqrt(0.25 * 0.75 / (4 * salts))
    assert abs(np.mean(shares) - q) < 4.9 * error
    # without collisions it would be wrong
    assert abs(np.mean(shares) - float(oracle.exact_q0)) > 4.9 * error


DRAWS = 400_000
# one at a time; all of them go through the integer coins that are enumerated above
DEVICE_DRAWS = 40_000


@pytest.mark.parametrize("name", ENUMERABLE)
def test_reports_of_devices_follow_the_channel(name: str) -> None:
    oracle = small(name, sizes(name, (4,))[0], 1.0)
    value = 1
    expected = oracle.channel()[value]
    entropy = Seeded(17)
    drawn = Counter(oracle.randomize(value, entropy) for _ in range(DEVICE_DRAWS))
    statistic, degrees = chi_squared(oracle.outputs(), expected, drawn)
    assert statistic < chi_limit(degrees, len(ENUMERABLE))
    other, _ = chi_squared(oracle.outputs(), oracle.channel()[0], drawn)
    assert other > chi_limit(degrees, len(ENUMERABLE))  # another value's law is told apart


@pytest.mark.parametrize("name", ENUMERABLE)
def test_simulated_devices_follow_the_channel(name: str) -> None:
    oracle = small(name, sizes(name, (4,))[0], 1.0)
    value = 1
    packed = oracle.simulate(np.full(DRAWS, value), seed=23)
    rows, counts = np.unique(packed, axis=0, return_counts=True)
    drawn = Counter[Any]()
    for row, count in zip(rows, counts.tolist(), strict=True):
        drawn[oracle.unpack(row.tobytes())] += count
    statistic, degrees = chi_squared(oracle.outputs(), oracle.channel()[value], drawn)
    assert statistic < chi_limit(degrees, len(ENUMERABLE))


class NeverCleared(OptimizedUnaryEncoding):
    """A mutant: the value's own bit is always set, as in a client that never clears one."""

    def randomize(self, value: int, entropy: Entropy) -> int:
        return super().randomize(value, entropy) | 1 << value


class ForgetfulRappor(Rappor):
    """A mutant: the instantaneous step reports every kept bit."""

    def recall(self, memo: Any, entropy: Entropy) -> tuple[int, int]:
        kept, cohort = memo
        return kept | super().recall(memo, entropy)[0], cohort


def test_mutants_are_caught() -> None:
    good = sv.oracle("grr", size=4, epsilon=1.0)
    assert isinstance(good, GeneralizedRandomizedResponse)
    assert audit.exact(good).passed
    louder = replace(good, truth=good.truth * 105 // 100)  # p too large by about 5%
    assert not audit.exact(louder).passed
    never = sv.oracle("oue", size=4, epsilon=1.0)
    assert isinstance(never, OptimizedUnaryEncoding)
    assert audit.exact(never).passed
    assert not audit.exact(NeverCleared(never.size, never.requested, never.one, never.zero)).passed
    kept = small("rappor", 4, 1.0)
    assert isinstance(kept, Rappor)
    parts = [getattr(kept, part.name) for part in fields(kept)]
    assert audit.exact(kept).passed
    assert not audit.exact(ForgetfulRappor(*parts)).passed


def test_rappor_keeps_its_lifetime_promise_by_enumeration() -> None:
    """What all reports ever reveal is the memo: its law is within the lifetime epsilon."""
    from sottovoce.ground.entropy import exact_law

    oracle = small("rappor", 4, 1.0)
    laws = [exact_law(lambda e, v=value: oracle.memorize(v, e), 1 << 17) for value in range(4)]  # type: ignore[misc]
    worst = max(max(law[out] for law in laws) / min(law[out] for law in laws) for out in laws[0])
    assert float(np.log(float(worst))) <= oracle.lifetime_epsilon + 1e-12
    assert oracle.lifetime_epsilon <= 1.0
    assert oracle.epsilon < oracle.lifetime_epsilon
    assert Fraction(1) < worst
