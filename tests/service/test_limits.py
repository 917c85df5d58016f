"""What one sender can cost a collector: memory, the writer's time, and a connection are bounded."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from uvicorn.server import ServerState

import sottovoce as sv
from sottovoce.device.assignment import Assignment, new_id
from sottovoce.device.messages import write_binary, write_json
from sottovoce.ground.errors import BadAssignment, CorruptReport, InvalidInput
from sottovoce.protocol.reports import Report
from sottovoce.service import connections
from sottovoce.service.problems import Problem
from sottovoce.service.remembered import Remembered
from sottovoce.service.server import make_config
from sottovoce.service.settings import Settings
from sottovoce.service.wire import check_assignments, most_together, read_binary, read_json
from tests.service.collector import PLAN, RECORD, SEEDED, Collector, collecting, device
from tests.waiting import HANG, until

WIDE = sv.Schema(few=sv.Boolean(), many=sv.Ordinal(0, 19_999))
UNEVEN = sv.plan(WIDE, sv.Frequencies("few", "many", oracle="oue"), epsilon=1.0, people=1000)
SHORT = next(number for number in range(len(UNEVEN.cohorts)) if UNEVEN.cohorts[number].bytes == 1)
MIB = 1 << 20


class _Plans:
    """A cache of plans without a store."""

    def plan(self, id: str) -> sv.Plan:
        return {plan.id: plan for plan in (PLAN, SEEDED, UNEVEN)}[id]

    def short(self, start: bytes) -> sv.Plan:
        return {bytes.fromhex(plan.id)[:8]: plan for plan in (PLAN, SEEDED, UNEVEN)}[start]


PLAN_CACHE: Any = _Plans()


def small(**more: Any) -> Settings:
    return Settings(
        most_bytes=MIB, most_padded=MIB, most_reports=1000, most_waiting=4 * MIB, **more
    )


def as_json(bodies: list[dict[str, Any]]) -> bytes:
    return json.dumps({"reports": bodies}).encode()


# -- memory


def test_short_reports_count_as_the_longest_of_their_plan() -> None:
    width = UNEVEN.cohorts.bytes
    most = MIB // width
    report = Report(UNEVEN.id, SHORT, b"\1")
    for count, read in ((most, True), (most + 1, False)):
        bodies = as_json([write_json(new_id(), report) for _ in range(count)])
        compact = write_binary([new_id() for _ in range(count)], [report] * count)
        for reader, data in ((read_json, bodies), (read_binary, compact)):
            if read:
                envelope = reader(data, PLAN_CACHE, small())
                assert envelope.bytes >= count * (width + 1 + 16)
                assert envelope.bytes <= small().most_waiting
                continue
            with pytest.raises(Problem) as refused:
                reader(data, PLAN_CACHE, small())
            assert refused.value.name == "body-too-large"


def test_payloads_of_no_cohorts_length_are_not_kept() -> None:
    with pytest.raises(CorruptReport, match="payload"):
        read_json(
            as_json([write_json(new_id(), Report(UNEVEN.id, SHORT, b"\1" * 77))]),
            PLAN_CACHE,
            small(),
        )


def test_the_largest_request_must_fit() -> None:
    with pytest.raises(InvalidInput, match="most_waiting"):
        Settings(most_waiting=1 << 20)


def test_a_batch_that_is_refused_for_its_width(tmp_path: Path) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", (UNEVEN,)) as collector:
        body = write_json(new_id(), Report(UNEVEN.id, SHORT, b"\1"))
        assert collector.post(
            {"reports": [body | {"id": new_id().hex()} for _ in range(20_000)]}
        ).problem == ("body-too-large")
        assert collector.post(body).status == 200


def test_bodies_under_way_count_together(tmp_path: Path) -> None:
    """Beyond what all of them may hold a sender is told to come again; when the others are gone
    there is room.
    """
    settings = {
        "most_bytes": MIB,
        "most_padded": MIB,
        "most_reports": 1000,
        "most_waiting": 4 * MIB,
    }
    with collecting(f"sqlite:///{tmp_path}/s.db", **settings) as collector:
        writer = collector.app.state.writer
        held = []
        for _ in range(4):
            slow = socket.create_connection(("127.0.0.1", collector.port), timeout=HANG)
            slow.sendall(
                f"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: {MIB}\r\n\r\n".encode()
            )
            before = writer.waiting_bytes
            slow.sendall(b"x" * (MIB - 1))
            until(lambda before=before: writer.waiting_bytes == before + MIB - 1)  # type: ignore[misc]
            held.append(slow)
        for path in ("/v1/reports", "/v1/surveys"):
            answer = collector.ask("POST", path, b"x" * 1000)
            assert (answer.status, answer.problem, answer.headers["retry-after"]) == (
                503,
                "busy",
                "1",
            )
        assert collector.ask("GET", "/readyz").problem == "not-ready"
        for slow in held:
            slow.close()
        until(lambda: writer.waiting_bytes == 0)
        assert collector.post(device()).status == 200


# -- assigned coins


def coins(key: bytes, count: int, expires: int = 1 << 40) -> list[tuple[Assignment, Report]]:
    given = [Assignment.sign(key, SEEDED.id, new_id(), expires) for _ in range(count)]
    return [(each, sv.Client(SEEDED, assignment=each).report(RECORD)) for each in given]


def test_a_batch_of_assigned_coins_is_short() -> None:
    for count in (3, 4):
        made = coins(bytes(32), count)
        bodies = as_json([write_json(each.id, report, each) for each, report in made])
        compact = write_binary(
            [each.id for each, _ in made], [report for _, report in made], [a for a, _ in made]
        )
        for reader, data in ((read_json, bodies), (read_binary, compact)):
            if count == 3:
                assert len(reader(data, PLAN_CACHE, small(most_assigned=3))) == 3
                continue
            with pytest.raises(Problem, match="at most 3") as refused:
                reader(data, PLAN_CACHE, small(most_assigned=3))
            assert refused.value.name == "malformed-body"
    assert most_together(SEEDED, Settings()) == Settings().most_assigned
    assert most_together(UNEVEN, small()) == MIB // UNEVEN.cohorts.bytes


def test_signatures_come_before_anything_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    made = coins(bytes(32), 5)
    bodies = [write_json(each.id, report, each) for each, report in made]
    envelope = read_json(as_json(bodies), PLAN_CACHE, small())
    check_assignments(envelope, [bytes(32)], time.time(), Remembered())
    checked: list[int] = []
    monkeypatch.setattr(Assignment, "check", lambda *_: checked.append(1))
    forged = read_json(
        as_json([*bodies[:4], bodies[4] | {"signature": "00" * 32}]), PLAN_CACHE, small()
    )
    with pytest.raises(BadAssignment, match="sign"):
        check_assignments(forged, [bytes(32)], time.time(), Remembered())
    assert not checked


def test_nobody_waits_while_assigned_coins_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    check = Assignment.check

    def slow(self: Assignment, *given: Any) -> None:
        began.set()
        assert go_on.wait(HANG)
        check(self, *given)

    with collecting(f"sqlite:///{tmp_path}/s.db", answer_seconds=HANG) as collector:
        made = coins(collector.service.store.signing_key(), 2, int(time.time()) + 80_000)
        batch = {"reports": [write_json(each.id, report, each) for each, report in made]}
        monkeypatch.setattr(Assignment, "check", slow)
        answers: list[Any] = []
        sender = threading.Thread(target=lambda: answers.append(collector.post(batch)))
        sender.start()
        assert began.wait(HANG)
        other: list[Any] = []
        honest = threading.Thread(target=lambda: other.append(collector.post(device())))
        honest.start()
        honest.join(HANG / 2)  # a collector in which it waits hangs here, and fails below
        is_free = not honest.is_alive()
        go_on.set()
        honest.join()
        sender.join()
        assert is_free
        assert other[0].status == 200
        assert answers[0].json == {"stored": 2, "duplicates": 0}


# -- connections


def answered(source: socket.socket) -> bytes:
    data = b""
    try:
        while piece := source.recv(65536):
            data += piece
    except ConnectionError:  # closed while more was under way
        pass
    return data


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"])
@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET /", b"v" * 8192),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"v" * 8192),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X: y\r\n" * 1000),
    ],
)
def test_heads_have_a_size(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, before: bytes, start: bytes, piece: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", HANG)
    with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as endless:
        if before:
            endless.sendall(before)
            assert b"200 OK" in endless.recv(65536)
        endless.sendall(start)
        with suppress(ConnectionError):  # it need not listen to the end
            for _ in range(connections.MOST_HEAD // len(piece) + 2):
                endless.sendall(piece)
        data = endless.recv(65536)
    assert data.startswith(b"HTTP/1.1 431 ")
    assert b"head-too-large" in data
    assert collector.ask("GET", "/healthz").status == 200


def test_a_head_in_one_piece_has_the_same_size(collector: Collector) -> None:
    for size, status in ((60_000, 200), (70_000, 431)):
        assert collector.ask("GET", "/healthz", X="v" * size).status == status


def test_heads_have_a_time(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    where = ("127.0.0.1", collector.port)
    with socket.create_connection(where, timeout=HANG) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert b"head-too-slow" in answered(slow)
    with socket.create_connection(where, timeout=HANG) as again:
        again.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in again.recv(65536)
        again.sendall(b"GET /healthz HT")
        assert b"head-too-slow" in answered(again)
    with socket.create_connection(where, timeout=HANG) as silent:
        assert answered(silent) == b""


def test_who_hangs_up_in_a_row_of_requests_leaves_no_line(
    collector: Collector, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    ping = collector.service.store.ping

    def slow() -> None:
        began.set()
        assert go_on.wait(HANG)
        ping()

    monkeypatch.setattr(collector.service.store, "ping", slow)
    with caplog.at_level(logging.INFO):
        gone = socket.create_connection(("127.0.0.1", collector.port), timeout=HANG)
        first = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        gone.sendall(first + b"POST /v1/surveys HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert began.wait(HANG)
        gone.close()
        go_on.set()
        monkeypatch.undo()
        with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as half:
            half.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            until(lambda: collector.app.state.writer.waiting_bytes)
        until(lambda: not collector.app.state.writer.waiting_bytes)
        assert collector.ask("GET", "/healthz").status == 200
    assert not [each for each in caplog.records if each.name.startswith(("sottovoce", "uvicorn"))]


class _Line:
    """A transport that breaks as a real one does: to read on from it once it is closed is
    an error.
    """

    is_closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        if self.is_closed:
            raise RuntimeError("the handler is closed")

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.is_closed = True

    def write(self, _: bytes) -> None:
        pass


def test_who_is_gone_before_the_first_request_is_read(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((await receive())["type"])

    async def hang_up() -> None:
        config = make_config(app, "127.0.0.1", 0)
        config.load()
        state = ServerState()
        line: Any = _Line()
        connection = connections.Connection(config=config, server_state=state, app_state={})
        connection.connection_made(line)
        head = b" / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1"
        connection.data_received(b"POST" + head + b"POST" + head)
        connection.connection_lost(None)
        await asyncio.gather(*state.tasks)

    with caplog.at_level(logging.INFO):
        asyncio.run(hang_up())
    assert seen == ["http.disconnect"]
    assert not [each for each in caplog.records if each.name.startswith("uvicorn")]


# -- bodies that nobody reads

UNREAD = [
    "GET /healthz",
    "GET /v1/surveys",
    "OPTIONS /v1/surveys",
    "GET /v1/reports",
    "DELETE /v1/reports",
    "GET /nothing",
]


@pytest.mark.parametrize("line", UNREAD)
def test_a_body_that_nobody_reads_has_a_size(collector: Collector, line: str) -> None:
    with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as endless:
        endless.sendall(f"{line} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 40}\r\n\r\n".encode())
        assert ends(endless)


@pytest.mark.parametrize("line", UNREAD)
def test_a_body_in_pieces_that_nobody_reads_has_a_size(collector: Collector, line: str) -> None:
    with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as endless:
        endless.sendall(
            f"{line} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            + f"{1 << 40:x}\r\n".encode()
        )
        assert ends(endless)


def ends(sending: socket.socket) -> bool:
    """Whether the other side closes the connection before a hundred megabytes are sent."""
    try:
        for _ in range(100):
            sending.sendall(bytes(MIB))
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("line", UNREAD)
def test_a_body_that_nobody_reads_has_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(connections, "UNREAD_SECONDS", 0.2)
    with (
        collecting(f"sqlite:///{tmp_path}/s.db", (), body_seconds=0.2) as collector,
        socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as slow,
    ):
        slow.sendall(f"{line} HTTP/1.1\r\nHost: x\r\nContent-Length: {MIB}\r\n\r\n".encode())

        def is_ended() -> bool:
            try:
                slow.sendall(b"x")  # little by little, so that the connection never rests
            except ConnectionError:
                return True
            return False

        until(is_ended)


@pytest.mark.parametrize("host", ["x", "x/y"])
def test_a_refusal_ends_with_its_body_unread(tmp_path: Path, host: str) -> None:
    """One address too often, or a malformed host: nothing reads what else is sent."""
    with collecting(f"sqlite:///{tmp_path}/s.db", (), rate_limit=0.000001) as collector:
        collector.ask("GET", "/v1/openapi.json")
        with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as endless:
            head = f"POST /v1/reports HTTP/1.1\r\nHost: {host}\r\nContent-Length: {1 << 40}\r\n\r\n"
            endless.sendall(head.encode())
            assert endless.recv(65536).startswith(
                b"HTTP/1.1 429 " if host == "x" else b"HTTP/1.1 400 "
            )
            assert ends(endless)


def test_a_small_body_that_nobody_needs_costs_no_connection(collector: Collector) -> None:
    """A proxy that keeps its connections sees the answer, and sends the next request."""
    for method, status in (("GET", b"200 OK"), ("DELETE", b"405 Method Not Allowed")):
        with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as kept:
            path = "/healthz" if method == "GET" else "/v1/reports"
            for _ in range(3):
                kept.sendall(
                    f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n12".encode()
                )
                if method == "DELETE":  # answered before its body is there
                    assert status in kept.recv(65536)
                kept.sendall(b"34")
                if method == "GET":
                    assert status in kept.recv(65536)


def test_a_body_that_is_too_large_is_refused_in_words(collector: Collector) -> None:
    """Its sender, who reads nothing before all of it is sent, gets the answer, and may go on."""
    body = bytes(7 * MIB)
    head = f"POST /v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as kept:
        for _ in range(2):
            kept.sendall(head)
            kept.sendall(body)
            assert kept.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_who_was_not_told_to_send_a_body_is_not_waited_for(collector: Collector) -> None:
    """What comes next on such a connection could be the body or another request, so there is no
    next.
    """
    with socket.create_connection(("127.0.0.1", collector.port), timeout=HANG) as asking:
        asking.sendall(
            b"DELETE /v1/reports HTTP/1.1\r\nHost: x\r\n"
            b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        )
        assert answered(asking).startswith(b"HTTP/1.1 405 ")
