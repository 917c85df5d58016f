"""The filter lets everything through that it must, and little else."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from sottovoce.store.duplicate_filter import DuplicateFilter, Hash, Probe

FULL, ASKED = 1 << 15, 200_000
RATE = 1 / 4000  # a little above what the law of its bits gives


def test_all_that_was_added_passes_and_few_others() -> None:
    draws = np.random.default_rng(5)
    own, others = (draws.integers(0, 1 << 64, size, dtype=np.uint64) for size in (FULL, ASKED))
    duplicate_filter = DuplicateFilter(FULL)
    for part in np.array_split(own, 7):
        duplicate_filter.add(Probe(part))
    assert np.array_equal(duplicate_filter.passed(Probe(own)), np.arange(FULL))
    assert len(duplicate_filter.passed(Probe(others))) < binom.isf(1e-6, ASKED, RATE)


def test_hashes_depend_on_every_byte_and_on_the_key() -> None:
    ids = np.zeros((129, 16), np.uint8)
    for bit in range(128):
        ids[bit, bit // 8] = 1 << bit % 8
    one, two = (Hash(bytes([seed]) * 32)(ids) for seed in (1, 2))
    assert len({*one.tolist(), *two.tolist()}) == 2 * 129
    assert len(np.unique(one >> np.uint64(56))) > 64  # and all their bits do
    assert len(np.unique(one & np.uint64(255))) > 64
