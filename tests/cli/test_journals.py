"""Whose journal is whose: no name of a people's file, and no second process, draws anybody twice or
loses anybody.
"""

from __future__ import annotations

import random
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.sending import journal
from sottovoce.sending.copies import is_copy
from sottovoce.sending.journal import _line, journal_beside
from sottovoce.sending.rounds import SeriesMembership
from sottovoce.store import open_store
from tests.cli.helpers import Command, Outcome, refused, write_csv
from tests.service.collector import Collector, collecting

SCHEMA = sv.Schema(colour=sv.Categorical(["red", "green", "blue", "grey"]))
PLAN = sv.plan(SCHEMA, sv.Frequencies("colour", oracle="grr"), epsilon=1.0, people=1000)
ROUNDS = sv.plan(SCHEMA, sv.Frequencies("colour"), epsilon=1.0, people=1000, rounds=(1, 1))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a plan, and one of several rounds."""
    (tmp_path / "plan.json").write_bytes(PLAN.to_json().encode())
    (tmp_path / "rounds.json").write_bytes(ROUNDS.to_json().encode())
    return tmp_path


@pytest.fixture
def collector(here: Path) -> Iterator[Collector]:
    with collecting(f"sqlite:///{here}/survey.db", (PLAN, ROUNDS)) as running:
        yield running


class Sending:
    """`send` with the plan, and how many reports there are."""

    def __init__(self, here: Path, collector: Collector, sottovoce: Command) -> None:
        self._here, self._url, self._command = here, collector.url, sottovoce

    def __call__(self, people: Path, *options: object) -> Outcome:
        return self._command(
            "send", self._here / "plan.json", people, "--to", self._url, "--batch", 20, *options
        )

    def count(self) -> int:
        with open_store(f"sqlite:///{self._here}/survey.db", create=False) as store:
            return store.count(PLAN)


@pytest.fixture
def send(here: Path, collector: Collector, sottovoce: Command) -> Sending:
    return Sending(here, collector, sottovoce)


def people(path: Path, count: int) -> Path:
    """So many rows of colours in turn."""
    return write_csv(path, colour=[SCHEMA["colour"].values[row % 4] for row in range(count)])


# -- another name of the same file


@pytest.mark.parametrize("how", ["rename", "link"])
def test_a_file_of_another_name_is_not_drawn_again(here: Path, send: Sending, how: str) -> None:
    """It is refused with the journal's name, and goes on with that;
    also with rows that came later.
    """
    old, new = people(here / "people.csv", 20), here / "renamed.csv"
    assert send(old).code == 0
    own = journal_beside(old, PLAN)
    (old.rename if how == "rename" else new.hardlink_to)(new if how == "rename" else old)
    refused(send(new), f"--journal {own}", "were drawn for", "nothing was drawn or sent")
    assert not journal_beside(new, PLAN).exists()
    assert send.count() == 20
    assert send(new, "--journal", own).out == "0 reports acknowledged, 20 before\n"
    people(new, 25)
    assert send(new, "--journal", own).out == "5 reports acknowledged, 20 before\n"
    assert send.count() == 25


def test_a_renamed_file_with_changed_rows_is_not_drawn_again(here: Path, send: Sending) -> None:
    old, new = people(here / "people.csv", 20), here / "renamed.csv"
    assert send(old).code == 0
    old.unlink()
    write_csv(new, colour=["blue", *(SCHEMA["colour"].values[row % 4] for row in range(1, 20))])
    own = journal_beside(old, PLAN)
    refused(send(new), f"--journal {own}")
    refused(send(new, "--journal", own), "row 1 changed or went")
    people(new, 20)
    assert send(new, "--journal", own).code == 0
    assert send.count() == 20


def test_a_copy_is_not_drawn_again(here: Path, send: Sending) -> None:
    """The first file is still there: it is that one that goes on. Other people may say that they
    are.
    """
    old, copy = people(here / "people.csv", 20), people(here / "copy.csv", 21)
    assert send(old).code == 0
    refused(send(copy), f"send {old} itself")
    refused(send(copy, "--journal", journal_beside(old, PLAN)), "another people's file", str(old))
    assert send.count() == 20
    assert send(copy, "--journal", here / "others.journal").out == "21 reports acknowledged\n"


def drawn_colours(path: Path, count: int, seed: int, *, is_sorted: bool = False) -> Path:
    """Rows of colours by lot."""
    rows = random.Random(seed).choices(SCHEMA["colour"].values, k=count)
    return write_csv(path, colour=sorted(rows) if is_sorted else rows)


@pytest.mark.parametrize("how", ["mended", "removed early", "removed late", "added at the top"])
def test_a_copy_that_was_mended_is_not_drawn_again(here: Path, send: Sending, how: str) -> None:
    """Who may not change the file in place changes a copy: most of its rows are the same people."""
    old = drawn_colours(here / "people.csv", 100, seed=1)
    assert send(old).code == 0
    head, *rows = old.read_text().splitlines()
    if how == "mended":
        rows[6] = "grey" if rows[6] != "grey" else "red"
    elif how == "added at the top":
        rows.insert(0, "blue")
    else:
        del rows[6 if how == "removed early" else 93]
    copy = here / "copy.csv"
    copy.write_text("\n".join([head, *rows, "red\n"]))
    own = journal_beside(old, PLAN)
    refused(
        send(copy),
        f"drawn for {old}",
        str(own),
        f"send {old} itself",
        "--journal FILE",
        "nothing was drawn or sent",
    )
    assert not journal_beside(copy, PLAN).exists()
    assert send.count() == 100
    assert send(copy, "--journal", here / "others.journal").code == 0


def test_other_people_are_no_copy_however_many_rows_are_equal() -> None:
    """By chance, of few values or many, in any order or sorted; a copy of as many rows, with one
    mended, is one.
    """
    rng = np.random.default_rng(1)
    for count in (20, 60, 200, 1000):
        for size in (2, 4, 10, 100, 100_000):
            rows = np.arange(count)
            for _ in range(40):
                first, second = rng.integers(0, size, (2, count))
                assert not is_copy(rows, first, second)
                assert not is_copy(rows, np.sort(first), np.sort(second))
            mended = first.copy()
            mended[7] = (mended[7] + 1) % size
            if count >= 200 or (count, size) == (60, 100):
                assert is_copy(rows, first, mended)
                assert is_copy(rows, first, np.delete(first, count // 3))
                # those of one round
                some = np.sort(rng.choice(count, count * 3 // 4, replace=False))
                assert is_copy(some, first[some], mended)


def test_a_journal_goes_to_one_collector(
    here: Path, collector: Collector, sottovoce: Command
) -> None:
    """Another address is refused, and says how to go on; if the collector moved, nobody is drawn or
    sent again.
    """
    file = people(here / "people.csv", 20)
    arguments = ("send", here / "plan.json", file, "--to")
    same = collector.url.replace("http://", "HTTP://") + "/"
    other = collector.url.replace("127.0.0.1", "localhost")
    assert sottovoce(*arguments, collector.url).code == 0
    assert sottovoce(*arguments, same).out == "0 reports acknowledged, 20 before\n"
    own = journal_beside(file, PLAN)
    before = own.read_bytes()
    people(file, 25)
    refused(
        sottovoce(*arguments, other),
        str(own),
        f"({other})",
        f"--to {collector.url}",
        "--moved",
        "nothing was drawn",
    )
    assert own.read_bytes() == before
    people(file, 20)
    assert sottovoce(*arguments, other, "--moved").out == "0 reports acknowledged, 20 before\n"
    assert sottovoce(*arguments, other).code == 0
    refused(sottovoce(*arguments, collector.url), f"--to {other}")


def test_a_journal_of_before_takes_the_collector_that_it_is_given(
    here: Path, send: Sending
) -> None:
    """Journals that earlier versions wrote name none."""
    file = people(here / "people.csv", 20)
    assert send(file).code == 0
    own = journal_beside(file, PLAN)
    lines = own.read_bytes().splitlines(keepends=True)
    own.write_bytes(b"".join(line for line in lines if b'"collector"' not in line))
    assert send(file).out == "0 reports acknowledged, 20 before\n"
    assert b'"collector"' in own.read_bytes()
    for wrong in (5, None, ["x"]):
        own.write_bytes(b"".join(lines) + _line({"collector": wrong}))
        refused(send(file), "is not one that send wrote")


def test_other_people_in_the_same_folder_are_drawn(here: Path, send: Sending) -> None:
    """Also if both files are sorted, so that most rows are equal at the same places."""
    assert send(drawn_colours(here / "people.csv", 100, seed=1)).code == 0
    assert send(drawn_colours(here / "others.csv", 100, seed=2)).code == 0
    assert send(drawn_colours(here / "sorted.csv", 100, seed=3, is_sorted=True)).code == 0
    assert send(drawn_colours(here / "more.csv", 100, seed=4, is_sorted=True)).code == 0
    assert send.count() == 400


def test_a_journal_that_cannot_be_understood_is_no_leave_to_draw(here: Path, send: Sending) -> None:
    other = here / f"a.csv.{PLAN.id[:16]}.journal"
    other.write_text("my notes\n")
    refused(send(people(here / "people.csv", 20)), "an earlier send wrote", other.name)
    other.unlink()
    other.mkdir()
    refused(send(here / "people.csv"), "cannot be read", other.name)
    assert send.count() == 0


# -- one journal for two files


def test_one_journal_does_not_serve_two_files(here: Path, send: Sending) -> None:
    """Two files of equal rows are not the same people."""
    first, second = people(here / "first.csv", 20), people(here / "second.csv", 20)
    shared = here / "shared.journal"
    assert send(first, "--journal", shared).code == 0
    before = shared.read_bytes()
    refused(
        send(second, "--journal", shared), "another people's file", str(first), "--journal FILE"
    )
    assert shared.read_bytes() == before
    assert send(second, "--journal", here / "second.journal").out == "20 reports acknowledged\n"
    assert send.count() == 40


def test_a_journal_follows_its_renamed_file_and_no_other(here: Path, send: Sending) -> None:
    first, shared = people(here / "first.csv", 20), here / "shared.journal"
    assert send(first, "--journal", shared).code == 0
    moved = first.rename(here / "moved.csv")
    assert send(moved, "--journal", shared).out == "0 reports acknowledged, 20 before\n"
    refused(send(people(first, 20), "--journal", shared), "another people's file", str(moved))
    assert send(moved, "--journal", shared).out == "0 reports acknowledged, 20 before\n"


def test_a_folder_may_move_with_its_journal(here: Path, send: Sending) -> None:
    (here / "old").mkdir()
    assert send(people(here / "old" / "people.csv", 20)).code == 0
    (here / "old").rename(here / "new")
    assert send(here / "new" / "people.csv").out == "0 reports acknowledged, 20 before\n"


# -- files that are no journals


@pytest.mark.parametrize(
    "text", ["", "deadbeef", "0", "12345678 ", '12345678 {"journal":', "my notes\n", "a,b\n1,2\n"]
)
def test_a_file_of_something_else_is_left_as_it_is(here: Path, send: Sending, text: str) -> None:
    """Its text and its mode; an empty one may become a journal."""
    other = here / "other.txt"
    other.write_text(text)
    other.chmod(0o644)
    bad = write_csv(here / "people.csv", colour=["mauve"])
    outcome = send(bad if text else people(bad, 20), "--journal", other)
    if text:
        refused(outcome, "an earlier send wrote")
        assert other.read_text() == text
    else:
        assert outcome.code == 0
    assert stat.S_IMODE(other.stat().st_mode) == (0o644 if text else 0o600)


def test_an_acknowledgement_of_a_row_that_was_never_drawn_is_refused(
    here: Path, send: Sending
) -> None:
    file = people(here / "people.csv", 20)
    assert send(file).code == 0
    own = journal_beside(file, PLAN)
    whole = own.read_bytes()
    for rows in ([21], [1, 99], ["1"], 3):
        own.write_bytes(whole + _line({"acknowledged": rows}))
        refused(send(people(file, 21)), "is not one that send wrote")
    own.write_bytes(whole)
    assert send(file).out == "1 reports acknowledged, 20 before\n"


def test_a_journal_is_read_where_it_was_checked(
    here: Path, send: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it was checked, another file in its place is not read: nobody seems to be new."""
    file = people(here / "people.csv", 20)
    assert send(file).code == 0
    head = journal_beside(file, PLAN).read_bytes().splitlines(keepends=True)[0]
    real = journal._take

    def swapped(number: int, path: Path) -> None:
        real(number, path)
        path.rename(here / "kept")
        path.write_bytes(head)

    monkeypatch.setattr(journal, "_take", swapped)
    assert send(file).out == "0 reports acknowledged, 20 before\n"
    assert send.count() == 20


