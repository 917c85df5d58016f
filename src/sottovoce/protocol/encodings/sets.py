"""Encodings of sets: a candidate drawn after padding; all that are held; or how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, lgamma, log
from typing import Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import fraction, whole
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed, draws
from sottovoce.oracles import Oracle, oracle
from sottovoce.oracles.sets import SetLocalHashing
from sottovoce.oracles.thresholds import exp, log_down, log_ratio, parse_epsilon
from sottovoce.protocol.encodings.base import Encoding
from sottovoce.protocol.guarantee import Guarantee
from sottovoce.schema import MEMBERS, Codes, Schema, Sets

Candidates = tuple[tuple[int, ...], ...]
MAX_PADDED_LENGTH = 1 << 16


@dataclass(frozen=True)
class _OfSet(Encoding):
    """The candidates that a set holds: items, or sets of them; every item if none are listed."""

    attribute: str
    items: int  # how many items there are
    candidates: Candidates | None
    form: ClassVar[str] = MEMBERS

    def __post_init__(self) -> None:
        for candidate in self.candidates or ():
            if not candidate or list(candidate) != sorted(set(candidate)):
                raise InvalidInput("plan: a candidate must list different items, in order")
            for item in candidate:
                whole("plan: an item", item, 0, self.items - 1)
        if self.candidates is not None and not 0 < len(set(self.candidates)) == len(
            self.candidates
        ):
            raise InvalidInput("plan: candidates must be one or more, and different")

    @property
    def attributes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.attribute,)

    @property
    def count(self) -> int:
        """How many candidates there are."""
        return self.items if self.candidates is None else len(self.candidates)

    def held(self, members: Sequence[int]) -> list[int]:
        """The places of the candidates that a set holds."""
        if self.candidates is None:
            return list(members)
        own = set(members)
        return [
            place for place, candidate in enumerate(self.candidates) if own.issuperset(candidate)
        ]

    def held_column(self, sets: Sets) -> Sets:
        """The same for a column of sets."""
        if self.candidates is None:
            return sets
        place = np.full(self.items, -1, np.int64)  # of the items that any candidate has
        known = sorted({item for candidate in self.candidates for item in candidate})
        place[known] = np.arange(len(known))
        places = place[sets.codes.astype(np.int64)]
        owners = np.repeat(np.arange(len(sets)), sets.lengths)[places >= 0]
        places = places[places >= 0]
        if all(len(candidate) == 1 for candidate in self.candidates):
            order = np.empty(len(known), np.int64)
            order[place[[item for (item,) in self.candidates]]] = np.arange(self.count)
            return Sets.of(len(sets), owners, order[places].astype(np.uint64), self.count)
        has = np.zeros((len(known), len(sets)), bool)
        has[places, owners] = True
        holders = [np.flatnonzero(has[place[list(each)]].all(axis=0)) for each in self.candidates]
        codes = np.repeat(np.arange(self.count), [len(each) for each in holders])
        return Sets.of(len(sets), np.concatenate(holders), codes.astype(np.uint64), self.count)

    def _json(self) -> dict[str, Any]:
        listed = (
            None if self.candidates is None else [list(candidate) for candidate in self.candidates]
        )
        return {"kind": self.kind, "attribute": self.attribute, "candidates": listed}


def _parts(data: Mapping[str, Any], schema: Schema) -> tuple[str, int, Candidates | None]:
    listed = data["candidates"]
    candidates = None if listed is None else tuple(tuple(candidate) for candidate in listed)
    return data["attribute"], schema[data["attribute"]].size, candidates


@dataclass(frozen=True)
class Padded(_OfSet):
    """One candidate, drawn uniformly from those held, padded with dummies to ``length``.

    Sampling hides most of what a set holds, so an oracle may whisper more openly: with
    ``amplified`` the oracle's epsilon is the larger one that :func:`amplified_epsilon` gives for
    this ``epsilon`` (and ``delta``).

    Guarantee: epsilon-LDP for one report, or (epsilon, delta)-LDP.
    Assumes:   uniform entropy; the oracle is grr, or, with a delta, olh-seeded.
    Source:    wang2021thesis, definition 5.2.1, theorems 5.2.1 and 5.5.1.
    Checked:   tests/exact/test_padding.py
    """

    length: int = 1
    epsilon: Decimal | None = None  # what the whole costs, if the oracle's epsilon is amplified
    delta: Fraction | None = None
    kind: ClassVar[str] = "padded"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("plan: length", self.length, 1, MAX_PADDED_LENGTH)
        if self.delta is not None and (self.epsilon is None or not 0 < self.delta < 1):
            raise InvalidInput(
                f"plan: delta ({self.delta}) must lie between 0 and 1, beside an epsilon"
            )

    @property
    def size(self) -> int:
        return self.count + self.length

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        held = self.held(codes[self.attribute])
        place = entropy.below(max(len(held), self.length))
        # a random dummy of those that pad: any of them, equally likely
        return held[place] if place < len(held) else self.count + entropy.below(self.length)

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Codes:
        held = self.held_column(codes[self.attribute])
        drawn = draws(seed)
        lengths = held.lengths
        places = drawn.integers(0, np.maximum(lengths, self.length))
        values: Codes = (self.count + drawn.integers(0, self.length, len(held))).astype(np.uint64)
        real = places < lengths
        values[real] = held.codes[held.starts[:-1][real] + places[real]]
        return values

    def check(self, oracle: Oracle) -> None:
        super().check(oracle)
        if self.epsilon is not None and oracle != self.oracle(self.epsilon):
            raise InvalidInput(
                "plan: the oracle of a padded set is not the one that its epsilon amplifies to"
            )

    def oracle(self, epsilon: Decimal) -> Oracle:
        """The oracle of the amplified epsilon: direct answers, or with a delta a seeded hash."""
        if self.delta is None:
            return oracle("grr", size=self.size, epsilon=amplified_epsilon(epsilon, self.length))
        shared = most_together(epsilon, self.length, self.delta)
        return oracle(
            "olh-seeded",
            size=self.size,
            epsilon=amplified_epsilon(epsilon, self.length, shared),
            hash_size=_hash_size(epsilon, self.length, shared),
        )

    def guarantee(self, oracle: Oracle) -> Guarantee:
        if self.epsilon is None:
            return super().guarantee(oracle)
        together = 1 if self.delta is None else most_together(self.epsilon, self.length, self.delta)
        # p1/p2 <= 1 + (l'/l) (p'/q' - 1)   wang2021thesis, theorems 5.2.1, 5.5.1
        whole_cost = log_ratio(1 + Fraction(together, self.length) * (oracle.worst_ratio - 1))
        return Guarantee(whole_cost, whole_cost, float(self.delta or 0))

    def requested(self, oracle: Oracle) -> Fraction:
        return Fraction(oracle.requested if self.epsilon is None else self.epsilon)

    def to_json(self) -> dict[str, Any]:
        return self._json() | {
            "length": self.length,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": None if self.delta is None else str(self.delta),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Padded:
        epsilon = None if data["epsilon"] is None else parse_epsilon(data["epsilon"])
        delta = None if data["delta"] is None else fraction("plan: delta", data["delta"])
        return cls(*_parts(data, schema), data["length"], epsilon, delta)


@dataclass(frozen=True)
class Held(_OfSet):
    """How many candidates a set holds, at most ``most``."""

    most: int = 1
    kind: ClassVar[str] = "held"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("plan: most", self.most, 1, MAX_PADDED_LENGTH)

    @property
    def size(self) -> int:
        return self.most + 1

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> int:
        return min(len(self.held(codes[self.attribute])), self.most)

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Codes:
        held = self.held_column(codes[self.attribute])
        return np.minimum(held.lengths, self.most).astype(np.uint64)

    def to_json(self) -> dict[str, Any]:
        return self._json() | {"most": self.most}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Held:
        return cls(*_parts(data, schema), data["most"])


@dataclass(frozen=True)
class Drawn(_OfSet):
    """The candidates that a set holds, as a whole: a fair draw of ``length`` if they are more."""

    length: int = 1
    kind: ClassVar[str] = "drawn"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("plan: length", self.length, 1, MAX_PADDED_LENGTH)

    @property
    def size(self) -> int:
        return self.count

    def encode(self, codes: Mapping[str, Any], entropy: Entropy) -> Any:
        held = self.held(codes[self.attribute])
        if len(held) <= self.length:
            return tuple(held)
        kept = entropy.subset(len(held), self.length)
        return tuple(each for place, each in enumerate(held) if kept >> place & 1)

    def encode_columns(self, codes: Mapping[str, Any], seed: Seed) -> Sets:
        held = self.held_column(codes[self.attribute])
        lengths = held.lengths
        owners = np.repeat(np.arange(len(held)), lengths)
        keep = np.ones(len(owners), bool)
        # the members of sets that are too long
        long = np.flatnonzero((lengths > self.length)[owners])
        if len(long):
            drawn = draws(seed)
            order = long[np.lexsort((drawn.random(len(long)), owners[long]))]
            first = np.searchsorted(owners[order], owners[order], side="left")
            keep[order[np.arange(len(order)) - first >= self.length]] = False
        starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, self.length))])
        return Sets(starts, held.codes[keep])

    def check(self, oracle: Oracle) -> None:
        super().check(oracle)
        if not isinstance(oracle, SetLocalHashing) or oracle.length != self.length:
            raise InvalidInput("plan: a drawn set needs the oracle olh-sets of its length")

    def to_json(self) -> dict[str, Any]:
        return self._json() | {"length": self.length}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Drawn:
        return cls(*_parts(data, schema), data["length"])


def amplified_epsilon(epsilon: Decimal, length: int, together: int = 1) -> Decimal:
    """The epsilon for one of ``length`` padded items, of which ``together`` may look alike.

    >>> round(amplified_epsilon(Decimal(1), 10), 2)
    Decimal('2.90')
    """
    # eps' = ln(l/l' (e^eps - 1) + 1)                       wang2021thesis, theorems 5.2.1 and 5.5.1
    return log_down(Fraction(length, together) * (exp(epsilon) - 1) + 1)


def _hash_size(epsilon: Decimal, length: int, together: int) -> int:
    # g = ceil(l/l' (e^eps - 1) + 2)   wang2021thesis, section 5.5.1
    exact = Fraction(length, together) * (exp(epsilon) - 1) + 2
    return -(-exact.numerator // exact.denominator)


def _log_chance(epsilon: Decimal, length: int, together: int) -> float:
    """The log of the bound on the chance that more than ``together`` items share a hash value."""
    ways = lgamma(length + 1) - lgamma(together + 2) - lgamma(length - together)
    return ways - together * log(ceil(length / together * (float(exp(epsilon)) - 1) + 2))


@lru_cache(maxsize=64)
def most_together(epsilon: Decimal, length: int, delta: Fraction) -> int:
    """The least l' such that more than l' of l items share a hash value with chance <= ``delta``.

    >>> most_together(Decimal(1), 10, Fraction(1, 1000))
    7
    """
    first = 1  # by logarithms, less a little; then exactly
    while first < length and _log_chance(epsilon, length, first) > log(delta) + 1e-6:
        first += 1
    for together in range(max(1, first - 1), length):
        # C(l, l' + 1) / g^l' <= delta   wang2021thesis, theorem 5.5.1
        if comb(length, together + 1) <= delta * _hash_size(epsilon, length, together) ** together:
            return together
    return length
