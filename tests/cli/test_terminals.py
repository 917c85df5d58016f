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
from sottovoce.cli import app, run
from sottovoce.console.screen import fit_streams

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


COMPLETED = [
    ("compare o", ["oracles"]),
    ("methods square", ["square-wave"]),
    ("compare marginals t.csv --methods calm,la", ["calm,latent"]),
    ("compare oracles --oracles oue,gr", ["oue,grr"]),
]


@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
def test_the_shell_completes_commands_and_names(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    completed: list[str],
) -> None:
    words = f"sottovoce {typed}"
    monkeypatch.setenv("_SOTTOVOCE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        typer.main.get_command(app).main([], prog_name="sottovoce")
    assert capsys.readouterr().out.split() == completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell", "pwsh"])
def test_every_shell_is_answered(tmp_path: Path, shell: str) -> None:
    asked = {
        "_SOTTOVOCE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "sottovoce compare o",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": "sottovoce compare o",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": "o",
    }
    done = subprocess.run(
        [sys.executable, "-m", "sottovoce.cli"],
        cwd=tmp_path,
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "oracles" in done.stdout
    assert done.stderr == ""


def test_a_name_that_the_system_cannot_write_is_one_error(tmp_path: Path) -> None:
    """In a locale of ASCII alone, which no Windows has, the file of a table cannot be named."""
    schema = sv.Schema(größe=sv.Boolean())
    plan = sv.plan(schema, sv.Frequencies("größe"), epsilon=4, people=100)
    (tmp_path / "plan.json").write_text(plan.text, encoding="utf-8")
    sv.simulate(plan, {"größe": [True] * 100}, seed=1).write(tmp_path / "r.parquet")
    done = subprocess.run(
        [sys.executable, "-m", "sottovoce.cli", "estimate", "plan.json", "r.parquet", "--csv", "t"],
        cwd=tmp_path,
        env=os.environ | WINDOWS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "error: a name cannot be written in this system's encoding (ascii)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("methods",),
        ("compare", "oracles", "--size", "4", "--epsilon", "1", "--people", "200", "--runs", "2"),
        ("check-method", "marg-ps"),
    ],
)
def test_lists_and_comparisons_are_said_on_windows(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stream)
    fit_streams()
    assert run([*arguments]) == 0
    stream.flush()
    said = stream.buffer.getvalue().decode("cp1252")  # type: ignore[attr-defined]
    assert "─" not in said
    assert len(said.splitlines()) > 3
