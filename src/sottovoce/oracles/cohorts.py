"""Open alphabets: each device draws a cohort; the cohort's hash tells where its value lies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import power_of_two, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import LARGEST_SALT, bucket, keyed_hash, keys
from sottovoce.oracles.base import Floats, Integers, Noise, SummedOracle
from sottovoce.oracles.layout import Field
from sottovoce.schema import OPEN

if TYPE_CHECKING:
    from sottovoce.oracles.decoding import Design

MAX_HASH_COHORTS = 8192
MAX_DECODED_CANDIDATES = 4096  # that are decoded at once: it takes a matrix of them
MOST_BUCKETS = 1 << 16
DECODERS = ("least-squares", "nnls", "lasso")
LARGEST_CLOSED = 4096  # a closed alphabet is permuted on the device, so it stays small


@dataclass(frozen=True)
class CohortOracle(SummedOracle):
    """Values hashed into ``buckets`` by each of ``cohorts`` families; closed alphabets are permuted
    instead.
    """

    largest: ClassVar[int] = OPEN
    public: ClassVar[tuple[str, ...]] = ("cohort",)
    uses_state: ClassVar[bool] = True  # every cell of every cohort
    # at most 16 bits of a report support a value, and floats add them up
    most_weight: ClassVar[int] = 1 << 49

    cohorts: int
    buckets: int
    hashes: int
    salt: int
    alphabet: str

    @staticmethod
    def _shape(
        size: int, cohorts: Any, buckets: Any, hashes: Any, salt: Any, alphabet: Any, least: int
    ) -> tuple[int, int, int, int, str]:
        """The checked fields of an oracle of cohorts; ``least``: cohorts there are at least, if
        none were asked for.
        """
        buckets = whole("buckets", buckets, 2, MOST_BUCKETS)
        if cohorts is None:  # enough cells, twice over, to tell a closed alphabet's values apart
            cells = 2 * size if size <= LARGEST_CLOSED else 0
            cohorts = min(max(least, 1 << (cells // (buckets - 1)).bit_length()), MAX_HASH_COHORTS)
        hashes = whole("hashes", hashes, 1, min(16, buckets))
        if alphabet is None:
            alphabet = "closed" if size <= LARGEST_CLOSED and hashes == 1 else "open"
        if alphabet not in ("open", "closed") or (alphabet == "closed" and size > LARGEST_CLOSED):
            raise InvalidInput(
                f"alphabet ({alphabet}) must be open, or closed with size at most {LARGEST_CLOSED}"
            )
        if alphabet == "closed" and hashes > 1:
            raise InvalidInput(
                f"hashes ({hashes}) must be 1 for a closed alphabet, whose values are permuted"
            )
        cohorts = power_of_two("cohorts", cohorts, 1, MAX_HASH_COHORTS)
        return cohorts, buckets, hashes, whole("salt", salt, 0, LARGEST_SALT), alphabet

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
    def _permuted(self) -> NDArray[np.int64]:
        """The bucket of each value in each cohort: values ranked by their hash, modulo buckets."""
        from sottovoce.kernels.hashing import hash_words

        values = np.arange(self.size, dtype=np.uint64)
        ranks = np.empty((self.cohorts, self.size), np.int64)
        for cohort, key in enumerate(self._keys):
            ranks[cohort, np.argsort(hash_words(np.uint64(key), values), kind="stable")] = (
                np.arange(self.size)
            )
        return ranks % self.buckets

    def places(self, cohort: int, value: int) -> list[int]:
        """The buckets of a value in a cohort, one per hash function."""
        if self.alphabet == "closed":
            return [self._ranks(cohort)[value] % self.buckets]
        own = self._keys[cohort * self.hashes : (cohort + 1) * self.hashes]
        return [bucket(keyed_hash(key, value), self.buckets) for key in own]

    def _ranks(self, cohort: int) -> dict[int, int]:
        """Each value's rank by its hash in a cohort: the permutation, which a device keeps."""
        if cohort not in self._ranked:
            key = self._keys[cohort]
            order = sorted(range(self.size), key=lambda value: (keyed_hash(key, value), value))
            self._ranked[cohort] = {value: rank for rank, value in enumerate(order)}
        return self._ranked[cohort]

    @cached_property
    def _ranked(self) -> dict[int, dict[int, int]]:
        return {}

    def _all_places(
        self, cohorts: NDArray[np.uint64], values: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """The same for a column of people: one row each."""
        if self.alphabet == "closed":
            found = self._permuted[cohorts.astype(np.int64), values.astype(np.int64)]
            return found.astype(np.uint64)[:, None]
        from sottovoce.kernels.hashing import hash_buckets

        table = np.array(self._keys, np.uint64).reshape(self.cohorts, self.hashes)[
            cohorts.astype(np.int64)
        ]
        columns = [
            hash_buckets(np.ascontiguousarray(table[:, place]), values, self.buckets)
            for place in range(self.hashes)
        ]
        return np.stack(columns, axis=1)

    def _cohort_column(self, count: int, seed: int) -> NDArray[np.uint64]:
        draws = np.random.Generator(np.random.PCG64([seed, 1]))
        return draws.integers(0, self.cohorts, count, dtype=np.uint64)

    @property
    def _cohort_field(self) -> Field:
        return Field("cohort", self.cohorts.bit_length() - 1)

    def candidates(self, values: ArrayLike | None) -> NDArray[np.uint64]:
        """The candidate list: ``values``, or the whole alphabet if it is small enough."""
        if values is None and self.size > MAX_DECODED_CANDIDATES:
            raise InvalidInput(
                "an open alphabet needs candidates: a list of values that holds the support"
            )
        listed = np.arange(self.size, dtype=np.uint64) if values is None else self._column(values)
        if not 1 <= listed.size <= MAX_DECODED_CANDIDATES or np.unique(listed).size < listed.size:
            raise InvalidInput(
                f"candidates ({listed.size}) must be 1 to {MAX_DECODED_CANDIDATES} different values"
            )
        return listed

    def design(self, candidates: NDArray[np.uint64]) -> Design:
        """Which cells each candidate touches."""
        touched = np.zeros((self.cohorts, self.buckets, candidates.size))
        column = np.arange(candidates.size)
        for cohort in range(self.cohorts):
            rows = np.full(candidates.size, cohort, np.uint64)
            for places in self._all_places(rows, candidates).T:
                touched[cohort, places.astype(np.int64), column] = 1
        from sottovoce.oracles.decoding import Design

        return Design(touched, self._offset)

    @property
    @abstractmethod
    def _offset(self) -> float: ...

    @abstractmethod
    def seen(self, state: Integers, people: int) -> Floats:
        """The crowd's mean vector: unbiased for the design applied to the frequencies."""

    @abstractmethod
    def person_variance(self, design: Design, solver: Floats) -> Floats:
        """V[v, x]: what one person of candidate x adds to n^2 Var of ``solver``'s row v."""

    @cached_property
    def _whole(self) -> tuple[Design, Floats]:
        design = self.design(self.candidates(None))
        return design, self.person_variance(design, design.solver())

    def estimate(
        self, state: Integers, people: int, values: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        if values is None and self.size <= MAX_DECODED_CANDIDATES:
            design, spread = self._whole
        else:
            design = self.design(self.candidates(values))
            spread = self.person_variance(design, design.solver())
        frequencies = design.solve(self.seen(state, people))
        plausible = np.clip(frequencies, 0, 1)
        return frequencies, spread @ (plausible / max(float(plausible.sum()), 1e-12)) / people

    def decode(
        self, state: Integers, people: int, decoder: str, values: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """The estimate by one of ``DECODERS``: beside the unbiased one, ``nnls`` is never negative
        and ``lasso`` sparse as well. Their variances are those of candidates whose cells do not
        overlap: a lower bound.
        """
        if decoder == "least-squares":
            return self.estimate(state, people, values)
        if decoder not in DECODERS:
            raise InvalidInput(f"decoder ({decoder}) must be one of {', '.join(DECODERS)}")
        design = self.design(self.candidates(values))
        seen, error = self.seen(state, people), self._cell_error(people)
        solved = (
            design.solve_non_negative(seen)
            if decoder == "nnls"
            else design.solve_sparse(seen, error)
        )
        return solved, error**2 / design.touched.sum(axis=(0, 1))

    @abstractmethod
    def _cell_error(self, people: int) -> float:
        """Standard error of one cell of :meth:`seen` for a rare value."""

    def noise(self, people: int) -> Noise:
        """The law averaged over the alphabet, other values sharing what is left evenly."""
        if self.size > MAX_DECODED_CANDIDATES:
            raise InvalidInput(
                "the error over an open alphabet depends on the candidates; see the estimate's "
                "variances"
            )
        spread = self._whole[1]
        own = float(np.diag(spread).mean())
        other = float((spread.sum() - np.trace(spread)) / (self.size * (self.size - 1)))
        return Noise(other / people, (own - other) / people)

    def all_variances(self, n: int, frequencies: Floats) -> Floats:
        """Given the hashes, each value has a variance of its own."""
        return np.asarray(self._whole[1] @ frequencies / n)

    def sum_noise(self, people: int, count: int) -> Noise:
        """Of the first ``count`` values, others held evenly; cells depend, as they sum to one."""
        design = self._whole[0]
        summed = design.solver()[:count].sum(axis=0, keepdims=True)
        person = self.person_variance(design, summed)[0]
        own = float(person[:count].mean())
        floor = float(person[count:].mean()) if count < self.size else own
        return Noise(floor / people, (own - floor) / people)
