"""One batch at one hop: its layer is opened, what cannot be opened is dropped, the rest is mixed.

The mix is the sorted order of what comes out. An inner onion is a ciphertext under keys that its
sender drew; nobody who lacks the next hop's key can tell it from random bytes, so where it comes to
stand tells nothing of where its outer onion stood, or of when that came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sottovoce.device.sealing import (
    X25519_BYTES,
    PrivateKey,
    hops_of,
    open_layer,
    read_content,
)
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report
from sottovoce.protocol.shuffling import Shuffling


def hop_of(plan: Plan, key: PrivateKey) -> int:
    """Which hop of a plan holds this key; refuses the key of another plan."""
    hops = hops_of(plan)
    if key.public not in hops:
        raise InvalidInput(
            f"key (public {key.public[:16]}...) must be one of those that plan {plan.id[:16]} names"
        )
    return hops.index(key.public)


def shuffling_of(plan: Plan) -> Shuffling:
    """What a plan with shufflers says of them."""
    hops_of(plan)
    assert plan.shuffling is not None
    return plan.shuffling


def added_fakes(plan: Plan, hop: int) -> int:
    """How many fakes a shuffler puts into the batch: twice its share, half of which are opened."""
    return 2 * shuffling_of(plan).fakes_of(hop)


def fewest_onions(plan: Plan, hop: int) -> int:
    """How many good onions a hop must have: the least number of people, and all earlier fakes."""
    return shuffling_of(plan).least + sum(added_fakes(plan, before) for before in range(hop))


@dataclass
class OpenedLayers:
    """What one hop found in its batch; onions may be given in parts, and in any order."""

    plan: Plan
    hop: int
    key: PrivateKey = field(repr=False)
    found: dict[bytes, bytes | None] = field(default_factory=dict, repr=False)

    def open(self, onions: Iterable[bytes]) -> None:
        """Open what was not opened before; whatever is malformed is counted and nothing else."""
        for onion in onions:
            if onion in self.found:
                continue
            try:
                self.found[onion] = open_layer(onion, self.key, self.plan.id, self.hop)
            except CorruptReport:
                self.found[onion] = None

    @property
    def malformed(self) -> int:
        """How many could not be opened."""
        return sum(inner is None for inner in self.found.values())

    def inner(self) -> list[bytes]:
        """What the good ones hold, each once: one for an encapsulated key, sorted."""
        by_key: dict[bytes, bytes] = {}
        for onion in sorted(self.found):
            inner = self.found[onion]
            if inner is not None:
                by_key.setdefault(onion[:X25519_BYTES], inner)
        return sorted(set(by_key.values()))


def mixed(inner: Iterable[bytes], fakes: Iterable[bytes] = ()) -> list[bytes]:
    """What a hop passes on: sorted, which says nothing of the order in which it came.

    >>> mixed([b"c", b"a"], [b"b"])
    [b'a', b'b', b'c']
    """
    return sorted([*inner, *fakes])


@dataclass(frozen=True)
class ReadBatch:
    """What the collector found in a batch: reports by their nonces, and what was dropped."""

    reports: Mapping[bytes, Report]
    malformed: int
    replayed: int


def read_batch(plan: Plan, key: PrivateKey, onions: Iterable[bytes]) -> ReadBatch:
    """Open the last layer of a batch; each nonce counts once, whatever stands beside it."""
    layers = OpenedLayers(plan, len(hops_of(plan)) - 1, key)
    received = list(onions)
    layers.open(received)
    reports: dict[bytes, Report] = {}
    malformed = layers.malformed
    for content in layers.inner():
        try:
            nonce, report = read_content(content, plan)
        except CorruptReport:
            malformed += 1
            continue
        reports.setdefault(nonce, report)
    return ReadBatch(reports, malformed, len(received) - malformed - len(reports))
