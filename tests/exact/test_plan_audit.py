"""The audit of plans: whole reports of a device along every way its coins fall. Mutants of a device
must fail it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.audit import PlanAudit, audit_plan
from sottovoce.audit.records import MAX_RECORDS, Records, values_of
from sottovoce.device.client import Client, ClientState
from sottovoce.ground.entropy import Entropy, Seeded, System
from sottovoce.ground.errors import NotInThisRound
from sottovoce.ground.hashes import bucket, keyed_hash
from sottovoce.oracles.hashing import SeededLocalHashing
from sottovoce.oracles.unary import OptimizedUnaryEncoding
from sottovoce.protocol.encodings import Padded
from sottovoce.schema import CODE, MEMBERS, SPELLING

DRAWS = 2_000
LIMIT = 1 << 12
MIXED = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]), c=sv.Boolean())
YES_NO = sv.Schema(a=sv.Boolean(), b=sv.Boolean())
EIGHT = sv.Schema(**{f"x{place}": sv.Boolean() for place in range(8)})
WORDS = sv.Schema(x=sv.Text(bytes=2, alphabet="abc"))
BASKETS = sv.Schema(x=sv.Items(range(4)))


def plan_of(schema: sv.Schema, question: Any, **options: Any) -> sv.Plan:
    return sv.plan(schema, question, epsilon="1.25", people=4_000, **options)


def audited(
    plan: sv.Plan, device: Callable[..., Client] = Client, draws: int = DRAWS, limit: int = LIMIT
) -> PlanAudit:
    return audit_plan(plan, draws, device=device, entropy=Seeded(5), seed=b"fixed", limit=limit)


def one_value(size: int, name: str) -> sv.Plan:
    return plan_of(sv.Schema(x=sv.Categorical(range(size))), sv.Frequencies("x", oracle=name))


GIVEN = "exact given sampled public coins"
HONEST: dict[str, tuple[sv.Plan, str]] = {
    "two cohorts": (plan_of(MIXED, sv.Frequencies("a", "b")), "exact"),
    "two asks": (plan_of(MIXED, sv.Frequencies("a", "b", split="budget")), "exact"),
    "tables": (plan_of(MIXED, sv.Marginals(up_to=2, method="marg-ps")), "exact"),
    "many records": (plan_of(EIGHT, sv.Marginals(up_to=2, method="marg-ps")), "exact"),
    "bits": (one_value(6, "oue"), "exact"),
    "subsets": (one_value(6, "ss"), "exact"),
    "linear hashes": (one_value(4, "olh"), "exact"),
    "seeded hashes": (one_value(4, "olh-seeded"), GIVEN),
    "assigned": (plan_of(MIXED, sv.Frequencies("a", "b"), coin="assigned"), GIVEN),
    "sampled items": (
        plan_of(BASKETS, sv.TopItems("x", top=2, method="psfo", length=2, oracle="grr")),
        "exact",
    ),
    "rounds": (plan_of(WORDS, sv.HeavyHitters("x", top=2, method="priv-trie", batches=3)), "exact"),
    "prefixes": (
        plan_of(sv.Schema(x=sv.Integer(bits=6)), sv.HeavyHitters("x", top=2, method="pem")),
        GIVEN,
    ),
    "many bits": (one_value(100, "oue"), "sampled"),
    "a memo": (one_value(4, "rappor"), "sampled"),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_plan_passes(name: str) -> None:
    plan, kind = HONEST[name]
    found = audited(plan)
    assert found.passed, str(found)
    assert found.kind == kind
    if found.enumeration is not None:
        # and it is reached
        assert found.enumeration.epsilon == pytest.approx(plan.guarantee.per_report, rel=1e-12)
        assert found.enumeration.lifetime == pytest.approx(plan.guarantee.lifetime, rel=1e-12)
    assert str(found).startswith(f"PASS plan {plan.id[:16]}: {kind}")
    assert json.loads(json.dumps(found.to_json()))["kind"] == kind


def test_a_plan_beyond_a_devices_cap_is_audited_all_the_same() -> None:
    """The cap says which plans a person answers; the audit says what an answer costs."""
    plan = sv.plan(YES_NO, sv.Frequencies("a"), epsilon=12, people=1000)
    found = audited(plan)
    assert found.passed, str(found)
    assert found.enumeration is not None
    assert found.enumeration.lifetime == pytest.approx(plan.guarantee.lifetime, rel=1e-12)


def test_a_short_memo_is_enumerated_over_a_lifetime() -> None:
    """RAPPOR with two bits: two reports of one device cost more than one, and no more than the plan
    says.
    """
    question = sv.Frequencies("x", oracle="rappor", buckets=2, hashes=1, cohorts=1)
    plan = plan_of(sv.Schema(x=sv.Boolean()), question)
    found = audited(plan)
    assert found.passed, str(found)
    assert found.enumeration is not None
    assert found.enumeration.lifetime is not None
    assert found.enumeration.epsilon < found.enumeration.lifetime < plan.guarantee.lifetime


# -- the mutants


class CohortIsAnswer(Client):
    """The cohort tells the answer."""

    def report(self, record: Mapping[str, Any]) -> Any:
        return replace(super().report(record), cohort=int(record.get("a", 0)))


class SpareBit(Client):
    """The answer stands in a bit that no oracle uses."""

    def report(self, record: Mapping[str, Any]) -> Any:
        told = super().report(record)
        return replace(
            told,
            payload=told.payload[:-1] + bytes([told.payload[-1] | int(record.get("a", 0)) << 7]),
        )


class Forgetful(Client):
    """A device that never finds its memo again."""

    def report(self, record: Mapping[str, Any]) -> Any:
        state = None if self.state is None else ClientState()
        return Client(self.plan, state, self._entropy).report(record)


class Silent(Client):
    """Who has nothing to hide says nothing."""

    def report(self, record: Mapping[str, Any]) -> Any:
        if not record.get("a"):
            raise NotInThisRound("nothing to say")
        return super().report(record)


def refusing(plan: sv.Plan, **options: Any) -> Client:
    """Who has no valid value sends nothing."""
    return Client(plan, invalid="raise", **options)


class Reused(Entropy):
    """Coins that are tossed once and used again for the next ask."""

    def __init__(self, source: Entropy) -> None:
        self._source = source
        self._coins: dict[int, bool] = {}
        self._drawn: dict[int, int] = {}

    @property
    def public(self) -> Entropy:
        return self._source.public

    def bits(self, count: int) -> int:
        return self._source.bits(count)

    def coin(self, threshold: int) -> bool:
        if threshold not in self._coins:
            self._coins[threshold] = self._source.coin(threshold)
        return self._coins[threshold]

    def below(self, limit: int) -> int:
        if limit not in self._drawn:
            self._drawn[limit] = self._source.below(limit)
        return self._drawn[limit]


def reusing(plan: sv.Plan, entropy: Entropy, **options: Any) -> Client:
    return Client(plan, entropy=Reused(entropy), **options)


TWO_COHORTS = plan_of(YES_NO, sv.Frequencies("a", "b"))
TWO_ASKS = plan_of(YES_NO, sv.Frequencies("a", "b", split="budget"))
ONE_COHORT = plan_of(YES_NO, sv.Frequencies("a"))
WIDE = plan_of(sv.Schema(a=sv.Categorical(range(100))), sv.Frequencies("a", oracle="oue"))


@pytest.mark.parametrize("plan", [TWO_COHORTS, TWO_ASKS, ONE_COHORT, WIDE])
def test_without_a_mutant_they_pass(plan: sv.Plan) -> None:
    found = audited(plan, draws=8_000 if plan is WIDE else DRAWS)
    assert found.passed, str(found)


@pytest.mark.parametrize(
    ("plan", "device", "fault"),
    [
        (TWO_COHORTS, CohortIsAnswer, "the cohort depends on the record"),
        (TWO_COHORTS, SpareBit, "some record rules it out"),
        (TWO_COHORTS, Silent, "silence depends on the record"),
        (TWO_COHORTS, refusing, "silence depends on the record"),
        (ONE_COHORT, Forgetful, "a lifetime of reports costs 6.25"),
        (TWO_ASKS, reusing, "some record rules it out"),
    ],
)
def test_a_mutant_of_the_device_fails(
    plan: sv.Plan, device: Callable[..., Client], fault: str
) -> None:
    found = audited(plan, device)
    assert not found.passed
    assert any(fault in each for each in found.faults), found.faults
    assert f"fault: {found.faults[0]}" in str(found)


@pytest.mark.parametrize("device", [CohortIsAnswer, Silent, Forgetful])
def test_a_mutant_is_convicted_where_nothing_can_be_listed(device: Callable[..., Client]) -> None:
    found = audited(WIDE, device, draws=12_000 if device is Forgetful else 8_000)
    assert found.kind == "sampled"
    assert not found.passed


def test_a_coin_that_is_always_0_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tosses it: the draw itself, many at once, or the operating system's bits."""
    bits = HONEST["bits"][0]
    with monkeypatch.context() as patch:
        patch.setattr(Entropy, "coin", lambda self, threshold: False)
        assert any("lands heads with chance 0" in fault for fault in audited(TWO_COHORTS).faults)
    with monkeypatch.context() as patch:
        patch.setattr(Entropy, "coins", lambda self, threshold, count: 0)
        assert any("independent" in fault for fault in audited(bits).faults)
    with monkeypatch.context() as patch:
        patch.setattr(System, "bits", lambda self, count: 0)
        found = audit_plan(TWO_COHORTS, DRAWS, seed=b"fixed")
        assert any("sampled reports" in fault for fault in found.faults)
    assert audited(bits).passed


