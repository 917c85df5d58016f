"""The integer hashes of a device, in plain Python: the bits of ``kernels.hashing``, uncompiled."""

from __future__ import annotations

_MASK = (1 << 64) - 1
LARGEST_SALT = _MASK
SCRAMBLES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
TURNS = 4  # of the permutation: two for each half


def _mix(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)


def keyed_hash(key: int, value: int) -> int:
    """64 bits that look random and independent for different (key, value)."""
    inner = _mix((value + 0x9E3779B97F4A7C15) & _MASK) ^ _mix(key ^ 0xD1B54A32D192ED03)
    return _mix((_mix(inner) + key) & _MASK)


def bucket(word: int, buckets: int) -> int:
    """The bucket of a hash: its top 32 bits scaled to ``range(buckets)``."""
    return ((word >> 32) * buckets) >> 32


def scramble(value: int, width: int) -> int:
    """A fixed public permutation of words of ``width`` bits: neighbours share no line."""
    mask = (1 << width) - 1
    for factor in SCRAMBLES:
        value = (value * factor) & mask
        value ^= value >> ((width + 1) // 2)
    return value


def scramble_below(value: int, size: int) -> int:
    """A fixed public permutation of ``range(size)``: :func:`scramble`, again until it is below.

    >>> sorted(scramble_below(value, 5) for value in range(5))
    [0, 1, 2, 3, 4]
    """
    width = (size - 1).bit_length()
    value = scramble(value, width)
    while value >= size:
        value = scramble(value, width)
    return value


def permuted(number: int, bits: int) -> int:
    """A fixed public permutation of numbers of up to 128 bits (a Feistel network)."""
    low = bits - bits // 2
    halves = [number >> low, number & (1 << low) - 1]
    widths = (bits // 2, low)
    for turn in range(TURNS):
        side = turn & 1
        halves[side] ^= keyed_hash(turn, halves[1 - side]) >> (64 - widths[side])
    return halves[0] << low | halves[1]


def unpermuted(number: int, bits: int) -> int:
    """The inverse of :func:`permuted`."""
    low = bits - bits // 2
    halves = [number >> low, number & (1 << low) - 1]
    widths = (bits // 2, low)
    for turn in reversed(range(TURNS)):
        side = turn & 1
        halves[side] ^= keyed_hash(turn, halves[1 - side]) >> (64 - widths[side])
    return halves[0] << low | halves[1]


def tag(number: int, key: int, bits: int) -> int:
    """``bits`` of a public hash of a number of up to 128 bits."""
    return keyed_hash(keyed_hash(key, number >> 64), number & _MASK) >> (64 - bits)


def keys(salt: int, count: int) -> list[int]:
    """``count`` keys for hash functions that a plan shares, from its salt."""
    return [keyed_hash(salt, index) for index in range(count)]
