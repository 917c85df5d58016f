"""What shufflers and senders may try: it is seen with the stated chance, or harmless."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from scipy.stats import binom

from sottovoce.device.sealing import (
    PrivateKey,
    hpke_seal,
    layer_info,
    new_nonce,
    onion_size,
    open_layer,
    seal,
)
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.shuffle import checks
from sottovoce.shuffle.batch import (
    OpenedLayers,
    ReadBatch,
    fewest_onions,
    hop_of,
    mixed,
    read_batch,
)
from tests.shuffle.plans import keys, reports, shuffled_plan

KEYS = keys()
PLAN = shuffled_plan(KEYS, people=60, least=40)
ENTROPY = Seeded(3)
NONCES = [new_nonce(ENTROPY) for _ in range(60)]
REPORTS = reports(PLAN, 60)
ONIONS = [seal(report, PLAN, ENTROPY, nonce) for report, nonce in zip(REPORTS, NONCES, strict=True)]
Cheat = Callable[[list[bytes]], list[bytes]]
ALPHA = 1e-6


def passed(onions: Sequence[bytes], hop: int) -> list[bytes]:
    """What an honest hop makes of a batch."""
    layers = OpenedLayers(PLAN, hop, KEYS[hop])
    layers.open(onions)
    return mixed(layers.inner())


def collected(onions: Sequence[bytes], cheats: dict[int, Cheat] | None = None) -> ReadBatch:
    """What the collector finds, if some hops cheat with what they pass on."""
    batch = list(onions)
    for hop in range(3):
        batch = passed(batch, hop)
        if cheats and hop in cheats:
            batch = cheats[hop](batch)
    return read_batch(PLAN, KEYS[3], batch)


WHOLE = dict(zip(NONCES, REPORTS, strict=True))


def test_every_order_of_arrival_gives_the_same_bytes_at_every_hop() -> None:
    forth, back = list(ONIONS), ONIONS[::-1]
    for hop in range(3):
        assert {len(onion) for onion in forth} == {onion_size(PLAN, hop)}
        forth, back = passed(forth, hop), passed(back, hop)
        assert forth == back
    assert collected(ONIONS).reports == WHOLE


def test_what_a_hop_passes_on_stands_nowhere_in_what_it_got() -> None:
    outer = dict(
        zip(ONIONS, (open_layer(each, KEYS[0], PLAN.id, 0) for each in ONIONS), strict=True)
    )
    before, after = sorted(ONIONS), passed(ONIONS, 0)
    places = [after.index(outer[onion]) for onion in before]
    # of 60 in a random order about one stays where it was; 12 do with a chance below 1e-8
    assert sum(place == row for row, place in enumerate(places)) < 12
    assert not any(onion[:16] in b"".join(ONIONS) for onion in after)


@pytest.mark.parametrize("hop", range(3))
def test_copies_count_once(hop: int) -> None:
    found = collected(ONIONS + ONIONS[:7], {hop: lambda batch: batch + batch[:5] + batch[-3:]})
    assert found.reports == WHOLE
    assert found.malformed == 0


def test_a_report_that_is_sealed_again_counts_once() -> None:
    again = seal(REPORTS[0], PLAN, Seeded(8), NONCES[0])
    other = seal(REPORTS[1], PLAN, Seeded(9), NONCES[0])
    found = collected([*ONIONS, again, other])
    assert (set(found.reports), found.replayed) == (set(NONCES), 2)


def test_onions_of_another_plan_or_hop_are_dropped_and_counted() -> None:
    other = shuffled_plan(KEYS, people=61, least=40)
    replayed = [seal(each, other, ENTROPY) for each in reports(other, 3)]
    deeper = [seal(REPORTS[0], PLAN, ENTROPY, first=1).ljust(onion_size(PLAN), b"\0")]
    layers = OpenedLayers(PLAN, 0, KEYS[0])
    layers.open(ONIONS + replayed + deeper)
    assert layers.malformed == 4
    assert mixed(layers.inner()) == passed(ONIONS, 0)


def test_an_encapsulated_key_counts_once_and_cannot_push_a_good_onion_out() -> None:
    """Of onions under one key only those that open are looked at: a copy with noise is dropped."""
    low = ONIONS[0][:32] + bytes(len(ONIONS[0]) - 32)
    assert passed([*ONIONS, low], 0) == passed(ONIONS, 0)


@pytest.mark.parametrize("hop", range(3))
def test_tags_are_dropped_and_everybody_else_is_heard(hop: int) -> None:
    def tag(batch: list[bytes]) -> list[bytes]:
        return [
            each[:-1] + bytes([each[-1] ^ 1]) if row < 5 else each for row, each in enumerate(batch)
        ]

    found = collected(ONIONS, {hop: tag})
    assert len(found.reports) == 55
    assert found.reports.items() <= WHOLE.items()
    # the tag of the last layer is the collector's to count; those before are counted on the way
    assert found.malformed == (5 if hop == 2 else 0)


def test_a_sender_may_tag_only_herself() -> None:
    """An inner layer that nobody can open ends at its hop, and changes nothing for others."""
    broken = seal(REPORTS[0], PLAN, Seeded(4), first=1)
    strange = bytes(len(broken))
    wrapped = hpke_seal(
        strange, KEYS[0].public_bytes, layer_info(PLAN.id, 0), PrivateKey.generate(Seeded(5))
    )
    assert strange in passed([*ONIONS, wrapped], 0)
    assert collected([*ONIONS, wrapped]).reports == WHOLE


def test_replaced_reports_are_missing_from_the_list() -> None:
    own = [seal(report, PLAN, ENTROPY, first=1) for report in reports(PLAN, 10, seed=5)]
    found = collected(ONIONS, {0: lambda batch: batch[10:] + own})
    assert len(found.reports) == 60
    published = checks.written_list(PLAN.id, found.reports)
    assert len(checks.missing(PLAN.id, NONCES, published)) == 10
    assert checks.missing(PLAN.id, NONCES, checks.written_list(PLAN.id, NONCES)) == []


def seen(blind: bool, trials: int, checkers: int, changed: int) -> int:
    """How often a checker misses a report, if a hop drops some that it cannot tell apart; or, as
    a mutant, some of which it knows that none is a checker's.
    """
    rows = {onion: row for row, onion in enumerate(_inner())}
    draw, count = random.Random(11), 0
    onions = sorted(rows)
    for _ in range(trials):
        known = [onion for onion in onions if not blind or rows[onion] >= checkers]
        gone = set(draw.sample(known, changed))
        published = checks.written_list(
            PLAN.id, [NONCES[rows[onion]] for onion in onions if onion not in gone]
        )
        count += bool(checks.missing(PLAN.id, NONCES[:checkers], published))
    return count


def _inner() -> list[bytes]:
    """The onions as the first hop passes them on, in the order of their senders."""
    return [open_layer(onion, KEYS[0], PLAN.id, 0) for onion in ONIONS]


def test_spot_checks_see_a_changed_share_with_the_stated_chance() -> None:
    trials, checkers, changed = 400, 12, 6
    stated = checks.chance_of_seeing(changed / 60, checkers)
    fewest = binom.ppf(ALPHA, trials, stated)
    assert seen(False, trials, checkers, changed) >= fewest
    assert seen(True, trials, checkers, changed) < fewest
    assert checks.checks_needed(0.01, 0.95) == 299
    with pytest.raises(InvalidInput, match="share"):
        checks.chance_of_seeing(2, 1)


def test_whose_key_it_is_and_how_many_a_hop_must_have() -> None:
    plan = shuffled_plan(KEYS, people=60, least=40, fakes=7)
    assert [hop_of(plan, key) for key in KEYS] == [0, 1, 2, 3]
    # 3, 2 and 2 fakes stay, of twice as many
    assert [fewest_onions(plan, hop) for hop in range(4)] == [40, 46, 50, 54]
    with pytest.raises(InvalidInput, match="must be one of those that plan"):
        hop_of(plan, keys(seed=99)[0])


def changed_plans() -> list[Plan]:
    return [PLAN, shuffled_plan(KEYS, people=62, least=40)]


def test_what_is_stored_and_listed_differs_between_plans() -> None:
    one, other = changed_plans()
    assert checks.report_id(one.id, NONCES[0]) != checks.report_id(other.id, NONCES[0])
    assert checks.listed(one.id, NONCES[0]) != checks.listed(other.id, NONCES[0])
