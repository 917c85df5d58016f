"""Local hashing: each device draws its own hash function, reports it, and answers in its small
range.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import bucket, keyed_hash, scramble
from sottovoce.ground.seeds import Seed
from sottovoce.kernels.fields import write_field
from sottovoce.oracles.base import MANY, Integers, PureOracle, SummedOracle
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, truth_threshold
from sottovoce.schema import MOST_SPELLED, OPEN

MOST_HASH_BITS = 12  # that are chosen for an epsilon
MOST_LINEAR_BITS = 13  # of olh; a report moves 2^b cells of a state
NARROW_FROM = 20  # bits of a value from which tables are kept in 32-bit integers while they can be
MOST_HASH_SIZE = 1 << 16


def best_hash_bits(epsilon: Decimal) -> int:
    """The whole b that minimises the variance of eq. (3.11) for hashes to 2^b values."""
    odds = float(exp(epsilon))
    return min(range(1, MOST_HASH_BITS + 1), key=lambda b: (odds - 1 + 2**b) ** 2 / (2**b - 1))


@dataclass(frozen=True)
class HashedResponse(PureOracle):
    """Generalized randomized response on a hash of ``buckets`` values: p is its own,
    q = 1/buckets.
    """

    truth: int = field(metadata={"coin": True})

    @property
    def buckets(self) -> int:
        raise AttributeError

    @property
    def exact_p(self) -> Fraction:
        return chance(self.truth) + (1 - chance(self.truth)) / self.buckets

    @property
    def exact_q(self) -> Fraction:
        # q* = p/g + (g - 1) q/g = 1/g, since two values collide with chance 1/g
        #     wang2021thesis, 3.3.5
        return Fraction(1, self.buckets)

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p * self.buckets / (1 - chance(self.truth))

    @property
    def muted(self) -> Self:
        return replace(self, truth=0)  # never the hash: uniform, for every hash function

    def blanket(self) -> Blanket:
        # any hash function and an answer of its own: 0 for the support of two values holds for all
        # functions, 1/g^2 and 1/g^3 for random ones
        cell = Fraction(1, self.buckets)
        return Blanket.of(
            self.worst_ratio, cell, Fraction(0), cell**2, None if self.size == 2 else cell**3
        )


class _ToBits(HashedResponse):
    """Hashes by parities, one for each of ``hash_bits`` bits."""

    hash_bits: int

    def options(self) -> dict[str, Any]:
        return {"hash_bits": self.hash_bits}

    @property
    def buckets(self) -> int:
        return 1 << self.hash_bits

    @cached_property
    def width(self) -> int:
        """Bits of a value."""
        return (self.size - 1).bit_length()


@dataclass(frozen=True)
class LocalHashing(_ToBits, SummedOracle):
    """Hash by parities of random subsets of the value's bits, to 2^b values; decode all values by
    one transform.

    Guarantee: epsilon-LDP for one report, for every hash function.
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.5, eq. (3.11), on a linear hash family over GF(2).
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("olh",)
    public: ClassVar[tuple[str, ...]] = ("rows",)
    about: ClassVar[str] = "local hashing, optimized, on a linear hash"
    most_weight: ClassVar[int] = 1 << 49  # times 2^b it stays within 2^62

    hash_bits: int

    @classmethod
    def build(cls, size: int, epsilon: Decimal, hash_bits: int | None = None) -> Self:
        """``hash_bits``: b, for hashes to 2^b values; the best b by default."""
        best = best_hash_bits(epsilon)
        count = best if hash_bits is None else whole("hash_bits", hash_bits, 1, MOST_LINEAR_BITS)
        return cls(size, epsilon, truth_threshold(1 << count, epsilon), count)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("rows", self.width * self.hash_bits), Field("answer", self.hash_bits)))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        point = scramble(self.check(value), self.width)
        (rows,) = self.public_coins(entropy)
        if entropy.coin(self.truth):
            return rows, self._hash(rows, point)
        return rows, entropy.bits(self.hash_bits)

    def blanket(self) -> Blanket:
        # H(x) = y and H(x') = y, where y is uniform: the parities of x ^ x' are all 0, with chance
        # 1/g, as x ^ x' is not 0; for a third value x ^ x'' too, which differs from both
        cell = Fraction(1, self.buckets)
        return Blanket.of(
            self.worst_ratio, cell, cell**2, cell**2, None if self.size == 2 else cell**3
        )

    def _hash(self, rows: int, point: int) -> int:
        return sum(
            ((rows >> place * self.width & point).bit_count() & 1) << place
            for place in range(self.hash_bits)
        )

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.hashing import whisper_linear

        shape = (values.size, self.hash_bits)
        rows, answers = np.empty(shape, np.uint64), np.empty(values.size, np.uint64)

        def work(part: slice, state: NDArray[np.uint64]) -> None:
            whisper_linear(
                values[part], rows[part], answers[part], self.width, np.uint64(self.truth), state
            )

        in_chunks(values.size, seed, work)
        for place in range(self.hash_bits):
            write_field(
                payload, place * self.width, self.width, np.ascontiguousarray(rows[:, place])
            )
        self.layout.write(payload, "answer", answers)

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (1 << self.width,)

    def empty(self, people: int = MANY) -> Integers:
        return np.zeros(self.state_shape, self._integers(people))

    def fitted(self, state: Integers, people: int) -> Integers:
        return state.astype(self._integers(people), copy=False)

    def _integers(self, people: int) -> Any:
        """Narrow ones for a large table while no sum can leave them."""
        # a report moves a cell by at most 2^b - 1, and the first one by one more
        return (
            np.int32
            if self.width >= NARROW_FROM and people << self.hash_bits < 1 << 31
            else np.int64
        )

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        from sottovoce.kernels.hashing import scatter, weigh_linear

        if weights is None:
            state[0] += len(payload)
            scatter(payload, self.width, self.hash_bits, state)
        else:
            weigh_linear(payload, weights, self.width, self.hash_bits, state)
        return state

    def _accumulate_groups(
        self, states: Integers, groups: Integers, payload: Payload, weights: Integers | None
    ) -> None:
        from sottovoce.kernels.hashing import scatter_grouped

        scatter_grouped(payload, groups, weights, self.width, self.hash_bits, states)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        # support of v = 2^-b (n + WHT(T)[v]), exact in integers; the state keeps n + T[0] in its
        # first cell
        from sottovoce.kernels import hashing
        from sottovoce.kernels.transform import walsh_hadamard

        if values is None:
            return hashing.decode_linear(state, self.size, self.width, self.hash_bits)
        found: Integers = (
            walsh_hadamard(state)[hashing.scramble(values, self.width)] >> self.hash_bits
        )
        return found

    def supports(self, output: Any, value: int) -> bool:
        rows, answer = output
        return bool(self._hash(rows, scramble(value, self.width)) == answer)


