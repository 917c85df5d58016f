"""Square wave: for values in order, a report near the value is likelier than one far from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import WHOLE, Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.oracles.base import Floats, Integers, Noise, SummedOracle, in_order, tally
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import chance, exp, rounded_down


@dataclass(frozen=True)
class SquareWave(SummedOracle):
    """Report a place within ``half_width`` of the value with a chance of E times that of any other.

    Places are ``range(size + 2 half_width)``: value v has the near ones v .. v + 2 half_width. A
    report supports every value that it is near to, so one report tells of neighbours together.
    That is no pure law: frequencies are unbiased by least squares over all values, with a large
    error for a single one. Where values change smoothly, decode the places instead with
    :func:`sottovoce.postprocessing.smoothing.smoothed_em`.

    Guarantee: epsilon-LDP for one report.
    Assumes:   uniform entropy; value in range(size).
    Source:    li2020numerical, section 5 (discrete square wave).
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("square-wave",)
    about: ClassVar[str] = "square wave, for values in order"
    largest: ClassVar[int] = 1 << 11  # least squares takes a matrix of them
    uses_state: ClassVar[bool] = True  # the support of every value

    truth: int = field(metadata={"coin": True})
    half_width: int

    @classmethod
    def build(cls, size: int, epsilon: Decimal, half_width: int | None = None) -> Self:
        """``half_width``: how many places to either side of the value are near; the paper's choice
        by default.
        """
        odds = exp(epsilon)
        if odds - 1 < Fraction(2 * size, WHOLE):
            raise InvalidInput(
                f"epsilon ({epsilon}) is too small for size {size}: a report would say nothing"
            )
        if half_width is None:
            half_width = best_half_width(size, Fraction(epsilon), odds)
        reach = whole("half_width", half_width, 0, size - 1)
        near = 2 * reach + 1
        # t = m (E - 1) / (m (E - 1) + O),  m near places and O of all:
        #   near with p = t/m + (1 - t)/O = E/(m E + d - 1), others with q = (1 - t)/O
        weight = near * (odds - 1)
        truth = rounded_down(weight / (weight + size + 2 * reach))
        return cls(size, epsilon, truth, reach)

    def options(self) -> dict[str, Any]:
        return {"half_width": self.half_width}

    # -- the channel

    @property
    def near(self) -> int:
        """How many places are near a value."""
        return 2 * self.half_width + 1

    @property
    def places(self) -> int:
        """How many places a report can name."""
        return self.size + 2 * self.half_width

    @property
    def exact_q(self) -> Fraction:
        """The chance of a place that is not near the value."""
        return (1 - chance(self.truth)) / self.places

    @property
    def exact_p(self) -> Fraction:
        """The chance of a place that is near the value."""
        return chance(self.truth) / self.near + self.exact_q

    @cached_property
    def p(self) -> float:
        """The realised chance of a place near the value."""
        return float(self.exact_p)

    @cached_property
    def q(self) -> float:
        """The realised chance of any other place."""
        return float(self.exact_q)

    @cached_property
    def gap(self) -> float:
        return float(self.exact_p - self.exact_q)

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p / self.exact_q

    def blanket(self) -> Blanket:
        # a uniform place is near a value with chance m/O; the first and the last value have the
        # fewest near places in common
        one = Fraction(self.near, self.places)
        two = Fraction(max(0, self.near - (self.size - 1)), self.places)
        # the first, the middle and the last, if they have none in common
        apart = (self.size - 1) // 2 >= self.near
        return Blanket.of(self.worst_ratio, one, two, two, Fraction(0) if apart else None)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("place", (self.places - 1).bit_length(), self.places),))

    def randomize(self, value: int, entropy: Entropy) -> int:
        value = self.check(value)
        if entropy.coin(self.truth):
            return value + entropy.below(self.near)
        return entropy.below(self.places)

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_near

        answers = np.empty_like(values)

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            own = (values[rows], answers[rows])
            whisper_near(*own, self.near, self.places, np.uint64(self.truth), state)

        in_chunks(values.size, seed, work)
        self.layout.write(payload, "place", answers)

    # -- counting

    @property
    def state_shape(self) -> tuple[int, ...]:
        return (self.places,)  # how many reports name each place

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        places = self.layout.read(payload, "place").astype(np.int64)
        state += tally(places, weights, self.places)
        return state

    def support_of(self, state: Integers, values: NDArray[np.uint64] | None) -> Integers:
        return in_order(values, windowed(state, self.near))

    def supports(self, output: Any, value: int) -> bool:
        return bool(value <= output < value + self.near)

    # -- estimating

    @cached_property
    def _solver(self) -> Floats:
        """A with E[A (counts/n - q)] = (p - q) f: least squares, (values, places)."""
        # with W the near places of each value,  E[counts/n] = q + (p - q) W'f,
        # and least squares is A = (W W')^-1 W, where (W W')_uv = max(0, m - |u - v|)
        inverse = np.linalg.inv(self._overlap)
        # column o of W has the values near place o: sums over up to m columns of the inverse
        margin = ((0, 0), (self.near - 1, self.near - 1))
        return windowed(np.pad(inverse, margin), self.near)

    @cached_property
    def _overlap(self) -> Floats:
        """How many near places two values share, (values, values)."""
        order = np.arange(self.size)
        shared = np.maximum(0, self.near - np.abs(order[:, None] - order))
        return np.asarray(shared, np.float64)

    def from_support(self, support: Integers, people: int) -> Floats:
        """Unbiased frequencies from the support of all values, in order."""
        if len(support) != self.size:
            raise InvalidInput(f"square-wave needs the support of all {self.size} values at once")
        # E[S_v/n] = m q + (p - q) sum_u f_u overlap(u, v)
        excess = support / people - self.near * self.q
        return np.asarray(np.linalg.solve(self._overlap, excess) / self.gap)

    def estimate(
        self, state: Integers, people: int, values: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        everything = self.from_support(self.support_of(state, None), people)
        variances = self.error_variances(state, people, everything)
        asked = self.asked(values)
        if asked is None:
            return everything, variances
        chosen = asked.astype(np.int64)
        return everything[chosen], variances[chosen]

    def error_variances(self, state: Integers, people: int, frequencies: Floats) -> Floats:
        """Of the estimates of all values, with the places that were named."""
        named = np.maximum(state, 0) / people
        return self._variances(people, named, np.clip(frequencies, 0, 1))

    def all_variances(self, n: int, frequencies: Floats) -> Floats:
        return self._variances(n, self.place_chances(frequencies), frequencies)

    def place_chances(self, frequencies: Floats) -> Floats:
        """The chance of each place, if values have these frequencies, (places,)."""
        held = np.convolve(frequencies, np.ones(self.near))  # by those who are near it
        return np.asarray(self.q + self.gap * held)

    def _variances(self, people: int, named: Floats, frequencies: Floats) -> Floats:
        """Variances given the people: of their reports, less what the values themselves explain.

        Args:
            people: how many reported.
            named: the chance of each place over all of them, (places,).
            frequencies: of the values, (values,).
        """
        # for a person who holds x:  E[A_v] = q a_v + (p - q) [v = x],  a_v the sum of row v;
        # so  n (p - q)^2 Var = sum_o m_o A_vo^2 - (q a_v)^2 - f_v (2 q a_v (p - q) + (p - q)^2)
        solver, q, gap = self._solver, self.q, self.gap
        base = q * solver.sum(axis=1)
        squares = solver**2 @ named
        explained = base**2 + frequencies * (2 * base * gap + gap**2)
        return np.asarray((squares - explained) / (people * gap**2))

    @cached_property
    def _report_noise(self) -> Noise:
        """Of one report, a mean over the values."""
        # spread_vx: the variance of v's estimate in a report of a person who holds x
        solver, q, gap = self._solver, self.q, self.gap
        squares = solver**2
        near = windowed(squares, self.near)  # (values, values)
        base = q * solver.sum(axis=1)
        spread = q * squares.sum(axis=1)[:, None] + gap * near - (base**2)[:, None]
        own = np.diag(spread) - (2 * base * gap + gap**2)
        others = (spread.sum() - np.trace(spread)) / (self.size * (self.size - 1))
        floor, mine = float(others) / gap**2, float(own.mean()) / gap**2
        return Noise(floor, mine - floor)

    def noise(self, people: int) -> Noise:
        """A mean over the values, and over who holds the others."""
        single = self._report_noise
        return Noise(single.floor / people, single.slope / people)

    def sum_noise(self, people: int, count: int) -> Noise:
        """A mean over all sets of ``count`` values, for people spread evenly over the values."""
        # sum over v, w in S of Cov_vw: a mean over sets needs the mean of each of the two kinds
        gap, size = self.gap, self.size
        even = np.full(size, 1 / size)
        single = float(self.all_variances(1, even).mean())
        column = self._solver.sum(axis=0)  # of the sum over all values, (places,)
        mean = self.q * float(column.sum()) + gap  # the same for all who report
        total = float(column**2 @ self.place_chances(even)) - mean**2
        pair = (total / gap**2 - size * single) / (size * (size - 1))
        return Noise((count * single + count * (count - 1) * pair) / people, 0.0)


def windowed(cells: NDArray[Any], width: int) -> NDArray[Any]:
    """Sums over ``width`` neighbours of the last axis, (..., cells - width + 1).

    >>> windowed(np.array([1, 2, 3, 4]), 2).tolist()
    [3, 5, 7]
    """
    sums = np.cumsum(cells, axis=-1)
    later = sums[..., width - 1 :].copy()
    later[..., 1:] -= sums[..., :-width]
    return np.asarray(later)


def best_half_width(size: int, epsilon: Fraction, odds: Fraction) -> int:
    """Where a report tells most of its value by mutual information, rounded down to whole places.

    >>> [best_half_width(1024, Fraction(e), exp(Fraction(e))) for e in (1, 2, 4)]
    [262, 132, 31]
    """
    # b = (eps E - E + 1) / (2 E (E - 1 - eps))  of the length     li2020numerical, section 5
    share = (epsilon * odds - odds + 1) / (2 * odds * (odds - 1 - epsilon))
    return int(share * size)
