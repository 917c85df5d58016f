"""Oracles for reports that are shuffled: which there are, and how they compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from itertools import groupby
from typing import Any

from sottovoce.accounting.shuffling import thesis
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import ADAPTIVE, Noise, find
from sottovoce.oracles.hashing import MOST_HASH_SIZE, MOST_LINEAR_BITS
from sottovoce.oracles.rules import MOST_UNARY

FOCUSES = ("average", "head")
# of focus "head": n times what a frequency adds to its own variance; it is 1/2 for the hash size of
# eq. (9.4)
MOST_SLOPE = 0.5
SHUFFLED_NAMES = {"sh": "grr", "solh": "olh", "rap": "sue"}
SIMULATED_NAMES = ("aue", "rap-r")  # whose reports by themselves keep no promise of a plan

# hash sizes of olh-field: eighths of a power of two, for attributes of more values than this, of
# which a report supports at most so many
LEAST_FIELD = 1 << 8
MOST_SUPPORTED = 1 << 10
SIZE_STEPS = 8

# an oracle, its options, and the most that its report may cost by itself
Way = tuple[str, dict[str, Any], Decimal | None]


def shuffled_ways(
    name: str,
    options: Mapping[str, Any],
    sizes: Sequence[int],
    is_thesis: bool,
    epsilon: float,
    delta: float,
    people: int,
    fakes: int,
) -> list[Way]:
    """The oracles that a name stands for where reports are shuffled.

    ``sh`` is randomized response over all values, ``solh`` local hashing with the best hash size
    (``olh`` up to 2^13, and ``olh-field`` between and beyond; ``olh-seeded`` for more values than
    are listed),
    ``rap`` whole unary vectors (wang2021thesis, chapter 9); ``adaptive`` tries all of them and
    subset selection; other names are oracles.
    """
    if is_thesis:
        if name != "solh":
            raise InvalidInput(f"oracle ({name}) must be solh for thesis=True")
        return [_thesis_way(epsilon, delta, people, fakes)]
    is_listed = max(sizes) <= find("olh").largest
    hashed: list[Way] = []
    if is_listed:
        hashed += [("olh", {"hash_bits": bits}, None) for bits in range(1, MOST_LINEAR_BITS + 1)]
        hashed += [("olh-field", {"hash_size": count}, None) for count in _field_sizes(sizes)]
    else:  # values that are asked one by one
        hashed += [("olh-seeded", {"hash_size": count}, None) for count in _steps(MOST_HASH_SIZE)]
    if name == "solh" and not options:
        return hashed
    if name != ADAPTIVE:
        return [(SHUFFLED_NAMES.get(name, name), dict(options), None)]
    if options:
        raise InvalidInput(
            f"options ({', '.join(options)}) must be those of an oracle that is named, in a "
            "shuffled plan"
        )
    others: list[Way] = [("grr", {}, None)] if max(sizes) <= find("grr").largest else []
    if min(sizes) > 2 and max(sizes) <= MOST_UNARY:
        others.append(("ss", {}, None))
    return [*others, *hashed]


def check_oracle_name(name: str, *, is_shuffled: bool) -> None:
    """Refuse names of mechanisms that a plan of this trust cannot have, and say why.

    >>> check_oracle_name("solh", is_shuffled=False)
    Traceback (most recent call last):
    ...
    sottovoce.ground.errors.InvalidInput: oracle (solh) is for shuffled plans (trust='shuffled')
    """
    if name in SIMULATED_NAMES:
        raise InvalidInput(
            f"oracle ({name}) is not LDP: a report by itself is not private, so that no plan asks "
            "by it; `sottovoce compare shuffled` simulates it"
        )
    if name in SHUFFLED_NAMES and not is_shuffled:
        raise InvalidInput(f"oracle ({name}) is for shuffled plans (trust='shuffled')")


def rows_of(ways: Sequence[Way]) -> list[list[Way]]:
    """The ways of one oracle, whose hash sizes rise from one to the next.

    >>> [len(row) for row in rows_of(shuffled_ways("solh", {}, [512], False, 1.0, 1e-9, 10**6, 0))]
    [13, 41]
    """
    return [list(row) for _, row in groupby(ways, key=lambda way: way[0])]


def _field_sizes(sizes: Sequence[int]) -> list[int]:
    """Hash sizes that are worth trying for attributes of these sizes.

    >>> _field_sizes([256]), _field_sizes([1 << 24, 1 << 13])
    ([], [])
    >>> found = _field_sizes([42_178])
    >>> found[0], found[-1], len(found)
    (45, 38968, 79)
    """
    fewest, most = min(sizes), max(sizes)
    if fewest <= LEAST_FIELD:
        return []
    first = max(LEAST_FIELD >> 4, -(-most // MOST_SUPPORTED))
    return [count for count in _steps(fewest) if count >= first]


def _steps(most: int) -> list[int]:
    """Hash sizes from 2 on, in eighths of powers of two.

    >>> _steps(5), len(_steps(65_536))
    ([2, 3, 4, 5], 110)
    """
    steps = range(SIZE_STEPS * most.bit_length() + 1)
    counts = {round(2 ** (step / SIZE_STEPS)) for step in steps}
    return sorted(count for count in counts if 2 <= count <= most)


def _thesis_way(epsilon: float, delta: float, people: int, fakes: int) -> Way:
    """The hash size of eq. (9.4) and the epsilon that theorem 9.3.2 gives with it."""
    size = max(2, round(thesis.best_hash_size(epsilon, people, delta, fakes)))
    local = thesis.local_for(epsilon, size, people, delta)
    cap = Context(prec=6, rounding=ROUND_FLOOR).create_decimal(Decimal(local))
    return "olh-seeded", {"hash_size": size}, cap


def shuffled_error(noise: Noise, size: int, people: int, focus: str | None) -> float:
    """The squared error by which oracles of shuffled reports are compared.

    >>> even = Noise(1e-9, 0.0)
    >>> shuffled_error(even, 100, 1000, "head") == shuffled_error(even, 100, 1000, None)
    True
    """
    if focus != "head":
        return noise.floor + noise.slope / size  # the mean over all values
    slope = people * noise.slope
    # beyond it the largest values pay for the others: worse than any that does not
    return noise.floor if slope <= MOST_SLOPE else noise.floor + slope
