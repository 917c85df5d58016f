"""A shuffler's steps, interrupted anywhere: what left once leaves again byte for byte."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sottovoce.cli import run
from sottovoce.device.messages import PROBLEM
from sottovoce.device.sealing import new_nonce, seal
from sottovoce.device.sender import NotSent, Sender, SenderAnswer
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import BatchClosed, InvalidInput, UnknownPlan
from sottovoce.service.hop_work import IDLE_SECONDS, Neighbour, ShufflerWork, Unanswered
from sottovoce.shuffle import messages
from sottovoce.shuffle.keys import new_key, read_key
from sottovoce.store.hops import BatchState, HopStore
from tests.shuffle.plans import keys, reports, shuffled_plan

KEYS = keys()
PLAN = shuffled_plan(KEYS, people=60, least=40, fakes=6)
ENTROPY = Seeded(4)
ONIONS = [seal(report, PLAN, ENTROPY, new_nonce(ENTROPY)) for report in reports(PLAN, 45)]


class Answering:
    """A hop that hears everything, and does not always answer."""

    def __init__(self, seed: int) -> None:
        self._draw = Seeded(seed)
        self.heard: list[tuple[str, bytes]] = []

    def ask(self, kind: str, body: bytes) -> bytes:
        self.heard.append((kind, body))
        if self._draw.below(3):
            raise Unanswered("no answer")
        return b"" if kind in (messages.BATCH_KIND, messages.OPENING_KIND) else b"b" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HopStore]:
    with HopStore(f"sqlite:///{tmp_path}/hop.db") as made:
        made.begin(PLAN.id, closes=0)
        yield made


def work(store: HopStore, other: Any, hop: int = 0) -> ShufflerWork:
    """A shuffler as after a start: it knows what its store says, and nothing more."""
    made = ShufflerWork(PLAN, KEYS[hop], store, "http://next", "http://collector", 0)
    made._next = made._collector = other
    return made


@pytest.mark.parametrize("seed", range(5))
def test_what_left_leaves_again_as_it_was(
    seed: int, store: HopStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "CHUNK_BYTES", 2000)
    other = Answering(seed)
    store.add_onions(PLAN.id, ONIONS)
    while work(store, other).attempt() is not None:  # another process for every step
        pass
    assert store.state(PLAN.id) == BatchState.DONE
    sent = [body for kind, body in other.heard if kind == messages.BATCH_KIND]
    assert len(sent) > len(set(sent)) == messages.Chunk.read(sent[0]).count > 1
    assert len({body for kind, body in other.heard if kind == messages.COMMIT_KIND}) == 1
    opened = [body for kind, body in other.heard if kind == messages.OPENING_KIND]
    assert len(set(opened)) == 1
    assert store.onions(PLAN.id) == []


def test_a_small_batch_stays_closed_until_enough_good_onions_came(store: HopStore) -> None:
    other = Answering(1)
    shuffler = work(store, other)
    store.add_onions(PLAN.id, ONIONS[:39])
    store.add_onions(PLAN.id, [bytes([each]) * len(ONIONS[0]) for each in range(30)])
    for _ in range(3):
        shuffler.step()
    assert store.state(PLAN.id) == BatchState.COLLECTING
    store.add_onions(PLAN.id, ONIONS[38:40])
    shuffler.step()
    assert store.state(PLAN.id) == BatchState.CLOSED
    assert other.heard == []


def test_a_trickle_of_garbage_does_not_keep_a_hop_busy(
    store: HopStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece makes it look at all onions once more, and the file is not free meanwhile."""
    shuffler = work(store, Answering(1))
    store.add_onions(PLAN.id, [bytes([each]) * len(ONIONS[0]) for each in range(60)])
    opened = shuffler._layers.open

    def slowly(onions: Iterable[bytes]) -> None:
        time.sleep(0.05)
        opened(onions)

    monkeypatch.setattr(shuffler._layers, "open", slowly)
    wait = shuffler.step()
    assert wait is not None
    assert wait >= 20 * 0.05


def test_whoever_answers_does_not_write_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbour = Neighbour(PLAN, 0, KEYS[0], 1, "http://next")
    for type, told in (("busy", "503 busy"), ("words " * 1000, "503")):
        body = {"type": f"{PROBLEM}{type}"}
        answer = SenderAnswer(503, body, "application/json")
        monkeypatch.setattr(neighbour._sender, "ask", lambda *_, answer=answer: answer)
        with pytest.raises(Unanswered) as wrong:
            neighbour.ask(messages.BATCH_KIND, b"")
        assert str(wrong.value) == f"it answered {told}"


