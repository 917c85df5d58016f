"""Tables that a curator holds are read as they are, from wherever they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.central import code_blocks, tables
from sottovoce.central.code_blocks import FileCodes
from sottovoce.central.method import EMPTY_CODE, CentralTable
from sottovoce.central.tables import read_table

PEOPLE: dict[str, list[Any]] = {
    "tea": ["green", "black", "", "green", "white", None],
    "cups": [1, 2, 2, None, 3, 1],
}


def labels(table: CentralTable) -> list[tuple[int, list[Any]]]:
    """(user, labels) of every row, None for an empty cell."""
    found = []
    for batch in table.batches():
        for user, codes in zip(batch.users.tolist(), batch.codes.tolist(), strict=True):
            found.append(
                (
                    user,
                    [
                        None if code == EMPTY_CODE else values[code]
                        for code, values in zip(codes, table.values, strict=True)
                    ],
                )
            )
    return found


def forms(folder: Path) -> dict[str, Any]:
    """The same people in every form."""
    arrow = pa.table({"tea": PEOPLE["tea"], "cups": pa.array(PEOPLE["cups"], pa.int8())})
    pq.write_table(arrow, folder / "people.parquet", row_group_size=2)
    (folder / "parts").mkdir()
    pq.write_table(arrow.slice(0, 4), folder / "parts" / "a.parquet")
    pq.write_table(arrow.slice(4), folder / "parts" / "b.parquet")
    return {
        "dict": PEOPLE,
        "arrow": arrow,
        "pandas": pd.DataFrame(PEOPLE),  # whose cups are floats, with a NaN
        "dictionary": pa.table({"tea": arrow["tea"].dictionary_encode(), "cups": arrow["cups"]}),
        "parquet": folder / "people.parquet",
        "folder": str(folder / "parts"),
    }


@pytest.mark.parametrize("form", ["dict", "arrow", "pandas", "dictionary", "parquet", "folder"])
def test_every_form_of_a_table_reads_alike(form: str, tmp_path: Path) -> None:
    table = read_table(forms(tmp_path)[form])
    assert table.columns == ("tea", "cups")
    assert (table.people, table.rows, table.is_sets) == (6, 6, False)
    assert table.is_known == (False, False)
    expected = [["green", 1], ["black", 2], [None, 2], ["green", None], ["white", 3], [None, 1]]
    assert labels(table) == list(enumerate(expected))
    assert labels(table) == labels(table)  # as often as it is asked


def test_a_csv_holds_text(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text('tea,cups\ngreen,1\n"black, ""strong""",NaN\n,2\n', encoding="utf-8")
    assert labels(read_table(path)) == [
        (0, ["green", "1"]),
        (1, ['black, "strong"', None]),
        (2, [None, "2"]),
    ]


def test_a_schema_makes_domains_public_and_chooses_columns() -> None:
    schema = sv.Schema(cups=sv.Ordinal(0, 9))
    table = read_table(PEOPLE, schema=schema)
    assert table.columns == ("cups",)
    assert table.values == (tuple(range(10)),)
    assert table.is_known == (True,)
    mixed = read_table(PEOPLE, schema=schema, columns=["tea", "cups"])
    assert mixed.is_known == (False, True)
    assert [row[1] for _, row in labels(mixed)] == [1, 2, 2, None, 3, 1]


def test_rows_of_one_user_stand_together_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "TABLE_BATCH_ROWS", 2)
    owners = ["b", "a", "b", "c", "a", "b", "b"]
    table = read_table({"who": owners, "x": list("uvwxyzu")}, user="who")
    assert table.columns == ("x",)
    assert table.people == 3
    batches = list(table.batches())
    seen = [set(batch.users.tolist()) for batch in batches]
    assert not any(seen[i] & seen[j] for i in range(len(seen)) for j in range(i))
    assert labels(table) == [
        (0, ["v"]), (0, ["y"]), (1, ["u"]), (1, ["w"]), (1, ["z"]), (1, ["u"]), (2, ["x"]),
    ]  # fmt: skip


