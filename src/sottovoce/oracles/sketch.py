"""Count-mean sketches for very large domains: hash functions that the plan shares, and a table of small width."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.entropy import WHOLE, Entropy
from sottovoce.errors import InvalidInput
from sottovoce.kernels.mixing import bucket, keyed_hash, keys
from sottovoce.oracles.base import Floats, Integers, PureOracle
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, ratio, rounded_up, truth_threshold
from sottovoce.oracles.unary import simulate_bits, toss_bits
from sottovoce.schema import OPEN


@dataclass(frozen=True)
class _Sketch(PureOracle):
    """A person draws one of ``hashes`` functions and reports on the bucket of ``width`` that it gives her value.

    Over the plan's salt two values share a bucket with chance 1/width, so p and q are those of a pure oracle,
    q = q0 + (p - q0)/width. People with equal values and functions collide together: the variance has a term
    (sum of the others' squared frequencies) (p - q0)^2 (1 - 1/width)/(hashes width (p - q)^2).
    """

    largest: ClassVar[int] = OPEN

    hashes: int
    width: int
    salt: int

    def options(self) -> dict[str, Any]:
        return {"hashes": self.hashes, "width": self.width, "salt": str(self.salt)}

    @staticmethod
    def _shape(hashes: int, width: int) -> tuple[int, int]:
        for name, count in (("hashes", hashes), ("width", width)):
            if not (2 <= count <= 1 << 20 and count & (count - 1) == 0):
                raise InvalidInput(f"{name} ({count}) must be a power of two between 2 and 2^20")
        return int(hashes), int(width)

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

    def _buckets(self, functions: NDArray[np.uint64], values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        from sottovoce.kernels.hashing import hash_buckets

        found: NDArray[np.uint64] = hash_buckets(self._keys[functions.astype(np.int64)], values, self.width)
        return found

    def _functions(self, count: int, seed: int) -> NDArray[np.uint64]:
        draws = np.random.Generator(np.random.PCG64([seed, 1]))
        return draws.integers(0, self.hashes, count, dtype=np.uint64)

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.hashes, self.width)

    def collision_variance(self, spread: ArrayLike) -> Floats:
        """What shared collisions add, for others' squared frequencies that sum to ``spread``."""
        own = float(self.exact_p - self.exact_q0)
        factor = own**2 * (1 - 1 / self.width) / (self.hashes * self.width * self.gap**2)
        return np.asarray(spread, dtype=float) * factor

    def variance(self, n: int, f: ArrayLike = 0.0, *, population: bool = False, spread: ArrayLike | None = None) -> Any:
        """As for every oracle, with the collision term; ``spread``: the sum of the others' squared frequencies.

        By default the others share what is left evenly.
        """
        frequency = np.asarray(f, dtype=float)
        others = (1 - frequency) ** 2 / (self.size - 1) if spread is None else spread
        total = np.asarray(super().variance(n, f, population=population)) + self.collision_variance(others)
        return float(total) if total.ndim == 0 else total

    def all_variances(self, n: int, frequencies: Floats) -> Floats:
        squares = frequencies**2
        return np.asarray(self.variance(n, frequencies, spread=squares.sum() - squares))

    def _variances(self, people: int, frequencies: Floats) -> Floats:
        plain = self.noise(people).variance(np.clip(frequencies, 0, 1))
        squares = np.maximum(frequencies**2 - plain, 0)  # unbiased for f^2 before the cut
        return plain + self.collision_variance(max(float(squares.sum()), 0.0) - squares)


@dataclass(frozen=True)
class CountMeanSketch(_Sketch):
    """Report a noisy one-hot vector of the value's bucket, and which hash function was used.

    Guarantee: epsilon-LDP for one report, for every salt.
    Assumes:   uniform entropy; value in range(size); the keyed hash behaves as a random function of the salt.
    Source:    cormode2018marginal, appendix B.2; apple2017learning.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("cms",)
    about: ClassVar[str] = "count-mean sketch"

    one: int = field(metadata={"coin": True})
    zero: int = field(metadata={"coin": True})

    @classmethod
    def build(cls, size: int, epsilon: Decimal, hashes: int = 1024, width: int = 1024, salt: int | str = 0) -> Self:
        """``hashes`` functions onto ``width`` buckets (powers of two), chosen by ``salt``."""
        zero = rounded_up(ratio(Decimal(1), exp(epsilon / 2) + 1))
        if zero >= WHOLE - zero:
            raise InvalidInput(f"epsilon ({epsilon}) is too small: a report would say nothing")
        return cls(size, epsilon, *cls._shape(hashes, width), int(salt), WHOLE - zero, zero)

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

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("bits", self.width), Field("function", self.hashes.bit_length() - 1)))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int]:
        function = entropy.bits(self.hashes.bit_length() - 1)
        place = self._bucket(function, self.check(value))
        return toss_bits(place, self.width, self.one, self.zero, entropy), function

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: int) -> None:
        functions = self._functions(values.size, seed)
        places = self._buckets(functions, values)[:, None]
        simulate_bits(places, payload, self.width, self.one, self.zero, seed)
        self.layout.write(payload, "function", functions)

    def _accumulate(self, state: Integers, payload: Payload) -> None:
        from sottovoce.kernels.bits import add_grouped_columns

        functions = self.layout.read(payload, "function").view(np.int64)
        add_grouped_columns(payload, functions, state)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        return _gathered(self, state, values)

    def supports(self, output: Any, value: int) -> bool:
        bits, function = output
        return bool(bits >> self._bucket(function, value) & 1)


@dataclass(frozen=True)
class HadamardCountMeanSketch(_Sketch):
    """Report the sign of one random Hadamard coefficient of the bucket's one-hot vector: one private bit.

    Guarantee: epsilon-LDP for one report, for every salt.
    Assumes:   uniform entropy; value in range(size); the keyed hash behaves as a random function of the salt.
    Source:    cormode2018marginal, appendix B.2 (InpHTCMS); apple2017learning.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("hcms",)
    about: ClassVar[str] = "count-mean sketch, Hadamard form"

    truth: int = field(metadata={"coin": True})

    @classmethod
    def build(cls, size: int, epsilon: Decimal, hashes: int = 1024, width: int = 1024, salt: int | str = 0) -> Self:
        """``hashes`` functions onto ``width`` buckets (powers of two), chosen by ``salt``."""
        return cls(size, epsilon, *cls._shape(hashes, width), int(salt), truth_threshold(2, epsilon))

    @property
    def exact_p(self) -> Fraction:
        return (1 + chance(self.truth)) / 2

    @property
    def exact_q0(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p / (1 - self.exact_p)

    @cached_property
    def layout(self) -> Layout:
        places = self.width.bit_length() - 1
        return Layout((Field("sign", 1), Field("place", places), Field("function", self.hashes.bit_length() - 1)))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, int, int]:
        function = entropy.bits(self.hashes.bit_length() - 1)
        place = entropy.bits(self.width.bit_length() - 1)
        sign = (self._bucket(function, self.check(value)) & place).bit_count() & 1
        return sign if entropy.coin(self.truth) else entropy.bits(1), place, function

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: int) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_signs

        functions = self._functions(values.size, seed)
        buckets = self._buckets(functions, values)
        places, signs = np.empty_like(values), np.empty_like(values)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_signs(buckets[rows], places[rows], signs[rows], self.width, np.uint64(self.truth), state)

        in_chunks(values.size, seed, work)
        self.layout.write(payload, "sign", signs)
        self.layout.write(payload, "place", places)
        self.layout.write(payload, "function", functions)

    def _accumulate(self, state: Integers, payload: Payload) -> None:
        functions = self.layout.read(payload, "function").astype(np.int64)
        places = self.layout.read(payload, "place").astype(np.int64)
        signs = 1 - 2 * self.layout.read(payload, "sign").astype(np.int64)
        cells = functions * self.width + places
        flat = state.reshape(-1)
        flat += np.bincount(cells[signs > 0], minlength=flat.size)
        flat -= np.bincount(cells[signs < 0], minlength=flat.size)
        state[:, 0] += np.bincount(functions, minlength=self.hashes)  # so that the transform adds n everywhere

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        # a report supports v if its sign is that of v's coefficient: (n + sum of signed agreements) / 2
        from sottovoce.kernels.transform import transform_rows

        agreements = state.copy()
        transform_rows(agreements, 1 << 13)
        return _gathered(self, agreements, values) >> 1

    def supports(self, output: Any, value: int) -> bool:
        sign, place, function = output
        return bool((self._bucket(function, value) & place).bit_count() & 1 == sign)


def _gathered(oracle: _Sketch, table: Integers, values: NDArray[np.uint64] | None) -> Integers:
    from sottovoce.kernels.hashing import gather_sketch

    asked = np.arange(oracle.size, dtype=np.uint64) if values is None else values
    found: Integers = gather_sketch(table, oracle._keys, asked, oracle.width)
    return found
