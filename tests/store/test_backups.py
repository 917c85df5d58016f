"""A backup holds all that was acknowledged before it began, and a store restored from it estimates
the same bits.
"""

from __future__ import annotations

import shutil
import sqlite3
import stat
import struct
import zlib
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput, SottovoceError, StoreError
from sottovoce.store import Outcome, Restored, Store, backup, id_index, open_store, restore
from sottovoce.store import backups as module
from tests.postgres import Cluster
from tests.store.child import ROWS
from tests.store.crowds import ids, marginals, plan, reports
from tests.store.damage import damage
from tests.store.processes import start

Fresh = Callable[[], str]


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Fresh:
    """Addresses of empty stores, of the kind that a backup is restored to."""
    if request.param == "sqlite":
        names = iter(range(100))
        return lambda: f"sqlite:///{tmp_path}/restored-{next(names)}.db"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.fresh_url


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(id_index, "RUN", 70)
    for of in (plan(), marginals()):
        store.add_plan(of, sv.Texts(f"a title, {of.question.kind}", consent="We ask you."))
    for seed in range(4):
        store.append(plan(), ids(50, seed), reports(50, seed))
        store.append(marginals(), ids(50, seed, minute=1), reports(50, seed, marginals()))
    store.add_token("ann", b"a" * 32, "read", 5.0)
    store.signing_key()
    return store


def everything(store: Store) -> list[object]:
    """What a store says of itself, its reports one by one included."""
    told: list[object] = [store.signing_key(), store.tokens()]
    for entry in store.entries():
        of = entry.plan
        told += [
            of.id,
            entry.title,
            entry.created,
            entry.closed,
            store.count(of),
            store.aggregate(of).to_bytes(),
        ]
        told += [
            [
                (own.tobytes(), some.cohorts.tobytes(), some.payload.tobytes())
                for _, own, some in store.read(of)
            ]
        ]
    return told


