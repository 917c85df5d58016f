"""`sottovoce peos`: the oblivious shuffle, through real processes with a key of full size."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.cli import run

pytest.importorskip("gmpy2")

PEOPLE = 120
SCHEMA = sv.Schema(drinks=sv.Categorical(["never", "monthly", "weekly", "daily"]))
PLAN = sv.plan(SCHEMA, sv.Frequencies("drinks", oracle="grr"), epsilon=4, people=PEOPLE)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a plan, and reports of whom three quarters never drink."""
    (tmp_path / "plan.json").write_text(PLAN.to_json())
    codes = np.arange(PEOPLE) % 4 == 3
    held = np.where(codes, "daily", "never")
    sv.simulate(PLAN, {"drinks": held}, seed=1).write(tmp_path / "reports.parquet")
    return tmp_path


def asked(files: Path, *options: object, plan: str = "plan.json") -> int:
    names = [str(files / plan), str(files / "reports.parquet"), "-o", str(files / "out.parquet")]
    return run(["peos", *names, *map(str, options)])


def test_reports_come_out_whole_and_in_another_order(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(files, "--least", 100, "--fakes", 40, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["people"], told["fakes"], told["malformed"]) == (PEOPLE, 40, 0)
    assert len(told["costs"]["shuffler_seconds"]) == 3
    (table,) = told["tables"]
    for row, share in zip(table["rows"], (0.75, 0, 0, 0.25), strict=True):
        assert abs(row["frequency"] - share) < 6 * row["std_error"]
    sent, found = (
        sv.Reports.read(files / name).checked(PLAN).payload
        for name in ("reports.parquet", "out.parquet")
    )
    lost = Counter(map(bytes, sent)) - Counter(map(bytes, found))
    assert not lost
    assert len(found) == PEOPLE + 40
    assert found[:PEOPLE].tolist() != sent.tolist()


def test_what_a_shuffle_cannot_be_made_of_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shuffled = sv.plan(
        SCHEMA,
        sv.Frequencies("drinks", oracle="grr"),
        epsilon=1,
        people=1000,
        trust="shuffled",
        delta="1e-6",
        fakes=50,
    )
    (files / "fakes.json").write_text(shuffled.to_json())
    three = sv.Schema(drinks=sv.Categorical(["never", "weekly", "daily"]))
    odd = sv.plan(three, sv.Frequencies("drinks", oracle="grr"), epsilon=1, people=1000)
    (files / "odd.json").write_text(odd.to_json())
    for options, plan, rule in (
        (["--least", 100, "--parties", 4], "plan.json", "parties (4) must be odd"),
        (["--least", 100], "fakes.json", "plan: fakes (50) must be 0"),
        (["--least", 100], "odd.json", "needs a power of two"),
        (["--least", 0], "plan.json", "--least"),
        (["--least", 100, "--level", 2], "plan.json", "level (2.0) must lie between 0 and 1"),
    ):
        assert asked(files, *options, plan=plan) == 2
        assert rule in capsys.readouterr().err
    lost = [str(files / name) for name in ("plan.json", "reports.parquet", "nowhere/out.parquet")]
    assert run(["peos", *lost[:2], "-o", lost[2], "--least", "100"]) == 2
    assert "must lie in a folder that exists" in capsys.readouterr().err
    # before a shuffler takes part
    assert asked(files, "--least", 121) == 2
    assert re.search(r"batch \(120 reports\) must have at least 121", capsys.readouterr().err)
    assert not (files / "out.parquet").exists()