@dataclass(frozen=True)
class BinaryLocalHashing(LocalHashing):
    """Local hashing to one bit: the random matrix projection of Bassily and Smith.

    Guarantee: epsilon-LDP for one report, for every hash function.
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.4 and 3.1.3.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("blh", "random-projection")
    about: ClassVar[str] = "local hashing to one bit, on a linear hash"

    @classmethod
    def build(cls, size: int, epsilon: Decimal, hash_bits: int | None = None) -> Self:
        if hash_bits not in (None, 1):
            raise InvalidInput(f"hash_bits ({hash_bits}) must be 1 for blh; olh takes more")
        return super().build(size, epsilon, 1)


class _SeededResponse(HashedResponse):
    """Hashing with a 64-bit seed per report. Such reports cannot be summed: their rows are kept, so
    that any value can be asked later.
    """

    public: ClassVar[tuple[str, ...]] = ("seed",)

    def _columns(self, payload: Payload) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Seeds and answers of reports."""
        return self.layout.read(payload, "seed"), self.layout.read(payload, "answer")


@dataclass(frozen=True)
class SeededLocalHashing(_SeededResponse):
    """Hash with a 64-bit seed as the key of a pseudo-random function, to any number of values near
    E + 1.

    The reports themselves are kept: any value can be asked for later, one by one.

    Guarantee: epsilon-LDP for one report, for every seed.
    Assumes:   uniform entropy; value in range(size); the keyed hash behaves as a random function.
    Source:    wang2021thesis, section 3.3.5, eq. (3.11).
    Checked:   tests/exact/test_sampling_audit.py
    """

    names: ClassVar[tuple[str, ...]] = ("olh-seeded",)
    about: ClassVar[str] = "local hashing with a seeded hash, for values asked one by one"
    largest: ClassVar[int] = OPEN

    hash_size: int

    @classmethod
    def build(cls, size: int, epsilon: Decimal, hash_size: int | None = None) -> Self:
        """``hash_size``: g, the range of the hash; E + 1 rounded by default."""
        best = min(max(2, round(exp(epsilon) + 1)), MOST_HASH_SIZE)
        count = best if hash_size is None else whole("hash_size", hash_size, 2, MOST_HASH_SIZE)
        return cls(size, epsilon, truth_threshold(count, epsilon), count)

    def options(self) -> dict[str, Any]:
        return {"hash_size": self.hash_size}

    @property
    def buckets(self) -> int:
        return self.hash_size

    @cached_property
    def layout(self) -> Layout:
        answer = Field("answer", (self.hash_size - 1).bit_length(), self.hash_size)
        return Layout((Field("seed", 64), answer))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        (seed,) = self.public_coins(entropy)
        answer = bucket(keyed_hash(seed, self.check(value)), self.hash_size)
        return seed, answer if entropy.coin(self.truth) else entropy.below(self.hash_size)

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.hashing import whisper_seeded

        seeds, answers = np.empty_like(values), np.empty_like(values)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_seeded(
                values[rows],
                seeds[rows],
                answers[rows],
                self.hash_size,
                np.uint64(self.truth),
                state,
            )

        in_chunks(values.size, seed, work)
        self.layout.write(payload, "seed", seeds)
        self.layout.write(payload, "answer", answers)

    def support_rows(
        self, payload: Payload, weights: Integers | None, values: NDArray[np.uint64] | None
    ) -> Integers:
        from sottovoce.kernels.hashing import count_seeded, weigh_seeded

        asked = np.arange(self.size, dtype=np.uint64) if values is None else values
        seeds, answers = self._columns(payload)
        counts: Integers
        if weights is None:
            counts = count_seeded(seeds, answers, asked, self.hash_size)
        else:
            counts = weigh_seeded(seeds, answers, weights, asked, self.hash_size)
        return counts

    def supports(self, output: Any, value: int) -> bool:
        seed, answer = output
        return bool(bucket(keyed_hash(seed, value), self.hash_size) == answer)


