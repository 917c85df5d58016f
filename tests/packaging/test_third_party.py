"""Scripts of others are named with their licence and bytes; licences are where a package's users
look for them.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import sottovoce as sv

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "sottovoce" / "studio" / "static"
VENDORED = STATIC / "vendor"
SERVED = sorted(
    file
    for folder in (
        STATIC,
        ROOT / "src" / "sottovoce" / "studio" / "templates",
        ROOT / "clients" / "js" / "src",
    )
    for file in folder.rglob("*")
    if file.is_file() and VENDORED not in file.parents
)
# What scripts of others carry, and what would load one.
FOREIGN = re.compile(
    r"@license|@preserve|copyright|sourceMappingURL|(?:src|href|from|import)\s*[=(]?\s*[\"']https?:",
    re.IGNORECASE,
)
LONGEST_LINE = 1000  # a minified script has longer ones


def test_every_vendored_script_is_named_with_its_bytes() -> None:
    page = (ROOT / "docs" / "third-party.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", page, re.MULTILINE))
    files = [file for file in VENDORED.rglob("*") if file.is_file()]
    there = {
        str(file.relative_to(VENDORED)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }
    assert there == rows


@pytest.mark.parametrize("file", SERVED, ids=lambda file: file.name)
def test_everything_else_that_is_served_is_our_own(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert FOREIGN.search(text) is None
    assert max(map(len, text.splitlines())) <= LONGEST_LINE


def test_a_chart_as_html_carries_the_licence_of_the_scripts_in_it(tmp_path: Path) -> None:
    plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    table = (
        sv.Aggregate(plan)
        .add(sv.simulate(plan, {"x": [True, False]}, seed=1))
        .estimate()
        .marginal("x")
    )
    table.plot(path=str(tmp_path / "chart.html"))
    text = (tmp_path / "chart.html").read_text(encoding="utf-8")
    assert "Copyright (c) 2015-2023, University of Washington Interactive Data Lab" in text
    assert "THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS" in text


def test_the_npm_folder_has_the_licence() -> None:
    folder = ROOT / "clients" / "js"
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "LICENSE" in json.loads((folder / "package.json").read_text())["files"]


def test_the_security_page_says_how_to_report() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for words in (
        "private vulnerability reporting",
        "Supported versions",
        "Privacy",
        "Out of scope",
    ):
        assert words in text
    for name in re.findall(r"\]\(([^)]+)\)", text) + re.findall(r"`(deploy/[\w.]+)`", text):
        assert (ROOT / name).exists(), name
