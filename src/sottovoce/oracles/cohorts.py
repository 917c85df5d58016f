"""Open alphabets: hashing in cohorts. Each device draws a cohort; the cohort's hash tells where its value lies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.entropy import WHOLE, Entropy
from sottovoce.errors import CorruptReport, InvalidInput
from sottovoce.guarantee import Guarantee
from sottovoce.kernels.mixing import bucket, keyed_hash, keys
from sottovoce.oracles.base import Floats, Integers, Noise, Oracle
from sottovoce.oracles.decoding import MOST_CANDIDATES, Design
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, log_ratio, ratio, rounded_up, truth_threshold
from sottovoce.oracles.unary import simulate_bits
from sottovoce.schema import OPEN

MOST_COHORTS = 8192
LARGEST_CLOSED = 4096  # a closed alphabet is permuted on the device, so it stays small


@dataclass(frozen=True)
class CohortOracle(Oracle):
    """Values hashed into ``buckets`` by each of ``cohorts`` families; closed alphabets are permuted instead."""

    largest: ClassVar[int] = OPEN

    cohorts: int
    buckets: int
    hashes: int
    salt: int
    alphabet: str

    @staticmethod
    def _shape(
        size: int, cohorts: int | None, buckets: int, alphabet: str | None, most: int, least: int
    ) -> tuple[int, int, str]:
        if cohorts is None:  # enough cells, twice over, to tell a closed alphabet's values apart
            cells = 2 * size if size <= LARGEST_CLOSED else 0
            cohorts = min(max(least, 1 << (cells // max(buckets - 1, 1)).bit_length()), MOST_COHORTS)
        if not (1 <= cohorts <= MOST_COHORTS and cohorts & (cohorts - 1) == 0):
            raise InvalidInput(f"cohorts ({cohorts}) must be a power of two between 1 and {MOST_COHORTS}")
        if not 2 <= buckets <= most:
            raise InvalidInput(f"buckets ({buckets}) must lie between 2 and {most}")
        if alphabet is None:
            alphabet = "closed" if size <= LARGEST_CLOSED else "open"
        if alphabet not in ("open", "closed") or (alphabet == "closed" and size > LARGEST_CLOSED):
            raise InvalidInput(f"alphabet ({alphabet}) must be open, or closed with size at most {LARGEST_CLOSED}")
        return int(cohorts), int(buckets), alphabet

    def options(self) -> dict[str, Any]:
        return {
            "cohorts": self.cohorts,
            "buckets": self.buckets,
            "hashes": self.hashes,
            "salt": str(self.salt),
            "alphabet": self.alphabet,
        }

    @cached_property
    def _keys(self) -> list[int]:
        return keys(self.salt, self.cohorts * self.hashes)

    @cached_property
    def _permuted(self) -> dict[int, NDArray[np.int64]]:
        return {}

    def places(self, cohort: int, value: int) -> list[int]:
        """The buckets of a value in a cohort, one per hash function."""
        if self.alphabet == "closed":
            if cohort not in self._permuted:
                key = self._keys[cohort]
                ranks = np.empty(self.size, np.int64)
                ranks[sorted(range(self.size), key=lambda v: (keyed_hash(key, v), v))] = np.arange(self.size)
                self._permuted[cohort] = ranks % self.buckets
            return [int(self._permuted[cohort][value])]
        own = self._keys[cohort * self.hashes : (cohort + 1) * self.hashes]
        return [bucket(keyed_hash(key, value), self.buckets) for key in own]

    def _all_places(self, cohorts: NDArray[np.uint64], values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The same for a column of people: one row each."""
        if self.alphabet == "closed":
            self.places(0, 0)
            for cohort in np.unique(cohorts).tolist():
                self.places(cohort, 0)
            permuted = np.stack([self._permuted.get(c, self._permuted[0]) for c in range(self.cohorts)])
            return permuted[cohorts.astype(np.int64), values.astype(np.int64)].astype(np.uint64)[:, None]
        from sottovoce.kernels.hashing import hash_buckets

        table = np.array(self._keys, np.uint64).reshape(self.cohorts, self.hashes)[cohorts.astype(np.int64)]
        columns = [
            hash_buckets(np.ascontiguousarray(table[:, place]), values, self.buckets) for place in range(self.hashes)
        ]
        return np.stack(columns, axis=1)

    def _cohort_column(self, count: int, seed: int) -> NDArray[np.uint64]:
        draws = np.random.Generator(np.random.PCG64([seed, 1]))
        return draws.integers(0, self.cohorts, count, dtype=np.uint64)

    @property
    def _cohort_field(self) -> Field:
        return Field("cohort", self.cohorts.bit_length() - 1)

    def _draw_cohort(self, entropy: Entropy) -> int:
        return entropy.bits(self.cohorts.bit_length() - 1)

    def candidates(self, values: ArrayLike | None) -> NDArray[np.uint64]:
        """The candidate list: ``values``, or the whole alphabet if it is small enough."""
        if values is None and self.size > MOST_CANDIDATES:
            raise InvalidInput("an open alphabet needs candidates: a list of values that holds the support")
        listed = np.arange(self.size, dtype=np.uint64) if values is None else self._column(values)
        if not 1 <= listed.size <= MOST_CANDIDATES or np.unique(listed).size < listed.size:
            raise InvalidInput(f"candidates ({listed.size}) must be 1 to {MOST_CANDIDATES} different values")
        return listed

    def design(self, candidates: NDArray[np.uint64]) -> Design:
        """Which cells each candidate touches."""
        touched = np.zeros((self.cohorts, self.buckets, candidates.size))
        column = np.arange(candidates.size)
        for cohort in range(self.cohorts):
            rows = np.full(candidates.size, cohort, np.uint64)
            for places in self._all_places(rows, candidates).T:
                touched[cohort, places.astype(np.int64), column] = 1
        return Design(touched, self._offset)

    @property
    @abstractmethod
    def _offset(self) -> float: ...

    @abstractmethod
    def seen(self, state: Integers, people: int) -> Floats:
        """The crowd's mean vector: unbiased for the design applied to the frequencies."""

    @abstractmethod
    def person_variance(self, design: Design, solver: Floats) -> Floats:
        """V[v, x]: what one person of candidate x adds to n^2 times the variance of ``solver``'s row v."""

    @cached_property
    def _whole(self) -> tuple[Design, Floats]:
        design = self.design(self.candidates(None))
        return design, self.person_variance(design, design.solver())

    def estimate(self, state: Integers, people: int, values: ArrayLike | None = None) -> tuple[Floats, Floats]:
        if values is None and self.size <= MOST_CANDIDATES:
            design, spread = self._whole
        else:
            design = self.design(self.candidates(values))
            spread = self.person_variance(design, design.solver())
        frequencies = design.solve(self.seen(state, people))
        plausible = np.clip(frequencies, 0, 1)
        return frequencies, spread @ (plausible / max(float(plausible.sum()), 1e-12)) / people

    def decode(self, state: Integers, people: int, method: str, values: ArrayLike | None = None) -> Floats:
        """Frequencies that are biased on purpose: ``nnls`` (never negative) or ``lasso`` (sparse, never negative)."""
        design = self.design(self.candidates(values))
        seen = self.seen(state, people)
        if method == "nnls":
            return design.solve_non_negative(seen)
        if method == "lasso":
            return design.solve_sparse(seen, self._cell_error(people))
        raise InvalidInput(f"method ({method}) must be nnls or lasso")

    @abstractmethod
    def _cell_error(self, people: int) -> float:
        """Standard error of one cell of :meth:`seen` for a rare value."""

    def noise(self, people: int) -> Noise:
        """The law averaged over the alphabet, other values sharing what is left evenly."""
        if self.size > MOST_CANDIDATES:
            raise InvalidInput(
                "the error over an open alphabet depends on the candidates; see the estimate's variances"
            )
        spread = self._whole[1]
        own = float(np.diag(spread).mean())
        other = float((spread.sum() - np.trace(spread)) / (self.size * (self.size - 1)))
        return Noise(other / people, (own - other) / people)

    def all_variances(self, n: int, frequencies: Floats) -> Floats:
        """Given the hashes, each value has a variance of its own."""
        return np.asarray(self._whole[1] @ frequencies / n)

    def sum_variance(self, n: int, count: int) -> float:
        """Of the first ``count`` values, the others held evenly; estimates sum to one, so cells are not independent."""
        design = self._whole[0]
        summed = design.solver()[:count].sum(axis=0, keepdims=True)
        return float(self.person_variance(design, summed)[0, count:].mean() / n)


