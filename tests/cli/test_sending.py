"""`sottovoce send` draws each person's report once: whatever is wrong in the file, and whenever it
is interrupted.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.demo import posting
from sottovoce.device import sender
from sottovoce.sending.journal import DrawnReport, Journal, journal_beside
from sottovoce.store import open_store
from tests.cli.helpers import Command, refused, write_csv
from tests.service.collector import Collector, collecting

SCHEMA = sv.Schema(colour=sv.Categorical(["red", "green", "blue", "grey"]))
PLAN = sv.plan(SCHEMA, sv.Frequencies("colour", oracle="grr"), epsilon=1.0, people=1000)
ASSIGNED = sv.plan(
    SCHEMA, sv.Frequencies("colour", oracle="olh"), epsilon=1.0, people=1000, coin="assigned"
)
COLOURS = ["red", "green", "blue", "grey"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with two plans."""
    (tmp_path / "plan.json").write_bytes(PLAN.to_json().encode())
    (tmp_path / "assigned.json").write_bytes(ASSIGNED.to_json().encode())
    return tmp_path


@pytest.fixture
def collector(here: Path) -> Iterator[Collector]:
    with collecting(f"sqlite:///{here}/survey.db", (PLAN, ASSIGNED)) as running:
        yield running


def people(folder: Path, count: int, **changed: str) -> Path:
    """So many rows, some of them changed (``row3="red"``)."""
    colours = [changed.get(f"row{row + 1}", COLOURS[row % 4]) for row in range(count)]
    return write_csv(folder / "people.csv", colour=colours)


def stored(folder: Path, plan: sv.Plan = PLAN) -> Counter[str]:
    """How often each id is in the store."""
    with open_store(f"sqlite:///{folder}/survey.db", create=False) as store:
        return Counter(row.tobytes().hex() for _, ids, _ in store.read(plan) for row in ids)


def journalled(folder: Path, plan: sv.Plan = PLAN) -> dict[int, str]:
    """The id of every row that was drawn."""
    lines = journal_beside(folder / "people.csv", plan).read_text().splitlines()
    bodies = [json.loads(line[9:]) for line in lines]
    return {body["row"]: body["id"] for body in bodies if "row" in body}


def test_a_bad_row_is_met_before_anything_is_drawn(
    here: Path, collector: Collector, sottovoce: Command
) -> None:
    """900 people, one bad row; mended and sent again, everybody counts once."""
    send = (
        "send",
        here / "plan.json",
        people(here, 900, row703="mauve"),
        "--to",
        collector.url,
        "--batch",
        50,
    )
    outcome = sottovoce(*send)
    refused(outcome, "row 703", "colour", "nothing was drawn or sent")
    assert "mauve" not in outcome.err
    assert not stored(here)
    assert not journal_beside(here / "people.csv", PLAN).exists()
    people(here, 900, row5="mauve", row703="mauve", row704="beige")
    refused(sottovoce(*send), "row 5:", "rows 5, 703, 704 in all")
    people(here, 900)
    assert sottovoce(*send).out == "900 reports acknowledged\n"
    assert sottovoce(*send).out == "0 reports acknowledged, 900 before\n"
    assert set(stored(here)) == set(journalled(here).values())
    assert set(stored(here).values()) == {1}
    assert len(journalled(here)) == 900