def test_the_order_of_users_does_not_depend_on_other_users() -> None:
    owners = np.random.default_rng(1).permutation(60) // 2
    values = owners % 5
    whole = read_table({"who": owners, "x": values}, user="who")
    without = owners != 7
    fewer = read_table({"who": owners[without], "x": values[without]}, user="who")
    rest = [row for user, row in labels(whole) if user != 7]
    assert rest == [row for _, row in labels(fewer)]


@pytest.mark.parametrize("form", ["lists", "sets", "arrow", "text", "rows", "rows of lists"])
def test_sets_in_every_form(form: str) -> None:
    baskets = [["milk", "tea", "milk"], [], ["tea"], ["", "bread", None]]
    tables_of: dict[str, dict[str, Any]] = {
        "lists": {"table": {"items": baskets}},
        "sets": {"table": {"items": [set(each) - {None} for each in baskets]}},
        "arrow": {"table": pa.table({"items": baskets, "ignored": [1, 2, 3, 4]})},
        "text": {"table": {"items": ["milk;tea;milk", "", "tea", ";bread;"]}},
        "rows": {
            "table": {
                "who": [0, 0, 0, 1, 2, 3, 3],
                "items": ["milk", "tea", "milk", None, "tea", "", "bread"],
            },
            "user": "who",
        },
        "rows of lists": {
            "table": {
                "who": [0, 3, 0, 1, 2],
                "items": [["milk"], ["bread"], ["tea", "milk"], [], ["tea"]],
            },
            "user": "who",
        },
    }  # fmt: skip
    table = read_table(items="items", **tables_of[form])
    assert (table.is_sets, table.people, table.columns) == (True, 4, ("items",))
    held = [(user, row[0]) for user, row in labels(table)]
    assert sorted(held) == [(0, "milk"), (0, "tea"), (2, "tea"), (3, "bread")]
    assert [user for user, _ in held] == [0, 0, 2, 3]


def test_known_items(tmp_path: Path) -> None:
    schema = sv.Schema(items=sv.Items(["bread", "milk", "tea"]))
    table = read_table({"items": [["tea"], ["milk", "tea"]]}, items="items", schema=schema)
    assert table.values == (("bread", "milk", "tea"),)
    assert table.is_known == (True,)
    assert labels(table) == [(0, ["tea"]), (1, ["milk"]), (1, ["tea"])]


def test_codes_that_do_not_fit_wait_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    people = {name: rng.integers(0, 9, 5000) for name in "ab"}
    people["who"] = rng.integers(0, 900, 5000)
    held = read_table(people, user="who")
    monkeypatch.setattr(code_blocks, "MEMORY_BYTES", 1000)
    monkeypatch.setattr(tables, "TABLE_BATCH_ROWS", 333)
    spilled = read_table(people, user="who")
    assert isinstance(spilled.codes, FileCodes)
    assert isinstance(held.codes, np.ndarray)
    assert labels(spilled) == labels(held)


