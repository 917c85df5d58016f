"""A binary tree over the codes of one dimension, of any number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from sottovoce.kernels.cascade import WHOLE_LOGIT
from sottovoce.questions.queries.evidence import Floats, Integers


@dataclass(frozen=True)
class Splits:
    """A tree with 2^depths leaves, in which ``size`` leaves have a code and the others nothing.

    The empty leaves are spread evenly, so that all nodes of one depth hold about equally many
    codes: node k of depth l holds the codes from k size >> l to (k + 1) size >> l.

    >>> Splits(3).places
    array([1, 2, 3, 4])
    """

    size: int

    @cached_property
    def depths(self) -> int:
        """How often a code's node is split."""
        return max(1, (self.size - 1).bit_length())

    @cached_property
    def leaves(self) -> int:
        """How many leaves there are."""
        return 1 << self.depths

    @cached_property
    def places(self) -> Integers:
        """The leaf of each code, and the number of leaves behind the last, (size + 1,)."""
        ends = (np.arange(1, self.leaves + 1) * self.size) >> self.depths  # (leaves,)
        places = np.searchsorted(ends, np.arange(self.size), side="right")
        return np.append(places, self.leaves).astype(np.int64)

    @cached_property
    def sizes(self) -> Integers:
        """The number of codes below each node, (2 leaves,)."""
        sizes = np.zeros(2 * self.leaves, np.int64)
        sizes[self.leaves + self.places[:-1]] = 1
        for node in range(self.leaves - 1, 0, -1):
            sizes[node] = sizes[2 * node] + sizes[2 * node + 1]
        return sizes

    @cached_property
    def log_sizes(self) -> Floats:
        """The logarithms of the sizes; 0 of nodes without codes, which nothing looks at."""
        return np.log(np.maximum(self.sizes, 1))

    @cached_property
    def is_split(self) -> NDArray[np.bool_]:
        """Whether a node has codes on both sides, (leaves,)."""
        split = np.zeros(self.leaves, bool)
        split[1:] = (self.sizes[2::2] > 0) & (self.sizes[3::2] > 0)
        return split

    @cached_property
    def base(self) -> Floats:
        """The logits of equal frequencies, (leaves,)."""
        return self.logits(np.full(self.size, 1.0 / self.size))

    def logits(self, frequencies: Floats) -> Floats:
        """The logits of frequencies by code, (leaves,)."""
        masses = np.zeros(2 * self.leaves)
        masses[self.leaves + self.places[:-1]] = np.maximum(frequencies, 0.0) + 1e-15
        for depth in range(self.depths - 1, -1, -1):
            first = 1 << depth
            below = masses[2 * first : 4 * first]
            masses[first : 2 * first] = below[0::2] + below[1::2]
        is_left = self.sizes[2::2] > 0  # (leaves - 1,), from the root on
        logits = np.append(0.0, np.where(is_left, WHOLE_LOGIT, -WHOLE_LOGIT))
        split = np.flatnonzero(self.is_split)
        logits[split] = np.log(masses[2 * split] / masses[2 * split + 1])
        return logits


@lru_cache(maxsize=64)
def splits_of(size: int) -> Splits:
    """The tree over this many codes, made once."""
    return Splits(size)
