"""Backups, damage and deletion from the command line."""

from __future__ import annotations

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import typer

import sottovoce as sv
from sottovoce.console.surveys import read_plan
from sottovoce.protocol.reports import Reports
from sottovoce.store import open_store
from tests.cli.helpers import Command, Files, Outcome, refused
from tests.store.damage import damage


@pytest.fixture
def store(files: Files) -> str:
    """A store with the survey's reports, in several parts."""
    url = f"sqlite:///{files.folder}/survey.db"
    plan = read_plan(files.plan)
    reports = Reports.read(files.reports)
    ids = np.random.default_rng(1).integers(0, 256, (len(reports), 16), dtype=np.uint8)
    with open_store(url) as opened:
        opened.add_plan(plan, sv.Texts("Colours"))
        for start in range(0, len(reports), 1000):
            opened.append(plan, ids[start : start + 1000], reports[start : start + 1000])
    return url


def good(outcome: Outcome) -> str:
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


def test_a_backup_is_restored_and_estimates_the_same(
    sottovoce: Command, files: Files, store: str, tmp_path: Path
) -> None:
    file, other = tmp_path / "backup.db", f"sqlite:///{tmp_path}/other.db"
    assert (
        good(sottovoce("backup", store, "-o", file))
        == f"3,000 reports of 1 survey written to {file}\n"
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "3,000" in good(sottovoce("info", f"sqlite:///{file}"))
    assert good(sottovoce("restore", file, other)) == "3,000 reports of 1 survey restored\n"
    expected = good(sottovoce("estimate", files.plan, store, "--json"))
    for url in (other, f"sqlite:///{file}"):
        assert good(sottovoce("estimate", files.plan, url, "--json")) == expected
    refused(sottovoce("restore", file, other), "it holds 1 surveys", "--replace")
    assert good(sottovoce("restore", file, other, "--replace"))
    refused(sottovoce("restore", tmp_path / "none", other), "none", "exists")
    refused(sottovoce("restore", files.plan, other), "plan.json", "sottovoce backup")
    refused(sottovoce("backup", store, "-o", files.plan), "plan.json", "not a backup")
    refused(
        sottovoce("serve", files.plan, "--store", f"sqlite:///{file}", "--port", 0), "is a backup"
    )


def test_backup_and_restore_say_what_is_damaged_and_what_is_left(
    sottovoce: Command, files: Files, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other = tmp_path / "backup.db", f"sqlite:///{tmp_path}/other.db"
    damage(store, "payload", 5)
    good(sottovoce("rebuild", store, "--set-aside"))
    damage(store, "payload", 1500)
    aside = "1 damaged reports were set aside; estimates leave them out\n"
    assert good(sottovoce("backup", store, "-o", file)) == (
        f"2,998 reports of 1 survey written to {file}\n"
        "1 damaged reports are in it as they are; see `sottovoce rebuild`\n" + aside
    )
    said = (
        "2,998 reports of 1 survey restored\n1 damaged reports came along; see `sottovoce "
        "rebuild`\n" + aside
    )
    assert good(sottovoce("restore", file, other)) == said
    monkeypatch.setattr("sottovoce.store.sqlite_file.LOCK_PATIENCE", 0.01)
    with closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM parts").fetchone()
        told = good(sottovoce("restore", file, other, "--replace"))
    assert told.startswith(said + "The bytes of what it replaced are still in the store's files")
    assert good(sottovoce("restore", file, other, "--replace")) == said


def test_damage_is_seen_said_and_set_aside(sottovoce: Command, files: Files, store: str) -> None:
    damage(store, "payload", 1500)
    estimated = sottovoce("estimate", files.plan, store, "--json")
    assert (estimated.code, json.loads(estimated.out)["tables"][0]["people"]) == (0, 2999)
    assert estimated.err == "Note: 1 damaged reports are left out; see `sottovoce rebuild`\n"
    assert "damaged" in good(sottovoce("info", store))
    (found,) = json.loads(good(sottovoce("info", store, "--json")))["plans"]
    assert (found["reports"], found["damaged"]) == (2999, 1)
    refused(
        sottovoce("rebuild", store),
        "1 reports of",
        "are damaged",
        "--set-aside",
        "restore a backup",
    )
    name = read_plan(files.plan).id[:16]
    again = good(sottovoce("rebuild", store, "--set-aside"))
    assert again == f"2,999 reports of {name} added up; 1 damaged ones set aside\n"
    assert good(sottovoce("rebuild", store)) == f"2,999 reports of {name} added up\n"
    assert json.loads(good(sottovoce("info", store, "--json")))["plans"][0]["damaged"] == 1


def test_a_survey_is_deleted_only_if_somebody_means_it(
    sottovoce: Command, files: Files, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = read_plan(files.plan).id
    refused(sottovoce("delete", store, "--plan", name[:8]), "--yes")
    refused(sottovoce("delete", store, "--plan", "zz", "--yes"), "plan: 0 surveys")
    refused(sottovoce("delete", store, "--plan", "", "--yes"), "plan: 0 surveys")
    refused(
        sottovoce("delete", store, "--plan", name[:8], "--keep", "rows", "--yes"),
        "keep (rows)",
        "sums",
    )
    assert "3,000" in good(sottovoce("info", store))
    assert good(sottovoce("delete", store, "--plan", name[:8], "--yes")) == (
        "3,000 reports and their survey deleted\n"
    )
    assert json.loads(good(sottovoce("info", store, "--json"))) == {"plans": []}
    refused(sottovoce("estimate", files.plan, store), "plan")


def test_sums_are_kept(sottovoce: Command, files: Files, store: str) -> None:
    expected = good(sottovoce("estimate", files.plan, store, "--json"))
    name = read_plan(files.plan).id
    told = good(sottovoce("delete", store, "--plan", name[:8], "--keep", "sums", "--yes"))
    assert told == "3,000 reports deleted, their sums kept\n"
    assert good(sottovoce("estimate", files.plan, store, "--json")) == expected
    assert "only sums" in good(sottovoce("info", store))
    assert good(sottovoce("rebuild", store)) == f"Only the sums of {name[:16]} are kept\n"
    assert (
        good(sottovoce("export", store, "-o", files.folder / "out"))
        == f"Only the sums of {name[:16]} are kept\n"
    )
    refused(
        sottovoce("export", store, "-o", files.folder / "out", "--plan", name[:8]),
        "they were deleted",
    )


def test_the_question_names_what_goes(
    sottovoce: Command, files: Files, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    answers: list[bool | Exception] = [False, typer.Abort(), True]

    def confirm(text: str) -> bool:
        asked.append(text)
        answer = answers[len(asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", confirm)
    name = read_plan(files.plan).id
    refused(sottovoce("delete", store, "--plan", name), "nothing was deleted")
    assert sottovoce("delete", store, "--plan", name).code == 130
    assert "3,000" in good(sottovoce("info", store))
    good(sottovoce("delete", store, "--plan", name))
    assert (
        asked == [f"Delete the survey with all reports of {name[:16]} (Colours, 3,000 people)?"] * 3
    )
