"""Fakes: what a shuffler may add, and that k bad ones of it stay unseen with at most 2^-k."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sottovoce.device.sealing import NONCE_BYTES
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import CorruptReport
from sottovoce.protocol.reports import Report
from sottovoce.shuffle.batch import OpenedLayers, mixed, read_batch
from sottovoce.shuffle.fakes import (
    BiasedFakes,
    check_opening,
    commitment,
    draw_seeds,
    fake_of,
    hash_of,
    opened_half,
    opening,
    sealed_fakes,
)
from tests.shuffle.plans import keys, shuffled_plan

KEYS = keys(2)
PLAN = shuffled_plan(KEYS, people=60, least=40, fakes=6)
SEEDS = draw_seeds(6, Seeded(1))
BEACON = b"b" * 32
COMMITTED = commitment([hash_of(seed) for seed in SEEDS])
FAKES = [fake_of(PLAN, seed, BEACON) for seed in SEEDS]
BATCH = {fake.nonce: fake.report for fake in FAKES}
ALL_HALVES = [np.isin(np.arange(6), some) for some in map(list, combinations(range(6), 3))]


def found(opened: np.ndarray, batch: dict[bytes, Report], shown: bytes | None = None) -> set[bytes]:
    told = opening(SEEDS, opened) if shown is None else shown
    return check_opening(PLAN, COMMITTED, BEACON, opened, told, batch)


def test_a_fake_follows_from_its_seed_and_the_beacon() -> None:
    assert fake_of(PLAN, SEEDS[0], BEACON) == FAKES[0]
    assert len({fake.nonce for fake in FAKES}) == 6
    assert fake_of(PLAN, SEEDS[0], b"c" * 32) != FAKES[0]
    other = shuffled_plan(KEYS, people=61, least=40, fakes=6)
    assert fake_of(other, SEEDS[0], BEACON).nonce != FAKES[0].nonce


def test_sealed_fakes_come_through_the_hops_that_follow() -> None:
    onions = sealed_fakes(PLAN, SEEDS, BEACON, 0, Seeded(2))
    layers = OpenedLayers(PLAN, 1, KEYS[1])
    layers.open(onions)
    assert read_batch(PLAN, KEYS[2], mixed(layers.inner())).reports == BATCH


def test_the_opened_half_is_taken_out() -> None:
    opened = opened_half(b"choice", 6)
    assert int(opened.sum()) == 3
    expected = {fake.nonce for fake, is_open in zip(FAKES, opened, strict=True) if is_open}
    assert found(opened, BATCH) == expected
    assert len({opened_half(bytes([each]), 6).tobytes() for each in range(100)}) > 10


@pytest.mark.parametrize("bad", range(1, 7))
def test_bad_fakes_pass_with_at_most_the_stated_chance(bad: int) -> None:
    """Over all halves that the collector may draw, each as likely as the others."""
    wrong = dict(BATCH)
    for fake in FAKES[:bad]:  # another answer than the coins gave
        payload = bytes([(fake.report.payload[0] + 1) % 4])
        wrong[fake.nonce] = Report(PLAN.id, 0, payload)
    unseen = 0
    for opened in ALL_HALVES:
        with suppress(BiasedFakes):
            found(opened, wrong)
            unseen += 1
    assert Fraction(unseen, len(ALL_HALVES)) <= Fraction(1, 2**bad)
    # the mutant: a half that the shuffler foresees never shows a bad one
    foreseen = np.arange(6) >= 3
    if bad <= 3:
        assert len(found(foreseen, wrong)) == 3


@pytest.mark.parametrize("seeds", [[0] * 6, [0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 4, 4]])
def test_one_fake_does_not_stand_for_several(seeds: list[int]) -> None:
    """Whoever commits to a seed again adds fewer fakes, each as it must be, and none may stay."""
    again = [SEEDS[each] for each in seeds]
    committed = commitment([hash_of(seed) for seed in again])
    for opened in ALL_HALVES:
        with pytest.raises(BiasedFakes, match="more than once"):
            check_opening(PLAN, committed, BEACON, opened, opening(again, opened), BATCH)


def test_fakes_that_another_hop_took_out_are_missed() -> None:
    opened = ALL_HALVES[0]
    gone = {nonce: BATCH[nonce] for nonce in list(BATCH)[1:]}
    with pytest.raises(BiasedFakes, match="1 of the 3 that were opened"):
        found(opened, gone)


def test_an_opening_is_what_was_committed_to() -> None:
    opened = ALL_HALVES[0]
    told = opening(SEEDS, opened)
    swapped = opening(SEEDS[::-1], opened)
    for shown in (swapped, bytes(len(told)), told[:32] * 6):
        with pytest.raises(BiasedFakes, match="committed"):
            found(opened, BATCH, shown)
    with pytest.raises(CorruptReport, match="bytes"):
        found(opened, BATCH, told[:-1])
    assert len(FAKES[0].nonce) == NONCE_BYTES
