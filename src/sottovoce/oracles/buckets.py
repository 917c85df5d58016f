"""O-RR: generalized randomized response on the bucket that a cohort's hash gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.base import Floats, Integers, tally
from sottovoce.oracles.cohorts import LARGEST_CLOSED, CohortOracle
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, truth_threshold

if TYPE_CHECKING:
    from sottovoce.oracles.decoding import Design


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
        """``buckets``: by default near E + 1; ``alphabet``: closed is permuted, open hashed."""
        if hashes != 1:
            raise InvalidInput(f"hashes ({hashes}) must be 1 for o-rr")
        if buckets is None:
            buckets = min(max(2, round(exp(epsilon) + 1)), size, LARGEST_CLOSED)
        shape = cls._shape(size, cohorts, buckets, 1, salt, alphabet, least=256)
        return cls(size, epsilon, *shape, truth_threshold(shape[1], epsilon))

    @property
    def worst_ratio(self) -> Fraction:
        kept = chance(self.truth)
        return 1 + self.buckets * kept / (1 - kept)

    @cached_property
    def layout(self) -> Layout:
        answer = Field("answer", (self.buckets - 1).bit_length(), self.buckets)
        return Layout((answer, self._cohort_field))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        (cohort,) = self.public_coins(entropy)
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

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        cells = self.layout.read(payload, "cohort") * np.uint64(self.buckets)
        cells += self.layout.read(payload, "answer")
        state += tally(cells.astype(np.int64), weights, state.size).reshape(state.shape)
        return state

    @property
    def _offset(self) -> float:
        return 1 / self.buckets

    @property
    def _kept(self) -> float:
        return float(chance(self.truth))

    def seen(self, state: Integers, people: int) -> Floats:
        # C/n (count - people of the cohort/k) / (p - q): the even share is taken out
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