@dataclass(frozen=True)
class WideLocalHashing(_ToBits, _SeededResponse):
    """Hash values of up to 128 bits by parities, whose rows a 64-bit seed gives; decode by
    prefixes.

    The hash of a value is the sum of the hashes of its parts, so that all ways in which a prefix
    may go on are decoded by one transform.

    Guarantee: epsilon-LDP for one report, for every seed.
    Assumes:   uniform entropy; value in range(size); the keyed hash behaves as a random function.
    Source:    wang2021thesis, sections 3.3.5 and 4.2.2, on a linear hash family over GF(2).
    Checked:   tests/exact/test_sampling_audit.py
    """

    names: ClassVar[tuple[str, ...]] = ("olh-wide",)
    about: ClassVar[str] = (
        "local hashing on a linear hash, for values of up to 128 bits found by their prefixes"
    )
    largest: ClassVar[int] = 1 << MOST_SPELLED

    hash_bits: int

    @classmethod
    def build(cls, size: int, epsilon: Decimal, hash_bits: int | None = None) -> Self:
        """``hash_bits``: b, for hashes to 2^b values; the best b by default."""
        count = (
            best_hash_bits(epsilon)
            if hash_bits is None
            else whole("hash_bits", hash_bits, 1, MOST_HASH_BITS)
        )
        return cls(size, epsilon, truth_threshold(1 << count, epsilon), count)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("seed", 64), Field("answer", self.hash_bits)))

    def _hash(self, seed: int, value: int) -> int:
        answer = 0
        for place in range(self.hash_bits):
            row = keyed_hash(seed, 2 * place) << 64 | keyed_hash(seed, 2 * place + 1)
            answer |= ((row & value).bit_count() & 1) << place
        return answer

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        (seed,) = self.public_coins(entropy)
        answer = self._hash(seed, self.check(value))
        return seed, answer if entropy.coin(self.truth) else entropy.bits(self.hash_bits)

    def _column(self, values: ArrayLike) -> NDArray[np.uint64]:
        """Values as words: integers of one word will do."""
        column = np.asarray(values)
        if column.ndim == 2 and column.dtype == np.uint64 and column.shape[1] == 2:
            high = (
                column[:, 0].max(initial=0),
                column[:, 1].max(initial=0) if not column[:, 0].any() else 0,
            )
            if (int(high[0]) << 64 | int(high[1])) >= self.size:
                raise InvalidInput(f"values must lie in range({self.size})")
            return column
        low = super()._column(column)
        return np.stack([np.zeros_like(low), low], axis=1)

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.wide import whisper_wide

        seeds, answers = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_wide(
                values[rows],
                seeds[rows],
                answers[rows],
                self.hash_bits,
                np.uint64(self.truth),
                state,
            )

        in_chunks(len(values), seed, work)
        self.layout.write(payload, "seed", seeds)
        self.layout.write(payload, "answer", answers)

    def support_rows(
        self, payload: Payload, weights: Integers | None, values: NDArray[np.uint64] | None
    ) -> Integers:
        from sottovoce.kernels.wide import count_wide

        asked = np.arange(self.size, dtype=np.uint64) if values is None else values
        seeds, answers = self._columns(payload)
        return count_wide(seeds, answers, self._column(asked), self.hash_bits, weights)

    def extension_tables(
        self,
        payload: Payload,
        weights: Integers | None,
        prefixes: NDArray[np.uint64],
        fresh: int,
    ) -> Integers:
        """What reports say of all ways in which prefixes go on by ``fresh`` bits; it adds up over
        reports, as support does.

        Args:
            payload: packed reports that were checked, one row each.
            weights: an integer beside each report; None for 1 each.
            prefixes: all bits of a value but the last ``fresh``, as words, (prefixes, 2).
            fresh: the bits that are still open.

        Returns:
            A table for each prefix, (prefixes, 2^fresh). Its Walsh-Hadamard transform has, for each
            way to go on, 2^b times the reports that support the whole value, less all reports.
        """
        from sottovoce.kernels.wide import scatter_extensions

        seeds, answers = self._columns(payload)
        return scatter_extensions(seeds, answers, prefixes, fresh, self.hash_bits, weights)

    def supports(self, output: Any, value: int) -> bool:
        seed, answer = output
        return bool(self._hash(seed, value) == answer)
