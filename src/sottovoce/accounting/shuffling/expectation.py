"""E[(S)_+] for a sum of independent losses, from above, on a grid.

Every atom is split over its two neighbours on the grid with its mean kept: a mean-preserving
spread, and (.)_+ is convex, so that the expectation can only grow, by what is of second order in
the step. The law is tilted so that its mean is 0: what is asked for is then the bulk of a law, not
its tail. The characteristic function is computed as its difference from 1, so that its power for
millions of people loses no digits; ``GRID_MARGIN`` covers what double precision may still lose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sottovoce.accounting.gaussian import Floats

Spectrum = NDArray[np.complex128]

GRID_MARGIN = 1e-6  # relative, of the expectation
MAX_GRID_POINTS = 1 << 22
COARSE_GRID = 1 << 12
FINE_GRID = 1 << 15
_WIDTH = 13.0  # standard deviations of the tilted sum to each side
_LARGEST_LOSSES = 6.0  # at least so many times the largest atom
_LARGEST_EXPONENT = 600.0
_MAX_GRIDS = 256  # that are compared
_STEPS = 60  # of a bisection between doubles of one size


@dataclass(frozen=True)
class LossPart:
    """``count`` independent losses: atoms with chances, and 0 with what these lack of 1."""

    values: Floats
    chances: Floats
    count: int

    def log_moment(self, tilt: float) -> float:
        """count ln E[e^(tilt l)]."""
        return self.count * math.log1p(float(self.chances @ np.expm1(tilt * self.values)))

    def tilted(self, tilt: float) -> tuple[float, float]:
        """The mean and the variance of their sum under the tilted law."""
        weights = self.chances * np.exp(tilt * self.values)
        total = 1 + float(self.chances @ np.expm1(tilt * self.values))
        mean = float(weights @ self.values) / total
        square = float(weights @ self.values**2) / total
        return self.count * mean, self.count * (square - mean * mean)


def positive_part(parts: Sequence[LossPart], points: int = FINE_GRID) -> float:
    """An upper bound of E[(S)_+], S the sum of all losses of the parts.

    Args:
        parts: at least one loss in all.
        points: of the grid, unless the sum needs more of them.
    """
    parts = [part for part in parts if part.count > 0]
    largest = max(float(part.values.max()) for part in parts)
    if largest <= 0:
        return 0.0
    tilt = centring_tilt(parts)
    step, size = loss_grid(parts, tilt, largest, points)
    split = [_split(part, step) for part in parts]
    if step > largest:
        tilt = centring_tilt(split)
    # log of the tilted characteristic function, up to its value at 0
    log_scale = sum(part.log_moment(tilt) for part in split)
    # no sum is above all its largest losses
    most = largest * sum(part.count for part in parts)
    if log_scale > _LARGEST_EXPONENT:
        return most
    powers = spectrum(split, step, tilt, size)
    law = np.fft.irfft(powers, size)[1 : size // 2]
    places = np.arange(1, size // 2)
    weights = places * step * np.exp(-tilt * step * places)
    body = float(weights @ np.maximum(law, 0))
    inside = math.exp(log_scale) * body
    found = inside + _beyond(split, size // 2 * step)
    return min(found, most) * (1 + GRID_MARGIN)


def centring_tilt(parts: Sequence[LossPart]) -> float:
    """The tilt under which the sum has the mean 0; 0 if the mean is not below 0."""

    def mean(tilt: float) -> float:
        return sum(part.tilted(tilt)[0] for part in parts)

    if mean(0.0) >= 0:
        return 0.0
    largest = max(float(part.values.max()) for part in parts)
    low, high = 0.0, 1e-3 / largest
    while mean(high) < 0 and high * largest < 300:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if mean(middle) < 0:
            low = middle
        else:
            high = middle
        if high - low < 1e-9 * high:
            break
    return high


def loss_grid(
    parts: Sequence[LossPart], tilt: float, largest: float, points: int
) -> tuple[float, int]:
    """The step, of which the largest atom is a multiple, and the number of points."""
    variance = sum(part.tilted(tilt)[1] for part in parts)
    # sums far below 0 may wrap to above it, which only adds; the tilt leaves hardly any of them
    half = max(_WIDTH * math.sqrt(max(variance, 0.0)), _LARGEST_LOSSES * largest)
    half = min(half, 1.01 * sum(part.count * float(np.abs(part.values).max()) for part in parts))
    size = points
    # so many steps hold a sum of losses that are all of one size
    enough = 4 * _WIDTH * math.sqrt(sum(part.count for part in parts))
    while largest * size < 2 * half and size < min(enough, MAX_GRID_POINTS):
        size *= 2
    if largest * size < 2 * half:
        return 2 * half / size, size  # the largest loss is below a step: it is split too
    step = largest / _least_spread(parts, tilt, largest, math.ceil(largest * points / (2 * half)))
    while size * step < 2 * half:
        size *= 2
    return step, size


def _least_spread(parts: Sequence[LossPart], tilt: float, largest: float, least: int) -> int:
    """How many steps the largest atom should have, from ``least`` to twice as many, so that the
    others lie nearest to the grid: splitting adds p f (1 - f) step^2 to the variance.
    """
    counts = np.arange(least, 2 * least + 1)[:_MAX_GRIDS]  # (grids,)
    spread = np.zeros(len(counts))
    for part in parts:
        weights = part.count * part.chances * np.exp(tilt * part.values)
        places = part.values[:, None] / largest * counts  # (atoms, grids)
        share = places - np.floor(places)
        spread += weights @ (share * (1 - share))
    return int(counts[np.argmin(spread / counts**2)])


def _split(part: LossPart, step: float) -> LossPart:
    """Atoms in whole steps, each split over its neighbours; values are still losses."""
    below = np.floor(part.values / step)
    share = np.clip(part.values / step - below, 0.0, 1.0)
    places = np.concatenate([below, below + 1])
    chances = np.concatenate([part.chances * (1 - share), part.chances * share])
    kept, index = np.unique(places, return_inverse=True)
    merged: Floats = np.bincount(index.reshape(-1), chances, len(kept)).astype(float)
    some = merged > 0
    return LossPart(kept[some] * step, merged[some], part.count)


@lru_cache(maxsize=4)
def _sines(size: int) -> tuple[Floats, Floats]:
    """sin(pi k / size) and sin(2 pi k / size), for every k below a size that is a power of two."""
    angles = np.arange(size) * (np.pi / size)
    return np.sin(angles), np.sin(2 * angles)


def spectrum(parts: Sequence[LossPart], step: float, tilt: float, size: int) -> Spectrum:
    """The characteristic function of the tilted sum, at the frequencies of a real transform."""
    frequency = np.arange(size // 2 + 1)
    sines, doubled = _sines(size)
    log_power = np.zeros(size // 2 + 1, complex)
    for part in parts:
        weights = part.chances * np.exp(tilt * part.values)
        weights /= 1 + float(part.chances @ np.expm1(tilt * part.values))
        real, imaginary = np.zeros(size // 2 + 1), np.zeros(size // 2 + 1)
        for place, weight in zip(np.rint(part.values / step), weights, strict=True):
            if place == 0:
                continue
            turns = (frequency * (int(place) % size)) & (size - 1)
            sine = sines[turns]
            # e^(-2 i angle) - 1 = -2 sin^2(angle) - i sin(2 angle), angle = pi turns / size
            real -= 2 * weight * sine * sine
            imaginary -= weight * doubled[turns]
        # ln |1 + z| = log1p(2 Re z + |z|^2)/2
        modulus = np.maximum(2 * real + real * real + imaginary * imaginary, -1.0)
        with np.errstate(divide="ignore"):
            log_power += part.count * 0.5 * np.log1p(modulus)
        log_power += 1j * (part.count * np.arctan2(imaginary, 1 + real))
    found: Spectrum = np.exp(log_power.real) * np.exp(1j * log_power.imag)
    return found


def _beyond(parts: Sequence[LossPart], limit: float) -> float:
    """E[S; S >= limit] <= limit e^(K(t) - t limit) for every t >= 1/limit, K the log moment."""
    if limit >= sum(part.count * max(0.0, float(part.values.max())) for part in parts):
        return 0.0
    largest = max(float(part.values.max()) for part in parts)
    least, tilt = math.inf, 1.0 / limit
    while tilt * largest < 300:
        exponent = sum(part.log_moment(tilt) for part in parts) - tilt * limit
        if exponent > least:
            break  # convex in the tilt
        least = exponent
        tilt *= 1.3
    return limit * math.exp(min(least, 300.0))
