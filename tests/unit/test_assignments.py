"""Assigned coins: the collector's, signed; public, so private whoever draws them; and a report must
use them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, count
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.ground.entropy import Assigned, Entropy, Seeded, Stream, Tape, exact_law
from sottovoce.ground.hashes import bucket, keyed_hash
from sottovoce.oracles.thresholds import exceeds, log_ratio
from sottovoce.protocol.encodings import (
    Ask,
    Cells,
    Drawn,
    Extensions,
    Grid,
    Held,
    Padded,
    Parities,
    Window,
)
from sottovoce.questions.itemsets.padding import padded_ask
from tests.oracles import ENUMERABLE, SMALL, small

KEY = bytes(range(32))
NOW = 4_102_444_800  # the year 2100: until then nothing here has expired
SCHEMA = sv.Schema(x=sv.Categorical(["a", "b", "c", "d", "e"]), yes=sv.Boolean())
PUBLIC = (
    "olh",
    "blh",
    "olh-field",
    "olh-seeded",
    "olh-wide",
    "olh-sets",
    "hrr",
    "cms",
    "hcms",
    "o-rr",
    "o-rappor",
    "rappor",
)


def made(oracle: str = "olh", *names: str, **options: Any) -> sv.Plan:
    question = sv.Frequencies(*(names or ("x",)), oracle=oracle, **options)
    return sv.plan(SCHEMA, question, epsilon=1.0, people=1000, coin="assigned")


def assigned(plan: sv.Plan, number: int = 0) -> sv.Assignment:
    return sv.Assignment.sign(KEY, plan.id, number.to_bytes(16, "big"), NOW)


@pytest.mark.parametrize("oracle", PUBLIC)
def test_a_report_uses_the_coins_it_was_given(oracle: str) -> None:
    plan = made(oracle, **SMALL.get(oracle, {}))
    given, other = assigned(plan, 1), assigned(plan, 2)
    one, two = (
        sv.Client(plan, entropy=Seeded(seed), assignment=given).report({"x": "c"})
        for seed in (1, 2)
    )
    source: Any = plan.cohorts[0].asks[0].oracle
    assert source.public_part(source.unpack(one.payload)) == source.public_part(
        source.unpack(two.payload)
    )
    given.check(one, plan)
    given.check(two, plan)
    with pytest.raises(sv.BadAssignment, match="hashes are not those that were assigned"):
        _first_refusal(
            other,
            [sv.Client(plan, assignment=assigned(plan, n)).report({"x": "c"}) for n in range(9)],
            plan,
        )


def _first_refusal(given: sv.Assignment, reports: list[sv.Report], plan: sv.Plan) -> None:
    for report in reports:
        given.check(report, plan)


@pytest.mark.parametrize("oracle", [name for name in ENUMERABLE if name in PUBLIC])
def test_public_coins_tell_nothing_of_a_value(oracle: str) -> None:
    """Their exact law is the same for every value, so that given them a report is as private as
    without.
    """
    source: Any = small(oracle, 3, 1.0)
    laws = []
    for law in source.exact_channel():
        public: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for output, chance in law.items():
            public[tuple(source.public_part(output))] += chance
        laws.append(public)
    assert laws[0] == laws[1] == laws[2]
    given: dict[tuple[int, ...], list[dict[Any, Fraction]]] = defaultdict(
        lambda: [{} for _ in laws]
    )
    for value, law in enumerate(source.exact_channel()):
        for output, chance in law.items():
            given[tuple(source.public_part(output))][value][output] = chance
    for rows in given.values():
        for output in rows[0]:
            chances = [row[output] for row in rows]
            assert max(chances) <= source.worst_ratio * min(chances)


ITEMS, EPSILON = 4, Decimal(1)
HELD = [list(members) for size in range(ITEMS + 1) for members in combinations(range(ITEMS), size)]
SETS = ((0,), (2,), (0, 2), (1, 2, 3))
TABLE = sv.Schema(x=sv.Categorical(["a", "b", "c"]), yes=sv.Boolean())
SIGNATURES = 12


class Settled(Entropy):
    """Public coins that somebody chose; all others branch."""

    def __init__(self, public: Entropy, other: Entropy) -> None:
        self._public = public
        self.bits, self.below = other.bits, other.below  # type: ignore[method-assign]
        self.coin, self.coins, self.subset = other.coin, other.coins, other.subset  # type: ignore[method-assign]

    @property
    def public(self) -> Entropy:
        return self._public

    def bits(self, count: int) -> int:
        raise AssertionError


def _asked(encoding: Any, name: str, **options: Any) -> Ask:
    return Ask(
        encoding,
        sv.oracle(name, size=encoding.size, epsilon=EPSILON, **(SMALL.get(name, {}) | options)),
    )


def _asks() -> Iterator[tuple[str, Ask, list[Any]]]:
    """Every encoding, with oracles that have public coins and with amplified ones; and all that it
    may read.
    """
    for candidates in (None, SETS):
        for name in ("grr", "olh", "blh", "olh-seeded", "oue"):
            for length in (1, 3):
                ask = padded_ask("basket", ITEMS, candidates, length, name, EPSILON)
                yield (
                    f"padded to {length}, {name}, {candidates}",
                    ask,
                    [{"basket": held} for held in HELD],
                )
        for length in (1, 2):
            whole = _asked(Drawn("basket", ITEMS, candidates, length), "olh-sets", length=length)
            yield f"drawn {length}, {candidates}", whole, [{"basket": held} for held in HELD]
        held = _asked(Held("basket", ITEMS, candidates, 2), "olh")
        yield f"held, {candidates}", held, [{"basket": held} for held in HELD]
    pairs = [{"x": x, "yes": yes} for x in range(3) for yes in range(2)]
    for name in (
        "olh",
        "hrr",
        "cms",
        "hcms",
        "o-rr",
        "rappor",
        "olh-wide",
        "olh-seeded",
        "olh-field",
    ):
        yield f"cells, {name}", _asked(Cells.of(TABLE, "x", "yes"), name), pairs
    masks = Parities.from_json({"attributes": ["x", "yes"], "products": [[1, 1], [2, 0]]}, TABLE)
    yield "parities", _asked(masks, "hrr"), pairs
    grid = Grid.of(TABLE, ["x", "yes"], [2, 1], [1, 0])
    for name in ("olh", "ss"):
        yield f"grid, {name}", _asked(grid, name), pairs
    words = [{"w": word} for word in range(16)]
    yield "window", _asked(Window("w", 4, 1, 2, 2, 4, scrambled=True), "olh-wide"), words
    yield "extensions", _asked(Extensions("w", 4, 1, ((2, 3), (3, 0))), "olh"), words


ASKS = list(_asks())


def law_given(signature: bytes, ask: Ask, codes: Any) -> dict[Any, Fraction]:
    """The exact chances of an ask's reports, from the drawing of an item to the last coin, given
    its public coins.
    """

    def report(entropy: Entropy) -> Any:
        settled = Settled(Stream(signature), entropy)
        return ask.oracle.randomize(ask.encoding.encode(codes, settled), settled)

    return exact_law(report, 1 << 16)


def worst_of(laws: Sequence[dict[Any, Fraction]]) -> Fraction:
    """The largest ratio of one report's chances under two records."""
    assert all(law.keys() == laws[0].keys() for law in laws), (
        "a report that some record cannot have sent"
    )
    return max(max(law[each] for law in laws) / min(law[each] for law in laws) for each in laws[0])


