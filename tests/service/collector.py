"""A real collector for tests: a web server in a thread of its own, on a store in a temporary
folder.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

import sottovoce as sv
from sottovoce.device.assignment import Assignment, new_id
from sottovoce.device.messages import write_json
from sottovoce.service.app import make_app
from sottovoce.service.server import make_config
from sottovoce.service.settings import Settings
from sottovoce.service.survey_service import SurveyService
from sottovoce.service.tokens import new_token
from sottovoce.store import open_store
from tests.waiting import HANG

SCHEMA = sv.Schema(colour=sv.Categorical(["red", "green", "blue", "grey"]), smoker=sv.Boolean())
PLAN = sv.plan(SCHEMA, sv.Frequencies("colour", oracle="grr"), epsilon=1.0, people=1000)
SEEDED = sv.plan(
    SCHEMA, sv.Frequencies("colour", oracle="olh"), epsilon=1.0, people=1000, coin="assigned"
)
TABLES = sv.plan(SCHEMA, sv.Marginals(up_to=2), epsilon=2.0, people=1000)
RECORD = {"colour": "blue", "smoker": True}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def problem(self) -> str:
        """The name of the problem, whose shape is checked on the way."""
        body = self.json
        assert self.headers["content-type"] == "application/problem+json"
        assert set(body) == {"type", "title", "status", "detail"}
        assert body["status"] == self.status
        assert body["detail"]
        return str(body["type"]).removeprefix("https://sottovoce.dev/problems/")


@dataclass
class Collector:
    """A collector that runs, and ways to talk to it."""

    service: SurveyService
    port: int
    token: str = field(repr=False)
    app: Any = field(default=None, repr=False)  # in this process, if it runs here

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        **headers: str,
    ) -> Answer:
        """One request; a body that is not bytes goes as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG)
        try:
            own = {"Content-Type": kind} if data is not None else {}
            connection.request(method, path, data, own | headers)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())
        finally:
            connection.close()

    def analyst(self, method: str, path: str, body: Any = None) -> Answer:
        """The same with the analyst's token."""
        return self.ask(method, path, body, Authorization=f"Bearer {self.token}")

    def patient(self, path: str, method: str = "GET") -> Answer:
        """The same, asked again for as long as the collector says that an estimate is
        being made.
        """
        while True:
            answer = self.analyst(method, path)
            if answer.status != 503 or answer.problem not in ("estimate-under-way", "busy"):
                return answer

    def post(self, body: Any, kind: str = "application/json") -> Answer:
        return self.ask("POST", "/v1/reports", body, kind)


@contextmanager
def collecting(
    url: str, plans: tuple[sv.Plan, ...] = (PLAN, SEEDED, TABLES), **settings: Any
) -> Iterator[Collector]:
    """A collector on the store at ``url``, stopped and drained at the end."""
    store = open_store(url)
    for plan in plans:
        store.add_plan(plan, sv.Texts(plan.question.kind))
    chosen = Settings(**({"refresh_seconds": 0.2} | settings))
    service = SurveyService(store, chosen.refresh_seconds)
    app = make_app(service, chosen)
    server = uvicorn.Server(make_config(app, "127.0.0.1", 0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Collector(service, port, new_token(store, "tests"), app)
    finally:
        server.should_exit = True
        thread.join()
        store.close()


def device(made: sv.Plan = PLAN, /, **changes: Any) -> dict[str, Any]:
    """What a device sends, with changes."""
    return write_json(new_id(), sv.Client(made).report(RECORD)) | changes


def assigned(collector: Collector, plan: sv.Plan = SEEDED) -> tuple[Assignment, dict[str, Any]]:
    """An assignment, and what a device sends for it."""
    given = Assignment.from_json(collector.ask("GET", f"/v1/plans/{plan.id}/assignment").json)
    return given, write_json(given.id, sv.Client(plan, assignment=given).report(RECORD), given)