def test_nothing_leaves_before_it_is_durable(
    here: Path, sottovoce: Command, monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    """The journal was synchronised, with every row in it, when the first report goes."""
    synchronised: list[int] = []
    seen: list[tuple[int, int]] = []
    real_sync, real_send = os.fsync, sender.Sender.send

    def fsync(file: int) -> None:
        real_sync(file)
        synchronised.append(os.fstat(file).st_size)

    def send(self: sender.Sender, *arguments: Any) -> None:
        path = journal_beside(here / "people.csv", PLAN)
        acknowledgements = sum(b"acknowledged" in line for line in path.read_bytes().splitlines())
        seen.append((len(journalled(here)), acknowledgements))
        if not acknowledgements:
            assert path.stat().st_size in synchronised
        real_send(self, *arguments)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(sender.Sender, "send", send)
    done = sottovoce(
        "send", here / "plan.json", people(here, 90), "--to", collector.url, "--connections", 1
    )
    assert done.code == 0
    assert seen == [(90, count) for count in range(90)]
    mode = journal_beside(here / "people.csv", PLAN).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize("plan", [PLAN, ASSIGNED], ids=["device", "assigned"])
def test_a_lost_collector_costs_nobody_twice(
    here: Path,
    collector: Collector,
    sottovoce: Command,
    monkeypatch: pytest.MonkeyPatch,
    plan: sv.Plan,
) -> None:
    """The collector stores a batch and is gone before it says so; the same command goes on, under
    the same ids.
    """
    real = sender.Sender.send
    left = 3

    def send(self: sender.Sender, *arguments: Any) -> None:
        nonlocal left
        real(self, *arguments)
        left -= 1
        if left < 0:
            raise sender.NotSent("the collector is gone")

    arguments = (
        "send",
        here / ("plan.json" if plan is PLAN else "assigned.json"),
        people(here, 200),
        "--to",
    )
    options = (collector.url, "--batch", 10, "--connections", 1)
    with monkeypatch.context() as patched:
        patched.setattr(sender.Sender, "send", send)
        refused(
            sottovoce(*arguments, *options),
            "the collector is gone",
            "the same command goes on",
            ".journal",
        )
    assert sum(stored(here, plan).values()) >= 40
    before = journalled(here, plan)
    assert len(before) == 200 if plan is PLAN else 64 <= len(before) < 200
    people(here, 230)  # thirty people came later
    assert sottovoce(*arguments, *options).out == "200 reports acknowledged, 30 before\n"
    after = journalled(here, plan)
    assert before.items() <= after.items()
    assert set(stored(here, plan)) == set(after.values())
    assert sum(stored(here, plan).values()) == len(after) == 230


CHILD = """
import os, signal, sys, threading
from sottovoce.cli import run
from sottovoce.device import sender

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
real, left, lock = sender.Sender.send, int(sys.argv[1]), threading.Lock()

def die(sender):
    os.kill(os.getpid(), getattr(signal, sys.argv[3]))
    sender._stop.wait()  # until it is noticed

def send(self, *arguments):
    global left
    with lock:
        left -= 1
        if left == 0 and sys.argv[2] == "before":
            die(self)
        real(self, *arguments)
        if left == 0:
            die(self)

sender.Sender.send = send
sys.exit(run(sys.argv[4:]))
"""


@pytest.mark.parametrize(
    ("coin", "kill", "moment"),
    [
        ("device", "SIGKILL", "before"),
        ("device", "SIGKILL", "after"),
        ("device", "SIGINT", "after"),
        ("assigned", "SIGKILL", "after"),
    ],
)
def test_a_killed_sender_draws_nobody_twice(
    here: Path, collector: Collector, sottovoce: Command, coin: str, kill: str, moment: str
) -> None:
    """A process that dies after some batches, with one just before or just after the collector has
    it.
    """
    plan, file = {"device": (PLAN, "plan.json"), "assigned": (ASSIGNED, "assigned.json")}[coin]
    send = [
        "send",
        str(here / file),
        str(people(here, 150)),
        "--to",
        collector.url,
        "--batch",
        "10",
    ]
    child = [sys.executable, "-c", CHILD, "3", moment, kill, *send, "--connections", "2"]
    died = subprocess.run(child, check=False, capture_output=True, text=True)
    assert died.returncode == (-signal.SIGKILL if kill == "SIGKILL" else 130), died.stderr
    assert 20 <= sum(stored(here, plan).values()) < 150
    before = journalled(here, plan)
    assert before
    done = sottovoce(*send)
    assert done.code == 0, done.err
    after = journalled(here, plan)
    assert before.items() <= after.items()
    assert sorted(after) == list(range(1, 151))
    assert stored(here, plan) == Counter(after.values())  # each id once


@pytest.mark.parametrize("torn", [1, 7, 30, 100])
def test_a_torn_last_line_was_never_sent(
    here: Path, collector: Collector, sottovoce: Command, torn: int
) -> None:
    send = ("send", here / "plan.json", people(here, 20), "--to", collector.url)
    journal = journal_beside(here / "people.csv", PLAN)
    with Journal(journal, PLAN, here / "people.csv"):
        whole = journal.read_bytes()
    journal.write_bytes(whole)  # a head, and nothing drawn yet
    more = b'0badcafe {"row":1,"digest":"00","id":"' + b"0" * 100
    journal.write_bytes(whole + more[:torn])
    assert sottovoce(*send).out == "20 reports acknowledged\n"
    text = journal.read_bytes()
    assert text.startswith(whole)
    assert more[:torn] not in text.splitlines()
    journal.write_bytes(text[:-torn])  # of the last acknowledgement
    again, _, _, before, _ = sottovoce(*send).out.split()
    assert (int(again) > 0, int(again) + int(before)) == (True, 20)
    assert sum(stored(here).values()) == 20


def test_a_damaged_or_strange_journal_is_refused(
    here: Path, collector: Collector, sottovoce: Command
) -> None:
    send = ("send", here / "plan.json", people(here, 20), "--to", collector.url)
    journal = journal_beside(here / "people.csv", PLAN)
    assert sottovoce(*send).code == 0
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:5], lines[5].replace(b'"row":', b'"row": '), *lines[6:]]))
    refused(sottovoce(*send), "line 6 is damaged")
    journal.write_bytes(b"".join([*lines[:6], lines[5], *lines[6:]]))
    refused(sottovoce(*send), "line 7 is not one that send wrote")
    other = here / "other.journal"
    for text in ("my notes", "my notes\n", "a,b\n1,2\n", "{}"):
        other.write_text(text)
        refused(sottovoce(*send, "--journal", other), "journal", "an earlier send wrote")
        assert other.read_text() == text
    other.write_bytes(b"".join(lines))
    refused(
        sottovoce("send", here / "assigned.json", *send[2:], "--journal", other), "another plan"
    )
    with Journal(other, PLAN, here / "people.csv"):
        refused(sottovoce(*send, "--journal", other), "another send is under way")
    assert sum(stored(here).values()) == 20