@pytest.mark.parametrize(("ask", "codes"), [row[1:] for row in ASKS], ids=[row[0] for row in ASKS])
def test_an_ask_is_private_given_any_public_coins(ask: Ask, codes: list[Any]) -> None:
    """Encoding and oracle together: for every two records, whatever the collector assigned."""
    for number in range(
        2 if ask.oracle.names[0] in ("oue", "rappor") else SIGNATURES
    ):  # two have many reports
        laws = [law_given(bytes([number]) * 32, ask, each) for each in codes]
        assert not exceeds(worst_of(laws), EPSILON)
        assert log_ratio(worst_of(laws)) <= ask.guarantee.lifetime + 1e-12
        public = {tuple(ask.oracle.public_part(output)) for law in laws for output in law}
        assert len(public) == 1  # it does not depend on the record, nor on the coins of its own


def ground(ask: Ask, most: int) -> tuple[bytes, int]:
    """What a collector can find by trying: a signature whose hash puts all padding into one bucket;
    and that one.
    """
    padding, size = range(ask.encoding.count, ask.encoding.size), ask.oracle.buckets  # type: ignore[attr-defined]
    for number in count():
        assert number < most
        signature = number.to_bytes(32, "little")
        seed = Stream(signature).bits(64)
        shared = {bucket(keyed_hash(seed, dummy), size) for dummy in padding}
        if len(shared) == 1:
            return signature, shared.pop()
    raise AssertionError


