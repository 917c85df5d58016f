"""Fakes that a shuffler cannot bias unseen: committed to before the beacon, half of them opened.

A shuffler draws 2M seeds and commits to them. Only then does it learn a beacon, and each fake
follows from its seed and the beacon. When the batch has come through, the collector opens a random
half: these must stand in the batch as they must be, and are taken out; M fakes stay. All seeds
differ, opened or not, or one fake could stand for several. Of k fakes
that are not as they must be, all stay unopened with a chance of at most 2^-k.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.device.sealing import NONCE_BYTES, seal
from sottovoce.ground.entropy import Entropy, Stream
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.protocol.fakes import fake_report
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report

FAKE_SEED_BYTES = 32  # of a fake; as long as its hash, so that an opening has one width
BEACON_BYTES = 32
_SEED, _LIST, _FAKE, _HALF = (
    b"sottovoce fake 1 seed",
    b"sottovoce fake 1 list",
    b"sottovoce fake 1 drawn",
    b"sottovoce fake 1 half",
)


class BiasedFakes(InvalidInput):
    """Fakes of a shuffler that are not what its commitment and the beacon make them."""


@dataclass(frozen=True)
class Fake:
    """A report of nobody, and its nonce."""

    nonce: bytes
    report: Report


def draw_seeds(count: int, entropy: Entropy) -> list[bytes]:
    """What fakes are made of, together with the beacon."""
    return [
        entropy.bits(8 * FAKE_SEED_BYTES).to_bytes(FAKE_SEED_BYTES, "little") for _ in range(count)
    ]


def hash_of(seed: bytes) -> bytes:
    """What stands for a seed that stays secret."""
    return hashlib.sha256(_SEED + seed).digest()


def commitment(hashes: Sequence[bytes]) -> bytes:
    """What a shuffler says before it learns the beacon: the hash of its seeds' hashes, in order.

    >>> commitment([hash_of(b"1"), hash_of(b"2")]) == commitment([hash_of(b"2"), hash_of(b"1")])
    False
    """
    return hashlib.sha256(_LIST + b"".join(hashes)).digest()


def fake_of(plan: Plan, seed: bytes, beacon: bytes) -> Fake:
    """The one fake of a seed and a beacon, by exact integer coins."""
    drawn = hashlib.shake_256(_FAKE + bytes.fromhex(plan.id) + seed + beacon)
    stream = drawn.digest(NONCE_BYTES + 32)
    report = fake_report(plan, Stream(stream[NONCE_BYTES:]))
    return Fake(stream[:NONCE_BYTES], report)


def sealed_fakes(
    plan: Plan, seeds: Sequence[bytes], beacon: bytes, hop: int, entropy: Entropy
) -> list[bytes]:
    """A shuffler's fakes, sealed for the hops that follow."""
    fakes = [fake_of(plan, seed, beacon) for seed in seeds]
    return [seal(fake.report, plan, entropy, fake.nonce, first=hop + 1) for fake in fakes]


def opened_half(choice: bytes, count: int) -> NDArray[np.bool_]:
    """Which of so many fakes are opened: a half that the collector's choice determines.

    >>> int(opened_half(b"a choice", 10).sum())
    5
    """
    drawn = hashlib.shake_256(_HALF + choice).digest(8 * count)
    order = np.argsort(np.frombuffer(drawn, "<u8"), kind="stable")
    opened = np.zeros(count, np.bool_)
    opened[order[: count // 2]] = True
    return opened


def opening(seeds: Sequence[bytes], opened: NDArray[np.bool_]) -> bytes:
    """What a shuffler shows: the seed of each opened fake, the hash of each other."""
    shown = zip(seeds, opened.tolist(), strict=True)
    return b"".join(seed if is_opened else hash_of(seed) for seed, is_opened in shown)


def check_opening(
    plan: Plan,
    committed: bytes,
    beacon: bytes,
    opened: NDArray[np.bool_],
    shown: bytes,
    reports: Mapping[bytes, Report],
) -> set[bytes]:
    """The nonces of the opened fakes, to be taken out of a batch; refuses what is not as committed.

    Args:
        committed: what the shuffler said before it knew ``beacon``
        opened: which fakes it had to show
        shown: its :func:`opening`
        reports: the batch, by nonces
    """
    if len(shown) != FAKE_SEED_BYTES * len(opened):
        raise CorruptReport(f"opening: {len(shown)} bytes must be {FAKE_SEED_BYTES * len(opened)}")
    pieces = [shown[at : at + FAKE_SEED_BYTES] for at in range(0, len(shown), FAKE_SEED_BYTES)]
    both = list(zip(pieces, opened.tolist(), strict=True))
    hashes = [hash_of(piece) if known else piece for piece, known in both]
    if commitment(hashes) != committed:
        raise BiasedFakes("fakes: what was opened is not what was committed to")
    if len(set(hashes)) < len(hashes):  # one onion would stand for all fakes of its seed
        raise BiasedFakes("fakes: a seed was committed to more than once")
    fakes = [fake_of(plan, seed, beacon) for seed, known in both if known]
    wrong = sum(reports.get(fake.nonce) != fake.report for fake in fakes)
    if wrong:
        raise BiasedFakes(
            f"fakes: {wrong} of the {len(fakes)} that were opened are not in the batch as they "
            "must be; this shuffler did not add them so, or one after it took them out"
        )
    return {fake.nonce for fake in fakes}
