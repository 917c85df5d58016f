"""What is special about the server's store: several collectors, lost connections, a full disk,
secrets.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from sottovoce.ground.errors import InvalidInput, StoreError, StoreFull
from sottovoce.store import Outcome, open_store
from sottovoce.store.checksums import checksum_of
from sottovoce.store.postgres import ADVISORY_LOCK, ALIVE, PostgresStore
from tests.postgres import Cluster
from tests.store.child import PARTS, ROWS
from tests.store.crowds import ids, plan, reports
from tests.store.processes import finished, start


def test_two_collectors_count_once_and_a_reader_misses_nothing(cluster_url: str) -> None:
    with open_store(cluster_url) as store:
        store.add_plan(plan())
        children = [start("overlapping", cluster_url, seed) for seed in range(2)]
        seen: list[bytes] = []
        last = 0
        while any(child.poll() is None for child in children) or len(seen) < store.count(plan()):
            time.sleep(0.01)
            for reached, own, _ in list(store.read(plan(), after=last)):
                seen += [key.tobytes() for key in own]
                last = reached
        for child in children:
            finished(child)
        assert len(seen) == len(set(seen)) == store.count(plan()) == ROWS * PARTS
        assert store.aggregate(plan()) == store.rebuild(plan())


def test_a_writer_waits_for_the_one_that_drew_its_numbers_before(cluster_url: str) -> None:
    """Else the later one could be read first, and the earlier one never by whoever reads on from
    there.
    """
    slow = """INSERT INTO sottovoce_reports (plan, id, cohort, payload, checksum)
        SELECT number, 'ffffffff-0000-0000-0000-000000000000', 0, '\\x00', %s
        FROM sottovoce_plans"""
    check = checksum_of(plan().id, bytes.fromhex("ffffffff") + bytes(12), 0, b"\0")
    with (
        open_store(cluster_url) as store,
        psycopg.connect(cluster_url) as other,
        ThreadPoolExecutor(1) as thread,
    ):
        store.add_plan(plan())
        other.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        other.execute(slow, (check,))
        waiting = thread.submit(store.append, plan(), ids(3), reports(3))
        time.sleep(0.3)
        assert not waiting.done()
        assert list(store.read(plan())) == []
        other.commit()
        assert not waiting.result().any()
        _, own, _ = next(store.read(plan()))
        assert own[0].tobytes() == b"\xff" * 4 + bytes(12)


def test_a_lost_connection_is_opened_again(cluster: Cluster, cluster_url: str) -> None:
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
        "'sottovoce'"
    )
    with open_store(cluster_url) as store, psycopg.connect(cluster.url, autocommit=True) as other:
        store.add_plan(plan())
        store.append(plan(), ids(3), reports(3))
        for seed in (2, 3):
            assert other.execute(end).rowcount >= 2
            assert not store.append(plan(), ids(3, seed), reports(3, seed)).any()
            assert store.count(plan()) == 3 * seed
        other.execute(end)
        assert store.count(plan()) == 9


def test_a_server_that_is_gone_without_a_word_is_noticed(cluster_url: str) -> None:
    """Else the thread that writes would wait for it as long as the system does: a quarter of an
    hour, or for ever.
    """
    store = open_store(cluster_url)
    assert isinstance(store, PostgresStore)
    with store, store._readers.lend() as db:
        given = db.info.get_parameters()
        assert {name: int(given[name]) for name in ALIVE} == ALIVE
    chosen = open_store(cluster_url + "&keepalives_idle=77")
    assert isinstance(chosen, PostgresStore)
    with chosen, chosen._readers.lend() as db:
        assert db.info.get_parameters()["keepalives_idle"] == "77"


def test_a_full_disk_loses_nothing(cluster_url: str) -> None:
    """The server says so itself, by the code it has for a full disk."""
    refuse = """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"""
    with open_store(cluster_url) as store, psycopg.connect(cluster_url, autocommit=True) as other:
        store.add_plan(plan())
        store.append(plan(), ids(3), reports(3))
        other.execute(refuse)
        other.execute(
            "CREATE TRIGGER full_disk AFTER INSERT ON sottovoce_reports EXECUTE FUNCTION refuse()"
        )
        for _ in range(2):
            with pytest.raises(StoreFull, match="disk is full; nothing was stored"):
                store.append(plan(), ids(3, seed=2), reports(3))
        assert store.count(plan()) == store.aggregate(plan()).people == 3
        other.execute("DROP TRIGGER full_disk ON sottovoce_reports")
        assert store.append(plan(), ids(3, seed=2), reports(3)).tolist() == [Outcome.STORED] * 3


def test_a_failing_server_is_a_store_error(cluster_url: str) -> None:
    with open_store(cluster_url) as store, psycopg.connect(cluster_url, autocommit=True) as other:
        store.add_plan(plan())
        other.execute("DROP TABLE sottovoce_reports")
        with pytest.raises(StoreError, match="failed: UndefinedTable"):
            store.append(plan(), ids(1), reports(1))


def test_databases_that_cannot_be_a_store(cluster_url: str) -> None:
    with pytest.raises(InvalidInput, match="it has no tables"):
        open_store(cluster_url, create=False)
    open_store(cluster_url).close()
    with psycopg.connect(cluster_url, autocommit=True) as other:
        other.execute("UPDATE sottovoce_settings SET value = '7' WHERE name = 'version'")
    with pytest.raises(InvalidInput, match="has version 7; this sottovoce reads version 4"):
        open_store(cluster_url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hunter2@127.0.0.1:1/survey",
        "postgresql://127.0.0.1:1/survey?user=ann&password=hunter2",
        "postgresql://ann:hunter2@127.0.0.1:1/survey?colour=hunter2",
        "postgresql://ann:hunter2@127.0.0.1:port/survey",
        "postgresql://ann:hun@hunter2@127.0.0.1:1/survey",
        "postgresql://ann:hun%zzhunter2@127.0.0.1:1/survey",
        "postgres://ann:hunter2@[::1/survey",
    ],
)
def test_a_password_is_never_shown(url: str) -> None:
    with pytest.raises((InvalidInput, StoreError)) as wrong:
        open_store(url)
    assert "hunter2" not in str(wrong.value)
    assert str(wrong.value).startswith("store")


def test_the_address_of_an_open_store_has_no_password(cluster_url: str) -> None:
    with open_store(cluster_url.replace("sottovoce@", "sottovoce:hunter2@")) as store:
        assert "hunter2" not in store.url
        assert store.url.startswith("postgresql://")


def test_without_psycopg_the_message_says_what_to_install() -> None:
    code = """
import sys
sys.modules["psycopg"] = None
from sottovoce.ground.errors import InvalidInput
from sottovoce.store import open_store
try:
    open_store("postgresql://localhost/survey")
except InvalidInput as wrong:
    print(wrong)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "sottovoce[postgres]"' in done.stdout
