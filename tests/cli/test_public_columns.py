"""A survey file names its public columns; whisper, send and export carry them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.device import sender
from sottovoce.sending.journal import journal_beside
from sottovoce.store import open_store
from tests.cli.helpers import Command, refused, write_csv
from tests.service.collector import collecting

SURVEY = """
epsilon = "1"
people = 1000
public = ["state", "amount"]
[schema.smoker]
kind = "boolean"
[schema.state]
kind = "categorical"
values = ["NY", "WA"]
sensitive = false
[schema.amount]
kind = "fixed-point"
low = "0"
high = "999.99"
decimals = 2
sensitive = false
[question]
kind = "frequencies"
attributes = ["smoker"]
"""


@pytest.fixture
def plan(tmp_path: Path, sottovoce: Command) -> sv.Plan:
    (tmp_path / "survey.toml").write_text(SURVEY)
    assert sottovoce("plan", tmp_path / "survey.toml", "-o", tmp_path / "plan.json").code == 0
    return sv.Plan.from_json((tmp_path / "plan.json").read_bytes())


def people(folder: Path, count: int = 30, bad: str = "") -> Path:
    amounts = [f"{row}.5" for row in range(count)]
    if bad:
        amounts[7] = bad
    states = ["NY", "WA"] * (count // 2)
    return write_csv(
        folder / "people.csv", smoker=["yes", "no"] * (count // 2), state=states, amount=amounts
    )


EXPECTED = [100 * row + 50 for row in range(30)]


@pytest.mark.parametrize("seed", [(), ("--seed", 1)])
def test_whispered_files_have_them(
    plan: sv.Plan, tmp_path: Path, sottovoce: Command, seed: tuple[Any, ...]
) -> None:
    out = tmp_path / "reports.parquet"
    whisper = ("whisper", tmp_path / "plan.json", people(tmp_path), "-o", out, *seed)
    assert sottovoce(*whisper).code == 0
    table = pq.read_table(out)
    assert table.column("amount").to_pylist() == EXPECTED
    assert table.column("state").to_pylist() == ["NY", "WA"] * 15
    people(tmp_path, bad="7.505")
    outcome = sottovoce(*whisper)
    refused(outcome, "row 8", "amount")
    assert "7.505" not in outcome.err


def test_send_and_its_journal_carry_them(
    plan: sv.Plan, tmp_path: Path, sottovoce: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the collector was lost: what was drawn is sent as it was."""
    real, left = sender.Sender.send, 2

    def send(self: sender.Sender, *arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise sender.NotSent("the collector is gone")
        real(self, *arguments)

    url = f"sqlite:///{tmp_path}/survey.db"
    with collecting(url, (plan,)) as collector:
        command = (
            "send",
            tmp_path / "plan.json",
            people(tmp_path),
            "--to",
            collector.url,
            "--batch",
            5,
        )
        monkeypatch.setattr(sender.Sender, "send", send)
        assert sottovoce(*command).code != 0
        monkeypatch.setattr(sender.Sender, "send", real)
        refused(
            sottovoce("send", tmp_path / "plan.json", people(tmp_path, bad="7.60"), *command[3:]),
            "row 8",
            "changed",
        )
        people(tmp_path)
        assert sottovoce(*command).code == 0
    assert (
        '"public":{"state":"NY","amount":"0.50"}'
        in journal_beside(tmp_path / "people.csv", plan).read_text()
    )
    with open_store(url) as store:
        reports = sv.Reports.concat([some for _, _, some in store.read(plan)])
    assert sorted(reports.public["amount"].values.tolist()) == EXPECTED
    assert sottovoce("export", url, "-o", tmp_path / "out").code == 0
    assert sorted(pq.read_table(tmp_path / "out").column("amount").to_pylist()) == EXPECTED