@pytest.mark.parametrize("count", [20, 19, 25])
def test_rows_that_changed_are_refused_by_number(
    here: Path, collector: Collector, sottovoce: Command, count: int
) -> None:
    """Also those that are no longer there, or no longer fit; and nothing of them is told."""
    send = ("send", here / "plan.json", people(here, 20), "--to", collector.url)
    assert sottovoce(*send).code == 0
    people(here, count, row3="green", row17="mauve")
    outcome = sottovoce(*send)
    rows = "3, 17, 20" if count == 19 else "3, 17"
    refused(outcome, f"rows {rows} changed or went since", "epsilon again")
    assert "mauve" not in outcome.err
    assert "green" not in outcome.err
    assert sum(stored(here).values()) == 20


def test_a_journal_may_lie_elsewhere(
    here: Path, collector: Collector, sottovoce: Command, tmp_path: Path
) -> None:
    folder = here / "read-only"
    folder.mkdir()
    file = people(folder, 30)
    missing = folder / "none" / "kept.journal"
    send = ("send", here / "plan.json", file, "--to", collector.url)
    refused(sottovoce(*send, "--journal", missing), "cannot be written", "--journal FILE")
    if os.geteuid():  # root may write anywhere
        folder.chmod(0o500)
        refused(sottovoce(*send), "cannot be written", "--journal FILE")
    assert sottovoce(*send, "--journal", here / "kept.journal").out == "30 reports acknowledged\n"
    link = here / "link.csv"
    link.symlink_to(file)
    assert sottovoce(
        send[0], send[1], link, *send[3:], "--journal", here / "kept.journal"
    ).out.startswith("0 reports")
    folder.chmod(0o700)
    assert [path.name for path in folder.iterdir()] == ["people.csv"]
    assert journal_beside(link, PLAN) == journal_beside(file, PLAN)


