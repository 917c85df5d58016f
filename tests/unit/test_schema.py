"""Attributes give codes; bad records get one clear error that does not echo the person's value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sottovoce as sv

SCHEMA = sv.Schema(
    smoker=sv.Boolean(),
    fruit=sv.Categorical(["apple", "pear", "fig"]),
    age=sv.Ordinal(18, 97, bins=16),
    year=sv.Ordinal(1990, 1999),
    word=sv.Text(bytes=8),
    basket=sv.Items(["milk", "bread"]),
    region=sv.Categorical(range(10, 20), sensitive=False),
)
SINGLE = ("smoker", "fruit", "age", "year", "word", "region")


def test_codes_of_a_record() -> None:
    record = {"smoker": True, "fruit": "fig", "age": 18, "year": 1999, "word": "ciao", "region": 12}
    codes = SCHEMA.encode(record, SINGLE)
    assert {**codes, "word": 0} == {
        "smoker": 1,
        "fruit": 2,
        "age": 0,
        "year": 9,
        "word": 0,
        "region": 2,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("smoker", "maybe"),
        ("smoker", 7),
        ("fruit", "durian"),
        ("fruit", 3.25),
        ("age", 98),
        ("age", 17),
        ("age", 40.5),
        ("age", True),
        ("year", "nineteen"),
        ("word", "far too long a word"),
        ("word", 5),
        ("region", 20),
        ("basket", "milk"),
        ("fruit", None),
    ],
)
def test_values_outside_are_refused_without_an_echo(name: str, value: Any) -> None:
    with pytest.raises(sv.InvalidInput, match=f"attribute '{name}'") as caught:
        SCHEMA.encode({name: value}, [name])
    assert str(value) not in str(caught.value).replace(name, "") or value in (
        True,
        None,
        5,
        7,
        17,
        98,
        20,
    )
    with pytest.raises(sv.InvalidInput, match=f"attribute '{name}'"):
        SCHEMA.encode_table({name: [value, value]}, [name])


def test_unknown_and_missing_attributes() -> None:
    with pytest.raises(sv.InvalidInput, match="'shoe' is not in the schema"):
        SCHEMA.encode({"shoe": 1})
    with pytest.raises(sv.InvalidInput, match="'fruit' is missing"):
        SCHEMA.encode({"smoker": True}, ["fruit"])
    with pytest.raises(sv.InvalidInput, match="'fruit' is missing from the table"):
        SCHEMA.encode_table({"smoker": [True]}, ["fruit"])
    with pytest.raises(sv.InvalidInput, match="missing values"):
        SCHEMA.encode_table(pa.table({"year": [1990, None]}), ["year"])
    with pytest.raises(sv.InvalidInput, match="missing values"):
        SCHEMA.encode_table(pd.DataFrame({"year": [1990, None]}), ["year"])


@pytest.mark.parametrize("wrap", [dict, pa.table, pd.DataFrame])
def test_a_column_equals_one_by_one(wrap: Any) -> None:
    columns = {
        "smoker": [True, False, True],
        "fruit": ["fig", "apple", "pear"],
        "age": [18, 97, 41],
        "year": [1990, 1999, 1995],
        "word": ["ciao", "", "piano"],
        "region": [10, 19, 15],
    }
    table = SCHEMA.encode_table(wrap(columns), SINGLE)
    for name in SINGLE:
        assert table[name].tolist() == [SCHEMA.code(name, value) for value in columns[name]]


@pytest.mark.parametrize(
    "wrap",
    [
        pa.record_batch,
        lambda columns: {name: pa.array(column) for name, column in columns.items()},
        lambda columns: {
            name: pa.chunked_array([column[:1], column[1:]]) for name, column in columns.items()
        },
        lambda columns: pd.DataFrame(columns).convert_dtypes(),
        lambda columns: pd.DataFrame(columns).astype({"fruit": "category"}),
        lambda columns: pa.table(
            {**columns, "fruit": pa.array(columns["fruit"]).dictionary_encode()}
        ),
    ],
)
def test_columns_of_every_kind(wrap: Any) -> None:
    columns = {"smoker": [True, False], "fruit": ["fig", "apple"], "year": [1990, 1999]}
    table = SCHEMA.encode_table(wrap(columns), columns)
    assert {name: column.tolist() for name, column in table.items()} == {
        "smoker": [1, 0],
        "fruit": [2, 0],
        "year": [0, 9],
    }
    for name in columns:
        assert (
            SCHEMA.encode_table(wrap({n: c[:0] for n, c in columns.items()}), [name])[name].size
            == 0
        )


def test_missing_values_of_every_kind() -> None:
    for column in (
        pd.Series(["fig", None]),
        pd.Series(["fig", pd.NA], dtype="string"),
        pd.Series([True, pd.NA], dtype="boolean"),
        np.array(["fig", None], dtype=object),
    ):
        with pytest.raises(sv.InvalidInput, match="missing"):
            SCHEMA.encode_table({"fruit": column}, ["fruit"])


def test_numbers_are_whole_and_text_keeps_its_zeros() -> None:
    from decimal import Decimal
    from fractions import Fraction

    for wrong in (Decimal("1995.5"), Fraction(3991, 2), Decimal("Infinity"), float("inf")):
        with pytest.raises(sv.InvalidInput, match="year"):
            SCHEMA.code("year", wrong)
    assert SCHEMA.code("year", Decimal("1995")) == 5
    odd = ["a", "a\0", "a\0\0"]
    assert SCHEMA.encode_table({"word": odd}, ["word"])["word"].tolist() == [
        SCHEMA.code("word", word) for word in odd
    ]
    assert sv.Ordinal(np.int64(3), np.int64(9)).size == 7  # type: ignore[arg-type]


def test_text_in_place_of_numbers_is_read_as_a_file_holds_it() -> None:
    assert SCHEMA.code("age", "41") == SCHEMA.code("age", 41)
    assert SCHEMA.code("smoker", "yes") == 1
    assert sv.Schema(n=sv.Categorical([5, 7])).code("n", "7") == 1


def test_bins_cover_the_range_evenly_and_labels_name_them() -> None:
    age = sv.Ordinal(18, 97, bins=16)
    codes = np.array([age.code(value) for value in range(18, 98)])
    assert np.bincount(codes).tolist() == [5] * 16
    assert age.labels()[0] == "18 to 22"
    uneven = sv.Ordinal(0, 9, bins=4)
    for code, label in enumerate(uneven.labels()):
        first, last = (int(part) for part in str(label).split(" to "))
        assert uneven.code(first) == uneven.code(last) == code
        assert first == 0 or uneven.code(first - 1) == code - 1
    wide = sv.Ordinal(0, (1 << 53) - 1, bins=1 << 20)
    assert wide.codes(np.array([(1 << 53) - 1])).tolist() == [(1 << 20) - 1]


def test_bins_may_be_listed_by_their_starts() -> None:
    age = sv.Ordinal(18, 49, bins=[18, 25, 35], other=30)
    assert age.labels() == ["18 to 24", "25 to 34", "35 to 49"]
    people = np.arange(18, 50)
    codes = age.codes(people)
    assert codes.tolist() == [age.code(value) for value in people.tolist()]
    assert np.bincount(codes.astype(int)).tolist() == [7, 10, 15]
    assert age.starts == (18, 25, 35)
    assert age.other == 25
    schema = sv.Schema(age=age)
    assert schema.to_json()["age"]["bins"] == [18, 25, 35]
    assert sv.Schema.from_json(schema.to_json()) == schema
    assert sv.Ordinal(18, 97, bins=16).starts == list(range(18, 98, 5))
    assert sv.Ordinal(1, 3).starts == range(1, 4)
    for outside in (17, 50):
        with pytest.raises(ValueError):
            age.code(outside)
        with pytest.raises(ValueError):
            age.codes(np.array([outside]))


@pytest.mark.parametrize(
    "bins",
    [
        [18],
        [19, 25],
        [18, 25, 25],
        [18, 30, 25],
        [18, 50],
        [18, 25.0],
        ["18", "25"],
        "18",
        [18, True],
        [],
    ],
)
def test_lists_that_are_no_bins_are_refused(bins: Any) -> None:
    with pytest.raises(sv.InvalidInput, match="bins"):
        sv.Ordinal(18, 49, bins=bins)


def test_a_schema_survives_json() -> None:
    assert sv.Schema.from_json(SCHEMA.to_json()).to_json() == SCHEMA.to_json()


@pytest.mark.parametrize(
    "make",
    [
        lambda: sv.Categorical(["one"]),
        lambda: sv.Categorical(["a", "a"]),
        lambda: sv.Categorical([0.5, 1.5]),
        lambda: sv.Ordinal(5, 5),
        lambda: sv.Ordinal(0, 9, bins=11),
        lambda: sv.Text(bytes=0),
        sv.Schema,
        lambda: sv.Schema(x="boolean"),
        lambda: sv.Schema.from_json({"x": {"kind": "colour"}}),
        lambda: sv.Schema.from_json({"x": {"kind": "boolean", "shade": 1}}),
        lambda: sv.Schema.from_json({"x": {"kind": ["boolean"]}}),
        lambda: sv.Schema.from_json({"x": {"kind": "categorical", "range": "ab"}}),
        lambda: sv.Schema.from_json({"x": {"kind": "categorical", "range": [0, 10, 0]}}),
        lambda: sv.Schema.from_json({"x": {"kind": "boolean", "sensitive": "no"}}),
        lambda: sv.Categorical([1 << 60, 2]),
        lambda: sv.Categorical(range(1 << 60, (1 << 60) + 5)),
        lambda: sv.Ordinal(0, 9, bins=2.5),  # type: ignore[arg-type]
    ],
)
def test_bad_schemas_are_refused(make: Any) -> None:
    with pytest.raises(sv.InvalidInput):
        make()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("age ", "single ones between"),
        ("my  age", "single ones between"),
        ("age\u200b", r"'age\\u200b'.*invisible"),
        ("age\ufe0f", "invisible"),
        ("age\u2800", "invisible"),
        ("a\ufffcge", "invisible"),
        ("age\U00013441", "invisible"),
        ("age\U00016fe4", "invisible"),
        ("age\U0001d159", "invisible"),
        ("age\x7f", "control"),
        ("e\u0301ge", "normal form C"),
    ],
)
def test_names_that_look_like_others_are_refused(name: str, rule: str) -> None:
    """Each would have an account of its own."""
    with pytest.raises(sv.InvalidInput, match=rule):
        sv.Schema(**{name: sv.Boolean()})


def test_names_of_all_languages_are_taken() -> None:
    names = (
        "\u00e9ge",
        "\u5e74\u9f84",
        "\u0432\u043e\u0437\u0440\u0430\u0441\u0442",
        "\u0639\u0645\u0631",
        "smokes? yes/no",
        "a_b",
        "\U0001f3b9",
    )
    assert list(sv.Schema(**dict.fromkeys(names, sv.Boolean()))) == list(names)