def test_a_batch_closes_by_the_clock_too(store: HopStore) -> None:
    store.add_onions(PLAN.id, ONIONS)
    store.begin(PLAN.id, closes=1 << 40, moves=True)
    work(store, Answering(1)).step()
    assert store.state(PLAN.id) == BatchState.COLLECTING
    store.begin(PLAN.id, closes=1 << 39)  # which was said once for all
    assert store.closes(PLAN.id) == 1 << 40


def test_a_later_hop_refuses_a_batch_that_lost_too_many(store: HopStore) -> None:
    """At the second hop there are 40 people and twice the first one's 2 fakes, or more."""
    inner = [
        seal(report, PLAN, Seeded(row), first=1) for row, report in enumerate(reports(PLAN, 43))
    ]
    (chunk,) = messages.chunks(inner, len(inner[0]))
    store.add_chunk(PLAN.id, messages.BATCH_KIND, BatchState.COLLECTING, 0, 1, chunk.data)
    other = Answering(1)
    shuffler = work(store, other, hop=1)
    while shuffler.attempt() is not None:
        pass
    assert store.state(PLAN.id) == BatchState.REFUSED
    assert other.heard == []


def test_a_hop_that_delays_only_makes_others_wait(store: HopStore) -> None:
    """Nothing of a batch leaves before all of it has come; what comes later is not in it."""
    inner = [
        seal(report, PLAN, Seeded(row), first=1) for row, report in enumerate(reports(PLAN, 44))
    ]

    def come(number: int, onions: list[bytes]) -> None:
        store.add_chunk(PLAN.id, "batch", BatchState.COLLECTING, number, 2, b"".join(onions))

    other = Answering(1)
    shuffler = work(store, other, hop=1)
    come(1, inner[22:])
    for _ in range(3):
        assert shuffler.attempt() == IDLE_SECONDS
    assert (store.state(PLAN.id), other.heard) == (BatchState.COLLECTING, [])
    come(0, inner[:22])
    while store.state(PLAN.id) != BatchState.MIXED:
        shuffler.attempt()
    kept = store.next_outgoing(PLAN.id, "batch")
    come(0, [b"late" * 50])  # another piece of a batch that has closed
    assert store.next_outgoing(PLAN.id, "batch") == kept
    assert store.status(PLAN.id).counts["received"] == 44


def bytes_of(folder: Path) -> bytes:
    """All that lies in a folder: SQLite's file, and its log beside it."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


class Crashed(Exception):
    """The process ended here."""


class CrashingConnection:
    """A connection that comes as far as the log's end, and no further."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        if "checkpoint" in query:
            raise Crashed
        return self._real.execute(query, *values)


def test_nothing_of_a_finished_batch_is_left_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in free pages and not in the log, also after a crash right behind the deletion."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    with HopStore(f"sqlite:///{before}/hop.db") as made:
        made.begin(PLAN.id)
        made.add_onions(PLAN.id, ONIONS)
        assert all(onion[48:80] in bytes_of(before) for onion in ONIONS)
        with monkeypatch.context() as patched:
            patched.setattr(made, "_db", CrashingConnection(made._db))
            with pytest.raises(Crashed):
                made.finish(PLAN.id, BatchState.DONE)
        shutil.copytree(before, after)
        made.finish(PLAN.id, BatchState.DONE)
        assert not any(onion[48:80] in bytes_of(before) for onion in ONIONS)
    assert any(onion[48:80] in bytes_of(after) for onion in ONIONS)
    with HopStore(f"sqlite:///{after}/hop.db") as made:
        assert made.state(PLAN.id) == BatchState.DONE
        assert not any(onion[48:80] in bytes_of(after) for onion in ONIONS)


def test_a_look_at_chunks_reads_none_of_them(store: HopStore) -> None:
    """Or a batch of n chunks would cost n^2: nothing that is large stands before what is looked at,
    or in the keys.
    """
    for table in ("incoming", "outgoing"):
        (sql,) = store._rows("SELECT sql FROM sqlite_master WHERE name = ?", table)[0]
        columns = [name for _, name, *_ in store._rows(f"PRAGMA table_info({table})")]
        assert columns[-1] == "data"
        assert "WITHOUT ROWID" not in sql


def test_a_hops_file_does_not_know_who_came_first(tmp_path: Path) -> None:
    found = []
    for name, onions in (("forth", ONIONS), ("back", ONIONS[::-1])):
        with HopStore(f"sqlite:///{tmp_path / name}.db") as made:
            made.begin(PLAN.id)
            for onion in onions:
                made.add_onions(PLAN.id, [onion])
            assert made.onions(PLAN.id) == sorted(ONIONS)
        with sqlite3.connect(tmp_path / f"{name}.db") as db:
            found.append(list(db.iterdump()))
    assert found[0] == found[1]
    assert (tmp_path / "forth.db").stat().st_mode & 0o777 == 0o600


