"""What sizes that were heard through noise say of a length limit: the part that it cuts off, and
how surely that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sottovoce.questions.itemsets.sizes import Floats, Sizes

# Discrete Weibull laws of sizes beyond m, P[size > m + s | size > m] = exp(-(s / scale)^bend): from
# tails heavier than a geometric law's (bend 0.4) to those of a normal one (bend 2)
SCALES = np.geomspace(0.25, 64, 24)
BENDS = np.array([0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.25, 1.6, 2.0])
# some people may hold many more: so many of them, this times as many on average
LONG_PARTS = (0.0, 0.05, 0.15)
LONG_TIMES = 5.0
MOST_FREE = 6  # the largest m: the shares of sizes up to it follow no law
FREE_RANGE = 0.3  # within which a free share lies beforehand; one that is not needed is penalised
FEW_HELD = 3  # the power by which a law becomes less likely beforehand, the more people hold
LEAST_FREEDOM = 3  # what a law takes of the sizes heard: a scale, a bend, and how many are beyond m

# A candidate's own update factor is 1 + k (u - 1), for the common factor u. Frequent candidates are
# held by many who hold little else, so that k is mostly below one; both constants are read off the
# frequent items and itemsets of kosarak, retail, online_retail and lastfm (docs/popular.md).
OWN_PART = 0.6  # the mean of k
OWN_SPREAD = 0.3  # its standard deviation


@dataclass(frozen=True)
class OwnFactor:
    """What the told part of a candidate's frequency must be multiplied by.

    ``variance`` holds all that is not known of it: how candidates differ, and how the sizes are.
    """

    value: float
    variance: float

    def instead(self, used: float) -> OwnFactor:
        """Another factor that is used all the same; its mean squared error is larger."""
        return OwnFactor(used, self.variance + (used - self.value) ** 2)


@dataclass(frozen=True, eq=False)
class SizeLaw:
    """The laws of sizes that may have been heard, each with its weight."""

    laws: Floats  # (laws, sizes)
    weights: Floats  # (laws,): sum to one
    free: NDArray[np.int64]  # (laws,): sizes up to this one are as heard
    variance: float  # of a share that is as heard

    @classmethod
    def of(cls, sizes: Sizes) -> SizeLaw:
        """The laws that go with sizes as they were heard, unfiltered."""
        heard, count = sizes.shares, len(sizes.shares)
        parts, squares, free = [], [], []
        for most in range(min(MOST_FREE, count - 2) + 1):
            laws = _laws(heard, most)  # (shapes, sizes)
            beyond = laws[:, most + 1 :] - heard[most + 1 :]
            total = laws[:, most + 1 :].sum(axis=1) + heard[: most + 1].sum() - 1
            parts.append(laws)
            squares.append((beyond**2).sum(axis=1) + total**2)
            free.append(np.full(len(laws), most))
        laws, misfits = np.concatenate(parts), np.concatenate(squares)
        places = np.concatenate(free)
        # misfit of the best law counts as noise
        freedom = max(count - MOST_FREE - LEAST_FREEDOM, 1)
        variance = max(sizes.variance, float(misfits.min()) / freedom, 1e-12)
        # log P[heard | law], and sqrt(2 pi variance) / range for each free share
        occam = np.log(min(np.sqrt(2 * np.pi * variance) / FREE_RANGE, 1.0))
        # beforehand people hold few candidates
        held = laws @ np.arange(count)  # (laws,)
        logs = places * occam - misfits / (2 * variance) - FEW_HELD * np.log1p(held)
        weights = np.exp(logs - logs.max())
        return cls(laws, weights / weights.sum(), places, variance)

    @property
    def sizes(self) -> int:
        """How many sizes are told apart: 0, 1, 2, ..., the last with all that are larger."""
        return int(self.laws.shape[1])

    @property
    def mean(self) -> Floats:
        """The expected law, (sizes,)."""
        return np.asarray(self.weights @ self.laws)

    @property
    def held(self) -> float:
        """How many candidates a person holds on average."""
        return float(np.arange(self.sizes) @ self.mean)

    def factors(self, length: int) -> tuple[float, float]:
        """(mean, variance) of the common update factor u at this length.

        The mean is that of 1/u, which a few laws with long tails do not carry away; the variance is
        the mean squared distance from it.
        """
        numbers = np.arange(self.sizes, dtype=float)
        limited = np.minimum(numbers, length)
        # u = A/B with A = sum of l f(l), B = sum of min(l, L) f(l)   wang2021thesis, eq. (5.5)
        held = np.maximum(self.laws @ numbers, 1e-9)  # (laws,)
        told = np.maximum(self.laws @ limited, 1e-9)
        ratios = held / told
        mean = float(1 / (self.weights @ (told / held)))
        between = (ratios - mean) ** 2
        # du/df(l) = (l - u min(l, L)) / B, of each free share and of all that is beyond them
        slopes = (numbers - ratios[:, None] * limited) / told[:, None]  # (laws, sizes)
        is_free = numbers <= self.free[:, None]
        of_free = np.where(is_free, slopes**2, 0).sum(axis=1)
        tails = np.where(is_free, 0, self.laws)
        shapes = tails / np.maximum(tails.sum(axis=1, keepdims=True), 1e-12)
        # the share T beyond m has variance / (1 + sum of g^2)
        of_tail = (slopes * shapes).sum(axis=1) ** 2 / (1 + (shapes**2).sum(axis=1))
        # at most as far as a factor between 1 and most / L can vary
        widest = ((self.sizes - 1) / length - 1) ** 2 / 4
        within = np.minimum(self.variance * (of_free + of_tail), max(widest, 0.0))
        return mean, float(self.weights @ (between + within))

    def own_factor(self, length: int) -> OwnFactor:
        """What a candidate is expected to need, and how far it may be from that."""
        mean, variance = self.factors(length)
        missed = (mean - 1) ** 2 + variance  # E[(u - 1)^2]
        # k and u are independent: Var[k (u - 1)] = Var[k] E[(u - 1)^2] + E[k]^2 Var[u]
        spread = OWN_SPREAD**2 * missed + OWN_PART**2 * variance
        return OwnFactor(1 + OWN_PART * (mean - 1), spread)


def _laws(heard: Floats, most: int) -> Floats:
    """Laws with the shares of sizes up to ``most`` as heard, and a tail of every shape beyond.

    Args:
        heard: shares of the sizes 0, 1, 2, ..., the last with all that are larger, (sizes,).
        most: the largest size whose share is as heard.

    Returns:
        All laws, (shapes, sizes).
    """
    shapes = _shapes(len(heard) - most - 1)  # (shapes, sizes - most - 1)
    first = np.maximum(heard[: most + 1], 0)
    left = 1 - heard[: most + 1].sum()
    # the share T beyond, by least squares:  T = left,  s_l = T g_l
    fitted = left + shapes @ heard[most + 1 :]
    beyond = np.clip(fitted / (1 + (shapes**2).sum(axis=1)), 1e-6, 1)  # (shapes,)
    return np.column_stack([np.tile(first, (len(shapes), 1)), beyond[:, None] * shapes])


@cache
def _shapes(count: int) -> Floats:
    """All laws of ``count`` sizes 1, 2, ..., the last with all that are larger, (shapes, count)."""
    numbers = np.arange(1, count, dtype=float)
    scales, bends = (grid.reshape(-1, 1) for grid in np.meshgrid(SCALES, BENDS))
    # P[size > s], (scales and bends, count - 1)
    most = np.exp(-((numbers / scales) ** bends))
    longer = np.exp(-numbers / (LONG_TIMES * np.maximum(scales, 1)))
    parts = [(1 - part) * most + part * longer for part in LONG_PARTS]
    beyond = np.concatenate(parts)  # (shapes, count - 1)
    one, none = np.ones((len(beyond), 1)), np.zeros((len(beyond), 1))
    return np.asarray(-np.diff(np.hstack([one, beyond, none]), axis=1))
