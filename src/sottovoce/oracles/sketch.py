"""Count-mean sketches for very large domains: the plan's hash functions, a table of small width."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import power_of_two, whole
from sottovoce.ground.entropy import WHOLE, Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import LARGEST_SALT, bucket, keyed_hash, keys
from sottovoce.ground.seeds import Seed, draws
from sottovoce.oracles.base import Floats, Integers, Noise, PureOracle, SummedOracle, tally
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, rounded_up, truth_threshold
from sottovoce.oracles.unary import simulate_bits, toss_bits
from sottovoce.schema import OPEN


@dataclass(frozen=True)
class _Sketch(PureOracle, SummedOracle):
    """A person draws one of ``hashes`` functions and reports on the bucket of ``width`` that it
    gives her value.

    Over the plan's salt two values share a bucket with chance 1/width, so p and q are those of a
    pure oracle, q = q0 + (p - q0)/width. People with equal values and functions collide together:
    the variance has a term (sum of the others' squared frequencies) (p - q0)^2 (1 -
    1/width)/(hashes width (p - q)^2).
    """

    largest: ClassVar[int] = OPEN
    uses_state: ClassVar[bool] = True  # collisions that people share
    holds_over_salts: ClassVar[bool] = True

    hashes: int
    width: int
    salt: int

    def options(self) -> dict[str, Any]:
        return {"hashes": self.hashes, "width": self.width, "salt": str(self.salt)}

    @staticmethod
    def _shape(hashes: Any, width: Any, salt: Any) -> tuple[int, int, int]:
        return (
            power_of_two("hashes", hashes, 2, 1 << 20),
            power_of_two("width", width, 2, 1 << 20),
            whole("salt", salt, 0, LARGEST_SALT),
        )

    @property
    def exact_q0(self) -> Fraction:
        """The chance to support a value whose bucket differs."""
        raise AttributeError

    @property
    def exact_q(self) -> Fraction:
        return self.exact_q0 + (self.exact_p - self.exact_q0) / self.width

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        return np.array(keys(self.salt, self.hashes), np.uint64)

    def _bucket(self, function: int, value: int) -> int:
        return bucket(keyed_hash(int(self._keys[function]), value), self.width)

    def _buckets(
        self, functions: NDArray[np.uint64], values: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        from sottovoce.kernels.hashing import hash_buckets

        found: NDArray[np.uint64] = hash_buckets(
            self._keys[functions.astype(np.int64)], values, self.width
        )
        return found

    def _functions(self, count: int, seed: Seed) -> NDArray[np.uint64]:
        found: NDArray[np.uint64] = draws(seed, 1).integers(0, self.hashes, count, np.uint64)
        return found

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.hashes, self.width + 1)  # cells of each function, then its people

    def collision_variance(self, spread: ArrayLike) -> Floats:
        """What shared collisions add, for others' squared frequencies that sum to ``spread``."""
        own = float(self.exact_p - self.exact_q0)
        factor = own**2 * (1 - 1 / self.width) / (self.hashes * self.width * self.gap**2)
        return np.asarray(spread, dtype=float) * factor

    def variance(
        self,
        n: int,
        f: ArrayLike = 0.0,
        *,
        population: bool = False,
        spread: ArrayLike | None = None,
    ) -> Any:
        """As for every oracle, with collisions; ``spread``: the others' squared frequencies.

        By default the others share what is left evenly.
        """
        frequency = np.asarray(f, dtype=float)
        others = (1 - frequency) ** 2 / (self.size - 1) if spread is None else spread
        total = np.asarray(super().variance(n, f, population=population)) + self.collision_variance(
            others
        )
        return float(total) if total.ndim == 0 else total

    def all_variances(self, n: int, frequencies: Floats) -> Floats:
        squares = frequencies**2
        return np.asarray(self.variance(n, frequencies, spread=squares.sum() - squares))

    def sum_noise(self, people: int, count: int) -> Noise:
        """Over salts, without the collisions that people share: see :meth:`sum_spread`."""
        floor = self._person_variance(count, 0)
        scale = people * self.gap**2
        return Noise(floor / scale, (self._person_variance(count - 1, 1) - floor) / scale)

    def _person_variance(self, others: int, own: int) -> float:
        """Variance of how many values of S one report supports: ``others``, and perhaps its own."""
        # N_b: values of S in bucket b, N: in the person's bucket; given the hash
        #   the mean is  q0 |S| + (p - q0) N
        #   the variance  q0(1 - q0) sum N_b^2 + (p(1 - p) - q0(1 - q0)) N^2
        p, q0 = self.p, float(self.exact_q0)
        count = own + others
        squares = count + count * (count - 1) / self.width
        mean, variance = own + others / self.width, others / self.width * (1 - 1 / self.width)
        within = q0 * (1 - q0) * squares + (p * (1 - p) - q0 * (1 - q0)) * (variance + mean**2)
        return within + (p - q0) ** 2 * variance

    @staticmethod
    def sum_spread(count: int, spread: ArrayLike, own: ArrayLike, sums: ArrayLike) -> Floats:
        """The spread to give :meth:`collision_variance` for sums of ``count`` values.

        ``spread``: the sum of all squared frequencies; ``own``: that of the values summed;
        ``sums``: their sum.
        """
        # people of x and y collide alike if x = y, for every value of S but x,
        # and if x and y are both in S
        total = (
            count * np.asarray(spread, dtype=float) - 2 * np.asarray(own) + np.asarray(sums) ** 2
        )
        return np.asarray(np.maximum(total, 0))

    def sum_variance(self, n: int, count: int) -> float:
        others = count / max(self.size - count, 1)  # those not in the sum share everything evenly
        return super().sum_variance(n, count) + float(self.collision_variance(others))

    def sum_variances(self, state: Integers, people: int, count: int, sums: Floats) -> Floats:
        plain = super().sum_variances(state, people, count, sums)
        squares = np.maximum(sums**2 - plain, 0)
        # values of one sum are taken as evenly frequent, which is the most that they can collide
        within = self.sum_spread(count, self.spread(state), squares / count, np.sqrt(squares))
        return plain + self.collision_variance(within)

    @abstractmethod
    def _pairs(self, state: Integers) -> Floats:
        """For each function, the debiased number of ordered pairs of people who share a bucket."""

    def spread(self, state: Integers) -> float:
        """An estimate of the sum of all squared frequencies, for any values, cut to [0, 1].

        Two people of one function share a bucket with chance F2 + (1 - F2)/width over salts, so the
        share of pairs that do, debiased report by report, is unbiased for it.
        """
        people = state[:, self.width].astype(float)
        pairs = float((people * (people - 1)).sum())
        if pairs == 0:
            return 1.0
        together = float(self._pairs(state).sum()) / pairs
        return min(max((together - 1 / self.width) / (1 - 1 / self.width), 0.0), 1.0)

    def observed_noise(self, state: Integers, people: int) -> Noise:
        plain = self.noise(people)
        return Noise(plain.floor + float(self.collision_variance(self.spread(state))), plain.slope)

    def error_variances(self, state: Integers, people: int, frequencies: Floats) -> Floats:
        plain = self.noise(people).variance(np.clip(frequencies, 0, 1))
        own = np.maximum(frequencies**2 - plain, 0)  # a value does not collide with itself
        return plain + self.collision_variance(np.maximum(self.spread(state) - own, 0))