# -- a series


@pytest.mark.parametrize("command", ["whisper", "send"])
def test_one_process_at_a_time_has_a_series(
    here: Path,
    collector: Collector,
    sottovoce: Command,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    """While one runs, from before it has read the file to its end, another is refused, under any
    name of the file.
    """
    file, kept, link = people(here / "people.csv", 40), here / "kept.parquet", here / "link.parquet"
    link.symlink_to(kept)
    others: list[Outcome] = []
    whisper = ("whisper", here / "rounds.json", file, "-o", here / "reports.parquet", "--series")
    running = {
        "whisper": whisper,
        "send": ("send", here / "rounds.json", file, "--to", collector.url, "--series"),
    }
    real = SeriesMembership._draw

    def meanwhile(self: SeriesMembership, count: int) -> None:
        if not others:
            others.append(Outcome(0, "", ""))
            others.extend(sottovoce(*running[each], link) for each in ("whisper", "send"))
        real(self, count)

    monkeypatch.setattr(SeriesMembership, "_draw", meanwhile)
    assert sottovoce(*running[command], kept).code == 0
    for outcome in others[1:]:
        refused(outcome, "series", "is in use")
    assert len(others) == 3
    assert link.is_symlink()
    assert not (here / "kept.parquet.lock").exists()
    refused(sottovoce(*whisper, link), "nobody answers")