@dataclass(frozen=True)
class OpenRandomizedResponse(CohortOracle):
    """Generalized randomized response on the value's bucket in a random cohort.

    Guarantee: epsilon-LDP for one report, for every salt.
    Assumes:   uniform entropy; value in range(size).
    Source:    kairouz2016discrete, section 5.1, eq. (15)-(18), the last corrected, see docs/errata.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("o-rr",)
    about: ClassVar[str] = "hashing and cohorts, then randomized response"

    truth: int = field(metadata={"coin": True})

    @classmethod
    def build(
        cls,
        size: int,
        epsilon: Decimal,
        cohorts: int | None = None,
        buckets: int | None = None,
        hashes: int = 1,
        salt: int | str = 0,
        alphabet: str | None = None,
    ) -> Self:
        """``buckets``: near E + 1 by default; ``alphabet``: closed ones are permuted, open ones hashed."""
        if hashes != 1:
            raise InvalidInput(f"hashes ({hashes}) must be 1 for o-rr")
        wanted = min(max(2, round(float(exp(epsilon)) + 1)), 4096) if buckets is None else buckets
        if buckets is None and size <= LARGEST_CLOSED:
            wanted = min(wanted, size)
        shape = cls._shape(size, cohorts, wanted, alphabet, 4096, least=256)
        return cls(size, epsilon, shape[0], shape[1], 1, int(salt), shape[2], truth_threshold(shape[1], epsilon))

    @property
    def worst_ratio(self) -> Fraction:
        kept = chance(self.truth)
        return 1 + self.buckets * kept / (1 - kept)

    @cached_property
    def layout(self) -> Layout:
        answer = Field("answer", (self.buckets - 1).bit_length(), self.buckets)
        return Layout((answer, self._cohort_field))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        cohort = self._draw_cohort(entropy)
        place = self.places(cohort, self.check(value))[0]
        return place if entropy.coin(self.truth) else entropy.below(self.buckets), cohort

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: int) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_direct

        cohorts = self._cohort_column(values.size, seed)
        places = np.ascontiguousarray(self._all_places(cohorts, values)[:, 0])
        answers = np.empty_like(values)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_direct(places[rows], answers[rows], self.buckets, np.uint64(self.truth), state)

        in_chunks(values.size, seed, work)
        self.layout.write(payload, "answer", answers)
        self.layout.write(payload, "cohort", cohorts)

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.cohorts, self.buckets)

    def _accumulate(self, state: Integers, payload: Payload) -> None:
        cells = self.layout.read(payload, "cohort") * np.uint64(self.buckets)
        cells += self.layout.read(payload, "answer")
        state += np.bincount(cells.astype(np.int64), minlength=state.size).reshape(state.shape)

    @property
    def _offset(self) -> float:
        return 1 / self.buckets

    @property
    def _kept(self) -> float:
        return float(chance(self.truth))

    def seen(self, state: Integers, people: int) -> Floats:
        # C/n (count - people of the cohort/k) / (p - q): what is left when the even share is taken out
        even = state.sum(axis=1, keepdims=True) / self.buckets
        out: Floats = self.cohorts / people * (state - even) / self._kept
        return out

    def person_variance(self, design: Design, solver: Floats) -> Floats:
        blocks = solver.reshape(-1, self.cohorts, self.buckets)
        weights = (blocks - blocks.mean(axis=2, keepdims=True)).reshape(solver.shape)
        q = (1 - self._kept) / self.buckets
        chances = q + self._kept * design.touched.reshape(-1, design.candidates)
        second: Floats = self.cohorts / self._kept**2 * (weights**2 @ chances)
        return second - (solver @ design.matrix()) ** 2

    def _cell_error(self, people: int) -> float:
        q = 1 / self.buckets
        return float(np.sqrt(self.cohorts * q * (1 - q) / people) / self._kept)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        touched = self.design(self.candidates(values)).touched
        counts: Integers = np.einsum("cbs,cb->s", touched, state).astype(np.int64)
        return counts

    def supports(self, output: Any, value: int) -> bool:
        answer, cohort = output
        return bool(self.places(cohort, value)[0] == answer)


@dataclass(frozen=True)
class OpenRappor(CohortOracle):
    """A Bloom filter of the value in a random cohort, every bit through a symmetric coin.

    Guarantee: epsilon-LDP for one report, for every salt (two filters differ in at most 2 ``hashes`` bits).
    Assumes:   uniform entropy; value in range(size).
    Source:    kairouz2016discrete, section 5.2.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("o-rappor",)
    about: ClassVar[str] = "Bloom filters and cohorts, one-time"

    zero: int = field(metadata={"coin": True})

    @classmethod
    def build(
        cls,
        size: int,
        epsilon: Decimal,
        cohorts: int | None = None,
        buckets: int = 128,
        hashes: int = 1,
        salt: int | str = 0,
        alphabet: str | None = None,
    ) -> Self:
        """``buckets``: bits of the filter; ``hashes``: functions per cohort (more than one needs an open alphabet)."""
        if not 1 <= hashes <= 16 or hashes > buckets:
            raise InvalidInput(f"hashes ({hashes}) must lie between 1 and 16, and not exceed the buckets")
        if alphabet is None and hashes > 1:
            alphabet = "open"
        if alphabet == "closed" and hashes > 1:
            raise InvalidInput(f"hashes ({hashes}) must be 1 for a closed alphabet, whose values are permuted")
        shape = cls._shape(size, cohorts, buckets, alphabet, 1 << 16, least=16)
        zero = rounded_up(ratio(Decimal(1), exp(epsilon / (2 * hashes)) + 1))
        if zero >= WHOLE - zero:
            raise InvalidInput(f"epsilon ({epsilon}) is too small: a report would say nothing")
        return cls(size, epsilon, shape[0], shape[1], int(hashes), int(salt), shape[2], zero)

    @property
    def exact_bits(self) -> tuple[Fraction, Fraction]:
        """(chance that a set bit is reported as 1, chance that an unset one is)."""
        return 1 - chance(self.zero), chance(self.zero)

    @property
    def worst_ratio(self) -> Fraction:
        one, zero = self.exact_bits
        return (one * (1 - zero) / ((1 - one) * zero)) ** self.hashes

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("bits", self.buckets), self._cohort_field))

    def _filter(self, cohort: int, value: int) -> int:
        bits = 0
        for place in self.places(cohort, value):
            bits |= 1 << place
        return bits

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        cohort = self._draw_cohort(entropy)
        flips = entropy.coins(self.zero, self.buckets)
        return self._filter(cohort, self.check(value)) ^ flips, cohort

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: int) -> None:
        cohorts = self._cohort_column(values.size, seed)
        one, zero = (int(part * WHOLE) for part in self.exact_bits)
        simulate_bits(self._all_places(cohorts, values), payload, self.buckets, one, zero, seed)
        self.layout.write(payload, "cohort", cohorts)

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.cohorts, self.buckets + 1)  # ones per bit, then people

    def _accumulate(self, state: Integers, payload: Payload) -> None:
        from sottovoce.kernels.bits import add_grouped_columns

        cohorts = self.layout.read(payload, "cohort").view(np.int64)
        add_grouped_columns(payload, cohorts, state[:, : self.buckets])
        state[:, self.buckets] += np.bincount(cohorts, minlength=self.cohorts)

    @property
    def _offset(self) -> float:
        return 0.0

    def seen(self, state: Integers, people: int) -> Floats:
        one, zero = (float(part) for part in self.exact_bits)
        expected = state[:, self.buckets :] * zero
        out: Floats = self.cohorts / people * (state[:, : self.buckets] - expected) / (one - zero)
        return out

    def person_variance(self, design: Design, solver: Floats) -> Floats:
        one, zero = (float(part) for part in self.exact_bits)
        flat = design.touched.reshape(-1, design.candidates)
        spread = zero * (1 - zero) + flat * (one * (1 - one) - zero * (1 - zero))
        coins: Floats = self.cohorts / (one - zero) ** 2 * (solver**2 @ spread)
        blocks = solver.reshape(-1, self.cohorts, self.buckets)
        means = np.zeros_like(coins)
        for cohort in range(self.cohorts):
            means += (blocks[:, cohort] @ design.touched[cohort]) ** 2
        return coins + self.cohorts * means - (solver @ design.matrix()) ** 2

    def _cell_error(self, people: int) -> float:
        one, zero = (float(part) for part in self.exact_bits)
        return float(np.sqrt(self.cohorts * zero * (1 - zero) / people) / (one - zero))

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        """Summed over a value's bits: how many of them were reported as 1."""
        touched = self.design(self.candidates(values)).touched
        counts: Integers = np.einsum("cbs,cb->s", touched, state[:, : self.buckets]).astype(np.int64)
        return counts

    def supports(self, output: Any, value: int) -> bool:
        bits, cohort = output
        own = self._filter(cohort, value)
        return bool(bits & own == own)

    def unpack(self, data: bytes) -> Any:
        bits, cohort = super().unpack(data)
        if cohort >= self.cohorts:
            raise CorruptReport(f"payload: cohort must be below {self.cohorts}")
        return bits, cohort


