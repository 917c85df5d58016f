"""Compiled loops against brute force, at the edges where they change their way."""

from __future__ import annotations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.kernels.bits import add_columns, add_grouped_columns
from sottovoce.kernels.fields import ones_per_row, read_field, write_field
from sottovoce.kernels.hashing import SORTED_FROM, scatter, scatter_linear
from sottovoce.kernels.transform import walsh_hadamard
from tests.statistics import chi_limit, chi_squared, zipf_people


def hadamard(order: int) -> np.ndarray:
    places = np.arange(order)
    return 1 - 2 * (np.bitwise_count(places[:, None] & places[None, :]).astype(np.int64) & 1)


@pytest.mark.parametrize("size", [1, 2, 8, 32, 512, 1 << 14])
def test_the_transform_is_the_matrix(size: int) -> None:
    cells = np.random.default_rng(size).integers(-1000, 1000, size)
    places = np.unique(np.random.default_rng(1).integers(0, size, 20))
    signs = 1 - 2 * (
        np.bitwise_count(places[:, None] & np.arange(size)[None, :]).astype(np.int64) & 1
    )
    assert np.array_equal(walsh_hadamard(cells)[places], signs @ cells)


@pytest.mark.parametrize("top", [(1 << 29) - 1, 1 << 29, (1 << 31) - 1, 1 << 31, 1 << 40])
def test_the_transform_stays_exact_past_32_bits(top: int) -> None:
    cells = np.array([top, top, -top, top], np.int64)
    assert walsh_hadamard(cells).tolist() == (hadamard(4) @ cells).tolist()


@pytest.mark.parametrize("rows", [0, 1, 254, 255, 256, 511, 1000, 20_000])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 9])
def test_columns_are_counted_to_the_last_row(rows: int, width: int) -> None:
    ones = np.full((rows, width), 0xFF, np.uint8)
    counts = np.zeros(width * 8, np.int64)
    add_columns(ones, counts)
    assert (counts == rows).all()
    noisy = np.random.default_rng(rows).integers(0, 256, (rows, width), dtype=np.uint8)
    found = np.zeros(width * 8 - 3, np.int64)
    add_columns(noisy, found)
    bits = np.unpackbits(noisy, axis=1, bitorder="little")
    assert np.array_equal(found, bits.sum(axis=0)[: width * 8 - 3])
    assert np.array_equal(ones_per_row(noisy), bits.sum(axis=1))
    groups = np.random.default_rng(1).integers(0, 3, rows)
    grouped = np.zeros((4, width * 8), np.int64)
    add_grouped_columns(noisy, groups, grouped)
    assert np.array_equal(grouped, [bits[groups == group].sum(axis=0) for group in range(4)])


@pytest.mark.parametrize("width", [1, 7, 8, 13, 33, 57, 63, 64])
@pytest.mark.parametrize("offset", [0, 1, 7, 8, 11])
def test_fields_survive_wherever_they_lie(width: int, offset: int) -> None:
    values = np.random.default_rng(width).integers(
        0, 1 << width, 50, dtype=np.uint64, endpoint=False
    )
    payload = np.zeros((50, (offset + width + 7) // 8), np.uint8)
    write_field(payload, offset, width, values)
    assert np.array_equal(read_field(payload, offset, width), values)
    as_integers = [int.from_bytes(row.tobytes(), "little") for row in payload]
    assert as_integers == [int(value) << offset for value in values]
    wider = np.full((50, payload.shape[1] + 12), 0xFF, np.uint8)
    wider[:, 3 : 3 + payload.shape[1]] = payload  # among other bytes, where whole words may be read
    inside = wider[:, 3 : 3 + payload.shape[1]]
    for view in (inside, wider[:, 3:], np.asfortranarray(inside)):
        assert np.array_equal(read_field(view, offset, width), values)
    again = np.zeros((50, payload.shape[1] + 12), np.uint8)
    write_field(again[:, 3:], offset, width, values)
    assert np.array_equal(again[:, 3 : 3 + payload.shape[1]], payload)


def test_hashes_that_meet_in_one_bit_follow_the_device() -> None:
    """Bloom filters with more hashes than buckets:
    simulated reports follow the device's channel.
    """
    oracle = sv.oracle(
        "o-rappor", size=3, epsilon=3.0, cohorts=2, buckets=3, hashes=3, alphabet="open"
    )
    assert any(len(set(oracle.places(cohort, 1))) < 3 for cohort in range(2))  # type: ignore[attr-defined]
    packed = oracle.simulate(np.ones(300_000, int), seed=1)
    drawn = [oracle.unpack(bytes([row])) for row in packed[:, 0].tolist()]
    statistic, degrees = chi_squared(oracle.outputs(), oracle.channel()[1], drawn)
    assert statistic < chi_limit(degrees)


@pytest.mark.parametrize("name", ["o-rr", "o-rappor", "rappor"])
def test_reported_variances_of_cohorts_are_the_stated_ones(name: str) -> None:
    oracle = sv.oracle(name, size=16, epsilon=3.0)
    values = zipf_people(16, 50_000, seed=1)
    truth = np.bincount(values, minlength=16) / 50_000
    _, reported = oracle.estimate_reports(oracle.simulate(values, seed=1))
    assert np.allclose(reported, oracle.all_variances(50_000, truth), rtol=0.05)


def test_candidates_must_differ() -> None:
    oracle = sv.oracle("o-rr", size=16, epsilon=1.0)
    state = oracle.accumulate(oracle.empty(), oracle.simulate(np.arange(16), seed=1))
    with pytest.raises(sv.InvalidInput, match="different"):
        oracle.estimate(state, 16, [1, 1])


@pytest.mark.parametrize("width", [SORTED_FROM - 1, SORTED_FROM, SORTED_FROM + 1])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_sorted_updates_are_the_same_updates(width: int, count: int) -> None:
    draws = np.random.default_rng(width)
    bits = (width + 1) * count
    rows = 20_000 if count == 5 else 300  # of five bits more than are sorted at once
    payload = draws.integers(0, 256, (rows, -(-bits // 8)), dtype=np.uint8)
    payload[:, -1] &= (1 << (bits - 1) % 8 + 1) - 1
    for kind in (np.int32, np.int64):
        plain, found = np.zeros((2, 1 << width), kind)
        scatter_linear(payload, width, count, plain)
        scatter(payload, width, count, found)
        assert np.array_equal(plain, found)
        assert plain.any()