@pytest.mark.parametrize("is_late", [True, False], ids=["expired", "refused"])
def test_an_assignment_that_came_to_nothing_is_lost_and_said_so(
    here: Path, sottovoce: Command, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """Drawn, not acknowledged, and too late, or for a collector of another key: it is not drawn
    under other coins.
    """

    def gone(*_: Any) -> None:
        raise sender.NotSent("the collector is gone")

    people(here, 10)
    send = ("send", here / "assigned.json", here / "people.csv", "--batch", 4, "--to")
    first = collecting(f"sqlite:///{here}/first.db", (ASSIGNED,), assignment_seconds=3600)
    with first as collector, monkeypatch.context() as patched:
        patched.setattr(sender.Sender, "send", gone)
        refused(sottovoce(*send, collector.url), "the collector is gone")
    before = journalled(here, ASSIGNED)
    assert len(before) == 10
    people(here, 14)
    store = "first.db" if is_late else "survey.db"
    with collecting(
        f"sqlite:///{here}/{store}", (ASSIGNED,), assignment_seconds=24 * 3600
    ) as collector:
        if is_late:
            later = time.time() + 7200
            monkeypatch.setattr("sottovoce.sending.sending.time", lambda: later)
        outcome = sottovoce(*send, collector.url, "--moved")
        assert outcome.code == 1
        lost = "10 lost (rows 1, 2, 3, 4, 5 and 5 more)"
        assert outcome.out.startswith(
            f"4 reports acknowledged, {lost}: the collector no longer takes"
        )
        assert sottovoce(*send, collector.url).out.startswith(
            f"0 reports acknowledged, 4 before, {lost}"
        )
        assert collector.service.survey(ASSIGNED.id).people == 4
    assert before.items() <= journalled(here, ASSIGNED).items()


def test_rounds_are_kept_through_a_kill(
    here: Path, sottovoce: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is drawn into one round before anything else, and has answered once its report is in
    the journal.
    """
    plan = sv.plan(SCHEMA, sv.Frequencies("colour"), epsilon=1.0, people=1000, rounds=(1, 1))
    (here / "plan.json").write_bytes(plan.to_json().encode())
    kept = here / "rounds.parquet"

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with collecting(f"sqlite:///{here}/survey.db", (plan,)) as collector:
        send = (
            "send",
            here / "plan.json",
            people(here, 80),
            "--to",
            collector.url,
            "--series",
            kept,
            "--batch",
            10,
        )
        for moment in (
            "sottovoce.sending.journal.Journal.write",
            "sottovoce.sending.rounds.SeriesMembership.mark",
        ):
            with monkeypatch.context() as patched:
                patched.setattr(moment, dies)
                assert sottovoce(*send).code == 130
        rounds = pq.read_table(kept)["round"].to_pylist()
        assert sottovoce(*send).code == 0
        assert sottovoce(*send).out.startswith("0 reports acknowledged, ")
        table = pq.read_table(kept)
        assert table["round"].to_pylist() == rounds
        assert table["answered"].to_pylist() == [number == 0 for number in rounds]
        mine = [row for row, number in enumerate(rounds, start=1) if number == 0]
        assert sorted(journalled(here, plan)) == mine
        assert collector.service.survey(plan.id).people == len(mine)


def test_an_interrupted_write_leaves_nothing_behind(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = here / "kept.journal"
    given = DrawnReport(1, bytes(16), bytes(16), sv.Client(PLAN).report({"colour": "red"}))
    with Journal(path, PLAN, here / "people.csv") as journal:
        journal.write([given])
        before = path.read_bytes()

        def interrupted(file: int) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.write([replace(given, row=2), replace(given, row=3)])
        assert path.read_bytes() == before
        journal.acknowledge([1])
    path.chmod(0o644)
    with Journal(path, PLAN, here / "people.csv") as journal:
        assert (list(journal.digests), journal.acknowledged) == ([1], {1})
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if not os.geteuid():  # who may give files away
        os.chown(path, 12345, 12345)
        with pytest.raises(sv.InvalidInput, match="a file of whoever sends"):
            Journal(path, PLAN, here / "people.csv")


def test_a_new_store_hears_everybody_again(here: Path) -> None:
    """The demo's people exist nowhere else: whoever runs it again begins anew."""
    people(here, 12)
    for _ in range(2):
        with posting.collector(here) as (url, _):
            posted = posting.post(PLAN, here / "people.csv", url, lambda done: None)
        assert posted.people == 12
        assert sum(stored(here).values()) == 12


def test_a_file_as_a_spreadsheet_writes_it(
    here: Path, collector: Collector, sottovoce: Command
) -> None:
    path = here / "export.csv"
    path.write_text("colour;note\n" + "red;a, b\n" * 20, encoding="utf-8")
    send = ("send", here / "plan.json", path, "--to", collector.url, "--batch", 50)
    refused(sottovoce(*send), "column 2 is not an attribute")
    refused(sottovoce(*send, "--separator", ","), "rows of equal length")
    assert sottovoce(*send, "--ignore", "note").out == "20 reports acknowledged\n"
    assert sottovoce(*send, "--ignore", "*").out == "0 reports acknowledged, 20 before\n"
