"""What every frequency oracle is: a randomizer and an estimator, and a counter if its reports can
be summed. Pure ones follow from p and q.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.oracles.counter import MANY, Counter, Integers, tally, tally_groups
from sottovoce.oracles.estimator import Estimator, Floats, Noise, in_order
from sottovoce.oracles.layout import Payload
from sottovoce.oracles.randomizer import Randomizer
from sottovoce.oracles.shape import MAX_LISTED_VALUES

__all__ = [
    "MANY",
    "MAX_LISTED_VALUES",
    "Floats",
    "Integers",
    "Noise",
    "Oracle",
    "PureOracle",
    "SummedOracle",
    "in_order",
    "tally",
    "tally_groups",
]


@dataclass(frozen=True)
class Oracle(Randomizer, Estimator):
    """A frequency oracle for ``range(size)`` at ``requested`` epsilon. Its coins are the integers
    it is built of.
    """

    def support(self, reports: Payload | Sequence[Any], values: ArrayLike) -> Integers:
        """How many reports support each value asked for: packed rows, or outputs of
        :meth:`randomize`.
        """
        return self.support_rows(self._checked(reports), None, self._column(values))

    def estimate_reports(
        self, reports: Payload | Sequence[Any], values: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Unbiased frequencies of ``values`` (all of them by default) among those who sent these
        reports, and the variances of their errors.
        """
        payload = self._checked(reports)
        support = self.support_rows(payload, None, self.asked(values))
        return self.estimate_support(support, len(payload))

    def _checked(self, reports: Payload | Sequence[Any]) -> Payload:
        """Reports as packed rows, which were checked."""
        if not isinstance(reports, np.ndarray):
            rows = b"".join(self.pack(output) for output in reports)
            reports = np.frombuffer(rows, np.uint8).reshape(-1, self.layout.bytes)
        self.validate(reports)
        return reports


@dataclass(frozen=True)
class SummedOracle(Oracle, Counter):
    """An oracle whose reports can be summed: all that an estimate needs is a state of fixed shape.

    By default the state is the support of each value.
    """

    # whether estimates need more of a state than the support of the values
    uses_state: ClassVar[bool] = False

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.size,)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        """Count the support report by report: right wherever the support of each value is the
        state, and not fast.
        """
        rows, places = np.unique(payload, axis=0, return_inverse=True)
        counts = tally(places.reshape(-1), weights, len(rows))
        for row, count in zip(rows, counts, strict=True):
            output = self.unpack(row.tobytes())
            state += count * np.fromiter(
                (self.supports(output, value) for value in range(self.size)), np.int64
            )
        return state

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        """How many reports of the state support each value (all values for None)."""
        return in_order(values, state)

    def support_rows(
        self, payload: Payload, weights: Integers | None, values: NDArray[np.uint64] | None
    ) -> Integers:
        return self.support_of(self._accumulate(self.empty(), payload, weights), values)

    def estimate(
        self, state: Integers, people: int, values: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Unbiased frequencies of ``values`` (all of them by default) and the variances of their
        errors.
        """
        frequencies = self.from_support(self.support_of(state, self.asked(values)), people)
        return frequencies, self.error_variances(state, people, frequencies)

    def estimate_reports(
        self, reports: Payload | Sequence[Any], values: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        payload = self._checked(reports)
        state = self._accumulate(self.empty(), payload, None)
        return self.estimate(state, len(payload), values)

    def error_variances(self, state: Integers, people: int, frequencies: Floats) -> Floats:
        """Variances of the errors of estimated frequencies, with what the state tells of them."""
        return self.observed_noise(state, people).variance(np.clip(frequencies, 0, 1))

    def observed_noise(self, state: Integers, people: int) -> Noise:
        """The error's law for the crowd that the state holds, where more than its size matters."""
        return self.noise(people)

    def sum_variances(self, state: Integers, people: int, count: int, sums: Floats) -> Floats:
        """Variances of the errors of estimated sums, of ``count`` values each, with what the state
        tells of them.
        """
        return self.sum_noise(people, count).variance(np.clip(sums, 0, 1))


@dataclass(frozen=True)
class PureOracle(Oracle):
    """A report supports the true value with chance p, others with q (wang2021thesis, 3.2.1)."""

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

    @property
    def fake_support(self) -> Fraction:
        """The chance that a report of nobody supports a value, which is the same for all values."""
        muted = self.muted
        return (muted.exact_p + (self.size - 1) * muted.exact_q) / self.size

    def among_fakes(self, share: Fraction) -> Self:
        """The same for estimates of a crowd, of whose reports this share are fakes: a value is
        supported with the chances p and q that a report drawn from all of them has.
        """
        mixed = copy.copy(self)
        others = share * self.fake_support
        for name, chance in (("p", self.exact_p), ("q", self.exact_q)):
            mixed.__dict__[name] = float((1 - share) * chance + others)
        mixed.__dict__["gap"] = float((1 - share) * (self.exact_p - self.exact_q))
        return mixed

    def from_support(self, support: Integers, people: int) -> Floats:
        """Unbiased frequencies from how many reports support each value."""
        # c(v) = (sum over reports of [v in support] - n q) / (p - q)   wang2021thesis, eq. (3.1)
        # then in place: at 2^24 values every temporary column costs 128 MiB
        frequencies = support / people
        frequencies -= self.q
        frequencies /= self.gap
        return frequencies

    def noise(self, people: int) -> Noise:
        # Var[c(v)/n] = q(1 - q)/(n (p - q)^2) + f (1 - p - q)/(n (p - q))
        #     wang2021thesis, eq. (3.2)
        p, q, gap = self.p, self.q, self.gap
        return Noise(q * (1 - q) / (people * gap**2), (1 - p - q) / (people * gap))
