"""RAPPOR: Bloom filters in cohorts, one-time or with a memo that the device keeps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import share
from sottovoce.ground.entropy import WHOLE, Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed, shifted
from sottovoce.oracles.base import Floats, Integers, tally
from sottovoce.oracles.blankets import Blanket, no_blanket
from sottovoce.oracles.cohorts import CohortOracle, summed
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, log_ratio, rounded_up
from sottovoce.oracles.unary import simulate_bits

MIN_FILTER_COHORTS = 16  # if none were asked for


@dataclass(frozen=True)
class OpenRappor(CohortOracle):
    """A Bloom filter of the value in a random cohort, every bit through a symmetric coin.

    Guarantee: epsilon-LDP for one report, for every salt (two filters differ in at most 2
               ``hashes`` bits).
    Assumes:   uniform entropy; value in range(size).
    Source:    kairouz2016discrete, section 5.2.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("o-rappor",)
    about: ClassVar[str] = "Bloom filters and cohorts, one-time"
    counts_reports: ClassVar[bool] = False  # cells have weights

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
        people: int | None = None,
    ) -> Self:
        """``buckets``: bits of the filter; ``hashes``: per cohort (two need an open alphabet).

        ``cohorts`` are chosen by their predicted error for so many ``people``.
        """
        first = MIN_FILTER_COHORTS if cohorts is None else cohorts
        shape = cls._shape(size, first, buckets, hashes, salt, alphabet)
        zero = rounded_up(1 / (exp(Fraction(epsilon) / (2 * shape[2])) + 1))
        if zero >= WHOLE - zero:
            raise InvalidInput(f"epsilon ({epsilon}) is too small: a report would say nothing")
        built = cls(size, epsilon, *shape, zero)
        return built if cohorts is not None else built._with_cohorts(people)

    def _with_cohorts(self, people: int | None) -> Self:
        """The same with as many cohorts as its predicted error asks for."""
        from sottovoce.oracles.cohort_shapes import chosen_shape

        noises = {self.buckets: self._report_variance}
        cohorts, _ = chosen_shape(noises, self.size, people, MIN_FILTER_COHORTS)
        return replace(self, cohorts=cohorts)

    @property
    def _report_variance(self) -> float:
        """Of one report's estimate of a rare value, if no two values shared bits."""
        # zero (1 - zero) / (one - zero)^2 over |T_x|^2 = a (k - 1), a the overlap; from exact
        # fractions, so that every machine chooses the same shape
        one, zero = self.exact_bits
        length = self._exact_overlap * (self.buckets - 1)
        return float(zero * (1 - zero) / ((one - zero) ** 2 * length))

    @property
    def exact_bits(self) -> tuple[Fraction, Fraction]:
        """(chance that a set bit is reported as 1, chance that an unset one is)."""
        return 1 - chance(self.zero), chance(self.zero)

    @property
    def worst_ratio(self) -> Fraction:
        one, zero = self.exact_bits
        return (one * (1 - zero) / ((1 - one) * zero)) ** self.hashes

    def blanket(self) -> Blanket:
        if self.hashes > 1:
            raise no_blanket(
                self.names[0],
                f"a value sets up to {self.hashes} bits, which a report supports one by one; "
                "hashes=1 has one",
            )
        _, zero = self.exact_bits
        return Blanket.of(self.worst_ratio, zero, zero**2)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("bits", self.buckets), self._cohort_field))

    def _filter(self, cohort: int, value: int) -> int:
        bits = 0
        for place in self.places(cohort, value):
            bits |= 1 << place
        return bits

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        (cohort,) = self.public_coins(entropy)
        flips = entropy.coins(self.zero, self.buckets)
        return self._filter(cohort, self.check(value)) ^ flips, cohort

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        cohorts = self._cohort_column(values.size, seed)
        places = self._all_places(cohorts, values)
        simulate_bits(places, payload, self.buckets, WHOLE - self.zero, self.zero, seed)
        self.layout.write(payload, "cohort", cohorts)

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.cohorts, self.buckets + 1)  # ones per bit, then people

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        from sottovoce.kernels.bits import add_grouped_columns, weigh_grouped_columns

        cohorts = self.layout.read(payload, "cohort").view(np.int64)
        if weights is None:
            add_grouped_columns(payload, cohorts, state[:, : self.buckets])
        else:
            weigh_grouped_columns(payload, weights, cohorts, state[:, : self.buckets])
        state[:, self.buckets] += tally(cohorts, weights, self.cohorts)
        return state

    def seen(self, state: Integers, people: int) -> Floats:
        one, zero = (float(part) for part in self.exact_bits)
        expected = state[:, self.buckets :] * zero
        out: Floats = self.cohorts / people * (state[:, : self.buckets] - expected) / (one - zero)
        return out

    def _squares(
        self, touched: Floats, weights: Floats, shares: Floats, off_list: Floats
    ) -> Floats:
        # coins: a bit's variance over (one - zero)^2; means: (b'T_x)^2 in the person's cohort
        spread = self._bit_variances(touched, shares, off_list)
        coins = np.tensordot(weights**2, spread, axes=((0, 1), (0, 1)))
        off = self._overlap * np.outer((weights**2).sum(axis=(0, 1)), off_list)
        held = np.flatnonzero(shares.any(axis=1))
        means = np.zeros((weights.shape[2], held.size))
        for cohort in range(len(touched)):
            means += (weights[cohort].T @ touched[cohort][:, held]) ** 2
        return np.asarray(self.cohorts * (coins + means @ shares[held] + off))

    def _left_over(
        self, touched: Floats, leverage: Floats, shares: Floats, off_list: Floats
    ) -> float:
        coins = self._bit_variances(touched, shares, off_list)[..., 0]
        left = 1 - 1 / self.buckets - leverage
        # of the means of listed values, as if cells were fitted one by one: off by 1/C of them
        centred = touched - touched.mean(axis=1, keepdims=True)
        means = summed(centred**2, shares)[..., 0]
        total = (coins + self._overlap * off_list) * left + means * (1 - leverage)
        return self.cohorts * float(total.sum())

    def _bit_variances(self, touched: Floats, shares: Floats, off_list: Floats) -> Floats:
        """Of each bit over (one - zero)^2, for some crowds, (cohorts, buckets, crowds)."""
        one, zero = (float(part) for part in self.exact_bits)
        chance_of_bit = 1 - (1 - 1 / self.buckets) ** self.hashes
        set_bits = summed(touched, shares) + off_list * chance_of_bit
        spread = zero * (1 - zero) + set_bits * (one * (1 - one) - zero * (1 - zero))
        return np.asarray(spread / (one - zero) ** 2)

    def _cell_error(self, people: int) -> float:
        one, zero = (float(part) for part in self.exact_bits)
        return float(np.sqrt(self.cohorts * zero * (1 - zero) / people) / (one - zero))

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        """Summed over a value's bits: how many of them were reported as 1."""
        return self._touching(state[:, : self.buckets], values)

    def supports(self, output: Any, value: int) -> bool:
        bits, cohort = output
        own = self._filter(cohort, value)
        return bool(bits & own == own)


