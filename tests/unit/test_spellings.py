"""Spellings: values as integers that can be read back, scrambled and cut into windows, one by one
and by the column.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.hashes import permuted, unpermuted
from sottovoce.kernels.spelling import permute_words, to_numbers, to_words, unpermute_words
from sottovoce.protocol.encodings import Extensions, Window
from tests.statistics import NO_COINS

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def numbers(bits: int, count: int, seed: int = 1) -> list[int]:
    draws = np.random.default_rng(seed)
    whole = [
        int(high) << 64 | int(low)
        for high, low in draws.integers(0, 1 << 64, (count, 2), dtype=np.uint64)
    ]
    return [0, (1 << bits) - 1, *(number >> (128 - bits) for number in whole)]


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 10])
def test_the_permutation_takes_every_number_somewhere_else(bits: int) -> None:
    everything = range(1 << bits)
    assert sorted(permuted(number, bits) for number in everything) == list(everything)


@pytest.mark.parametrize("bits", [1, 2, 5, 24, 47, 48, 63, 64, 65, 77, 100, 127, 128])
def test_the_column_is_permuted_as_a_device_does_it(bits: int) -> None:
    values = numbers(bits, 50)
    scrambled = [permuted(value, bits) for value in values]
    assert [unpermuted(value, bits) for value in scrambled] == values
    assert to_numbers(permute_words(to_words(values), bits)) == scrambled
    assert to_numbers(unpermute_words(to_words(scrambled), bits)) == values
    assert max(scrambled) < 1 << bits


def test_neighbours_are_far_apart_after_the_permutation() -> None:
    """Each bit of the result is a fair coin: 2,000 neighbours, 48 bits, within 5 standard
    deviations.
    """
    scrambled = [permuted(number, 48) for number in range(2000)]
    for place in range(48):
        ones = sum(number >> place & 1 for number in scrambled)
        assert abs(ones - 1000) < 5 * np.sqrt(500)


WINDOWS = [
    Window("x", 48, 0, 24),
    Window("x", 48, 24, 12, 12, 24, scrambled=True),
    Window("x", 48, 36, 12, 12, 36, scrambled=True),
    Window("x", 128, 100, 28, 20, 128),
    Window("x", 128, 0, 128),
    Window("x", 128, 0, 65, scrambled=True),
    Window("x", 100, 63, 37, 5, 70, scrambled=True),
    Window("x", 5, 4, 1),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_window_of_a_column_is_that_of_each_value(window: Window) -> None:
    values = numbers(window.bits, 60)
    one_by_one = [window.encode({"x": value}, NO_COINS) for value in values]
    column = window.encode_columns({"x": to_words(values)}, 0)
    assert (to_numbers(column) if column.ndim == 2 else column.tolist()) == one_by_one
    assert max(one_by_one) < window.size


def test_a_window_is_bits_of_the_value_behind_a_tag_of_those_before() -> None:
    window = Window("x", 16, 8, 4, 3, 8)
    first = {value: window.place(value) for value in range(1 << 16)}
    assert all(place & 15 == value >> 4 & 15 for value, place in first.items())
    tags = {value >> 8: place >> 4 for value, place in first.items()}
    assert all(place >> 4 == tags[value >> 8] for value, place in first.items())
    assert set(tags.values()) == set(range(8))


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        ({"start": 48}, "start"),
        ({"fresh": 0}, "fresh"),
        ({"start": 40, "fresh": 9}, "fresh"),
        ({"tag": 3}, "tagged"),
        ({"tag": 33, "tagged": 8}, "tag"),
        ({"tag": 20, "tagged": 8, "fresh": 46, "start": 0}, "at most 64"),
        ({"scrambled": 1}, "scrambled"),
    ],
)
def test_a_window_that_does_not_fit_is_refused(parts: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        Window(**{"attribute": "x", "bits": 48, "start": 0, "fresh": 8} | parts)


def test_extensions_of_a_column_are_those_of_each_value() -> None:
    encoding = Extensions("x", 12, 3, ((0b10.bit_length(), 0b10), (5, 0b00110), (9, 0b111111111)))
    values = list(range(1 << 12))
    one_by_one = [encoding.encode({"x": value}, NO_COINS) for value in values]
    assert encoding.encode_columns({"x": to_words(values)}, 0).tolist() == one_by_one
    assert set(one_by_one) == set(range(encoding.size))
    assert one_by_one[0b10_101_0000000] == 0 << 3 | 0b101
    assert one_by_one[0b00110_011_0000] == 1 << 3 | 0b011
    assert one_by_one[0] == encoding.size - 1


@pytest.mark.parametrize(
    "prefixes", [(), ((2, 1), (2, 1)), ((2, 1), (4, 7)), ((10, 1),), ((2, 4),), ((0, 0), (1, 1))]
)
def test_prefixes_that_overlap_or_do_not_fit_are_refused(
    prefixes: tuple[tuple[int, int], ...],
) -> None:
    with pytest.raises(InvalidInput, match="prefix"):
        Extensions("x", 12, 3, prefixes)


TEXTS = [
    (sv.Text(bytes=6), ["", "a", "the", "étés", "日本", "x\ty", "abcdef"]),
    (sv.Text(bytes=16), ["", "a", "sixteen letters!", "été"]),
    (sv.Text(bytes=6, alphabet=LETTERS), ["", "a", "zzzzzz", "the"]),
    (sv.Text(bytes=4, alphabet="éa"), ["", "é", "aé", "aaaa"]),
    (sv.Text(bytes=5, alphabet="01"), ["", "0", "10101"]),
]


@pytest.mark.parametrize(("text", "values"), TEXTS, ids=str)
def test_text_is_read_back_from_its_spelling(text: sv.Text, values: list[str]) -> None:
    for value in values:
        number = text.spell(value)
        assert 0 <= number < 1 << text.spelling_bits
        assert text.spelled(number) == value
    column = text.spell_column(np.array(values, object))
    assert to_numbers(column) == [text.spell(value) for value in values]
    assert len({text.spell(value) for value in values}) == len(values)


@pytest.mark.parametrize(
    "text", [sv.Text(bytes=2), sv.Text(bytes=3, alphabet="abc"), sv.Text(bytes=4, alphabet="éa")]
)
def test_spellings_are_counted_and_all_others_are_nobodys(text: sv.Text) -> None:
    """By going through every number that could be a spelling."""
    found = [text.spelled(number) for number in range(1 << text.spelling_bits)]
    values = [value for value in found if value is not None]
    assert len(values) == len(set(values)) == text.spellings
    assert all(
        text.spell(value) == number for number, value in enumerate(found) if value is not None
    )


def test_prefixes_come_before_what_they_begin() -> None:
    text = sv.Text(bytes=6, alphabet=LETTERS)
    assert text.spell("the") >> 15 == text.spell("them") >> 15
    assert text.prefix_label(text.spell("them") >> 15, 15) == "the…"
    assert sv.Text(bytes=6).prefix_label(int.from_bytes(b"th", "big"), 16) == "th…"
    assert sv.Text(bytes=6).prefix_label(0b0110000110, 10) == "a…"
    assert sv.Text(bytes=6).prefix_label(0xFF, 8) == "11111111"  # no text begins so
    assert sv.Integer(bits=10).prefix_label(5, 4) == "0101"
    assert sv.Integer(bits=10).prefix_label(5, 10) == "5"


def test_long_text_is_cut_between_characters_if_the_schema_says_so() -> None:
    cut = sv.Text(bytes=4, longer="cut")
    assert cut.spelled(cut.spell("sottovoce")) == "sott"
    assert cut.spelled(cut.spell("日本")) == "日"
    assert cut.code("sottovoce") == cut.code("sott") == sv.Text(bytes=4).code("sott")
    schema = sv.Schema(x=sv.Text(bytes=4))
    with pytest.raises(InvalidInput, match="at most 4 bytes") as refused:
        schema.read("x", "sottovoce", "spelling")
    assert "sottovoce" not in str(refused.value)


def test_characters_outside_the_alphabet_are_refused_or_stand_for_the_rest() -> None:
    schema = sv.Schema(x=sv.Text(bytes=4, alphabet="abc"))
    with pytest.raises(InvalidInput, match="alphabet"):
        schema.read("x", "abd", "spelling")
    tolerant = sv.Text(bytes=4, alphabet="abc_", other="_")
    assert tolerant.spelled(tolerant.spell("abd")) == "ab_"
    with pytest.raises(InvalidInput, match="at most 4 bytes"):
        sv.Schema(x=sv.Text(bytes=4)).read("x", "a\0b", "spelling")


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"bytes": 0}, "bytes"),
        ({"bytes": 4, "longer": "drop"}, "longer"),
        ({"bytes": 4, "alphabet": "a"}, "alphabet"),
        ({"bytes": 4, "alphabet": "aa"}, "alphabet"),
        ({"bytes": 4, "other": "a"}, "alphabet"),
        ({"bytes": 4, "alphabet": "ab", "other": "c"}, "other"),
        ({"bytes": 1, "alphabet": "éa"}, "bytes"),
    ],
)
def test_options_of_text_that_do_not_fit_are_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        sv.Text(**options)


@pytest.mark.parametrize(
    "text", [sv.Text(bytes=16), sv.Text(bytes=6), sv.Text(bytes=6, alphabet=LETTERS)]
)
def test_short_values_are_the_shortest_that_people_write(text: sv.Text) -> None:
    found = text.short_spellings(30_000)
    words = [text.spelled(number) for number in to_numbers(found)]
    assert len(words) == len(set(words)) <= 30_000
    assert all(isinstance(word, str) and word.isprintable() for word in words)
    length = 2 if text.alphabet is None else 3
    letters = [chr(code) for code in range(32, 127)] if text.alphabet is None else LETTERS
    assert {
        "".join(word) for size in range(length + 1) for word in product(letters, repeat=size)
    } <= set(words)
    assert len(text.short_spellings(1)) == 1
    assert len(sv.Integer(bits=9).short_spellings(100)) == 0


def test_whole_numbers_of_many_bits() -> None:
    wide = sv.Integer(bits=128)
    values = [0, 1, (1 << 128) - 1, 1 << 64]
    assert to_numbers(wide.spell_column(np.array(values, object))) == values
    assert [wide.spelled(value) for value in values] == values
    assert wide.spelled(1 << 128) is None
    schema = sv.Schema(x=sv.Integer(bits=20))
    assert schema.read("x", "1048575", "spelling") == (1 << 20) - 1
    for bad in (1 << 20, -1, 1.5, True, "x"):
        with pytest.raises(InvalidInput, match="20 bits"):
            schema.read("x", bad, "spelling")
    for bits in (0, 129, 1.5, True):
        with pytest.raises(InvalidInput, match="bits"):
            sv.Integer(bits=bits)  # type: ignore[arg-type]
    again = sv.Schema.from_json(
        sv.Schema(x=wide, y=sv.Text(bytes=6, alphabet="ab", other="a", longer="cut")).to_json()
    )
    assert again["x"] == wide
    assert again["y"] == sv.Text(bytes=6, alphabet="ab", other="a", longer="cut")