@dataclass(frozen=True)
class CountMeanSketch(_Sketch):
    """Report a noisy one-hot vector of the value's bucket, and which hash function was used.

    Guarantee: epsilon-LDP for one report, for every salt.
    Assumes:   uniform entropy; value in range(size); the keyed hash behaves as a random function of
               the salt.
    Source:    cormode2018marginal, appendix B.2; apple2017learning.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("cms",)
    public: ClassVar[tuple[str, ...]] = ("function",)
    about: ClassVar[str] = "count-mean sketch"

    one: int = field(metadata={"coin": True})
    zero: int = field(metadata={"coin": True})

    @classmethod
    def build(
        cls, size: int, epsilon: Decimal, hashes: int = 1024, width: int = 1024, salt: int | str = 0
    ) -> Self:
        """``hashes`` functions onto ``width`` buckets (powers of two), chosen by ``salt``."""
        zero = rounded_up(1 / (exp(Fraction(epsilon) / 2) + 1))
        if zero >= WHOLE - zero:
            raise InvalidInput(f"epsilon ({epsilon}) is too small: a report would say nothing")
        return cls(size, epsilon, *cls._shape(hashes, width, salt), WHOLE - zero, zero)

    @property
    def exact_p(self) -> Fraction:
        return chance(self.one)

    @property
    def exact_q0(self) -> Fraction:
        return chance(self.zero)

    @property
    def worst_ratio(self) -> Fraction:
        p, q = self.exact_p, self.exact_q0
        return p * (1 - q) / ((1 - p) * q)

    def blanket(self) -> Blanket:
        # bits are 1 with chance q0; two values whose buckets differ have the least in common
        q, cell = self.exact_q0, Fraction(1, self.width)
        pair = cell * q + (1 - cell) * q**2
        # over salts: all three together, two of them, none
        triple = cell**2 * q + 3 * cell * (1 - cell) * q**2 + (1 - cell) * (1 - 2 * cell) * q**3
        return Blanket.of(self.worst_ratio, q, q**2, pair, triple if self.size > 2 else None)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("bits", self.width), Field("function", self.hashes.bit_length() - 1)))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        (function,) = self.public_coins(entropy)
        place = self._bucket(function, self.check(value))
        return toss_bits(place, self.width, self.one, self.zero, entropy), function

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        functions = self._functions(values.size, seed)
        places = self._buckets(functions, values)[:, None]
        simulate_bits(places, payload, self.width, self.one, self.zero, seed)
        self.layout.write(payload, "function", functions)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        from sottovoce.kernels.bits import add_grouped_columns, weigh_grouped_columns

        functions = self.layout.read(payload, "function").view(np.int64)
        if weights is None:
            add_grouped_columns(payload, functions, state[:, : self.width])
        else:
            weigh_grouped_columns(payload, weights, functions, state[:, : self.width])
        state[:, self.width] += tally(functions, weights, self.hashes)
        return state

    def _pairs(self, state: Integers) -> Floats:
        # a report's bit counts (bit - q)/(p - q);
        # pairs of different reports are (sum)^2 - sum of squares
        gap, q = float(self.exact_p - self.exact_q0), float(self.exact_q0)
        ones, people = state[:, : self.width], state[:, self.width :]
        sums = (ones - people * q) / gap
        squares = (ones * (1 - q) ** 2 + (people - ones) * q**2) / gap**2
        pairs: Floats = (sums**2 - squares).sum(axis=1)
        return pairs

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        return _gathered(self, np.ascontiguousarray(state[:, : self.width]), values)

    def supports(self, output: Any, value: int) -> bool:
        bits, function = output
        return bool(bits >> self._bucket(function, value) & 1)


@dataclass(frozen=True)
class HadamardCountMeanSketch(_Sketch):
    """Report the sign of a random Hadamard coefficient of the bucket's one-hot vector: one bit.

    Guarantee: epsilon-LDP for one report, for every salt.
    Assumes:   uniform entropy; value in range(size); the keyed hash behaves as a random function of
               the salt.
    Source:    cormode2018marginal, appendix B.2 (InpHTCMS); apple2017learning.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("hcms",)
    public: ClassVar[tuple[str, ...]] = ("function", "place")
    about: ClassVar[str] = "count-mean sketch, Hadamard form"

    truth: int = field(metadata={"coin": True})

    @classmethod
    def build(
        cls, size: int, epsilon: Decimal, hashes: int = 1024, width: int = 1024, salt: int | str = 0
    ) -> Self:
        """``hashes`` functions onto ``width`` buckets (powers of two), chosen by ``salt``."""
        return cls(size, epsilon, *cls._shape(hashes, width, salt), truth_threshold(2, epsilon))

    @property
    def exact_p(self) -> Fraction:
        return (1 + chance(self.truth)) / 2

    @property
    def exact_q0(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p / (1 - self.exact_p)

    def blanket(self) -> Blanket:
        # signs of two buckets agree with chance 1/2 over uniform coefficients, of one bucket always
        half, cell = Fraction(1, 2), Fraction(1, self.width)
        return Blanket.of(self.worst_ratio, half, half**2, cell * half + (1 - cell) * half**2)

    @cached_property
    def layout(self) -> Layout:
        places = self.width.bit_length() - 1
        return Layout(
            (
                Field("sign", 1),
                Field("place", places),
                Field("function", self.hashes.bit_length() - 1),
            )
        )

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int, int]:
        function, place = self.public_coins(entropy)
        sign = (self._bucket(function, self.check(value)) & place).bit_count() & 1
        return sign if entropy.coin(self.truth) else entropy.bits(1), place, function

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_signs

        functions = self._functions(values.size, seed)
        buckets = self._buckets(functions, values)
        places, signs = np.empty_like(values), np.empty_like(values)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_signs(
                buckets[rows], places[rows], signs[rows], self.width, np.uint64(self.truth), state
            )

        in_chunks(values.size, seed, work)
        self.layout.write(payload, "sign", signs)
        self.layout.write(payload, "place", places)
        self.layout.write(payload, "function", functions)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        functions = self.layout.read(payload, "function").astype(np.int64)
        places = self.layout.read(payload, "place").astype(np.int64)
        signs = 1 - 2 * self.layout.read(payload, "sign").astype(np.int64)
        cells = functions * (self.width + 1) + places
        flat = state.reshape(-1)
        flat += tally(cells, signs if weights is None else signs * weights, flat.size)
        state[:, self.width] += tally(functions, weights, self.hashes)
        return state

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        # a report supports v if its sign is that of v's coefficient:
        # (n + sum of signed agreements) / 2
        agreements = _gathered(self, self._agreements(state), values)
        supports: Integers = (agreements + state[:, self.width].sum()) >> 1
        return supports

    def _agreements(self, state: Integers) -> Integers:
        """For each function and bucket, reports that agree with the bucket less the others."""
        from sottovoce.kernels.transform import transform_rows

        table = np.ascontiguousarray(state[:, : self.width])
        transform_rows(table, 1 << 13)
        return table

    def _pairs(self, state: Integers) -> Floats:
        # a report counts +-1/c in every bucket, c = 2p - 1;
        # pairs of different reports are (sum)^2 - sum of squares
        scale = 2 * float(self.exact_p) - 1
        sums = (self._agreements(state) / scale) ** 2
        pairs: Floats = sums.sum(axis=1) - state[:, self.width] * self.width / scale**2
        return pairs

    def supports(self, output: Any, value: int) -> bool:
        sign, place, function = output
        return bool((self._bucket(function, value) & place).bit_count() & 1 == sign)


def _gathered(oracle: _Sketch, table: Integers, values: NDArray[np.uint64] | None) -> Integers:
    from sottovoce.kernels.hashing import gather_sketch

    asked = np.arange(oracle.size, dtype=np.uint64) if values is None else values
    found: Integers = gather_sketch(table, oracle._keys, asked, oracle.width)
    return found