@dataclass(frozen=True)
class Rappor(OpenRappor):
    """RAPPOR: a permanent noisy Bloom filter on the device, and fresh noise on it in every report.

    Guarantee: epsilon-LDP over a lifetime of reports on one answer; less for a single report.
    Assumes:   uniform entropy; value in range(size); the device keeps its memo.
    Source:    wang2021thesis, section 3.1.2; erlingsson2014rappor.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("rappor",)
    about: ClassVar[str] = "Bloom filters and cohorts, permanent and instantaneous response"

    loud: int = field(metadata={"coin": True})
    quiet: int = field(metadata={"coin": True})
    instantaneous: tuple[str, ...]  # the same two chances as they were written

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
        people: int | None = None,
        instantaneous: tuple[str, str] | list[str] = ("0.75", "0.25"),
    ) -> Self:
        """``instantaneous``: chances that a kept 1 and 0 are sent as 1; ("1", "0") for none."""
        first = MIN_FILTER_COHORTS if cohorts is None else cohorts
        plain = OpenRappor.build(size, epsilon, first, buckets, hashes, salt, alphabet)
        shares = tuple(str(part) for part in instantaneous)
        if len(shares) != 2 or not share("instantaneous", shares[1]) < share(
            "instantaneous", shares[0]
        ):
            raise InvalidInput(f"instantaneous {shares} must be two numbers, the first larger")
        loud, quiet = (int(share("instantaneous", part) * WHOLE) for part in shares)
        shape = (plain.cohorts, plain.buckets, plain.hashes, plain.salt, plain.alphabet)
        built = cls(size, epsilon, *shape, plain.zero, loud, quiet, shares)
        return built if cohorts is not None else built._with_cohorts(people)

    def options(self) -> dict[str, Any]:
        return {**super().options(), "instantaneous": list(self.instantaneous)}

    @property
    def exact_bits(self) -> tuple[Fraction, Fraction]:
        flip, loud, quiet = chance(self.zero), chance(self.loud), chance(self.quiet)
        return (1 - flip) * loud + flip * quiet, flip * loud + (1 - flip) * quiet

    @property
    def lifetime_epsilon(self) -> float:
        flip = chance(self.zero)
        return log_ratio(((1 - flip) / flip) ** (2 * self.hashes))

    def blanket(self) -> Blanket:
        raise no_blanket(
            self.names[0], "its reports repeat a kept memo, which links them; o-rappor has one"
        )

    def memorize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        return super().randomize(value, entropy)

    def recall(self, memo: Any, entropy: Entropy) -> tuple[int, int]:
        kept, cohort = memo
        heard = kept & entropy.coins(self.loud, self.buckets)
        return heard | (~kept & entropy.coins(self.quiet, self.buckets)), cohort

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        return self.recall(self.memorize(value, entropy), entropy)

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        """The memos, then the instantaneous coins on them, with the device's thresholds."""
        cohorts = self._cohort_column(values.size, seed)
        kept, loud, quiet = (np.zeros_like(payload) for _ in range(3))
        places = self._all_places(cohorts, values)
        simulate_bits(places, kept, self.buckets, WHOLE - self.zero, self.zero, seed)
        for coins, threshold, salt in ((loud, self.loud, 1), (quiet, self.quiet, 2)):
            if threshold >= WHOLE:
                coins[:] = 0xFF
            elif threshold:
                own = shifted(seed, salt << 64)
                simulate_bits(places[:, :0], coins, self.buckets, 0, threshold, own)
        payload[:] = (kept & loud) | (~kept & quiet)
        spare = self.buckets % 8
        if spare:
            payload[:, self.buckets // 8] &= np.uint8((1 << spare) - 1)
        payload[:, (self.buckets + 7) // 8 :] = 0
        self.layout.write(payload, "cohort", cohorts)
