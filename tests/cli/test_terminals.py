"""Narrow terminals, and those of Windows: nothing that is said ends in a traceback."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import sottovoce as sv
from sottovoce.cli import app

LABELS = ["rot", "grün", "серый", "🙂"]
SCHEMA = sv.Schema(farbe=sv.Categorical(LABELS), b=sv.Boolean())
WINDOWS = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C", "COLUMNS": "40"}


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command of a group, and every group of them."""
    yield path
    for name, inner in getattr(group, "commands", {}).items():
        yield from commands(inner, (*path, name))


def test_the_help_of_every_command_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    whole = typer.main.get_command(app)
    shown = []
    for path in commands(whole):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
        monkeypatch.setattr(sys, "stdout", stream)
        whole.main([*path, "--help"], prog_name="sottovoce", standalone_mode=False)
        stream.flush()
        shown.append(stream.buffer.getvalue())  # type: ignore[attr-defined]
    assert len(shown) >= 50
    assert all(b"Usage: sottovoce" in each for each in shown)


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("survey")
    crowd = {"farbe": [LABELS[place % 4] for place in range(2000)], "b": [True, False] * 1000}
    pairs = sv.Marginals(up_to=2, method="calm")
    for name, question in (("plan", sv.Frequencies("farbe")), ("pairs", pairs)):
        plan = sv.plan(SCHEMA, question, epsilon=4, people=2000)
        (folder / f"{name}.json").write_text(plan.text, encoding="utf-8")
        sv.simulate(plan, crowd, seed=1).write(folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("estimate", "plan.json", "plan.parquet", "--plot", "all.svg"), "\\u0441\\u0435"),
        (("tree", "pairs.json", "pairs.parquet"), "`-- "),
        (("audit", "plan.json", "--draws", "1000"), "PASS plan"),
        (("estimate", "plan.json", "plan.parquet", "--marginal", "x"), "error: "),
    ],
)
def test_what_windows_lacks_is_written_out(
    survey: Path, arguments: tuple[str, ...], shown: str
) -> None:
    said = told(survey, *arguments)
    assert "Traceback" not in said
    assert shown in said
    assert "─" not in said


def test_json_is_the_same_on_windows(survey: Path) -> None:
    said = told(survey, "estimate", "plan.json", "plan.parquet", "--marginal", "farbe", "--json")
    (table,) = json.loads(said)["tables"]
    assert [row["value"] for row in table["rows"]] == LABELS


def told(folder: Path, *arguments: str) -> str:
    """All that a command says, as a terminal of Windows reads it."""
    done = subprocess.run(
        [sys.executable, "-m", "sottovoce.cli", *arguments],
        cwd=folder,
        env=os.environ | WINDOWS,
        capture_output=True,
        check=False,
    )
    return (done.stdout + done.stderr).decode("cp1252")


def test_the_shell_completes_commands(tmp_path: Path) -> None:
    asked = {
        "_SOTTOVOCE_COMPLETE": "complete_bash",
        "COMP_WORDS": "sottovoce compare o",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "sottovoce.cli"],
        cwd=tmp_path,
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["oracles"]
