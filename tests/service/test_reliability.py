"""Crashes, full disks, shutdowns: what was acknowledged is there, once."""

from __future__ import annotations

import resource
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import sottovoce as sv
from bench.collector import free_port
from sottovoce.device.assignment import new_id
from sottovoce.device.messages import BINARY
from sottovoce.device.sender import NotSent, Sender
from sottovoce.store import open_store
from tests.service.collector import PLAN, RECORD, Collector
from tests.service.crashes import COMMAND, crash, start
from tests.service.crashes import PLAN as CRASHED
from tests.waiting import until


@pytest.mark.parametrize(("batch", "kills"), [(1, 2), (50, 1)])
def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, batch: int, kills: int) -> None:
    tally = crash(tmp_path, kills=kills, seed=batch, batch=batch)
    assert tally.acknowledged > 0
    assert (tally.lost, tally.twice) == (0, 0)
    assert tally.counted == tally.stored >= tally.acknowledged


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    tally = crash(tmp_path, kills=200, seed=1)
    assert (tally.lost, tally.twice) == (0, 0)


def test_a_full_disk_refuses_and_recovers(tmp_path: Path) -> None:
    """The collector may write files of so many bytes only, until it may write larger ones."""
    (tmp_path / "plan.json").write_bytes(CRASHED.to_json().encode())
    url, port = f"sqlite:///{tmp_path}/survey.db", free_port()
    process = start(tmp_path, url, port)
    remote = Collector(None, port, "")  # type: ignore[arg-type]
    report = sv.Client(CRASHED).report({"x": "a"})
    taken = []
    try:
        room = 4096 * 64
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        refused = None
        while refused is None:
            ids = [new_id() for _ in range(500)]
            answer = remote.post(_compact(ids, report), BINARY)
            if answer.status == 200:
                taken += ids
                assert len(taken) < 100_000
            else:
                refused = ids
        assert (answer.status, answer.problem) == (507, "store-full")
        assert remote.post(_compact(refused, report), BINARY).problem == "store-full"
        resource.prlimit(
            process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )
        assert remote.post(_compact(refused, report), BINARY).json == {
            "stored": 500,
            "duplicates": 0,
        }
        taken += refused
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    store = open_store(url, create=False)
    stored = [row.tobytes() for _, ids, _ in store.read(CRASHED) for row in ids]
    store.close()
    assert sorted(stored) == sorted(taken)


def _compact(ids: list[bytes], report: sv.Report) -> bytes:
    from sottovoce.device.messages import write_binary

    return write_binary(ids, [report] * len(ids))


def test_a_collector_drains_before_it_stops(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(CRASHED.to_json().encode())
    url, port = f"sqlite:///{tmp_path}/survey.db", free_port()
    process = start(tmp_path, url, port)
    report = sv.Client(CRASHED).report({"x": "a"})
    thanked: list[bytes] = []
    stopped = threading.Event()

    def send() -> None:
        sender = Sender(f"http://127.0.0.1:{port}", stop=stopped)
        try:
            while True:
                id = new_id()
                sender.send([id], [report])
                thanked.append(id)
        except NotSent:
            sender.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(thanked) > 50, lambda: process.poll() is None)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    stopped.set()
    for thread in threads:
        thread.join()
    store = open_store(url, create=False)
    stored = {row.tobytes() for _, ids, _ in store.read(CRASHED) for row in ids}
    store.close()
    assert thanked
    assert set(thanked) <= stored


def test_sending_again_counts_once(collector: Collector, tmp_path: Path) -> None:
    """The command line's own sender, to a collector that is not there yet: it waits, and everybody
    counts once.
    """
    (tmp_path / "plan.json").write_bytes(PLAN.to_json().encode())
    (tmp_path / "people.csv").write_text("colour,smoker\n" + "red,true\n" * 60)
    before = collector.service.survey(PLAN.id).people
    log = tmp_path / "acknowledged.txt"
    arguments = [
        "send",
        str(tmp_path / "plan.json"),
        str(tmp_path / "people.csv"),
        "--to",
        collector.url,
    ]
    done = subprocess.run(
        [*COMMAND, *arguments, "--log", str(log)], check=True, capture_output=True, text=True
    )
    assert "60 reports acknowledged" in done.stdout
    assert len(set(log.read_text().split())) == 60
    assert collector.service.survey(PLAN.id).people == before + 60
    other = sv.plan(
        sv.Schema(colour=sv.Boolean(), smoker=sv.Boolean()),
        sv.Frequencies("smoker"),
        epsilon=1,
        people=9,
    )
    (tmp_path / "plan.json").write_bytes(other.to_json().encode())
    (tmp_path / "people.csv").write_text("colour,smoker\ntrue,true\n")
    refused = subprocess.run([*COMMAND, *arguments], check=False, capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "404" in refused.stderr


def test_a_sender_gives_up_in_the_end() -> None:
    sender = Sender(f"http://127.0.0.1:{free_port()}", patience=0.3)
    with pytest.raises(NotSent, match=r"within 0\.3 seconds"):
        sender.send([new_id()], [sv.Client(PLAN).report(RECORD)])
    for url in ("ftp://x", "127.0.0.1:80", "http://", "http://x/?q=1"):
        with pytest.raises(sv.InvalidInput, match="url"):
            Sender(url)
