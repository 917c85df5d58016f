"""Onions: RFC 9180's own numbers, one size, and what is refused."""

from __future__ import annotations

import pytest

import sottovoce as sv
from sottovoce.device import sealing
from sottovoce.device.sealing import PrivateKey, hpke_open, hpke_seal, open_layer, seal
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import CorruptReport, InvalidInput, PlanMismatch
from tests.shuffle.plans import SCHEMA, keys, reports, shuffled_plan

KEYS = keys()
PLAN = shuffled_plan(KEYS)
REPORT = reports(PLAN, 1)[0]

# RFC 9180, appendix A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode
INFO = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
EPHEMERAL = bytes.fromhex("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736")
ENCAPSULATED = "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431"
RECIPIENT = bytes.fromhex("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
RECIPIENT_PUBLIC = "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d"
PLAIN = b"Beauty is truth, truth beauty"
AAD = b"Count-0"
CIPHERTEXT = (
    "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a"
)


def test_the_published_vector() -> None:
    recipient = PrivateKey(RECIPIENT)
    assert recipient.public == RECIPIENT_PUBLIC
    sealed = hpke_seal(PLAIN, recipient.public_bytes, INFO, PrivateKey(EPHEMERAL), AAD)
    assert sealed.hex() == ENCAPSULATED + CIPHERTEXT
    assert hpke_open(sealed, recipient, INFO, AAD) == PLAIN


def opened(onion: bytes) -> bytes:
    for hop, key in enumerate(KEYS):
        assert len(onion) == sealing.onion_size(PLAN, hop)
        onion = open_layer(onion, key.raw, PLAN.id, hop)
    return onion


def test_an_onion_is_opened_hop_by_hop() -> None:
    onion = seal(REPORT, PLAN, Seeded(1), nonce=b"n" * 16)
    assert len(onion) == 20 + PLAN.cohorts.bytes + 48 * 4
    content = opened(onion)
    assert content == b"n" * 16 + bytes(4) + REPORT.payload
    assert sealing.read_content(content, PLAN) == (b"n" * 16, REPORT)


def test_an_onion_for_the_hops_that_follow() -> None:
    onion = seal(REPORT, PLAN, Seeded(1), first=2)
    assert len(onion) == sealing.onion_size(PLAN, 2)
    last = open_layer(open_layer(onion, KEYS[2], PLAN.id, 2), KEYS[3], PLAN.id, 3)
    assert sealing.read_content(last, PLAN)[1] == REPORT


@pytest.mark.parametrize("change", ["key", "plan", "hop", "bit", "cut", "empty", "low order"])
def test_what_opens_no_layer(change: str) -> None:
    onion, key, plan_id, hop = seal(REPORT, PLAN, Seeded(1)), KEYS[0], PLAN.id, 0
    match change:
        case "key":
            key = KEYS[1]
        case "plan":
            plan_id = "0" * 64
        case "hop":
            hop = 1
        case "bit":
            onion = onion[:-1] + bytes([onion[-1] ^ 1])
        case "cut":
            onion = onion[:40]
        case "empty":
            onion = b""
        case "low order":
            onion = bytes(32) + onion[32:]
    with pytest.raises(CorruptReport):
        open_layer(onion, key, plan_id, hop)


def test_contents_that_no_plan_makes() -> None:
    good = bytes(16 + 4) + REPORT.payload
    for bad in (good[:-1], good + b"\0", bytes(16) + b"\1" + good[17:], good[:-1] + b"\xff"):
        with pytest.raises(CorruptReport):
            sealing.read_content(bad, PLAN)


def test_what_is_not_sealed() -> None:
    local = sv.plan(SCHEMA, sv.Frequencies("drinks"), epsilon=1, people=100)
    with pytest.raises(InvalidInput, match="names no keys of shufflers"):
        seal(sv.Client(local).report({"drinks": "daily"}), local, Seeded(1))
    with pytest.raises(PlanMismatch):
        seal(sv.Client(local).report({"drinks": "daily"}), PLAN, Seeded(1))
    with pytest.raises(InvalidInput, match="nonce"):
        seal(REPORT, PLAN, Seeded(1), nonce=b"short")
    with pytest.raises(InvalidInput, match="key"):
        PrivateKey(b"short")