def test_sets_that_do_not_fit_wait_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    baskets = {"item": rng.integers(0, 50, 3000), "who": rng.integers(0, 200, 3000)}
    held = read_table(baskets, user="who", items="item")
    monkeypatch.setattr(code_blocks, "MEMORY_BYTES", 1000)
    spilled = read_table(baskets, user="who", items="item")
    assert isinstance(spilled.codes, FileCodes)
    assert labels(spilled) == labels(held)


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [((2, 128), np.int8), ((2, 129), np.int16), ((40_000, 2), np.int32)],
)
def test_codes_are_as_narrow_as_the_schema_allows(
    sizes: tuple[int, int], kind: type[np.signedinteger[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = sv.Schema(a=sv.Ordinal(0, sizes[0] - 1), b=sv.Ordinal(0, sizes[1] - 1))
    people = {"a": [0, sizes[0] - 1, None], "b": [sizes[1] - 1, None, 0]}
    rows = [(0, [0, sizes[1] - 1]), (1, [sizes[0] - 1, None]), (2, [None, 0])]
    held = read_table(people, schema=schema)
    assert isinstance(held.codes, np.ndarray)
    assert held.codes.dtype == kind
    assert labels(held) == rows
    monkeypatch.setattr(code_blocks, "MEMORY_BYTES", 1)
    assert labels(read_table(people, schema=schema)) == rows


def test_texts_that_say_nothing() -> None:
    told = {"job": ["clerk", "not in universe", "clerk", "cook"], "n": [0, 5, 5, 0]}
    table = read_table(told, empty=["not in universe", "0"])
    rows = [row for _, row in labels(table)]
    assert rows == [["clerk", None], [None, 5], ["clerk", 5], ["cook", None]]


IDS = {"id": [f"x{place}" for place in range(100)], "tea": ["green", "black"] * 50}


def test_a_column_of_ids_is_refused_unless_forced() -> None:
    with pytest.raises(
        sv.InvalidInput, match="column 'id': nearly every row has a value of its own"
    ):
        read_table(IDS)
    assert read_table(IDS, force=["id"]).columns == ("id", "tea")
    assert read_table(IDS, user="id").columns == ("tea",)
    assert read_table(IDS, columns=["tea"]).columns == ("tea",)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"table": {"a": []}}, "table must have at least one row"),
    ({"table": {}}, "table must have at least one column"),
    ({"table": 7}, "table .int. must be a file"),
    ({"table": "nowhere.csv"}, "table .nowhere.csv. must be a file that exists"),
    ({"table": {"a": [1, "x"]}}, "column 'a': values must be of one kind"),
    ({"table": {"a": [1, 2], "b": [1]}}, "columns must have equal lengths"),
    ({"table": {"a": [[1], [2]]}}, "column 'a' holds lists: name it as items"),
    ({"table": {"a": [b"x"]}}, "column 'a': its values must be text, numbers or truth values"),
    ({"table": {"a": [1.5, float("inf")]}}, "column 'a': its numbers must be finite"),
    ({"table": {1: [2]}}, "column 1 must have a name"),
    ({"table": {"a": [1]}, "user": "b"}, "user .b. must be a column of the table .it has: a."),
    ({"table": {"a": [1]}, "user": "a"}, "at least one attribute beside the user column"),
    ({"table": {"a": [1], "u": [None]}, "user": "u"}, "user .u.: every row must say whose it is"),
    ({"table": {"a": [1], "u": [""]}, "user": "u"}, "user .u.: every row must say whose it is"),
    ({"table": {"a": [1]}, "items": "b"}, "items .b. must be a column"),
    ({"table": {"a": [1]}, "items": "a"}, "items .a. must be a column of lists"),
    ({"table": {"a": [1]}, "columns": ["b"]}, "column 'b' is not in the table"),
    ({"table": {"a": [1]}, "columns": ["a", "a"]}, "columns: a name occurs twice"),
    ({"table": {"a": [1]}, "force": ["b"]}, "force .b. must be one of the attributes"),
    (
        {"table": {"a": [41]}, "schema": sv.Schema(a=sv.Ordinal(0, 9))},
        "attribute 'a': a value is not one of the schema's 10 values",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "rule"), BAD, ids=[rule for _, rule in BAD])
def test_bad_tables_are_refused_without_their_values(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(sv.InvalidInput, match=rule) as wrong:
        read_table(given.pop("table"), **given)
    assert "41" not in str(wrong.value)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "a.parquet"
    damaged.write_bytes(b"PAR1 nothing")
    ragged = tmp_path / "a.csv"
    ragged.write_text("a,b\n1,2\n3\n", encoding="utf-8")
    blank = tmp_path / "b.csv"
    blank.write_text("", encoding="utf-8")
    twice = tmp_path / "c.csv"
    twice.write_text("a,a\n1,2\n", encoding="utf-8")
    for path in (damaged, ragged, blank, twice):
        with pytest.raises(sv.InvalidInput):
            read_table(path)
