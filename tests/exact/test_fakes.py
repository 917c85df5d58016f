"""Fakes are the part that reports have in common: enumerated for every oracle that has them."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.ground.entropy import WHOLE, Seeded, exact_law
from sottovoce.oracles import ORACLES
from sottovoce.oracles.base import PureOracle
from sottovoce.protocol.fakes import fake_report, simulate_fakes

NAMES = ("rr", "grr", "sue", "oue", "the", "ss", "olh", "olh-field", "blh", "hr", "hrr")
OTHERS = ("olh-seeded", "olh-wide", "olh-sets")  # whose hashes are too many to enumerate
WITHOUT = ("she", "cms", "hcms", "rappor", "o-rr", "o-rappor", "square-wave")
ALPHA = 1e-6


def built(name: str, size: int = 3) -> PureOracle:
    small = 2 if name == "rr" else size
    made = sv.oracle(name, size=small, epsilon=1.5)
    assert isinstance(made, PureOracle)
    return made


def common_share(oracle: PureOracle, fakes: dict[object, Fraction]) -> Fraction:
    """How much of every report's chance, whatever the value, the law of fakes makes up."""
    laws = oracle.exact_channel()
    return min(
        law.get(output, Fraction(0)) / chance for output, chance in fakes.items() for law in laws
    )


def stated_share(oracle: PureOracle) -> Fraction:
    """1 - (the chance that the value is told), from the coins."""
    if hasattr(oracle, "truth"):
        return 1 - Fraction(oracle.truth, WHOLE)
    return 2 * (1 - Fraction(oracle.agree, WHOLE))


def test_every_oracle_is_named_here() -> None:
    assert {kind.names[0] for kind in ORACLES} == {*NAMES, *OTHERS, *WITHOUT}


@pytest.mark.parametrize("name", NAMES)
def test_a_fake_has_the_law_that_all_values_share(name: str) -> None:
    oracle = built(name)
    fakes = exact_law(oracle.fake, 1 << 17)
    if name in ("sue", "oue", "the"):  # independent bits: the common part of each bit
        q = oracle.exact_q
        for output, chance in fakes.items():
            ones = int(output).bit_count()
            assert chance == q**ones * (1 - q) ** (oracle.size - ones)
    elif name == "ss":
        assert set(fakes.values()) == {Fraction(1, comb(oracle.size, oracle.chosen))}
    else:
        assert common_share(oracle, fakes) == stated_share(oracle)


@pytest.mark.parametrize("name", NAMES)
def test_a_fake_supports_each_value_with_one_chance(name: str) -> None:
    oracle = built(name)
    fakes = exact_law(oracle.fake, 1 << 17)
    for value in range(oracle.size):
        supported = sum(
            (chance for output, chance in fakes.items() if oracle.supports(output, value)),
            Fraction(0),
        )
        assert supported == oracle.fake_support


@pytest.mark.parametrize("name", WITHOUT)
def test_others_have_no_fakes_and_say_so(name: str) -> None:
    oracle = sv.oracle(name, size=64, epsilon=1.5)
    with pytest.raises(sv.InvalidInput, match=f"{name} has no fakes"):
        oracle.fake(Seeded(1))


def fitting(counts: np.ndarray, chances: np.ndarray) -> bool:
    expected = chances * counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic < chi2.isf(ALPHA, len(counts) - 1)


@pytest.mark.parametrize("name", ["grr", "ss", "sue", "olh", "hr"])
def test_columns_of_fakes_have_the_same_law(name: str) -> None:
    oracle = built(name)
    law = exact_law(oracle.fake, 1 << 17)
    outputs = list(law)
    chances = np.array([float(law[output]) for output in outputs])
    rows, counts = np.unique(oracle.simulate_fakes(60_000, 3), axis=0, return_counts=True)
    seen = {oracle.unpack(row.tobytes()): count for row, count in zip(rows, counts, strict=True)}
    assert fitting(np.array([seen.get(output, 0) for output in outputs]), chances)
    # a column of people who all hold one value is told apart from fakes
    rows, counts = np.unique(
        oracle.simulate(np.zeros(60_000, np.uint64), 3), axis=0, return_counts=True
    )
    seen = {oracle.unpack(row.tobytes()): count for row, count in zip(rows, counts, strict=True)}
    assert not fitting(np.array([seen.get(output, 0) for output in outputs]), chances)


def test_estimates_among_fakes_are_unbiased() -> None:
    for name in NAMES:
        oracle = built(name)
        share = Fraction(1, 4)
        mixed = oracle.among_fakes(share)
        for holds in (0, 1):  # the expected support of a value that everybody holds, or nobody
            own = oracle.exact_p if holds else oracle.exact_q
            support = (1 - share) * own + share * oracle.fake_support
            counted = np.array([float(support) * 1000])
            np.testing.assert_allclose(mixed.from_support(counted, 1000), [holds], atol=1e-12)
            # without knowing of the fakes it is off
            plain = oracle.from_support(counted, 1000)
            assert abs(float(plain[0]) - holds) > 0.01 or oracle.fake_support == own


def test_reports_of_nobody_fit_their_plan() -> None:
    schema = sv.Schema(x=sv.Categorical(list("abc")), y=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="calm"), epsilon=1.0, people=10_000)
    reports = [fake_report(plan, Seeded(seed)) for seed in range(20)]
    assert sv.Aggregate(plan).add(reports).people == 20
    assert sv.Aggregate(plan).add(simulate_fakes(plan, 500, 1)).people == 500
