"""Excel files: their cells are what tables say, and nothing in them is a formula."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.results import workbook
from sottovoce.results.workbook import TEXT_CELL, Sheet, write_sheets, write_workbook

NAMES = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}


def sheets(path: Path) -> dict[str, list[list[tuple[str, str]]]]:
    """By name the rows of each sheet, each cell as its type and text."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))  # every part is well formed
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        names = [each.attrib["name"] for each in book.iter(f"{{{NAMES['m']}}}sheet")]
        return {
            name: list(_rows(archive.read(f"xl/worksheets/sheet{number}.xml")))
            for number, name in enumerate(names, 1)
        }


def _rows(text: bytes) -> Iterator[list[tuple[str, str]]]:
    root = ElementTree.fromstring(text)
    assert not root.findall(".//m:f", NAMES)  # no formulas
    for row in root.findall(".//m:row", NAMES):
        yield [
            (cell.attrib.get("t", "n"), "".join(cell.itertext()))
            for cell in row.findall("m:c", NAMES)
        ]


def estimate(labels: list[Any]) -> Any:
    schema = sv.Schema(said=sv.Categorical(labels), b=sv.Boolean())
    question = sv.Marginals(up_to=2, method="inp-ht")
    plan = sv.plan(schema, question, epsilon=4.0, people=2000)
    people = {"said": labels * (2000 // len(labels)), "b": [True, False] * 1000}
    return sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()


def test_all_figures_are_numbers_and_all_words_are_text(tmp_path: Path) -> None:
    found = estimate(["=1+1", "+x", "-y", "@z"])
    tables = [*found.tables.values(), found.marginal("said", "b")]
    path = tmp_path / "tables.xlsx"
    write_workbook(tables, path, 0.95, [("plan", "=cmd()")])
    read = sheets(path)
    assert list(read) == ["About", "said", "b", "said, b"]
    assert ("inlineStr", "=cmd()") in read["About"][1]
    for table, rows in zip(tables, list(read.values())[1:], strict=True):
        assert [text for _, text in rows[0]][: len(table.attributes)] == list(table.attributes)
        for row, told in zip(rows[1:], table.rows(), strict=True):
            figures = [told[name] for name in ("frequency", "std_error", "low", "high")]
            assert [(kind, float(text)) for kind, text in row[-4:]] == [("n", x) for x in figures]
    assert [row[0] for row in read["said"][1:]] == [
        ("inlineStr", text) for text in ("=1+1", "+x", "-y", "@z")
    ]
    with zipfile.ZipFile(path) as archive:  # they stay text when somebody edits the cell
        text = archive.read("xl/worksheets/sheet2.xml").decode()
        assert text.count(f's="{TEXT_CELL}"') == 4
        assert 'quotePrefix="1"' in archive.read("xl/styles.xml").decode()


def test_odd_cells_and_names_are_written_so_that_they_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "odd.xlsx"
    odd = ["<b>&\"'", "a\x1bb\x00", " spaces ", 1 << 60, float("nan"), True, "x" * 40_000]
    write_sheets([Sheet("a/b:" + "x" * 40, ["what"], [[each] for each in odd])], path)
    ((name, rows),) = sheets(path).items()
    assert len(name) == 31
    assert [cell for (cell,) in rows[1:]] == [
        ("inlineStr", "<b>&\"'"),
        ("inlineStr", r"a\x1bb\x00"),
        ("inlineStr", " spaces "),
        ("inlineStr", str(1 << 60)),  # a spreadsheet would round it
        ("n", ""),
        ("b", "1"),
        ("inlineStr", "x" * 32_767),
    ]


def test_the_same_tables_give_the_same_file(tmp_path: Path) -> None:
    found = estimate(["x", "y"])
    paths = [tmp_path / "one.xlsx", tmp_path / "two.xlsx"]
    for path in paths:
        write_workbook(list(found.tables.values()), path, 0.95, [])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_what_a_sheet_cannot_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = estimate(["x", "y"])
    with pytest.raises(InvalidInput, match=r"must end in \.xlsx"):
        write_workbook([found.marginal("b")], tmp_path / "a.xls", 0.95, [])
    monkeypatch.setattr(workbook, "MAX_SHEET_ROWS", 2)
    with pytest.raises(InvalidInput, match="--csv takes any number"):
        write_workbook([found.marginal("b")], tmp_path / "a.xlsx", 0.95, [])
    assert list(tmp_path.iterdir()) == []