def test_a_store_comes_back_the_same_wherever_it_goes(
    filled: Store, fresh: Fresh, tmp_path: Path
) -> None:
    filled.close_survey(marginals().id)
    file = tmp_path / "backup.db"
    made = backup(filled, file)
    assert (made.reports, made.damaged, made.has_keys) == (400, 0, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
    with open_store(fresh()) as other:
        assert restore(file, other, with_keys=True) == Restored(made, left_out=0, is_erased=True)
        assert everything(other) == everything(filled)
        again = other.append(plan(), ids(50, 2), reports(50, 2))
        assert (again == Outcome.DUPLICATE).all()
        assert not other.append(plan(), ids(7, 9), reports(7, 9)).any()
        assert other.rebuild(plan()).people == other.count(plan()) == 207
        second = tmp_path / "second.db"
        backup(other, second)  # and on to another one
        with open_store(fresh()) as third:
            restore(second, third, with_keys=True)
            assert everything(third) == everything(other)
            third.add_plan(plan("z"))
            assert len(third.entries()) == 3


def test_a_backup_can_be_read_but_not_written_to(filled: Store, tmp_path: Path) -> None:
    backup(filled, tmp_path / "backup.db")
    before = (tmp_path / "backup.db").read_bytes()
    with open_store(f"sqlite:///{tmp_path}/backup.db", create=False) as copy:
        assert everything(copy) == everything(filled)
        for write in (
            lambda: copy.add_plan(plan("y")),
            lambda: copy.append(plan(), ids(1, 9), reports(1)),
            lambda: copy.delete(plan()),
        ):
            with pytest.raises(StoreError, match="is a backup, which takes nothing more"):
                write()
    assert (tmp_path / "backup.db").read_bytes() == before


def test_every_report_acknowledged_before_it_began_is_in_it(url: str, tmp_path: Path) -> None:
    open_store(url).close()
    child = start("endless", url)
    try:
        assert child.stdout is not None
        for number in range(3):
            acknowledged = [int(child.stdout.readline()) for _ in range(5)]
            with open_store(url) as store:
                made = backup(store, tmp_path / f"{number}.db")
            with open_store(f"sqlite:///{tmp_path}/{number}.db", create=False) as copy:
                kept = {key.tobytes() for _, own, _ in copy.read(plan()) for key in own}
                assert (
                    len(kept) == copy.count(plan()) == copy.aggregate(plan()).people == made.reports
                )
            for step in acknowledged:
                assert {key.tobytes() for key in ids(ROWS, step, minute=step % 3)} <= kept
        assert child.poll() is None  # it went on all the time
    finally:
        child.kill()
        child.communicate()


# -- keys


def test_without_keys_those_of_the_store_stay(filled: Store, fresh: Fresh, tmp_path: Path) -> None:
    key = filled.signing_key()
    assert not backup(filled, tmp_path / "backup.db", with_keys=False).has_keys
    content = (tmp_path / "backup.db").read_bytes()
    assert key not in content
    assert b"a" * 32 not in content
    with open_store(fresh()) as other:
        other.add_token("bob", b"b" * 32)
        own = other.signing_key()
        restore(tmp_path / "backup.db", other)
        assert other.signing_key() == own != key
        assert [token.name for token in other.tokens()] == ["bob"]
        assert other.aggregate(plan()) == filled.aggregate(plan())


def test_a_restored_backup_brings_back_no_token_or_key_unasked(
    filled: Store, tmp_path: Path
) -> None:
    file = tmp_path / "backup.db"
    stolen = filled.signing_key()
    backup(filled, file)
    filled.remove_tokens("ann")  # she was found out
    filled.add_token("bob", b"b" * 32)
    filled.replace_signing_key(0)
    current = filled.signing_key()
    restore(file, filled, replace=True)
    assert filled.signing_key() == current != stolen
    assert [token.name for token in filled.tokens()] == ["bob"]
    restore(file, filled, replace=True, with_keys=True)
    assert filled.signing_key() == stolen
    assert [token.name for token in filled.tokens()] == ["ann"]
    assert current not in filled.accepted_keys()
    backup(filled, file, with_keys=False)
    with pytest.raises(InvalidInput, match="made without keys"):
        restore(file, filled, replace=True, with_keys=True)


@pytest.mark.parametrize(
    "said",
    ["{", "[]", '{"format": 1}', '{"format": 2}', b"\xff\x00", '{"format": 1, "surveys": 5}'],
)
def test_a_damaged_manifest_is_one_clear_error(
    filled: Store, tmp_path: Path, said: str | bytes
) -> None:
    file = tmp_path / "backup.db"
    backup(filled, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("UPDATE settings SET value = ? WHERE name = 'backup'", (said,))
    for use in (lambda: restore(file, filled, replace=True), lambda: backup(filled, file)):
        with pytest.raises(SottovoceError, match=r"^backup: "):
            use()


# -- what is special about a survey


def test_sums_and_damaged_reports_come_along(
    filled: Store, url: str, fresh: Fresh, tmp_path: Path
) -> None:
    damage(url, "payload", 60)  # the tenth of the second part, of marginals
    filled.keep_sums(plan())
    expected = [filled.aggregate(of).to_bytes() for of in (plan(), marginals())]
    made = backup(filled, tmp_path / "backup.db")
    assert made.reports == 399
    is_file = url.startswith("sqlite")
    # a server's damaged rows are left out
    assert (made.damaged, made.set_aside) == ((1, 0) if is_file else (0, 1))
    target = fresh()
    with open_store(target) as other:
        done = restore(tmp_path / "backup.db", other)
        assert done.left_out == (1 if is_file and not target.startswith("sqlite") else 0)
        assert [other.aggregate(of).to_bytes() for of in (plan(), marginals())] == expected
        assert other.kept(plan()).only_sums
        assert (other.count(plan()), other.count(marginals())) == (200, 199)
        # however it came, somebody can see that one is not counted
        assert other.kept(marginals()).missing == 1


def test_reports_that_were_all_set_aside_come_along(
    store: Store, url: str, fresh: Fresh, tmp_path: Path
) -> None:
    for of in (plan(), marginals()):
        store.add_plan(of)
    store.append(plan(), ids(3), reports(3))
    store.append(marginals(), ids(5, minute=1), reports(5, of=marginals()))
    for row in range(3):
        damage(url, "payload", row)
    assert store.set_aside(plan()) == 3
    made = backup(store, tmp_path / "backup.db")
    assert (made.reports, made.set_aside) == (5, 3)
    with open_store(f"sqlite:///{tmp_path}/backup.db", create=False) as copy:
        assert (copy.count(plan()), copy.count(marginals())) == (0, 5)
    with open_store(fresh()) as other:
        restore(tmp_path / "backup.db", other)
        assert (other.count(plan()), other.count(marginals())) == (0, 5)
        assert other.kept(plan()).set_aside == 3
        assert not other.append(plan(), ids(3), reports(3)).any()  # their ids are free again
        assert other.count(plan()) == other.aggregate(plan()).people == 3


def test_reports_that_are_all_damaged_are_counted_somewhere(
    store: Store, url: str, fresh: Fresh, tmp_path: Path
) -> None:
    store.add_plan(plan())
    store.append(plan(), ids(3), reports(3))
    for row in range(3):
        damage(url, "payload", row)
    made = backup(store, tmp_path / "backup.db")
    assert (made.reports, made.damaged + made.set_aside) == (0, 3)
    with open_store(fresh()) as other:
        restore(tmp_path / "backup.db", other)
        assert other.aggregate(plan()).people == other.count(plan()) == 0
        assert other.kept(plan()).missing == 3


def test_sums_of_fewer_reports_than_there_are_do_not_come_along(
    store: Store, fresh: Fresh, tmp_path: Path
) -> None:
    store.add_plan(plan())
    store.append(plan(), ids(50), reports(50))
    store.rebuild(plan())
    store.append(plan(), ids(50, 2), reports(50, 2))
    backup(store, tmp_path / "backup.db")
    with open_store(fresh()) as other:
        restore(tmp_path / "backup.db", other)
        assert other.aggregate(plan()) == store.aggregate(plan())
        assert other.aggregate(plan()).people == 100


# -- where to


def test_a_store_that_is_not_empty_is_left_alone_unless_asked(
    filled: Store, fresh: Fresh, tmp_path: Path
) -> None:
    backup(filled, tmp_path / "backup.db")
    with open_store(fresh()) as other:
        other.add_plan(plan("y"))
        other.append(plan("y"), ids(30, 9), reports(30, 9, plan("y")))
        before = other.aggregate(plan("y"))
        with pytest.raises(
            InvalidInput, match="it holds 1 surveys; restore into an empty one, or with --replace"
        ):
            restore(tmp_path / "backup.db", other)
        assert [entry.plan.id for entry in other.entries()] == [plan("y").id]
        assert other.rebuild(plan("y")) == before
        restore(tmp_path / "backup.db", other, replace=True, with_keys=True)
        assert everything(other) == everything(filled)
        assert not other.append(plan(), ids(30, 9), reports(30, 9)).any()


def test_an_older_backup_takes_back_what_a_running_collector_holds(
    store: Store, url: str, tmp_path: Path
) -> None:
    store.add_plan(plan())
    store.append(plan(), ids(50, 1), reports(50, 1))
    backup(store, tmp_path / "backup.db")
    store.append(plan(), ids(50, 2), reports(50, 2))
    with open_store(url) as running:
        assert running.aggregate(plan()).people == 100
        restore(tmp_path / "backup.db", store, replace=True)
        assert running.aggregate(plan()).people == running.count(plan()) == 50
        assert not running.append(plan(), ids(50, 2), reports(50, 2)).any()
        assert (running.append(plan(), ids(50, 1), reports(50, 1)) == Outcome.DUPLICATE).all()
        assert running.aggregate(plan()).people == 100


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE parts SET payload = zeroblob(length(payload))",
        "DELETE FROM parts WHERE seq = (SELECT max(seq) FROM parts)",
        "UPDATE plans SET texts = '{}'",
        "UPDATE tokens SET scope = 'manage'",
        "UPDATE settings SET value = zeroblob(32) WHERE name = 'signing key'",
        "DELETE FROM plans WHERE number = 1",
        "UPDATE parts SET people = people + 1",
        "UPDATE parts SET cohorts = checksums, checksums = cohorts",
        "UPDATE set_aside SET ids = zeroblob(16)",
        "UPDATE checkpoints SET data = zeroblob(length(data))",
        "UPDATE checkpoints SET people = people + 1",
    ],
)
def test_a_backup_that_was_changed_is_refused(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "backup.db"
    with open_store(f"sqlite:///{tmp_path}/survey.db") as store:
        store.add_plan(plan(), sv.Texts("a title"))
        store.add_plan(marginals())
        store.append(plan(), ids(50), reports(50))
        store.append(plan(), ids(50, 2), reports(50, 2))
        damage(store.url, "payload", 7)
        store.set_aside(plan())
        store.add_plan(plan("z"))
        store.append(plan("z"), ids(50, 3), reports(50, 3, plan("z")))
        store.keep_sums(plan("z"))
        store.add_token("ann", b"a" * 32, "read")
        store.signing_key()
        backup(store, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        assert db.execute(change).rowcount > 0
    with open_store(f"sqlite:///{tmp_path}/other.db") as other:
        with pytest.raises(
            StoreError, match=r"it is not as it was made|what was kept of this survey is damaged"
        ):
            restore(file, other)
        assert other.entries() == []


# -- other machines


class OtherZlib:
    """Another library behind the same name: it inflates to the same bytes from other ones."""

    def __getattr__(self, name: str) -> object:
        return getattr(zlib, name)

    def compress(self, data: bytes, level: int) -> bytes:
        return zlib.compress(data, 9)


def test_a_backup_is_good_where_zlib_compresses_otherwise(
    filled: Store, fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.keep_sums(plan())
    expected = filled.aggregate(plan())
    backup(filled, tmp_path / "backup.db")
    before = expected.to_bytes()
    monkeypatch.setattr("sottovoce.aggregation.aggregate.zlib", OtherZlib())
    assert expected.to_bytes() != before
    with open_store(fresh()) as other:
        restore(tmp_path / "backup.db", other)
        assert other.aggregate(plan()) == expected
        assert other.aggregate(marginals()).people == 200


def test_a_backup_is_good_where_python_knows_other_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the last one is printable to repr() of Python 3.12, but not of 3.11
    title = "Humeur à \U0001fae8"
    file = tmp_path / "backup.db"
    with open_store(f"sqlite:///{tmp_path}/survey.db") as store:
        store.add_plan(plan(), sv.Texts(title))
        backup(store, file)
    monkeypatch.setattr(module, "repr", ascii, raising=False)
    with open_store(f"sqlite:///{tmp_path}/other.db") as other:
        restore(file, other)
        assert other.entry(plan().id).title == title


def test_a_digest_is_of_kinds_lengths_and_bytes_alone() -> None:
    digest = sha256()
    module._add(digest, [None, -7, 0.5, b"ab"])
    size = [n.to_bytes(8, "little") for n in range(9)]
    cells = [
        b"n",
        size[0],
        b"i",
        size[2],
        b"-7",
        b"f",
        size[8],
        struct.pack("<d", 0.5),
        b"b",
        size[2],
        b"ab",
    ]
    assert digest.digest() == sha256(size[4] + b"".join(cells)).digest()


# -- what may be left of a store that was replaced


def test_whoever_restores_is_told_that_bytes_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.store.sqlite_file.LOCK_PATIENCE", 0.01)
    with open_store(f"sqlite:///{tmp_path}/survey.db") as store:
        store.add_plan(plan())
        store.append(plan(), ids(50), reports(50))
        backup(store, tmp_path / "backup.db")
        with closing(sqlite3.connect(tmp_path / "survey.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM parts").fetchone()
            assert not restore(tmp_path / "backup.db", store, replace=True).is_erased
        assert restore(tmp_path / "backup.db", store, replace=True).is_erased


def test_a_server_tells_it_too(
    cluster_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.store.postgres._NEVER_HANG", "SET lock_timeout = '10ms'")
    with open_store(cluster_url) as store, psycopg.connect(cluster_url) as reader:
        store.add_plan(plan())
        store.append(plan(), ids(50), reports(50))
        backup(store, tmp_path / "backup.db")
        reader.execute("SELECT count(*) FROM sottovoce_reports")  # and keeps its lock
        assert not restore(tmp_path / "backup.db", store, replace=True).is_erased
        reader.rollback()
        assert restore(tmp_path / "backup.db", store, replace=True).is_erased


def test_files_that_are_no_backup_are_refused(filled: Store, tmp_path: Path) -> None:
    file = tmp_path / "file"
    with pytest.raises(InvalidInput, match="must be a file that `sottovoce backup` wrote"):
        restore(file, filled)
    file.write_text("something else")
    with pytest.raises(InvalidInput, match="must be a file that `sottovoce backup` wrote"):
        restore(file, filled)
    with pytest.raises(InvalidInput, match="exists, and is not a backup"):
        backup(filled, file)
    assert file.read_text() == "something else"
    live = f"sqlite:///{tmp_path}/live.db"
    with (
        open_store(live) as store,
        pytest.raises(InvalidInput, match="exists, and is not a backup"),
    ):
        backup(store, tmp_path / "live.db")
    file.unlink()
    backup(filled, file)
    shutil.copy(file, tmp_path / "again")
    backup(filled, tmp_path / "again")  # replaces the one before
    with pytest.raises(InvalidInput, match="must lie in a folder that exists"):
        backup(filled, tmp_path / "no" / "file")


def test_a_backup_that_fails_leaves_the_one_before(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "backup.db"
    backup(filled, file)
    before = file.read_bytes()

    def fail(*_: object) -> None:
        raise StoreError("store: the disk is full")

    monkeypatch.setattr(module, "_finish", fail)
    with pytest.raises(StoreError):
        backup(filled, file)
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir() if "backup" in each.name] == ["backup.db"]