@dataclass(frozen=True)
class Rappor(OpenRappor):
    """RAPPOR: a permanent noisy Bloom filter that the device keeps, and fresh noise on it in every report.

    Guarantee: epsilon-LDP over a lifetime of reports on one answer; less for a single report.
    Assumes:   uniform entropy; value in range(size); the device keeps its memo.
    Source:    wang2021thesis, section 3.1.2; erlingsson2014rappor.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("rappor",)
    about: ClassVar[str] = "Bloom filters and cohorts, permanent and instantaneous response"

    loud: int = field(metadata={"coin": True})
    quiet: int = field(metadata={"coin": True})

    @classmethod
    def build(
        cls,
        size: int,
        epsilon: Decimal,
        cohorts: int | None = None,
        buckets: int = 128,
        hashes: int = 2,
        salt: int | str = 0,
        alphabet: str | None = None,
        instantaneous: tuple[str, str] | list[str] = ("0.75", "0.25"),
    ) -> Self:
        """``instantaneous``: chances that a kept 1 and a kept 0 are reported as 1; ("1", "0") for none."""
        plain = OpenRappor.build(size, epsilon, cohorts, buckets, hashes, salt, alphabet)
        loud, quiet = (int(Fraction(str(part)) * WHOLE) for part in instantaneous)
        if not 0 <= quiet < loud <= WHOLE:
            raise InvalidInput(f"instantaneous {tuple(instantaneous)} must satisfy 0 <= second < first <= 1")
        shape = (plain.cohorts, plain.buckets, plain.hashes, plain.salt, plain.alphabet)
        return cls(size, epsilon, *shape, plain.zero, loud, quiet)

    def options(self) -> dict[str, Any]:
        shares = [str(Decimal(part) / Decimal(WHOLE)) for part in (self.loud, self.quiet)]
        return {**super().options(), "instantaneous": shares}

    @property
    def exact_bits(self) -> tuple[Fraction, Fraction]:
        flip, loud, quiet = chance(self.zero), chance(self.loud), chance(self.quiet)
        return (1 - flip) * loud + flip * quiet, flip * loud + (1 - flip) * quiet

    @property
    def guarantee(self) -> Guarantee:
        flip = chance(self.zero)
        return Guarantee(self.epsilon, log_ratio(((1 - flip) / flip) ** (2 * self.hashes)))

    def memorize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        return super().randomize(value, entropy)

    def recall(self, memo: Any, entropy: Entropy) -> tuple[int, int]:
        kept, cohort = memo
        heard = kept & entropy.coins(self.loud, self.buckets)
        return heard | (~kept & entropy.coins(self.quiet, self.buckets)), cohort

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        return self.recall(self.memorize(value, entropy), entropy)
