"""What every frequency oracle is: a randomizer for one device, its column form, integer state, an estimator."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Entropy, Seeded, exact_law
from sottovoce.ground.errors import CorruptReport, InvalidInput, NotEnumerable
from sottovoce.oracles.layout import Layout, Payload
from sottovoce.oracles.thresholds import log_ratio

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_OUTCOMES = 1 << 17  # ways a randomizer may go before it counts as not enumerable
MANY = 1 << 53  # people; more than any state will hold
MOST_LISTED = 1 << 26  # values that are estimated one and all; beyond, name the ones you want


@dataclass(frozen=True)
class Noise:
    """The law of an estimated frequency's error: its variance is ``floor + slope * frequency``."""

    floor: float
    slope: float

    def variance(self, frequency: ArrayLike) -> Floats:
        total = np.array(frequency, dtype=float)
        total *= self.slope
        total += self.floor
        return total


@dataclass(frozen=True)
class Oracle(ABC):
    """A frequency oracle for ``range(size)`` at ``requested`` epsilon. Its coins are the integers it is built of."""

    names: ClassVar[tuple[str, ...]]  # the name in plans, then the aliases
    about: ClassVar[str]  # one line for tables
    largest: ClassVar[int] = MOST_LISTED  # the largest size it takes
    is_finite: ClassVar[bool] = True  # whether its outputs are finitely many
    public: ClassVar[tuple[str, ...]] = ()  # fields of a report that are drawn whatever the value, in that order

    size: int
    requested: Decimal

    # -- building

    @classmethod
    @abstractmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        """The oracle for this size and epsilon. Further keyword arguments are its options."""

    def options(self) -> dict[str, Any]:
        """The options that :meth:`build` was given, as JSON without floats."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """What a plan says of this oracle. Thresholds are decimal strings, so that any language can toss the coins."""
        coins = {field.name: str(getattr(self, field.name)) for field in fields(self) if field.metadata.get("coin")}
        return {
            "name": self.names[0],
            "size": str(self.size),
            "epsilon": str(self.requested),
            "options": self.options(),
            "thresholds": coins,
            "bits": self.bits,
        }

    # -- privacy

    @property
    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """The largest ratio of the chances of one report under two values, exactly."""

    @cached_property
    def epsilon(self) -> float:
        """The realised epsilon of one report: at most the one asked for."""
        return log_ratio(self.worst_ratio)

    @property
    def lifetime_epsilon(self) -> float:
        """Of all reports that a device makes of one memo: by default they are one report."""
        return self.epsilon

    @abstractmethod
    def randomize(self, value: int, entropy: Entropy) -> Any:
        """One person's report on ``value``: the only place where privacy happens."""

    def memorize(self, value: int, entropy: Entropy) -> Any:
        """What a device keeps, so that answering again reveals nothing new: by default the report itself."""
        return self.randomize(value, entropy)

    def recall(self, memo: Any, entropy: Entropy) -> Any:
        """The report to send for a kept memo; memos have the shape of reports."""
        return memo

    def public_coins(self, entropy: Entropy) -> list[int]:
        """The ``public`` fields of a report, drawn; they tell nothing of a value, so that anybody may draw them."""
        shapes = {field.name: field for field in self.layout.fields}
        drawn = []
        for name in self.public:
            limit, width = shapes[name].limit, shapes[name].width
            drawn.append(entropy.public.bits(width) if limit is None else entropy.public.below(limit))
        return drawn

    def public_part(self, output: Any) -> list[int]:
        """What a report says its public coins were."""
        names = [field.name for field in self.layout.fields]
        return [output[names.index(name)] for name in self.public]

    def check(self, value: int) -> int:
        """``value`` if it is a code of this oracle; one clear error otherwise."""
        try:
            code = operator.index(value)
        except TypeError:
            raise InvalidInput("value must be a whole number") from None
        if not 0 <= code < self.size:
            raise InvalidInput(f"value must lie in range({self.size})")
        return code

    def outputs(self) -> list[Any]:
        """Every report that can be sent, in order."""
        return self._law[0]

    def channel(self) -> Floats:
        """The chance of each output (columns) for each input (rows), from all ways the randomizer can go."""
        outputs, laws = self._law
        return np.array([[float(law.get(output, 0)) for output in outputs] for law in laws])

    def exact_channel(self) -> list[dict[Any, Fraction]]:
        """The same as fractions: for each input, the exact chance of each output."""
        return self._law[1]

    @cached_property
    def _law(self) -> tuple[list[Any], list[dict[Any, Fraction]]]:
        if self.size > 64 or not self.is_finite:
            raise NotEnumerable(f"{self.names[0]} of size {self.size} cannot be enumerated; use a sampling audit")
        laws = [exact_law(self._randomizer(value), MOST_OUTCOMES) for value in range(self.size)]
        return sorted(set().union(*laws)), laws

    def _randomizer(self, value: int) -> Callable[[Entropy], Any]:
        return lambda entropy: self.randomize(value, entropy)

    # -- the report

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The bit fields of one report."""

    @property
    def bits(self) -> int:
        """Bits per report."""
        return self.layout.bits

    def pack(self, output: Any) -> bytes:
        """One report as bytes."""
        return self.layout.pack(output)

    def unpack(self, data: bytes) -> Any:
        """One report from bytes; impossible ones are refused."""
        return self.layout.unpack(data)

    def validate(self, payload: Payload) -> None:
        """Refuse a batch that holds an impossible report."""
        if payload.ndim != 2 or payload.dtype != np.uint8 or payload.shape[1] != self.layout.bytes:
            raise CorruptReport(f"payload must be rows of {self.layout.bytes} bytes")
        self.layout.validate(payload)

    def simulate(self, values: ArrayLike, seed: int) -> Payload:
        """The packed reports of many devices, one row each, with the law of :meth:`randomize`."""
        column = self._column(values)
        payload = np.zeros((len(column), self.layout.bytes), np.uint8)
        self._simulate(column, payload, whole("seed", seed, 0, 1 << 128))
        return payload

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: int) -> None:
        entropy = Seeded(seed)
        for row, value in enumerate(values.tolist()):
            payload[row] = np.frombuffer(self.pack(self.randomize(value, entropy)), np.uint8)

    def _column(self, values: ArrayLike) -> NDArray[np.uint64]:
        column = np.asarray(values)
        if column.size == 0:
            return np.zeros(0, np.uint64)
        if column.dtype.kind not in "iub" or column.ndim != 1:
            raise InvalidInput("values must be a column of integers")
        if int(column.min()) < 0 or int(column.max()) >= self.size:
            raise InvalidInput(f"values must lie in range({self.size})")
        return column.astype(np.uint64, copy=False)

    # -- the state: integers that merge by addition

    @property
    @abstractmethod
    def state_shape(self) -> tuple[int, ...]:
        """The shape of the integer state."""

    def empty(self, people: int = MANY) -> Integers:
        """The state of nobody, in integers that hold whatever so many people's reports add up to."""
        return np.zeros(self.state_shape, np.int64)

    def accumulate(self, state: Integers, payload: Payload) -> Integers:
        """The state with a validated batch of reports added."""
        self.validate(payload)
        self._accumulate(state, payload)
        return state

    @abstractmethod
    def _accumulate(self, state: Integers, payload: Payload) -> None: ...

    def merge(self, one: Integers, other: Integers) -> Integers:
        """The state of both crowds together."""
        return one + other

    def fitted(self, state: Integers, people: int) -> Integers:
        """The state in integers that surely hold whatever ``people`` reports add up to; by default as it is."""
        return state

    def canonical(self, state: Integers) -> Integers:
        """The one form of a state that equal crowds share, whatever the order of their reports."""
        return state

    # -- the estimate

    @abstractmethod
    def estimate(self, state: Integers, people: int, values: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Unbiased frequencies of ``values`` (all of them by default) and the variances of their errors."""

    @abstractmethod
    def noise(self, people: int) -> Noise:
        """The error's law at ``people`` reports, for post-processing and prediction."""

    def observed_noise(self, state: Integers, people: int) -> Noise:
        """The error's law for the crowd that the state holds, where more than its size matters."""
        return self.noise(people)

    def variance(self, n: int, f: ArrayLike = 0.0, *, population: bool = False) -> Any:
        """Variance of an estimated frequency whose true value is ``f``, given the ``n`` people asked.

        ``population=True`` adds f(1 - f)/n: the people asked are themselves a sample.
        """
        frequency = np.asarray(f, dtype=float)
        if n < 1 or not (np.all(frequency >= 0) and np.all(frequency <= 1)):
            raise InvalidInput(f"n ({n}) must be at least 1 and f must lie between 0 and 1")
        total = self.noise(n).variance(frequency)
        if population:
            total = total + frequency * (1 - frequency) / n
        return float(total) if total.ndim == 0 else total

    def all_variances(self, n: int, frequencies: Floats) -> Floats:
        """The variance of every value's estimate when the whole distribution is known, as in a simulation."""
        return np.asarray(self.variance(n, frequencies))

    def std_error(self, n: int, f: ArrayLike = 0.0, *, population: bool = False) -> Any:
        """Square root of :meth:`variance`, with ``f`` clipped to [0, 1]."""
        total = self.variance(n, np.clip(np.asarray(f, dtype=float), 0, 1), population=population)
        return sqrt(total) if isinstance(total, float) else np.sqrt(total)

    def sum_noise(self, people: int, count: int) -> Noise:
        """The error's law for the summed frequency of ``count`` values; cells are uncorrelated here."""
        # f (p(1 - p) + (|S| - 1) q(1 - q)) + (1 - f) |S| q(1 - q), over n (p - q)^2: only the floors add up
        cell = self.noise(people)
        return Noise(count * cell.floor, cell.slope)

    def sum_variance(self, n: int, count: int) -> float:
        """Variance of the summed frequency of ``count`` values that nobody holds."""
        return self.sum_noise(n, count).floor

    def sum_variances(self, state: Integers, people: int, count: int, sums: Floats) -> Floats:
        """Variances of the errors of estimated sums, of ``count`` values each, with what the state tells of them."""
        return self.sum_noise(people, count).variance(np.clip(sums, 0, 1))

    def support(self, reports: Payload | Sequence[Any], values: ArrayLike) -> Integers:
        """How many reports support each value asked for: packed rows, or outputs of :meth:`randomize`."""
        if not isinstance(reports, np.ndarray):
            rows = b"".join(self.pack(output) for output in reports)
            reports = np.frombuffer(rows, np.uint8).reshape(-1, self.layout.bytes)
        return self.support_of(self.accumulate(self.empty(), reports), self._column(values))

    @abstractmethod
    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        """How many reports of the state support each value (all values for None)."""

    @abstractmethod
    def supports(self, output: Any, value: int) -> bool:
        """Whether one report speaks for ``value``."""

    def asked(self, values: ArrayLike | None) -> NDArray[np.uint64] | None:
        """The values asked for as codes; None for all, if they are few enough to list."""
        if values is not None:
            return self._column(values)
        if self.size > MOST_LISTED:
            raise InvalidInput(f"size ({self.size}) is too large to estimate every value; name the values")
        return None


@dataclass(frozen=True)
class PureOracle(Oracle):
    """A report supports the true value with chance p and any other with chance q (wang2021thesis, definition 3.2.1)."""

    @property
    @abstractmethod
    def exact_p(self) -> Fraction: ...

    @property
    @abstractmethod
    def exact_q(self) -> Fraction: ...

    @cached_property
    def p(self) -> float:
        """The realised chance that a report supports the true value."""
        return float(self.exact_p)

    @cached_property
    def q(self) -> float:
        """The realised chance that a report supports another value."""
        return float(self.exact_q)

    @cached_property
    def gap(self) -> float:
        return float(self.exact_p - self.exact_q)

    def estimate(self, state: Integers, people: int, values: ArrayLike | None = None) -> tuple[Floats, Floats]:
        frequencies = self.from_support(self.support_of(state, self.asked(values)), people)
        return frequencies, self.error_variances(state, people, frequencies)

    def from_support(self, support: Integers, people: int) -> Floats:
        """Unbiased frequencies from how many reports support each value."""
        # c(v) = (sum over reports of [v in support] - n q) / (p - q)        wang2021thesis, eq. (3.1)
        frequencies = support / people  # then in place: at 2^24 values every temporary column costs 128 MiB
        frequencies -= self.q
        frequencies /= self.gap
        return frequencies

    def error_variances(self, state: Integers, people: int, frequencies: Floats) -> Floats:
        """Variances of the errors of estimated frequencies, with what the state tells of them."""
        return self.observed_noise(state, people).variance(np.clip(frequencies, 0, 1))

    @property
    def state_shape(self) -> tuple[int, ...]:
        """By default the support of each value."""
        return (self.size,)

    def _accumulate(self, state: Integers, payload: Payload) -> None:
        """Count the support report by report: right for every pure oracle, fast for none."""
        rows, counts = np.unique(payload, axis=0, return_counts=True)
        for row, count in zip(rows, counts, strict=True):
            output = self.unpack(row.tobytes())
            state += count * np.fromiter((self.supports(output, value) for value in range(self.size)), np.int64)

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        return in_order(values, state)

    def noise(self, people: int) -> Noise:
        # Var[c(v)/n] = q(1 - q)/(n (p - q)^2) + f (1 - p - q)/(n (p - q))   wang2021thesis, eq. (3.2)
        p, q, gap = self.p, self.q, self.gap
        return Noise(q * (1 - q) / (people * gap**2), (1 - p - q) / (people * gap))


def in_order(values: NDArray[np.uint64] | None, everything: Integers) -> Integers:
    """The entries asked for, of a vector that holds all: a copy, so that a growing state leaves it as it is."""
    return everything.copy() if values is None else everything[values.astype(np.int64)]
