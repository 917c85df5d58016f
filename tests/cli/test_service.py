"""The commands around a collector, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.console.surveys import read_plan
from sottovoce.protocol.reports import Reports
from sottovoce.store import open_store
from tests.cli.helpers import Command, Files, refused


@pytest.fixture
def store(files: Files) -> str:
    """A store with the survey's reports."""
    import numpy as np

    url = f"sqlite:///{files.folder}/survey.db"
    plan = read_plan(files.plan)
    reports = Reports.read(files.reports)
    ids = (
        np.arange(16 * len(reports), dtype=np.uint32)
        .astype("<u4")
        .view(np.uint8)
        .reshape(len(reports), -1)[:, :16]
    )
    with open_store(url) as opened:
        opened.add_plan(plan, sv.Texts("Colours"))
        opened.append(plan, np.ascontiguousarray(ids), reports)
    return url


def test_info_says_what_a_store_holds(sottovoce: Command, files: Files, store: str) -> None:
    shown = sottovoce("info", store)
    assert shown.code == 0
    assert "Colours" in shown.out
    assert "3,000" in shown.out
    found = json.loads(sottovoce("info", store, "--json").out)["plans"]
    assert [(plan["id"], plan["reports"]) for plan in found] == [(read_plan(files.plan).id, 3000)]


def test_a_store_estimates_like_its_reports(
    sottovoce: Command, files: Files, store: str, tmp_path: Path
) -> None:
    expected = sottovoce("estimate", files.plan, files.reports, "--json").out
    assert sottovoce("estimate", files.plan, store, "--json").out == expected
    assert (
        sottovoce("rebuild", store).out
        == f"3,000 reports of {read_plan(files.plan).id[:16]} added up\n"
    )
    assert sottovoce("estimate", files.plan, store, "--json").out == expected
    folder = tmp_path / "out"
    assert "3,000 reports" in sottovoce("export", store, "-o", folder).out
    written = list(folder.iterdir())
    assert written
    assert {path.suffix for path in written} == {".parquet"}
    table = pq.read_table(written[0])
    assert {"id", "cohort", "payload"} == set(table.column_names)
    assert sottovoce("estimate", files.plan, folder, "--json").out == expected


def test_a_token_is_shown_once(sottovoce: Command, store: str) -> None:
    made = sottovoce("token", store, "--name", "alice")
    token = made.out.strip()
    assert token.startswith("svt_")
    assert len(token) > 40
    assert token != sottovoce("token", store).out.strip()
    refused(sottovoce("token", store, "--name", ""), "name")
    listed = "alice\tmanage\tnever expires\nanalyst\tmanage\tnever expires\n"
    assert sottovoce("token", store, "--list").out == listed
    assert sottovoce("token", store, "--revoke", "alice").out == "1 token revoked\n"
    assert sottovoce("token", store, "--list").out == "analyst\tmanage\tnever expires\n"
    refused(sottovoce("token", store, "--revoke", "alice"), "revoke")


def test_a_token_has_a_scope_and_an_end(
    sottovoce: Command, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1.75e9)
    sottovoce("token", store, "--name", "alice", "--scope", "read", "--days", 30)
    assert sottovoce("token", store, "--list").out == "alice\tread\texpires 2025-07-15 15:06 UTC\n"
    monkeypatch.setattr("time.time", lambda: 1.76e9)
    assert sottovoce("token", store, "--list").out == "alice\tread\texpired 2025-07-15 15:06 UTC\n"
    refused(sottovoce("token", store, "--scope", "write"), "scope (write)", "read, manage")
    refused(sottovoce("token", store, "--days", 0), "days (0)")


def test_the_key_for_assignments_is_replaced(
    sottovoce: Command, store: str, tmp_path: Path
) -> None:
    with open_store(store) as opened:
        first = opened.signing_key()
        assert "hold until they expire" in sottovoce("key", "rotate", store).out
        assert opened.accepted_keys() == [opened.signing_key(), first]
        second = opened.signing_key()
        assert "are refused" in sottovoce("key", "rotate", store, "--now").out
        assert opened.accepted_keys() == [opened.signing_key()]
        assert opened.signing_key() not in (first, second)
    refused(sottovoce("key", "rotate", f"sqlite:///{tmp_path}/none.db"), "none.db")


def test_bad_stores_are_refused(
    sottovoce: Command, files: Files, store: str, tmp_path: Path
) -> None:
    refused(sottovoce("info", "survey.db"), "store", "sqlite:///")
    refused(sottovoce("info", f"sqlite:///{tmp_path}/none.db"), "none.db")
    refused(sottovoce("info", "mysql://x/y"), "store", "postgresql://")
    refused(sottovoce("estimate", files.plan, f"sqlite:///{tmp_path}/none.db"), "none.db")
    refused(sottovoce("export", f"sqlite:///{files.plan}", "-o", tmp_path / "x"), "plan.json")
    assert not (tmp_path / "none.db").exists()
    other = files.folder / "other.toml"
    other.write_text(files.survey.read_text().replace("epsilon = 2.0", "epsilon = 1.0"))
    assert sottovoce("plan", other, "-o", files.folder / "other.json").code == 0
    refused(sottovoce("estimate", files.folder / "other.json", store), "plan")


def test_bad_addresses_are_refused(sottovoce: Command, files: Files) -> None:
    refused(
        sottovoce("send", files.plan, files.people, "--to", "somewhere"), "somewhere", "http://"
    )
    refused(
        sottovoce("send", files.plan, files.people, "--to", "http://127.0.0.1:1", "--batch", 0),
        "batch",
    )
    refused(sottovoce("serve", files.people, "--store", "sqlite:///x.db"), "plan")
    refused(
        sottovoce(
            "serve", files.plan, "--store", f"sqlite:///{files.folder}/s.db", "--rate-limit", -1
        ),
        "rate_limit",
    )
    refused(
        sottovoce(
            "serve", files.plan, "--store", f"sqlite:///{files.folder}/s.db", "--origin", "x"
        ),
        "origin",
    )
