"""What a killed collector leaves is gone after the next start; what a living one has stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.service import analyst_routes
from sottovoce.service.temporary_folders import LOCK_FILE, WorkFolder, remove_leftovers
from sottovoce.store import open_store
from tests.service.collector import PLAN, collecting, device
from tests.store.crowds import ids

KILLED = """
import os, signal, sys
from sottovoce.service.estimate_cache import EstimateCache
from sottovoce.store import open_store

if __name__ == "__main__":
    with open_store(sys.argv[1]) as store:
        (entry,) = store.entries()
        made = EstimateCache(store.address, 1.0)
        print(made.fresh(entry.plan, 50, store.kept(entry.plan).version, 1800).file, flush=True)
        # with the processes beside it, as systemd and container engines do
        os.killpg(0, signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory that no other test uses."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_estimates_of_a_collector_that_was_killed_with_all_its_processes(
    tmp_path: Path, temporary: Path
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with open_store(url) as store:
        store.add_plan(PLAN)
        store.append(
            PLAN,
            ids(50),
            sv.simulate(PLAN, {"colour": ["red"] * 50, "smoker": [True] * 50}, seed=1),
        )
    (tmp_path / "killed.py").write_text(KILLED)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "killed.py"), url],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
        start_new_session=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = Path(done.stdout.strip())
    assert left.suffix == ".estimate"
    assert left.exists()
    with collecting(url, ()):
        assert not left.parent.exists()


def test_a_folder_in_use_stays(temporary: Path) -> None:
    folder = WorkFolder()
    (folder.path / "x.estimate").write_bytes(b"x")
    assert remove_leftovers() == 0
    assert (folder.path / "x.estimate").exists()
    assert folder.path.stat().st_mode & 0o077 == 0
    folder.close()
    assert not list(temporary.iterdir())


def test_what_is_no_leftover_stays(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "sottovoce-begun").mkdir()  # has no lock: its owner may be about to take it
    (temporary / "sottovoce-file").write_bytes(b"x")
    other = tmp_path / "other"
    other.mkdir()
    (other / LOCK_FILE).touch()
    (temporary / "sottovoce-link").symlink_to(other)
    (temporary / "sottovoce-lock-elsewhere").mkdir()
    (temporary / "sottovoce-lock-elsewhere" / LOCK_FILE).symlink_to(other / LOCK_FILE)
    (temporary / "another").mkdir()
    (temporary / "another" / LOCK_FILE).touch()
    before = sorted(temporary.rglob("*"))
    assert remove_leftovers() == 0
    assert sorted(temporary.rglob("*")) == before
    left = temporary / "sottovoce-left"
    left.mkdir()
    (left / LOCK_FILE).touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # of another account
    assert remove_leftovers() == 0
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert remove_leftovers() == 1
    assert not left.exists()


def test_an_export_lies_where_a_killed_collectors_files_are_removed(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    export_file = analyst_routes.export_file

    def seen(store: Any, plan: Any, path: Path) -> None:
        written.append(path)
        export_file(store, plan, path)

    monkeypatch.setattr(analyst_routes, "export_file", seen)
    with collecting(f"sqlite:///{tmp_path}/s.db", (PLAN,), refresh_seconds=10_000) as collector:
        collector.post(device())
        answer = collector.analyst("GET", f"/v1/surveys/{PLAN.id}/export")
        assert answer.data[:4] == answer.data[-4:] == b"PAR1"
        assert answer.headers["content-length"] == str(len(answer.data))
        assert answer.headers["content-type"] == "application/vnd.apache.parquet"
        assert (
            answer.headers["content-disposition"]
            == f'attachment; filename="{PLAN.id[:16]}.parquet"'
        )
        (folder,) = temporary.iterdir()
        assert (folder / LOCK_FILE).exists()
        assert written[0].parent == folder
        assert not written[0].exists()
    assert not list(temporary.iterdir())