@pytest.mark.parametrize(
    ("epsilon", "delta", "found"), [("1", "1/100", 1.275), ("3", "1/10", 4.065)]
)
def test_a_collector_that_grinds_signatures_breaks_a_delta(
    epsilon: str, delta: str, found: float
) -> None:
    """So assigned coins are not for plans with one: what should be rare is what a collector can
    choose.
    """
    length, items = (6 if epsilon == "1" else 3), 60
    ask = padded_ask("basket", items, None, length, "olh-seeded", Decimal(epsilon), Fraction(delta))
    assert ask.guarantee.per_report <= float(epsilon)
    signature, shared = ground(ask, most=20_000)
    seed = Stream(signature).bits(64)
    elsewhere = [
        item
        for item in range(items)
        if bucket(keyed_hash(seed, item), ask.oracle.buckets) != shared
    ]  # type: ignore[attr-defined]
    worst = worst_of(
        [law_given(signature, ask, {"basket": held}) for held in ([], elsewhere[:length])]
    )
    assert log_ratio(worst) == pytest.approx(found, abs=0.01)
    assert exceeds(worst, Decimal(epsilon))


def test_assigned_coins_are_refused_with_a_delta() -> None:
    """When a plan is made, and when it is read; in JavaScript by a vector of its own."""
    schema = sv.Schema(basket=sv.Items(range(60)))
    question = sv.TopItems("basket", top=4, method="psfo", length=12, delta="1/2000")
    made = sv.plan(schema, question, epsilon=1.0, people=1000)
    assert isinstance(made.cohorts[0].asks[0].encoding, Padded)
    assert sv.Plan.from_json(made.to_json()) == made
    with pytest.raises(sv.InvalidInput, match=r"coin \(assigned\) is not for a plan with a delta"):
        sv.plan(schema, question, epsilon=1.0, people=1000, coin="assigned")
    text = made.to_json().replace('"coin": "device"', '"coin": "assigned"')
    assert json.loads(text)["coin"] == "assigned"
    with pytest.raises(sv.InvalidInput, match=r"coin \(assigned\) is not for a plan with a delta"):
        sv.Plan.from_json(text)
    plain = sv.TopItems("basket", top=4, method="psfo", length=12)
    assert sv.plan(schema, plain, epsilon=1.0, people=1000, coin="assigned").coin == "assigned"


class NoCoins(Entropy):
    """A device that must not draw."""

    def bits(self, count: int) -> int:
        raise AssertionError("a coin was drawn")


@pytest.mark.parametrize("rounds", [(1,), (1, 1)])
def test_nothing_is_drawn_under_an_expired_assignment(rounds: tuple[int, ...]) -> None:
    question = sv.Frequencies("x", oracle="olh")
    plan = sv.plan(SCHEMA, question, epsilon=1.0, people=1000, coin="assigned", rounds=rounds)
    late = sv.Assignment.sign(KEY, plan.id, bytes(16), 1_700_000_000)
    state = sv.ClientState()
    before = state.to_json()
    with pytest.raises(sv.BadAssignment, match="expired"):
        sv.Client(plan, state, entropy=NoCoins(), assignment=late).report({"x": "a"})
    assert state.to_json() == before


def test_a_memo_is_sent_again_after_its_assignment_has_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = sv.plan(
        SCHEMA, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=1000, coin="assigned"
    )
    given = sv.Assignment.sign(KEY, plan.id, bytes(16), 1_700_000_000)
    state = sv.ClientState()
    monkeypatch.setattr("sottovoce.device.client.time", lambda: 1_600_000_000.0)
    first = sv.Client(plan, state, assignment=given).report({"x": "a"})
    monkeypatch.setattr("sottovoce.device.client.time", lambda: 1_800_000_000.0)
    assert sv.Client(plan, state, entropy=NoCoins(), assignment=given).report({"x": "b"}) == first