def test_what_a_batch_takes(store: HopStore) -> None:
    store.add_onions(PLAN.id, ONIONS[:3])
    store.set_state(PLAN.id, BatchState.CLOSED)
    store.add_onions(PLAN.id, ONIONS[:2])  # sent again, since no answer came
    with pytest.raises(BatchClosed):
        store.add_onions(PLAN.id, ONIONS[2:4])
    assert store.count(PLAN.id) == 3
    with pytest.raises(UnknownPlan):
        store.add_onions("ff" * 32, ONIONS)


def test_chunks_that_contradict_each_other_are_refused(store: HopStore) -> None:
    def add(number: int, count: int, data: bytes) -> None:
        store.add_chunk(PLAN.id, "batch", BatchState.COLLECTING, number, count, data)

    add(1, 2, b"two")
    add(1, 2, b"two")
    for wrong in ((1, 2, b"other"), (0, 3, b"one")):
        with pytest.raises(InvalidInput, match="chunk"):
            add(*wrong)
    assert not store.is_whole(PLAN.id, "batch")
    add(0, 2, b"one")
    assert store.is_whole(PLAN.id, "batch")
    assert store.incoming(PLAN.id, "batch") == b"onetwo"
    store.finish(PLAN.id, BatchState.DONE)
    add(0, 2, b"one")  # acknowledged long ago
    assert store.incoming(PLAN.id, "batch") == b""


def test_files_of_something_else_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE mine (x)")
    for url in (
        f"sqlite:///{tmp_path}/other.db", f"sqlite:///{tmp_path}/no/hop.db", "postgresql://x/y"
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="store"):
            HopStore(url)


def test_keys_are_for_their_owner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hop.key"
    assert run(["key", "new", "-o", str(path)]) == 0
    public = capsys.readouterr().out.strip()
    assert path.stat().st_mode & 0o777 == 0o600
    assert run(["key", "show", str(path)]) == 0
    assert capsys.readouterr().out.strip() == public == read_key(path).public
    assert public not in path.read_text()
    with pytest.raises(InvalidInput, match="must not exist"):
        new_key(path, Seeded(1))
    path.chmod(0o640)
    with pytest.raises(InvalidInput, match="owner alone"):
        read_key(path)
    (tmp_path / "bad.key").write_text("words")
    (tmp_path / "bad.key").chmod(0o600)
    for bad in (tmp_path / "bad.key", tmp_path / "none.key"):
        with pytest.raises(InvalidInput, match="key"):
            read_key(bad)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"--key": "9"}, "must be one of those that plan"),
        ({"--key": "3"}, "the collector's, which is no shuffler"),
        ({"--close-after": None}, "close-after or close-at is required"),
        ({"--min-batch": "39"}, "must be at least 40"),
        ({"--collector": None}, "collector is required"),
        ({"--close-at": "2030-01-01T00:00+00:00"}, "cannot both be given"),
        ({"--close-at": "soon", "--close-after": None}, "must be a time with its zone"),
        ({"--next": None}, "--next are required"),
        ({"--next": "ftp://x"}, "url"),
        ({"--next": "http://x:y"}, "url"),
        ({"--collector": "http://[::1"}, "url"),
        ({"--close-after": "inf"}, "less than or equal to"),
    ],
)
def test_bad_input(
    changes: dict[str, str | None],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "plan.json").write_text(PLAN.to_json())
    for number, key in enumerate([*KEYS, *keys(seed=9)]):
        path = tmp_path / str(number if number < 4 else 9)
        path.write_text(f"sottovoce private key 1 {key.raw.hex()}\n")
        path.chmod(0o600)
    options = {
        "--key": "0", "--next": "http://127.0.0.1:1", "--close-after": "0",
        "--collector": "http://127.0.0.1:2", "--store": f"sqlite:///{tmp_path}/hop.db",
    } | changes  # fmt: skip
    if options["--key"]:
        options["--key"] = str(tmp_path / options["--key"])
    given = [part for name, value in options.items() if value is not None for part in (name, value)]
    assert run(["shuffler", str(tmp_path / "plan.json"), *given]) == 2
    assert told in capsys.readouterr().err


def test_the_status_of_a_hop(
    tmp_path: Path, store: HopStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.add_onions(PLAN.id, ONIONS[:3])
    assert run(["shuffler", "--status", "--store", f"sqlite:///{tmp_path}/hop.db"]) == 0
    told = "collecting  closes 1970-01-01 00:00:00 UTC, waiting 3"
    assert capsys.readouterr().out == f"{PLAN.id[:16]}  {told}\n"


def test_onions_at_another_door_are_told_where_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = SenderAnswer(404, {"type": f"{PROBLEM}not-found", "detail": "no route"}, "")
    monkeypatch.setattr(Sender, "ask", lambda *_: answer)
    with pytest.raises(NotSent, match="reports go to its first shuffler"):
        Sender("http://127.0.0.1:8700").send_onions(PLAN.id, ONIONS[:1])