def test_an_oracle_that_ignores_its_coin_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def cleared(self: Any, value: int, entropy: Entropy) -> int:
        return entropy.coin(self.one) << self.check(value)

    monkeypatch.setattr(OptimizedUnaryEncoding, "randomize", cleared)
    assert not audited(HONEST["bits"][0]).passed


def test_draws_that_are_not_uniform_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            Entropy, "below", lambda self, limit: self.bits((limit - 1).bit_length()) % limit
        )
        assert any("is not uniform" in fault for fault in audited(HONEST["two cohorts"][0]).faults)
    monkeypatch.setattr(Entropy, "subset", lambda self, total, chosen: (1 << chosen) - 1)
    assert any("not drawn uniformly" in fault for fault in audited(HONEST["subsets"][0]).faults)


def test_padding_that_does_not_sample_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = HONEST["sampled items"][0]

    def first(self: Padded, codes: Mapping[str, Any], entropy: Entropy) -> int:
        held = self.held(codes[self.attribute])
        return held[0] if held else self.count + entropy.below(self.length)

    assert audited(plan).passed
    monkeypatch.setattr(Padded, "encode", first)
    assert any("more than epsilon 1.25" in fault for fault in audited(plan).faults)


def test_a_hash_that_is_chosen_by_the_answer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds are drawn until the value's hash is 0: then the seed alone tells which values are
    likely.
    """

    def ground(self: SeededLocalHashing, value: int, entropy: Entropy) -> tuple[int, int]:
        seed = entropy.public.bits(64)
        while bucket(keyed_hash(seed, value), self.hash_size):
            seed = entropy.public.bits(64)
        return seed, 0 if entropy.coin(self.truth) else entropy.below(self.hash_size)

    monkeypatch.setattr(SeededLocalHashing, "randomize", ground)
    assert (
        "which public coins are drawn depends on the record or on private coins"
        in audited(HONEST["seeded hashes"][0]).faults
    )


DELTA = {"method": "psfo", "length": 2, "oracle": "olh-seeded", "delta": "1/5000"}


def test_an_understated_delta_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no two padded items ever shared a hash value."""
    honest = audited(plan_of(BASKETS, sv.TopItems("x", top=2, **DELTA)), limit=1 << 13)
    assert honest.passed, str(honest)
    assert "delta" in str(honest)
    monkeypatch.setattr("sottovoce.protocol.encodings.sets.most_together", lambda *_: 1)
    found = audited(plan_of(BASKETS, sv.TopItems("x", top=2, **DELTA)), limit=1 << 13)
    assert not found.passed
    assert found.enumeration is not None
    assert found.enumeration.delta > 100 * found.stated.delta


