"""What a hostile reading of the collector found, kept."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from bench.collector import free_port
from sottovoce.device.assignment import Assignment, new_id
from sottovoce.device.messages import write_json
from sottovoce.ground.errors import StoreError
from tests.postgres import started
from tests.service.collector import PLAN, RECORD, SEEDED, Collector, assigned, collecting, device
from tests.service.crashes import COMMAND, start
from tests.waiting import HANG, until


def test_a_store_out_of_reach_is_no_fault_of_the_sender(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told to come again, and nothing about the store; a refusal for good would lose the
    report.
    """

    def lost(*_: object) -> Any:
        raise StoreError("store (postgresql://secret.example/x) cannot be reached")

    monkeypatch.setattr(collector.service.store, "append_many", lost)
    monkeypatch.setattr(collector.service.store, "ping", lost)
    for answer in (collector.post(device()), collector.ask("GET", "/healthz")):
        assert (answer.status, answer.problem) == (503, "busy")
        assert answer.headers["retry-after"] == "1"
        assert b"secret" not in answer.data


def test_a_postgresql_that_stops_and_returns(tmp_path: Path) -> None:
    with started() as cluster:
        url = cluster.fresh_url()
        with collecting(url) as collector:
            body = device()
            assert collector.post(body).status == 200
            control = next(Path("/usr/lib/postgresql").glob("*/bin")) / "pg_ctl"
            as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
            stop = [*as_user, str(control), "-D", str(cluster.folder / "data"), "-w", "-m", "fast"]
            subprocess.run([*stop, "stop"], check=True, capture_output=True, cwd=cluster.folder)
            assert collector.post(device()).problem == "busy"
            where = f"-c listen_addresses='' -c unix_socket_directories='{cluster.folder}'"
            again = [*stop, "-l", str(cluster.folder / "log"), "-o", where, "start"]
            subprocess.run(again, check=True, capture_output=True, cwd=cluster.folder)
            assert collector.post(body).json == {"stored": 0, "duplicates": 1}


def test_estimates_on_a_postgresql_that_wants_more_than_a_name(tmp_path: Path) -> None:
    """The estimating process must reach the store as the collector does, with all that its address
    holds.
    """
    with (
        started() as cluster,
        collecting(cluster.fresh_url()) as collector,
    ):  # its schema is in the address's options
        collector.post({"reports": [device() for _ in range(20)]})
        assert collector.analyst("GET", f"/v1/surveys/{PLAN.id}/estimates").json["people"] == 20


def test_who_waits_too_long_is_told_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", answer_seconds=0.3) as collector:
        store = collector.service.store
        write = store.append_many

        begun, told = threading.Event(), threading.Event()

        def slow(parts: Any) -> Any:
            begun.set()
            assert told.wait(HANG)
            return write(parts)

        monkeypatch.setattr(store, "append_many", slow)
        body = device()
        while not begun.is_set():  # until it is being written
            assert collector.post(body).problem == "busy"
        told.set()
        monkeypatch.undo()
        until(lambda: collector.service.survey(PLAN.id).people)
        again = until(lambda: (answer := collector.post(body)).status == 200 and answer)
        assert again.json == {
            "stored": 0,
            "duplicates": 1,
        }  # it was written after all, and counts once


