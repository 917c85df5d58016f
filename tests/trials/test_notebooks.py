"""The notebooks of docs/notebooks run, and what they show is made for reading."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.site.notebooks import PLAIN, shown

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def sources(path: Path, kind: str) -> list[str]:
    """The cells of a notebook that are code, or prose."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for cell in sources(path, "code"):
        value = shown(cell, space)
        if value is None or isinstance(value, PLAIN):
            continue
        page = value._repr_html_()
        assert page.count("<table") == page.count("</table>")
        assert "<script" not in page
    assert " object at 0x" not in capsys.readouterr().out


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_what_it_showed(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in stored["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in stored["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
    assert sources(path, "markdown")[0].startswith("# ")


def test_there_are_four_and_a_page_names_each() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["methods", "sql", "survey", "telemetry"]
    linked = re.findall(r"\]\((\w+\.ipynb)\)", (NOTEBOOKS[0].parent / "README.md").read_text())
    assert sorted(linked) == [path.name for path in NOTEBOOKS]