# -- the records


@pytest.mark.parametrize(
    ("attribute", "form", "count"),
    [
        (sv.Boolean(), CODE, 2),
        (sv.Categorical(["x", "y", "z"]), CODE, 3),
        (sv.Ordinal(18, 97, bins=16), CODE, 16),
        (sv.Ordinal(1, 7, bins=3), CODE, 3),
        (sv.Ordinal(-5, 1_000_000), CODE, MAX_RECORDS),
        (sv.Integer(bits=100), SPELLING, MAX_RECORDS),
        (sv.Text(bytes=2, alphabet="abc"), SPELLING, 13),
        (sv.Text(bytes=9), SPELLING, 53),
        (sv.Items("abcd"), MEMBERS, 16),
        (sv.Items(range(40)), MEMBERS, 15),
    ],
)
def test_values_have_different_codes_and_both_ends(attribute: Any, form: str, count: int) -> None:
    values = values_of(attribute, form, MAX_RECORDS)
    read = {
        CODE: attribute.code,
        SPELLING: attribute.spell if form == SPELLING else None,
        MEMBERS: attribute.members,
    }
    codes = [tuple(code) if form == MEMBERS else code for code in map(read[form], values)]  # type: ignore[arg-type]
    assert len(set(codes)) == len(codes) == count
    if form == CODE:
        assert (codes[0], codes[-1]) == (0, attribute.size - 1)


def test_a_cohort_sees_all_values_of_what_it_reads_and_the_rest_one_at_a_time() -> None:
    schema = sv.Schema(
        **{f"x{place}": sv.Boolean() for place in range(12)}, unread=sv.Ordinal(0, 9)
    )
    plan = plan_of(schema, sv.Marginals(2, [f"x{place}" for place in range(12)], method="marg-ps"))
    records = Records(plan)
    found = records.of_cohort(0)
    names = plan.cohorts[0].attributes
    assert {tuple(record[name] for name in names) for record in found} == {
        (a, b) for a in (0, 1) for b in (0, 1)
    }
    assert {record["unread"] for record in found} == set(range(10))
    assert {record["x11"] for record in found} == {False, True}
    assert records.scope == "all read"