@pytest.mark.parametrize("oracle", [name for name in ENUMERABLE if name not in PUBLIC])
def test_oracles_without_public_coins_draw_none(oracle: str) -> None:
    source: Any = small(oracle, 2 if oracle == "rr" else 3, 1.0)
    assert source.public == ()
    entropy = Assigned(Tape(b""), Seeded(1))
    source.randomize(1, entropy)  # an empty tape would be refused


def test_cohorts_are_assigned() -> None:
    plan = sv.plan(
        SCHEMA, sv.Marginals(up_to=2, method="inp-ht"), epsilon=1.0, people=1000, coin="assigned"
    )
    record = {"x": "b", "yes": True}
    cohorts = {sv.Client(plan, assignment=assigned(plan)).report(record).cohort for _ in range(20)}
    assert len(cohorts) == 1
    spread = {
        sv.Client(plan, assignment=assigned(plan, number)).report(record).cohort
        for number in range(60)
    }
    assert len(spread) > 5
    report = sv.Client(plan, assignment=assigned(plan)).report(record)
    wrong = sv.Report(plan.id, (report.cohort + 1) % len(plan.cohorts), report.payload)
    with pytest.raises(sv.BadAssignment, match="cohort is not the one"):
        assigned(plan).check(wrong, plan)


def test_only_the_collectors_own_signature_holds() -> None:
    plan = made()
    given = assigned(plan)
    given.verify(KEY, NOW)
    later = sv.Assignment(plan.id, given.id, given.expires + 1, given.signature)
    other = sv.Assignment(plan.id, new_id(), given.expires, given.signature)
    chosen = sv.Assignment(plan.id, given.id, given.expires, bytes(32))
    for forged in (later, other, chosen, sv.Assignment.sign(bytes(32), plan.id, given.id, NOW)):
        with pytest.raises(sv.BadAssignment, match="did not sign"):
            forged.verify(KEY, NOW)
    with pytest.raises(sv.BadAssignment, match="expired"):
        given.verify(KEY, NOW + 1)
    assert sv.Assignment.from_json(given.to_json()) == given


def test_the_stream_is_read_like_entropy() -> None:
    import hashlib

    first = hashlib.sha256(KEY + bytes(8)).digest()
    second = hashlib.sha256(KEY + (1).to_bytes(8, "little")).digest()
    stream, tape = Stream(KEY), Tape(first + second)
    assert [stream.bits(count) for count in (3, 64, 0, 200, 1, 60)] == [
        tape.bits(count) for count in (3, 64, 0, 200, 1, 60)
    ]


def test_clients_and_coins_must_fit() -> None:
    plan = made()
    device = sv.plan(SCHEMA, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=1000)
    for wrong in ((plan, None), (device, assigned(device))):
        with pytest.raises(sv.InvalidInput, match="assignment is required"):
            sv.Client(wrong[0], assignment=wrong[1])
    with pytest.raises(sv.PlanMismatch, match="another plan"):
        sv.Client(plan, assignment=assigned(device))
    with pytest.raises(sv.InvalidInput, match=r"coin \(mine\) must be one of device, assigned"):
        sv.plan(SCHEMA, sv.Frequencies("x"), epsilon=1.0, people=10, coin="mine")
    assert plan.id != device.id
    assert sv.Plan.from_json(plan.to_json()).coin == "assigned"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"id": "00"}, "16 bytes"),
        ({"expires": -1}, "expires"),
        ({"signature": "zz"}, "must have"),
        ({"plan": None}, "must have"),
    ],
)
def test_bad_assignments_are_refused(change: dict[str, Any], rule: str) -> None:
    body = assigned(made()).to_json() | change
    if change.get("plan", 1) is None:
        del body["plan"]
    with pytest.raises(sv.InvalidInput, match=rule):
        sv.Assignment.from_json(body)


def test_ids_sort_by_time_and_tell_the_minute_alone() -> None:
    earlier, later = new_id(1.75e9), new_id(1.75e9 + 66)
    assert earlier < later
    same = {new_id(1.75e9 + second)[:6] for second in np.arange(0, 60)}
    assert len(same) <= 2
    assert len({new_id(1.75e9) for _ in range(100)}) == 100
