"""Histogram encoding: discrete Laplace noise on a grid of 2^-10, summed or thresholded."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import share
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.oracles.base import Floats, Integers, Noise, SummedOracle
from sottovoce.oracles.blankets import Blanket, no_blanket
from sottovoce.oracles.layout import Field, Layout, Payload
from sottovoce.oracles.thresholds import exp, rounded_down, rounded_up
from sottovoce.oracles.unary import UnaryEncoding

GRID = 1 << 10  # a count of one is this many grid steps
FINEST = 1 << 47  # the largest scale, so that the sampler's products stay below 2^64
_ROWS = 1 << 12  # reports that are widened at once
MAX_NOISY_CELL = 1 << 30  # cells saturate here, at least a hundred scales out


def _scale(epsilon: Decimal) -> tuple[int, int]:
    """(scale, rate) in integers: P(z) ~ exp(-|z| rate/scale), with rate/scale <= epsilon/(2 GRID).

    Equal where the fraction is short, and rounded down to 47 bits, the private side, where it is
    not.
    """
    step = Fraction(epsilon) / (2 * GRID)
    if step.denominator > FINEST:
        step = Fraction(math.floor(step * FINEST), FINEST)
    if step < Fraction(1, 1 << 24):
        raise InvalidInput(f"epsilon ({epsilon}) must be at least 0.0002 for summed histograms")
    return step.denominator, step.numerator


def _survives(entropy: Entropy, numerator: int, denominator: int) -> bool:
    """Heads with probability exp(-numerator/denominator), a ratio of at most 1, in integers."""
    rounds = 1
    while entropy.below(denominator * rounds) < numerator:
        rounds += 1
    return rounds % 2 == 1


def discrete_laplace(scale: int, rate: int, entropy: Entropy) -> int:
    """Noise z with P(z) ~ exp(-|z| rate/scale), exactly (canonne2020discrete, algorithm 2)."""
    while True:
        part = entropy.below(scale)
        if not _survives(entropy, part, scale):
            continue
        whole = 0
        while _survives(entropy, 1, 1):
            whole += 1
        size = (part + scale * whole) // rate
        negative = entropy.bits(1) == 1
        if not (negative and size == 0):
            return -size if negative else size


@dataclass(frozen=True)
class SummedHistogramEncoding(SummedOracle):
    """Report the one-hot histogram plus discrete Laplace noise of scale 2/epsilon in every cell.

    A report supports every value by its cell: the support is in grid steps.

    Guarantee: epsilon-LDP for one report, exactly (two cells differ by one count each).
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.2; its proof corrected, see docs/errata.
    Checked:   tests/exact/test_laplace.py
    """

    names: ClassVar[tuple[str, ...]] = ("she",)
    about: ClassVar[str] = "histogram encoding, summed"
    is_finite: ClassVar[bool] = False
    largest: ClassVar[int] = 1 << 16
    most_weight: ClassVar[int] = (
        1 << 62
    ) // MAX_NOISY_CELL  # a report moves a cell by up to MAX_NOISY_CELL
    counts_reports: ClassVar[bool] = False  # cells have weights

    scale: int = field(metadata={"coin": True})
    rate: int = field(metadata={"coin": True})

    @classmethod
    def build(cls, size: int, epsilon: Decimal) -> Self:
        return cls(size, epsilon, *_scale(epsilon))

    @cached_property
    def epsilon(self) -> float:
        return float(Fraction(self.rate, self.scale) * 2 * GRID)

    @property
    def worst_ratio(self) -> Fraction:
        return exp(Fraction(self.rate, self.scale) * 2 * GRID)

    def blanket(self) -> Blanket:
        raise no_blanket(
            self.names[0], "its cells hold numbers, which support a value more or less; the has one"
        )

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("cells", 32 * self.size),))

    def randomize(self, value: int, entropy: Entropy) -> tuple[int, ...]:
        own = self.check(value)
        noise = [discrete_laplace(self.scale, self.rate, entropy) for _ in range(self.size)]
        noise[own] += GRID
        return tuple(max(-MAX_NOISY_CELL, min(MAX_NOISY_CELL, cell)) for cell in noise)

    def pack(self, output: Any) -> bytes:
        return np.array(output, "<i4").tobytes()

    def unpack(self, data: bytes) -> Any:
        if len(data) != self.layout.bytes:
            raise CorruptReport(f"payload ({len(data)} bytes) must have {self.layout.bytes} bytes")
        payload = np.frombuffer(data, np.uint8)[None, :]
        self.validate(payload)
        return tuple(payload.view("<i4")[0].tolist())

    def validate(self, payload: Payload) -> None:
        super().validate(payload)
        cells = np.ascontiguousarray(payload).view("<i4")
        if cells.size and (int(cells.max()) > MAX_NOISY_CELL or int(cells.min()) < -MAX_NOISY_CELL):
            raise CorruptReport("payload: a cell must lie within 2^30 grid steps")

    def _simulate(self, values: NDArray[np.uint64], payload: Payload, seed: Seed) -> None:
        from sottovoce.kernels.draws import in_chunks
        from sottovoce.kernels.whisper import whisper_laplace

        cells = payload.view("<i4")

        def work(rows: slice, state: NDArray[np.uint64]) -> None:
            whisper_laplace(
                values[rows],
                cells[rows],
                GRID,
                MAX_NOISY_CELL,
                np.uint64(self.scale),
                np.uint64(self.rate),
                state,
            )

        in_chunks(values.size, seed, work)

    def _accumulate(self, state: Integers, payload: Payload, weights: Integers | None) -> Integers:
        cells = np.ascontiguousarray(payload).view("<i4")  # (reports, values)
        if weights is None:
            state += cells.sum(axis=0, dtype=np.int64)
            return state
        for start in range(0, len(cells), _ROWS):
            rows = slice(start, start + _ROWS)
            state += weights[rows] @ cells[rows].astype(np.int64)
        return state

    def from_support(self, support: Integers, people: int) -> Floats:
        """The mean of a value's cell, which holds one count for it and noise of mean zero."""
        return support / (people * GRID)

    def noise(self, people: int) -> Noise:
        # Var[z] = 2 alpha / (1 - alpha)^2 grid steps, alpha = exp(-rate/scale);
        # about 8/epsilon^2 counts
        alpha = math.exp(-self.rate / self.scale)
        return Noise(
            2 * alpha / (-math.expm1(-self.rate / self.scale)) ** 2 / GRID**2 / people, 0.0
        )

    def supports(self, output: Any, value: int) -> bool:
        return bool(output[value] * 2 > GRID)


