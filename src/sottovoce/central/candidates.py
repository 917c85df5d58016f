"""Which tuples may be found: those all of whose subtuples were. They are never listed.

Values are numbered ascending by attribute. A found tuple is a node of a trie, and the candidates
that begin with it are a row of bits. So candidates are counted, drawn and recognised by rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sottovoce.central.method import Integers
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.noise import uniform_below
from sottovoce.kernels.tuples import extension_bits, hash_table, looked_up, nth_bits, set_bits

Words = NDArray[np.uint64]

LARGEST_EXTENSIONS = 1 << 28  # words of bits: 2 GiB
_MOST_LISTED = 1 << 20  # candidates that are listed one by one, where that is simpler
_NO_NODE = -1


def capacity_for(count: int) -> int:
    """A power of two that a hash table of so many keys fills by a half at most."""
    return 1 << max(4, (2 * count).bit_length())


@dataclass(frozen=True, eq=False)
class TupleCandidates:
    """All k-tuples that may be found.

    A key names one: the node of its first k - 1 values times the number of values, plus its last.
    """

    k: int
    after: Integers  # of each value the first one that may stand beside it, (values,)
    levels: tuple[Integers, ...] = ()  # found tuples of 1, 2, ... k - 1 values, rows ascending
    node_keys: Integers = field(default_factory=lambda: np.full(16, -1, np.int64))
    node_numbers: Integers = field(default_factory=lambda: np.zeros(16, np.int64))
    extensions: Words = field(default_factory=lambda: np.zeros((0, 0), np.uint64))
    first_node: int = 0  # of the found tuples of k - 1 values
    starts: Integers = field(default_factory=lambda: np.zeros(1, np.int64))  # by first k - 1 values

    @classmethod
    def single(cls, after: Integers) -> TupleCandidates:
        """The values themselves."""
        return cls(1, after, starts=np.array([0, len(after)]))

    @property
    def total(self) -> int:
        """How many candidates there are."""
        return int(self.starts[-1])

    @property
    def key_range(self) -> tuple[int, int]:
        """The first key that a candidate may have, and how many keys there are from it on."""
        size = len(self.after)
        if self.k == 1:
            return 0, size
        return self.first_node * size, len(self.levels[-1]) * size

    @property
    def listing(self) -> tuple[int, Integers, Integers, Integers, Words, int]:
        """What the kernels read."""
        return (
            self.k,
            self.after,
            self.node_keys,
            self.node_numbers,
            self.extensions,
            self.first_node,
        )

    def tuples(self, keys: Integers) -> Integers:
        """The values of candidates, (keys, k)."""
        if self.k == 1:
            return keys[:, None]
        size = len(self.after)
        first = self.levels[-1][keys // size - self.first_node]
        return np.column_stack([first, keys % size])

    def at(self, ranks: Integers) -> Integers:
        """The keys of candidates by rank, from 0 to ``total - 1``."""
        if self.k == 1:
            return ranks
        rows = np.searchsorted(self.starts, ranks, side="right") - 1
        within = ranks - self.starts[rows]
        if len(self.extensions):
            last = nth_bits(self.extensions, rows, within)
        else:
            last = self.after[rows] + within
        return np.asarray((rows + self.first_node) * len(self.after) + last)

    def absent(self, count: int, present: Integers, entropy: Entropy) -> Integers:
        """A uniform choice of different candidates that are not present.

        Args:
            count: how many, at most as many as there are.
            present: keys.
            entropy: where the choice comes from.
        """
        if self.total <= _MOST_LISTED:
            others = np.setdiff1d(self.at(np.arange(self.total)), present)
            return _chosen(others, count, entropy)
        keys, values = hash_table(present, present, capacity_for(len(present)))
        chosen = np.zeros(0, np.int64)
        while len(chosen) < count:
            ranks = uniform_below(self.total, 2 * (count - len(chosen)) + 16, entropy)
            drawn = self.at(ranks)
            is_present = looked_up(keys, values, drawn, _NO_NODE) != _NO_NODE
            together = np.concatenate([chosen, drawn[~is_present]])
            _, first = np.unique(together, return_index=True)
            chosen = together[np.sort(first)]  # in the order in which they were drawn
        return chosen[:count]

    def restricted(self, keys: Integers) -> TupleCandidates:
        """Some of these candidates only; k is at least 2.

        Args:
            keys: of those that stay, ascending.
        """
        size = len(self.after)
        words = (size + 63) // 64
        first = len(self.levels[-1])
        _check_size(first * words, self.k, len(keys), size)
        bits = np.zeros((max(1, first), words), np.uint64)
        parents = keys // size - self.first_node
        set_bits(parents, keys % size, bits)
        counts = np.bincount(parents, minlength=first)
        return replace(self, extensions=bits, starts=np.concatenate([[0], np.cumsum(counts)]))

    def grown(self, found: Integers) -> TupleCandidates:
        """The candidates of one value more.

        Args:
            found: keys of the found ones of these candidates.
        """
        tuples = self.tuples(np.sort(found))
        if self.k == 1:
            return self._pairs(tuples)
        first_node = self.first_node + len(self.levels[-1])
        numbers = first_node + np.arange(len(found))
        keys = np.concatenate([self.node_keys[self.node_keys != -1], np.sort(found)])
        values = np.concatenate([self.node_numbers[self.node_keys != -1], numbers])
        node_keys, node_numbers = hash_table(keys, values, capacity_for(len(keys)))
        bits, counts = self._extended(tuples, node_keys, node_numbers)
        return TupleCandidates(
            self.k + 1,
            self.after,
            (*self.levels, tuples),
            node_keys,
            node_numbers,
            bits,
            first_node,
            np.concatenate([[0], np.cumsum(counts)]),
        )

    def _pairs(self, tuples: Integers) -> TupleCandidates:
        if len(tuples) < len(self.after):
            raise InvalidInput("values that were not found must not be numbered")
        counts = len(self.after) - self.after
        return TupleCandidates(
            2, self.after, (tuples,), starts=np.concatenate([[0], np.cumsum(counts)])
        )

    def _extended(
        self, tuples: Integers, node_keys: Integers, node_numbers: Integers
    ) -> tuple[Words, Integers]:
        """For each found tuple of k values, which further value makes a candidate of k + 1."""
        size = len(self.after)
        words = (size + 63) // 64
        shorter = len(self.levels[-1])  # found tuples of k - 1 values
        _check_size(max(shorter, len(tuples)) * words, self.k, len(tuples), size)
        # which values extend a tuple of k - 1 values to a found one
        children = np.zeros((max(1, shorter), words), np.uint64)
        parents = self._nodes(tuples[:, :-1], node_keys, node_numbers) - self.first_node
        set_bits(parents, tuples[:, -1], children)
        # a candidate (x1 .. xk, y) needs (x1 .. xk without one of them, y) for each of them
        subsets = np.empty((len(tuples), self.k), np.int64)
        for left_out in range(self.k):
            subset = np.delete(tuples, left_out, axis=1)
            subsets[:, left_out] = self._nodes(subset, node_keys, node_numbers) - self.first_node
        bits = np.zeros((max(1, len(tuples)), words), np.uint64)
        counts = extension_bits(subsets, self.after[tuples[:, -1]], size, children, bits)
        return bits, counts

    def _nodes(self, tuples: Integers, node_keys: Integers, node_numbers: Integers) -> Integers:
        """The nodes of found tuples."""
        nodes = tuples[:, 0]
        for column in range(1, tuples.shape[1]):
            keys = nodes * len(self.after) + tuples[:, column]
            nodes = looked_up(node_keys, node_numbers, keys, _NO_NODE)
        return nodes


def _check_size(words: int, k: int, found: int, values: int) -> None:
    if words > LARGEST_EXTENSIONS:
        raise InvalidInput(
            f"up_to must be at most {k}: {found:,} tuples of {k} values among {values:,} "
            "were found, too many to combine"
        )


def _chosen(keys: Integers, count: int, entropy: Entropy) -> Integers:
    """A uniform subset: a person who shuffles cards stops after ``count`` of them."""
    cards = keys.copy()
    for place in range(count):
        other = place + entropy.below(len(cards) - place)
        cards[place], cards[other] = cards[other], cards[place]
    return cards[:count]
