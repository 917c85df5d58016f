"""Sealed reports: what a device sends in a shuffled plan, one layer for each hop that opens it.

A layer is HPKE in base mode (RFC 9180): DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. It is
put together here from its primitives, so that keys can be fixed and published vectors be a test.
"""

from __future__ import annotations

import hmac
from functools import cache, cached_property, lru_cache, partial
from typing import Any

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import CorruptReport, InvalidInput, PlanMismatch
from sottovoce.ground.extras import explained_import
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report

ONION_INFO = b"sottovoce onion 1"
NONCE_BYTES = 16
X25519_BYTES = 32  # of X25519: a private key, a public one, what two of them share
LAYER_BYTES = 48  # what one layer adds: an encapsulated key and the tag of AES-GCM
_COHORT_BYTES = 4
_HASH_BYTES = 32
_AEAD_KEY_BYTES, _AEAD_NONCE_BYTES = 16, 12

# RFC 9180, sections 4.1 and 5.1: what keeps the hashes of one suite apart from those of others
_KEM_SUITE = b"KEM" + b"\x00\x20"
_HPKE_SUITE = b"HPKE" + b"\x00\x20" + b"\x00\x01" + b"\x00\x01"
_BASE_MODE = b"\x00"
_VERSION = b"HPKE-v1"
_NO_SALT = bytes(_HASH_BYTES)

_hmac = partial(hmac.digest, digest="sha256")


def _extract(salt: bytes, prefix: bytes, keys: bytes) -> bytes:
    """LabeledExtract(salt, label, ikm) of RFC 9180, section 4; ``prefix`` names suite and label."""
    return _hmac(salt or _NO_SALT, prefix + keys)


def _expand(secret: bytes, prefix: bytes, info: bytes) -> bytes:
    """LabeledExpand(prk, label, info, L) of RFC 9180, section 4, of which L bytes are to be taken:
    at most one hash. ``prefix`` names L, suite and label.
    """
    return _hmac(secret, prefix + info + b"\x01")


def _length(count: int) -> bytes:
    return count.to_bytes(2, "big")


# what is hashed before keys and info: made once, since a hop opens millions of layers
_EAE = _VERSION + _KEM_SUITE + b"eae_prk"
_SHARED = _length(_HASH_BYTES) + _VERSION + _KEM_SUITE + b"shared_secret"
_PSK, _INFO, _SECRET = (
    _VERSION + _HPKE_SUITE + label for label in (b"psk_id_hash", b"info_hash", b"secret")
)
_KEY = _length(_AEAD_KEY_BYTES) + _VERSION + _HPKE_SUITE + b"key"
_NONCE = _length(_AEAD_NONCE_BYTES) + _VERSION + _HPKE_SUITE + b"base_nonce"


@lru_cache(maxsize=256)
def _context(info: bytes) -> bytes:
    """key_schedule_context of RFC 9180, section 5.1, in base mode."""
    return _BASE_MODE + _extract(b"", _PSK, b"") + _extract(b"", _INFO, info)


def _cipher(shared: bytes, encapsulated: bytes, recipient: bytes, info: bytes) -> tuple[Any, bytes]:
    """(the cipher, its nonce) that both ends of a layer derive from their Diffie-Hellman secret."""
    # shared_secret = ExtractAndExpand(dh, enc || pkRm)                    RFC 9180, section 4.1
    eae = _extract(b"", _EAE, shared)
    secret = _expand(eae, _SHARED, encapsulated + recipient)
    # secret = LabeledExtract(shared_secret, "secret", psk), psk empty     RFC 9180, section 5.1
    scheduled = _extract(secret, _SECRET, b"")
    context = _context(info)
    key = _expand(scheduled, _KEY, context)[:_AEAD_KEY_BYTES]
    nonce = _expand(scheduled, _NONCE, context)[:_AEAD_NONCE_BYTES]
    return _aead()(key), nonce


@cache
def _aead() -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM


@cache
def _invalid_tag() -> type[Exception]:
    from cryptography.exceptions import InvalidTag

    return InvalidTag


@cache
def _x25519() -> Any:
    """The library's module, which only a device of a shuffled plan loads."""
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ModuleNotFoundError as wrong:
        raise explained_import(wrong) or wrong from None
    return x25519


class PrivateKey:
    """One hop's private key (X25519): its own half of what opens a layer.

    >>> ours, theirs = PrivateKey(bytes(31) + b"1"), PrivateKey(bytes(31) + b"2")
    >>> ours.shared(theirs.public) == theirs.shared(ours.public)
    True
    """

    def __init__(self, raw: bytes) -> None:
        if len(raw) != X25519_BYTES:
            raise InvalidInput(f"key ({len(raw)} bytes) must have {X25519_BYTES} bytes")
        self.raw = raw
        self._key = _x25519().X25519PrivateKey.from_private_bytes(raw)

    @classmethod
    def generate(cls, entropy: Entropy) -> PrivateKey:
        """A new one."""
        return cls(_bytes(entropy, X25519_BYTES))

    @cached_property
    def public_bytes(self) -> bytes:
        """The public key, as it is written before a ciphertext."""
        return bytes(self._key.public_key().public_bytes_raw())

    @property
    def public(self) -> str:
        """The public key in hexadecimal digits, as a plan names it."""
        return self.public_bytes.hex()

    def shared(self, public: str | bytes) -> bytes:
        """The Diffie-Hellman secret with the owner of a public key; refuses one of low order."""
        raw = bytes.fromhex(public) if isinstance(public, str) else public
        try:
            return bytes(self._key.exchange(_x25519().X25519PublicKey.from_public_bytes(raw)))
        except ValueError:
            raise InvalidInput("key: it is no public key of X25519") from None

    def __repr__(self) -> str:
        return f"<PrivateKey of {self.public}>"