def tails(epsilon: Decimal, theta: int) -> tuple[Fraction, Fraction]:
    """(p, q): the chances that a cell with and without the count lies above ``theta`` grid steps, 0
    <= theta < GRID.
    """
    step = Fraction(epsilon) / (2 * GRID)
    alpha = exp(-step)
    # P(z > t) = alpha^(t+1)/(1 + alpha) for t >= 0;  P(z > t - GRID) = 1 - P(z > GRID - 1 - t)
    q = exp(-step * (theta + 1)) / (1 + alpha)
    p = 1 - exp(-step * (GRID - theta)) / (1 + alpha)
    return p, q


def best_theta(epsilon: Decimal) -> int:
    """The threshold on the grid with the least variance for rare values, q(1 - q)/(p - q)^2."""
    step = float(epsilon) / (2 * GRID)
    theta = np.arange(GRID)
    alpha = math.exp(-step)
    q = np.exp(-step * (theta + 1)) / (1 + alpha)
    p = 1 - np.exp(-step * (GRID - theta)) / (1 + alpha)
    return int(np.argmin(q * (1 - q) / (p - q) ** 2))


@dataclass(frozen=True)
class ThresholdedHistogramEncoding(UnaryEncoding):
    """Report which cells of the noisy histogram lie above a threshold, as the device finds them.

    The noise of a cell matters only through one bit, whose law is known in closed form, so the
    device tosses that bit; what leaves it is unary encoding with the p and q of discrete Laplace
    noise. Thresholding is a loss of information, so the realised epsilon is below the noise's own.

    Guarantee: epsilon-LDP for one report (and less: see ``epsilon``).
    Assumes:   uniform entropy; value in range(size).
    Source:    wang2021thesis, section 3.3.2.
    Checked:   tests/exact/test_channels.py
    """

    names: ClassVar[tuple[str, ...]] = ("the",)
    about: ClassVar[str] = "histogram encoding, thresholded at the best theta"

    theta: int  # in grid steps

    @classmethod
    def build(cls, size: int, epsilon: Decimal, theta: str | float | None = None) -> Self:
        """``theta``: the threshold in counts, between 0 and 1; the best one by default."""
        steps = (
            best_theta(epsilon)
            if theta is None
            else min(round(share("theta", theta) * GRID), GRID - 1)
        )
        p, q = tails(epsilon, steps)
        return cls._with(size, epsilon, rounded_down(p), rounded_up(q), steps)

    def options(self) -> dict[str, Any]:
        return {"theta": str(Fraction(self.theta, GRID))}
