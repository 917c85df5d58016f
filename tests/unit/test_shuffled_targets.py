"""Three promises at once: what is found keeps them, and nothing that was looked at is better."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

import sottovoce as sv
from sottovoce.accounting import colluding_epsilon, local_epsilon_for, oracle_mixture
from sottovoce.api.shuffled_targets import search_targets
from sottovoce.oracles import oracle_with
from sottovoce.protocol.shuffling import ShuffledGuarantee

PEOPLE, DELTA = 50_000, 1e-8


def test_a_plan_with_what_was_found_keeps_all_three() -> None:
    found = search_targets("0.5", 1, 6, people=PEOPLE, size=16, delta=DELTA)
    plan = sv.plan(
        sv.Schema(x=sv.Ordinal(0, 15)),
        sv.Frequencies("x", oracle=found.oracle.names[0], **found.oracle.options()),
        epsilon="0.5",
        delta="1e-8",
        people=PEOPLE,
        least=PEOPLE,
        cap=found.oracle.requested,
        fakes=found.fakes,
        trust="shuffled",
    )
    told = plan.guarantee
    assert isinstance(told, ShuffledGuarantee)
    assert plan.epsilon == found.oracle.requested
    assert told.analyst <= 0.5
    assert told.colluding <= 1
    assert told.lifetime <= 6


def test_no_number_of_fakes_is_better() -> None:
    analyst, colluding, local = "0.5", "1", "6"
    found = search_targets(analyst, colluding, local, people=PEOPLE, size=16, delta=DELTA)
    best = found.mse
    build = oracle_mixture("grr", 16)
    for fakes in (0, 100, 400, 1_600, 6_400, 25_600, 102_400):
        cap = Decimal(colluding)
        if fakes:
            cap = local_epsilon_for(build, colluding, DELTA, 1, local, fakes, rough=True)
        spent = local_epsilon_for(build, analyst, DELTA, PEOPLE, cap, fakes, rough=True)
        source = oracle_with("grr", 16, spent, {})
        reports = PEOPLE + fakes
        heard = source.among_fakes(Fraction(fakes, reports))  # type: ignore[attr-defined]
        noise = heard.noise(reports)
        assert best <= 1.02 * (noise.floor + noise.slope / 16), fakes


def test_without_a_promise_about_the_others_fakes_are_no_use() -> None:
    found = search_targets("0.5", 5, 5, people=1_000_000, size=16, delta=DELTA)
    assert found.fakes == 0
    assert found.local == pytest.approx(5, abs=1e-3)
    few = search_targets("0.5", 2, 5, people=1_000_000, size=16, delta=DELTA)
    assert few.fakes > 0
    mixture = [(1, [few.oracle.blanket()])]
    # a quarter of them would not keep the second promise
    assert colluding_epsilon(mixture, few.fakes // 4, DELTA) > 2


def test_targets_that_fall_are_refused() -> None:
    with pytest.raises(sv.InvalidInput, match="must not fall"):
        search_targets(2, 1, 8, people=PEOPLE, size=16, delta=DELTA)
