"""The wire's vectors: exact bytes from fixed coins,
and each bad report refused by its own error.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.messages import write_binary, write_json
from sottovoce.ground.entropy import Tape
from sottovoce.ground.hashes import bucket, keyed_hash, keys, permuted, scramble, tag
from sottovoce.oracles import ORACLES
from sottovoce.protocol.encodings import ENCODINGS
from sottovoce.protocol.families import FAMILIES, SHAPES
from sottovoce.protocol.plan import Plan
from sottovoce.schema import ATTRIBUTES, Schema
from tests.vectors import asks  # noqa: F401  (so that plans of theirs can be read)
from tests.vectors.case import COINS
from tests.vectors.make import PATH, scrambled_list, vectors
from tests.vectors.popular import popular

VECTORS: dict[str, Any] = json.loads(PATH.read_text())
PLANS = {entry["name"]: entry for entry in VECTORS["plans"]}
KEY = bytes.fromhex(VECTORS["key"])
TODAY = 1_800_000_000
BY_HAND = popular()  # their cohorts are known from here on


def client(plan: sv.Plan, row: dict[str, Any], source: Tape, invalid: str = "raise") -> sv.Client:
    """The device of a row."""
    given = sv.Assignment.from_json(row["assignment"]) if "assignment" in row else None
    state = sv.ClientState() if len(plan.series.shares) > 1 else None
    return sv.Client(plan, state, entropy=source, assignment=given, invalid=invalid)


@pytest.mark.parametrize("name", PLANS)
def test_fixed_coins_give_exact_reports(name: str) -> None:
    entry = PLANS[name]
    plan = Plan.from_json(entry["plan"], id=entry["id"])
    for row in entry["good"]:
        source = Tape(bytes.fromhex(row["entropy"]))
        report = client(plan, row, source).report(row["record"])
        assert source.position == len(row["entropy"]) // 2
        assert report.to_bytes().hex() == row["report"]
        assert json.loads(report.to_json()) == row["json"]
        assert sv.Report.from_bytes(bytes.fromhex(row["report"]), plan) == report
        assert sv.Report.from_json(json.dumps(row["json"]), plan) == report
        assert ("assignment" in row) == (plan.coin == "assigned")
        given = sv.Assignment.from_json(row["assignment"]) if "assignment" in row else None
        if given is not None:
            given.verify(KEY, TODAY)
            given.check(report, plan)
        sent_id = bytes.fromhex(row["sent"]["id"])
        assert write_json(sent_id, report, given) == row["sent"]
        assert write_binary([sent_id], [report], [given] if given else []).hex() == row["envelope"]
    for row in entry["silent"]:
        with pytest.raises(sv.NotInThisRound):
            client(plan, row, Tape(bytes.fromhex(row["entropy"]))).report(row["record"])


@pytest.mark.parametrize("name", PLANS)
def test_bad_reports_are_refused(name: str) -> None:
    entry = PLANS[name]
    plan = Plan.from_json(entry["plan"])
    for row in entry["bad"]:
        with pytest.raises(getattr(sv, row["error"])):
            sv.Report.from_bytes(bytes.fromhex(row["report"]), plan)


@pytest.mark.parametrize("name", PLANS)
def test_bad_records_are_refused_without_echo(name: str) -> None:
    entry = PLANS[name]
    plan = Plan.from_json(entry["plan"])
    coins = entry["good"][0]
    for row in entry["bad_records"]:
        with pytest.raises(sv.InvalidInput) as refused:
            client(plan, coins, Tape(bytes.fromhex(coins["entropy"]))).report(row["record"])
        assert not row["secret"] or row["secret"] not in str(refused.value)


@pytest.mark.filterwarnings("ignore::sottovoce.device.client.InvalidValueWarning")
@pytest.mark.parametrize("name", PLANS)
def test_records_that_are_not_valid_are_reported_all_the_same(name: str) -> None:
    entry = PLANS[name]
    plan = Plan.from_json(entry["plan"])
    assert len(entry["substituted"]) == len(entry["bad_records"])
    for row in entry["substituted"]:
        source = Tape(bytes.fromhex(row["entropy"]))
        report = client(plan, row, source, invalid="draw").report(row["record"])
        assert report.to_bytes().hex() == row["report"]
        assert source.position == len(row["entropy"]) // 2


def test_one_plan_has_one_spelling() -> None:
    assert len({row["plan"] for row in VECTORS["spellings"]}) == len(VECTORS["spellings"]) > 101
    for row in VECTORS["spellings"]:
        with pytest.raises(sv.InvalidInput):
            print(row["why"], Plan.from_json(row["plan"]).id)


def test_bad_plans_are_refused() -> None:
    for row in VECTORS["bad_plans"]:
        with pytest.raises(getattr(sv, row["error"])):
            Plan.from_json(row["plan"], id=row["id"])


def test_the_vectors_cover_the_wire() -> None:
    """Every oracle, family, shape, encoding, kind of attribute and coin; and numbers that floats do
    not hold.
    """
    plans = {name: Plan.from_json(entry["plan"]) for name, entry in PLANS.items()}
    texts = [entry["plan"] for entry in PLANS.values()]
    for part, known in (
        ("name", [kind.names[0] for kind in ORACLES]),
        ("family", list(FAMILIES)),
        ("shape", SHAPES),
        ("kind", [kind.kind for kind in (*ENCODINGS, *ATTRIBUTES)]),
        ("coin", COINS),
    ):
        for each in known:
            assert any(f'"{part}": "{each}"' in text for text in texts), (
                f"no plan has {part} {each}"
            )
    weights = [plan.cohorts.weight for plan in plans.values()]
    assert any(1 << 32 < weight < 1 << 53 for weight in weights)
    assert max(weights) > 1 << 53
    for oracle in ORACLES:
        coins = {plans[f"{oracle.names[0]}{suffix}"].coin for suffix in ("", ", assigned")}
        assert coins == set(COINS)


def test_blocks_of_signs_are_all_visited() -> None:
    for name in ("every shape", "every shape, assigned", "2^59 tickets", "2^59 tickets, assigned"):
        plan = Plan.from_json(PLANS[name]["plan"])
        seen = {
            int(plan.cohorts.numbers(np.array([row["json"]["cohort"]]))[0])
            for row in PLANS[name]["good"]
        }
        assert len(seen) == 6


def test_cohorts_that_read_spellings_and_sets_are_all_visited() -> None:
    """With one coin or the other."""
    seen: dict[str, set[int]] = {}
    for name in PLANS:
        seen.setdefault(name.removesuffix(", assigned"), set()).update(
            row["json"]["cohort"] for row in PLANS[name]["good"]
        )
    for case in BY_HAND:
        if ", assigned" not in case.name:
            assert seen[case.name] == set(range(len(case.plan.cohorts))), case.name


def test_hashes_are_those_of_the_vectors() -> None:
    known = VECTORS["hashes"]
    for key, value, word in known["keyed_hash"]:
        assert keyed_hash(int(key), int(value)) == int(word)
    for word, size, found in known["bucket"]:
        assert bucket(int(word), size) == found
    assert [str(key) for key in keys(int(known["keys"]["salt"]), 4)] == known["keys"]["keys"]
    for width, listed in known["scrambled"].items():
        assert scrambled_list(int(width)) == listed
        assert sorted(listed) == list(range(1 << int(width)))
    for number, bits, found in known["permuted"]:
        assert permuted(int(number), bits) == int(found)
    for number, key, bits, found in known["tag"]:
        assert tag(int(number), key, bits) == int(found)
    for options, text, found in known["spellings"]:
        assert Schema.from_json({"x": options})["x"].spell(text) == int(found)
    for text, code in known["fingerprints"]:
        assert sv.Text(bytes=40).code(text) == int(code)


def test_compiled_hashes_are_the_plain_ones() -> None:
    from sottovoce.kernels.hashing import hash_buckets
    from sottovoce.kernels.hashing import scramble as scramble_all

    draws = np.random.default_rng(1).integers(0, 2**64, (2, 1000), dtype=np.uint64)
    for size in (2, 7, 4096):
        plain = [bucket(keyed_hash(int(k), int(v)), size) for k, v in draws.T]
        assert hash_buckets(draws[0], draws[1], size).tolist() == plain
    for width in (1, 2, 7, 26):
        words = draws[0] & np.uint64((1 << width) - 1)
        assert scramble_all(words, width).tolist() == [scramble(int(word), width) for word in words]


@pytest.mark.filterwarnings("ignore::sottovoce.device.client.InvalidValueWarning")
def test_the_file_is_what_make_writes() -> None:
    """A change of the wire, of a plan's form or of a randomizer's draws shows here: then it is a
    new version.
    """
    assert json.loads(json.dumps(vectors())) == VECTORS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"sottovoce": 1, "plan": "x", "cohort": 0, "payload": "zz"}',
        '{"sottovoce": true, "plan": 5, "cohort": false, "payload": ""}',
    ],
)
def test_bad_json_is_refused(text: str) -> None:
    plan = Plan.from_json(PLANS["grr"]["plan"])
    with pytest.raises((sv.CorruptReport, sv.PlanMismatch)):
        sv.Report.from_json(text, plan)


def test_json_reports_with_wrong_parts_are_refused() -> None:
    entry = PLANS["grr"]
    plan = Plan.from_json(entry["plan"])
    good = entry["good"][0]["json"]
    for part, wrong, error in (
        ("sottovoce", 2, sv.CorruptReport),
        ("sottovoce", True, sv.CorruptReport),
        ("plan", "0" * 64, sv.PlanMismatch),
        ("cohort", 1, sv.CorruptReport),
        ("cohort", True, sv.CorruptReport),
        ("cohort", -1, sv.CorruptReport),
        ("payload", "", sv.CorruptReport),
        ("payload", "ff", sv.CorruptReport),
    ):
        with pytest.raises(error):
            sv.Report.from_json(json.dumps({**good, part: wrong}), plan)


@pytest.mark.parametrize("name", [name for name in PLANS if "bad_public" in PLANS[name]])
def test_records_without_their_public_values_are_refused_before_any_coin(name: str) -> None:
    entry = PLANS[name]
    plan = Plan.from_json(entry["plan"])
    assert list(plan.columns) == json.loads(entry["plan"])["public"]
    for row in entry["bad_public"]:
        for invalid in ("raise", "draw"):
            coins = Tape(bytes.fromhex(entry["good"][0]["entropy"]))  # enough for a report
            with pytest.raises(sv.InvalidInput) as refused:
                client(plan, entry["good"][0], coins, invalid=invalid).report(row["record"])
            assert coins.position == 0
            assert not row["secret"] or row["secret"] not in str(refused.value)


@pytest.mark.parametrize("name", [name for name in PLANS if "bad_json" in PLANS[name]])
def test_json_reports_with_other_public_values_are_refused(name: str) -> None:
    entry = PLANS[name]
    plan = Plan.from_json(entry["plan"])
    for row in entry["bad_json"]:
        with pytest.raises(sv.CorruptReport):
            print(row["why"], sv.Report.from_json(json.dumps(row["json"]), plan))
    good = PLANS["grr"]["good"][0]["json"]
    with pytest.raises(sv.CorruptReport):
        sv.Report.from_json(
            json.dumps({**good, "public": {}}), Plan.from_json(PLANS["grr"]["plan"])
        )
