"""Thresholds are exact, on the private side, and what is realised is never above what was asked
for.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.ground.entropy import WHOLE
from sottovoce.oracles.thresholds import exceeds, exp, parse_epsilon, truth_threshold
from tests.oracles import NAMES, ordinary

EPSILON = st.decimals("0.001", "20", places=4)


@given(epsilon=EPSILON, size=st.integers(2, 10**6))
def test_grr_keeps_the_truth_as_often_as_epsilon_allows_and_no_more(
    epsilon: Decimal, size: int
) -> None:
    threshold = truth_threshold(size, epsilon)

    def ratio(kept: int) -> Fraction:
        share = Fraction(kept, WHOLE)
        return 1 + size * share / (1 - share)

    assert not exceeds(ratio(threshold), epsilon)
    assert exceeds(ratio(threshold + 1), epsilon)


@settings(max_examples=40, deadline=None)
@given(
    epsilon=EPSILON,
    name=st.sampled_from([name for name in NAMES if name not in ("rappor", "o-rr", "o-rappor")]),
)
def test_realised_epsilon_is_never_above(epsilon: Decimal, name: str) -> None:
    oracle = sv.oracle(name, size=2 if name == "rr" else 16, epsilon=epsilon)
    assert oracle.epsilon <= float(epsilon)
    if name != "she":
        assert not exceeds(oracle.worst_ratio, epsilon)
    if name != "the":  # thresholding loses information, so it realises less
        assert oracle.epsilon >= float(epsilon) * (1 - 1e-9)


def test_doubles_would_exceed_the_true_threshold_about_half_of_the_time() -> None:
    """Why thresholds are decimal: (E - 1)/(E + d - 1) in doubles lands on the wrong side for many
    d.
    """
    cases = [(text, size) for text in ("0.5", "0.7", "1", "2", "3") for size in range(2, 402)]
    wrong = 0
    for text, size in cases:
        odds = math.exp(float(text))
        wrong += int((odds - 1) / (odds + size - 1) * 2.0**64) > truth_threshold(
            size, Decimal(text)
        )
    assert 0.3 < wrong / len(cases) < 0.8


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "x", None, True, 1000])
def test_bad_epsilon_has_one_clear_error(epsilon: object) -> None:
    with pytest.raises(sv.InvalidInput, match="epsilon"):
        parse_epsilon(epsilon)


@pytest.mark.parametrize("size", [1, 0, -3, 2.5, True, "x", None])
def test_bad_size_has_one_clear_error(size: object) -> None:
    with pytest.raises(sv.InvalidInput, match="size"):
        sv.oracle("grr", size=size, epsilon=1.0)  # type: ignore[arg-type]


def test_an_epsilon_too_small_to_say_anything_is_refused() -> None:
    for name in ("grr", "oue", "sue", "ss", "hr", "hrr", "olh", "cms"):
        with pytest.raises(sv.InvalidInput, match="too small"):
            sv.oracle(name, size=8, epsilon="1e-25")


@pytest.mark.parametrize("name", NAMES)
def test_options_and_thresholds_survive_json(name: str) -> None:
    from sottovoce.oracles import from_json

    oracle = ordinary(name, 1.25, salt=7)
    data = oracle.to_json()
    assert from_json(data) == oracle
    assert "." not in "".join(data["thresholds"].values())
    key = next(iter(data["thresholds"]))
    forged = {
        **data,
        "thresholds": {**data["thresholds"], key: str(int(data["thresholds"][key]) + 1)},
    }
    with pytest.raises(sv.InvalidInput, match="thresholds"):
        from_json(forged)


def test_exp_is_good_to_sixty_digits() -> None:
    # e to 70 digits
    known = "2.718281828459045235360287471352662497757247093699959574966967627724076"
    assert abs(exp(Decimal(1)) - Fraction(known)) < Fraction(1, 10**68)


def test_a_callers_decimal_settings_reach_no_coin() -> None:
    import decimal

    plain = [sv.oracle(name, size=2, epsilon="0.7").to_json() for name in NAMES]
    with decimal.localcontext() as context:
        context.prec = 4
        context.rounding = decimal.ROUND_UP
        context.traps[decimal.Inexact] = True
        rough = [sv.oracle(name, size=2, epsilon="0.7").to_json() for name in NAMES]
        assert exceeds(Fraction(20138), Decimal("9.9")) == (math.exp(9.9) < 20138)
    assert rough == plain