def test_a_mistake_while_writing_costs_one_group_only(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sottovoce.service import writer

    def broken(*_: object) -> Any:
        raise RuntimeError

    monkeypatch.setattr(writer, "gathered", broken)
    assert collector.post(device()).problem == "internal"
    monkeypatch.undo()
    assert collector.post(device()).status == 200
    assert collector.ask("GET", "/healthz").status == 200


def test_an_assignment_that_expires_while_it_is_written(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time is read once for a group, however often its parts are looked at."""
    # of devices, which draw in time
    monkeypatch.setattr("sottovoce.device.client.time", lambda: 0.0)
    key, soon = collector.service.store.signing_key(), int(time.time()) + 1
    given = [Assignment.sign(key, SEEDED.id, new_id(), soon) for _ in range(200)]
    bodies = [
        write_json(each.id, sv.Client(SEEDED, assignment=each).report(RECORD), each)
        for each in given
    ]
    first = bodies[0] | {"payload": f"{int(bodies[0]['payload'], 16) ^ 0x10:02x}"}
    while time.time() < soon + 0.5:
        collector.post({"reports": [*bodies, first]})
    assert collector.post(assigned(collector)[1]).status == 200


@pytest.mark.parametrize("path", ["/v1/surveys", "/v1/surveys/x/close", "/nothing"])
def test_no_route_takes_a_body_without_limits(tmp_path: Path, path: str) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", most_bytes=1000, body_seconds=0.3) as collector:
        assert collector.ask("POST", path, b"x" * 2000).problem == "body-too-large"
        with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as slow:
            slow.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{{".encode())
            assert b"body-too-slow" in slow.recv(65536)


def test_pages_of_other_sites_read_nothing_of_analysts(tmp_path: Path) -> None:
    with collecting(
        f"sqlite:///{tmp_path}/s.db", origins=("https://shop.example",), rate_limit=2
    ) as collector:
        own = {"Origin": "https://shop.example"}
        assert (
            "access-control-allow-origin" not in collector.ask("GET", "/v1/surveys", **own).headers
        )
        answers = [collector.ask("GET", f"/v1/plans/{PLAN.id}", **own) for _ in range(8)]
        assert {answer.status for answer in answers} == {200, 429}
        assert all(
            answer.headers["access-control-allow-origin"] == own["Origin"] for answer in answers
        )


def test_a_handshake_of_another_kind_is_not_logged_with_its_address(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(PLAN.to_json().encode())
    port = free_port()
    arguments = [
        "serve",
        str(tmp_path / "plan.json"),
        "--store",
        f"sqlite:///{tmp_path}/s.db",
        "--port",
        str(port),
    ]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*COMMAND, *arguments], stdout=log, stderr=log)
        try:
            until(
                lambda: "Listening" in (tmp_path / "log").read_text(),
                lambda: process.poll() is None,
            )
            names = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
            head = "\r\n".join((*names, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", ""))
            with socket.create_connection(("127.0.0.1", port), timeout=HANG) as other:
                other.sendall(
                    f"GET /v1/reports?answer=secret HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode()
                )
                other.recv(1000)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
    lines = [
        line
        for line in (tmp_path / "log").read_text().splitlines()
        if "Uvicorn running" not in line
    ]
    assert not any("secret" in line or '"127.0.0.1:' in line for line in lines)


def test_no_process_outlives_a_killed_collector(tmp_path: Path) -> None:
    from tests.service.crashes import PLAN as CRASHED

    (tmp_path / "plan.json").write_bytes(CRASHED.to_json().encode())
    url, port = f"sqlite:///{tmp_path}/survey.db", free_port()
    process = start(tmp_path, url, port)
    remote = Collector(None, port, "")  # type: ignore[arg-type]
    remote.post(write_json(new_id(), sv.Client(CRASHED).report({"x": "a"})))
    # the estimating process, and one that watches its resources
    until(lambda: len(_children(process.pid)) >= 2)
    children = _children(process.pid)
    process.kill()
    process.wait()
    until(lambda: not any(_runs(pid) for pid in children))


def _children(pid: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(each) for each in found.stdout.split()]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_the_same_survey_twice_is_said_to_be_there(collector: Collector) -> None:
    asked = {
        "title": "twice",
        "epsilon": "0.7",
        "people": 77,
        "schema": {"x": {"kind": "boolean"}},
        "question": {"kind": "frequencies", "attributes": ["x"]},
    }
    assert collector.analyst("POST", "/v1/surveys", asked).status == 201
    assert collector.analyst("POST", "/v1/surveys", asked).problem == "survey-exists"
    odd = asked | {
        "schema": {"\ud800": {"kind": "boolean"}},
        "question": {"kind": "frequencies", "attributes": ["\ud800"]},
    }
    assert collector.analyst("POST", "/v1/surveys", odd).problem in (
        "invalid-input",
        "malformed-body",
    )
