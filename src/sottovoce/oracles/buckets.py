"""O-RR: generalized randomized response on the bucket that a cohort's hash gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.oracles.base import Floats, Integers, tally
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.cohorts import LARGEST_CLOSED, MOST_BUCKETS, CohortOracle, summed
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, truth_threshold

MIN_BUCKET_COHORTS = 256  # if none were asked for


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
        people: int | None = None,
    ) -> Self:
        """``buckets``: by default near E + 1; ``alphabet``: closed is permuted, open hashed.

        ``cohorts`` and ``buckets`` are chosen by their predicted error for so many ``people``.
        """
        if hashes != 1:
            raise InvalidInput(f"hashes ({hashes}) must be 1 for o-rr")
        if cohorts is None:
            cohorts, buckets = _chosen_shape(size, exp(epsilon), buckets, people)
        elif buckets is None:
            buckets = _fitting(exp(epsilon) + 1, size)
        shape = cls._shape(size, cohorts, buckets, 1, salt, alphabet)
        return cls(size, epsilon, *shape, truth_threshold(shape[1], epsilon))

    @property
    def worst_ratio(self) -> Fraction:
        kept = chance(self.truth)
        return 1 + self.buckets * kept / (1 - kept)

    def blanket(self) -> Blanket:
        # cohorts are drawn as a seed is; nothing is said of how often two values share a bucket
        return Blanket.of(self.worst_ratio, Fraction(1, self.buckets), Fraction(0))

    @cached_property
    def layout(self) -> Layout:
        answer = Field("answer", (self.buckets - 1).bit_length(), self.buckets)
        return Layout((answer, self._cohort_field))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        (cohort,) = self.public_coins(entropy)
        place = self.places(cohort, self.check(value))[0]
        return place if entropy.coin(self.truth) else entropy.below(self.buckets), cohort

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
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
    def _kept(self) -> float:
        return float(chance(self.truth))

    def seen(self, state: Integers, people: int) -> Floats:
        # C/n (count - people of the cohort/k) / (p - q): the even share is taken out
        even = state.sum(axis=1, keepdims=True) / self.buckets
        out: Floats = self.cohorts / people * (state - even) / self._kept
        return out

    def _squares(
        self, touched: Floats, weights: Floats, shares: Floats, off_list: Floats
    ) -> Floats:
        # u is C/p in the cell that was told, which is each with chance (q + p T_x)/C
        second = self.cohorts / self._kept**2 * self._chances(touched, shares, off_list)
        return np.tensordot(weights**2, second, axes=((0, 1), (0, 1)))

    def _left_over(
        self, touched: Floats, leverage: Floats, shares: Floats, off_list: Floats
    ) -> float:
        chances = self._chances(touched, shares, off_list)[..., 0]
        left = 1 - 1 / self.buckets - leverage
        return self.cohorts / self._kept**2 * float((chances * left).sum())

    def _chances(self, touched: Floats, shares: Floats, off_list: Floats) -> Floats:
        """The chance of each cell in its cohort, for some crowds, (cohorts, buckets, crowds)."""
        held = summed(touched, shares) + off_list / self.buckets
        return np.asarray((1 - self._kept) / self.buckets + self._kept * held)

    def _cell_error(self, people: int) -> float:
        return float(np.sqrt(self.cohorts / (self.buckets * people)) / self._kept)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        return self._touching(state, values)

    def supports(self, output: Any, value: int) -> bool:
        answer, cohort = output
        return bool(self.places(cohort, value)[0] == answer)


def _fitting(buckets: Fraction, size: int) -> int:
    """So many buckets, if the alphabet has as many values."""
    return min(max(2, round(buckets)), size, LARGEST_CLOSED)


def _chosen_shape(
    size: int, odds: Fraction, buckets: int | None, people: int | None
) -> tuple[int, int]:
    """(cohorts, buckets): as many buckets as were asked for, or half to twice E + 1."""
    from sottovoce.oracles.cohort_shapes import chosen_shape

    if buckets is None:
        choices = [_fitting((odds + 1) * eighths / 8, size) for eighths in (8, *range(4, 17))]
    else:
        choices = [whole("buckets", buckets, 2, MOST_BUCKETS)]
    noises = {each: _report_variance(odds, each) for each in choices}
    return chosen_shape(noises, size, people, MIN_BUCKET_COHORTS)


def _report_variance(odds: Fraction, buckets: int) -> float:
    """Of one report's estimate of a rare value, if no two values shared buckets."""
    # 1/(p^2 (k - 1)), p = (E - 1)/(E + k - 1): least at k = E + 1; from exact fractions, so that
    # every machine chooses the same shape
    return float((odds + buckets - 1) ** 2 / ((odds - 1) ** 2 * (buckets - 1)))
