"""Sets by the column: local hashing of whole sets, and fair draws of some of their members."""

from __future__ import annotations

import numpy as np

from sottovoce.kernels.compiled import njit
from sottovoce.kernels.draws import below, uniform_word
from sottovoce.kernels.hashing import bucket, keyed_hash


@njit(cache=True, nogil=True)
def whisper_sets(starts, codes, seeds, answers, buckets, length, truth, state):  # type: ignore[no-untyped-def]
    """Local hashing of sets: person i holds ``codes[starts[i]:starts[i + 1]]``."""
    near = np.zeros(length, np.uint64)
    for row in range(answers.size):
        seed = uniform_word(state)
        seeds[row] = seed
        if uniform_word(state) >= np.uint64(truth):
            answers[row] = below(state, np.uint64(buckets))
            continue
        count = 0  # different buckets, in order
        for place in range(starts[row], starts[row + 1]):
            own = bucket(keyed_hash(seed, codes[place]), np.uint64(buckets))
            at = count
            while at > 0 and near[at - 1] > own:
                at -= 1
            if at > 0 and near[at - 1] == own:
                continue
            for later in range(count, at, -1):
                near[later] = near[later - 1]
            near[at] = own
            count += 1
        slot = np.int64(below(state, np.uint64(length)))
        if slot < count:
            answers[row] = near[slot]
            continue
        answer = below(state, np.uint64(buckets) - np.uint64(count))
        for place in range(count):
            if near[place] <= answer:
                answer += np.uint64(1)
        answers[row] = answer
