"""docs/trials/team.sh: a team's survey behind Caddy with TLS, two rounds, backup and restore."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sottovoce as sv
from bench.collector import free_port
from sottovoce.store import open_store
from tests.trials.pages import steps_of

TRIALS = Path(__file__).parents[2] / "docs" / "trials"
PROGRAMS = ("caddy", "curl", "sha256sum")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]
PEOPLE = 3000


@pytest.mark.skipif(bool(MISSING), reason=f"missing here: {', '.join(MISSING)}")
def test_two_rounds_behind_caddy_survive_a_lost_store(tmp_path: Path) -> None:
    steps = steps_of(TRIALS / "team.md")
    for step in steps:
        if step.file is not None:
            (tmp_path / step.file).write_text(step.text)
    subprocess.run([sys.executable, "people.py"], cwd=tmp_path, check=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ports = {name: str(free_port()) for name in ("PORT", "HTTP", "HTTPS")}
    log = tmp_path / "log.txt"
    with log.open("w") as errors:  # a file: what is started there holds no pipe open
        done = subprocess.run(
            ["sh", str(TRIALS / "team.sh")],
            cwd=tmp_path,
            env=os.environ | {"PATH": path, "HOME": str(tmp_path)} | ports,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
    assert done.returncode == 0, log.read_text()
    assert "Traceback" not in log.read_text()
    for line in (line for step in steps for line in step.shown):
        assert line in done.stdout

    # everybody answered once, in one of the rounds
    first, second = (
        int(many) for many in re.findall(r"^(\d+) reports acknowledged$", plain(done), re.M)
    )
    assert first + second == PEOPLE
    assert f"0 reports acknowledged, {second} before" in plain(done)
    assert stored(tmp_path) == [first, second]

    # what was asked over HTTPS is what the restored store says
    asked = json.loads((tmp_path / "estimates.json").read_text())
    assert asked["people"] == second
    names = [row["value"] for row in asked["tables"][0]["rows"]]
    assert len(names) == 3
    assert "chat" in names  # by eight standard errors; the others may change places
    restored = json.loads((tmp_path / "after.json").read_text())
    assert json.dumps(asked["tables"][0]["rows"][0]["frequency"]) in json.dumps(restored)
    assert (tmp_path / "analyst.txt").stat().st_mode & 0o077 == 0


def stored(folder: Path) -> list[int]:
    """How many reports of each round are in the store."""
    plans = [
        sv.Plan.from_json((folder / name).read_text()) for name in ("first.json", "second.json")
    ]
    with open_store(f"sqlite:///{folder}/survey.db", create=False) as store:
        return [store.count(plan) for plan in plans]


def plain(done: subprocess.CompletedProcess[str]) -> str:
    """What was printed, without the marks between thousands."""
    return re.sub(r"(?<=\d),(?=\d)", "", done.stdout)