def hpke_seal(
    plain: bytes, recipient: bytes, info: bytes, ephemeral: PrivateKey, aad: bytes = b""
) -> bytes:
    """HPKE in base mode, single shot: encapsulated key || ciphertext.

    ``ephemeral`` must be a new key each time.

    >>> from sottovoce.ground.entropy import Tape
    >>> mine = PrivateKey(bytes(31) + b"1")
    >>> sealed = hpke_seal(b"so", mine.public_bytes, b"", PrivateKey.generate(Tape(bytes(32))))
    >>> hpke_open(sealed, mine, b"")
    b'so'
    """
    encapsulated = ephemeral.public_bytes
    cipher, nonce = _cipher(ephemeral.shared(recipient), encapsulated, recipient, info)
    return encapsulated + bytes(cipher.encrypt(nonce, plain, aad))


def hpke_open(sealed: bytes, key: PrivateKey, info: bytes, aad: bytes = b"") -> bytes:
    """The inverse of :func:`hpke_seal`; refuses what was not sealed for this key and info."""
    encapsulated, ciphertext = sealed[:X25519_BYTES], sealed[X25519_BYTES:]
    if len(ciphertext) < LAYER_BYTES - X25519_BYTES:
        raise CorruptReport(f"onion: {len(sealed)} bytes are too few")
    try:
        shared = key.shared(encapsulated)
        cipher, nonce = _cipher(shared, encapsulated, key.public_bytes, info)
        return bytes(cipher.decrypt(nonce, ciphertext, aad))
    except (InvalidInput, _invalid_tag()):
        raise CorruptReport("onion: this key opens no layer of it") from None


@lru_cache(maxsize=256)
def layer_info(plan_id: str, hop: int) -> bytes:
    """What a layer is bound to: the plan, and which of its hops opens it."""
    return ONION_INFO + bytes.fromhex(plan_id) + bytes([hop])


def hops_of(plan: Plan) -> tuple[str, ...]:
    """The public keys that a plan's reports are sealed for; refuses a plan without."""
    if plan.shuffling is None or not plan.shuffling.hops:
        raise InvalidInput(
            "plan: it names no keys of shufflers, so that no report is sealed for it"
        )
    return plan.shuffling.hops


def onion_size(plan: Plan, hop: int = 0) -> int:
    """Bytes of every onion of a plan, as the sender makes it or as a later hop receives it."""
    content = NONCE_BYTES + _COHORT_BYTES + plan.cohorts.bytes
    return content + LAYER_BYTES * (len(hops_of(plan)) - hop)


def new_nonce(entropy: Entropy) -> bytes:
    """What makes a report one of its kind among all of a plan.

    >>> from sottovoce.ground.entropy import System
    >>> len(new_nonce(System()))
    16
    """
    return _bytes(entropy, NONCE_BYTES)


def seal(
    report: Report, plan: Plan, entropy: Entropy, nonce: bytes | None = None, first: int = 0
) -> bytes:
    """The onion of a report: each hop opens one layer, and only the last sees what is inside.

    Send the same bytes again until they are taken: another onion of one report counts again.
    ``nonce`` is drawn unless it is given; ``first`` is the hop that opens the outermost layer.
    """
    hops = hops_of(plan)
    if report.plan_id != plan.id:
        raise PlanMismatch("report: it belongs to another plan")
    nonce = new_nonce(entropy) if nonce is None else nonce
    if len(nonce) != NONCE_BYTES:
        raise InvalidInput(f"nonce ({len(nonce)} bytes) must have {NONCE_BYTES} bytes")
    onion = nonce + content_of(report, plan)
    for hop in range(len(hops) - 1, first - 1, -1):
        ephemeral = PrivateKey.generate(entropy)
        onion = hpke_seal(onion, bytes.fromhex(hops[hop]), layer_info(plan.id, hop), ephemeral)
    return onion


def content_of(report: Report, plan: Plan) -> bytes:
    """A report as it lies inside of an onion, after the nonce: as wide as the plan's widest."""
    report.checked(plan)
    payload = report.payload.ljust(plan.cohorts.bytes, b"\0")
    return report.cohort.to_bytes(_COHORT_BYTES, "little") + payload


def open_layer(onion: bytes, private_key: PrivateKey | bytes, plan_id: str, hop: int) -> bytes:
    """What is inside of an onion's outermost layer, if it was sealed for this key, plan and hop."""
    key = private_key if isinstance(private_key, PrivateKey) else PrivateKey(private_key)
    return hpke_open(onion, key, layer_info(plan_id, hop))


def read_content(content: bytes, plan: Plan) -> tuple[bytes, Report]:
    """(the nonce, the report) that the last hop finds; refuses what ``plan`` cannot have made."""
    if len(content) != NONCE_BYTES + _COHORT_BYTES + plan.cohorts.bytes:
        raise CorruptReport(f"onion: its content ({len(content)} bytes) is not of the plan's size")
    nonce, rest = content[:NONCE_BYTES], content[NONCE_BYTES:]
    cohort, payload = int.from_bytes(rest[:_COHORT_BYTES], "little"), rest[_COHORT_BYTES:]
    if cohort >= len(plan.cohorts):
        raise CorruptReport(f"report: cohort must be below {len(plan.cohorts)}")
    width = plan.cohorts[cohort].bytes
    if any(payload[width:]):
        raise CorruptReport("report: the padding must be zero")
    return nonce, Report(plan.id, cohort, payload[:width], columns=plan.public).checked(plan)


def _bytes(entropy: Entropy, count: int) -> bytes:
    return entropy.bits(8 * count).to_bytes(count, "little")
