"""What a sender takes for an acknowledgement: a collector's receipt for all that it sent, and
nothing else.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.device.sender import NotSent, Sender
from sottovoce.sending.journal import journal_beside
from sottovoce.sending.sending import send_people
from tests.cli.helpers import write_csv

SCHEMA = sv.Schema(colour=sv.Categorical(["red", "green", "blue", "grey"]))
PLAN = sv.plan(SCHEMA, sv.Frequencies("colour", oracle="grr"), epsilon=1.0, people=1000)
REPORT = sv.Client(PLAN).report({"colour": "red"})
PORTAL = (b"<html>Welcome to our guests</html>", "text/html; charset=utf-8")
RECEIPT = b'{"stored":1,"duplicates":0}'
Answer = tuple[bytes, str]


class Server(ThreadingHTTPServer):
    """Answers 200 with these bodies in turn (the last one for ever), and keeps what it was sent."""

    def __init__(self, answers: list[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.lock = answers, threading.Lock()
        self.posted: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        posted = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.posted.append(posted)
            answers = self.server.answers
            body, kind = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def serving(*answers: Answer) -> Iterator[Server]:
    with Server(list(answers)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"1",
        b"{}",
        b'{"stored":1}',
        b'{"stored":0,"duplicates":0}',
        b'{"stored":2,"duplicates":0}',
        b'{"stored":2,"duplicates":-1}',
        b'{"stored":true,"duplicates":0}',
        b'{"stored":1.0,"duplicates":0}',
        b'{"stored":"1","duplicates":0}',
    ],
)
def test_what_is_no_receipt_for_all_is_no_acknowledgement(body: bytes) -> None:
    with serving((body, "application/json")) as server:
        sender = Sender(server.url, patience=0)
        with pytest.raises(
            NotSent, match=r"it answered 200 \(application/json\) without a receipt for 1 reports"
        ):
            sender.send([new_id()], [REPORT])
        sender.close()


def test_a_strange_answer_is_said_without_its_words() -> None:
    """Its kind, if that is a plain word; what else answers there may write anything."""
    for kind, told in (PORTAL[1], "text/html"), ("\x1b[31mred", "of no known type"):
        with serving((PORTAL[0], kind)) as server:
            sender = Sender(server.url, patience=0)
            with pytest.raises(NotSent) as wrong:
                sender.send([new_id(), new_id()], [REPORT, REPORT])
            sender.close()
        assert f"it answered 200 ({told}) without a receipt for 2 reports" in str(wrong.value)
        assert "is it the collector?" in str(wrong.value)
        assert "Welcome" not in str(wrong.value)


def test_a_portal_is_asked_again_until_the_collector_answers() -> None:
    with serving(PORTAL, (RECEIPT, "application/json")) as server:
        sender = Sender(server.url)
        sender.send([new_id()], [REPORT])
        sender.close()
        first, second = server.posted
        assert first == second


def test_a_portal_that_answers_for_an_assignment_is_one_clear_error() -> None:
    with serving(PORTAL) as server:
        sender = Sender(server.url, patience=0)
        with pytest.raises(NotSent, match=r"it answered 200 \(text/html\) without an assignment"):
            sender.assignment(PLAN.id)
        sender.close()


def test_a_portal_acknowledges_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was sent goes to the collector, under the same ids, when that answers again."""
    monkeypatch.setattr("sottovoce.device.sender.RETRY_PATIENCE", 0)
    people = write_csv(tmp_path / "people.csv", colour=["red", "green"] * 10)

    def send(url: str, is_moved: bool = False) -> int:
        sent = send_people(PLAN, people, url, 1, 2, None, lambda done: None, is_moved=is_moved)
        return sent.now

    with (
        serving(PORTAL) as portal,
        pytest.raises(NotSent, match=r"without a receipt.*the same command goes on"),
    ):
        send(portal.url)
    text = journal_beside(people, PLAN).read_text()
    assert "acknowledged" not in text
    with serving((RECEIPT, "application/json")) as collector:
        assert send(collector.url, is_moved=True) == 20
        ids = {json.loads(body)["id"] for body in collector.posted}
    assert ids == {json.loads(line[9:])["id"] for line in text.splitlines() if '"row"' in line}
