"""How many cohorts of hash functions and buckets: the fewest cells with nearly the least error."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf, sqrt

from sottovoce.ground.arguments import whole
from sottovoce.oracles.base import MANY
from sottovoce.oracles.cohorts import MAX_DECODED_CANDIDATES, MAX_HASH_COHORTS

MAX_COHORT_CELLS = 1 << 18  # of all cohorts, unless the fewest cohorts have more: 2 MiB of counts
NEAR_LEAST_VARIANCE = 1.04  # a shape is good whose variance is at most so many times the least
ORDINARY_PEOPLE = 100_000  # where nobody said how many will answer
# The sum of f^2 over values on no list that a shape is made for: ten of them, with half of the
# people.
OFF_LIST_SPREAD = 0.025


def predicted_variance(noise: float, cohorts: int, buckets: int, size: int, people: int) -> float:
    """The variance of a rare value's frequency before anybody is asked; infinite for few cells.

    With C (k - 1) cells that differ, S frequencies and a report's variance v:

        (v/n + sum f_y^2 / (C (k - 1))) / (1 - S / (C (k - 1)))

    The last factor is what random hashes cost on average (of an inverse Wishart matrix), the
    sum what values on no list add. An alphabet of up to 4096 values is decoded whole, so that
    none is off the list; of a larger one S is taken as all that such a crowd can tell from noise.

    Args:
        noise: v, the variance of one report's estimate if no two values shared cells.
        cohorts: C.
        buckets: k.
        size: of the alphabet.
        people: n.
    """
    cells = cohorts * (buckets - 1)
    single = noise / people
    if size <= MAX_DECODED_CANDIDATES:
        listed, off_list = size - 1, 0.0
    else:
        listed, off_list = min(ceil(1 / sqrt(single)), MAX_DECODED_CANDIDATES), OFF_LIST_SPREAD
    if cells <= listed:
        return inf
    return (single + off_list / cells) / (1 - listed / cells)


def chosen_shape(
    noises: Mapping[int, float], size: int, people: int | None, fewest: int
) -> tuple[int, int]:
    """(cohorts, buckets): of all shapes with a variance near the least, the one of fewest cells.

    If possible with the first number of buckets.

    Args:
        noises: for each number of buckets that may be chosen, the variance of one report.
        size: of the alphabet.
        people: how many will answer.
        fewest: cohorts there are at least.

    >>> chosen_shape({4: 3.7, 3: 3.8, 5: 3.8}, 256, None, 256)
    (2048, 4)
    """
    counts = [1 << place for place in range(MAX_HASH_COHORTS.bit_length())]
    shapes = [
        (cohorts, buckets)
        for cohorts in counts
        for buckets in noises
        if cohorts == fewest or (cohorts > fewest and cohorts * buckets <= MAX_COHORT_CELLS)
    ]
    n = ORDINARY_PEOPLE if people is None else whole("people", people, 1, MANY)
    errors = {shape: predicted_variance(noises[shape[1]], *shape, size, n) for shape in shapes}
    least = min(errors.values())
    if least == inf:  # nothing tells all values apart: the most cells
        return max(shapes, key=lambda shape: shape[0] * shape[1])
    good = [shape for shape in shapes if errors[shape] <= NEAR_LEAST_VARIANCE * least]
    first = next(iter(noises))
    return min(good, key=lambda shape: (shape[1] != first, shape[0] * shape[1], errors[shape]))
