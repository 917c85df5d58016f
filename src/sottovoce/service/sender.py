"""Sending reports to a collector: again with the same id until they are acknowledged, so that each counts once."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from sottovoce.assignments import Assignment
from sottovoce.errors import InvalidInput, SottovoceError
from sottovoce.reports import Report
from sottovoce.service.envelopes import BINARY, JSON, write_binary, write_json
from sottovoce.service.problems import TYPE

FIRST_WAIT, LONGEST_WAIT, PATIENCE = 0.05, 1.0, 300.0  # seconds
TIMEOUT = 60.0  # of one attempt
_AGAIN = (408, 425, 429, 500, 502, 503, 504, 507)


class NotSent(SottovoceError):
    """Reports that a collector refuses, or that could not be sent in time."""

    def __init__(self, message: str, problem: str | None = None) -> None:
        super().__init__(message)
        self.problem = problem  # the name of what the collector said, if it said it


class Sender:
    """One connection to a collector, kept open. Once ``stop`` is set it does not wait for the collector any more."""

    def __init__(self, url: str, patience: float = PATIENCE, stop: threading.Event | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInput(f"url ({url}) must be http://HOST[:PORT] or https://HOST[:PORT]")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/")
        self._patience = patience
        self._stop = stop or threading.Event()
        self._connection: http.client.HTTPConnection | None = None

    def send(self, ids: Sequence[bytes], reports: Sequence[Report], given: Sequence[Assignment] = ()) -> None:
        """Returns when every report is durable; one report goes as JSON, more in the compact form."""
        if len(reports) == 1:
            body = json.dumps(write_json(ids[0], reports[0], given[0] if given else None)).encode()
            self._insist(lambda: self._ask("POST", "/v1/reports", body, JSON))
        else:
            data = write_binary(ids, reports, given)
            self._insist(lambda: self._ask("POST", "/v1/reports", data, BINARY))

    def assignment(self, plan_id: str) -> Assignment:
        """Public coins for one report."""
        return Assignment.from_json(self._insist(lambda: self._ask("GET", f"/v1/plans/{plan_id}/assignment")))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _insist(self, attempt: Callable[[], tuple[int, Any]]) -> Any:
        """Attempt until it succeeds, is refused for good, or patience ends."""
        end = time.monotonic() + self._patience
        wait = FIRST_WAIT
        while True:
            try:
                status, answer = attempt()
                why = f"it answered {status}"
            except (OSError, http.client.HTTPException) as wrong:
                self.close()
                status, answer, why = 0, None, type(wrong).__name__
            if status == 200:
                return answer
            if status and status not in _AGAIN:
                told = answer if isinstance(answer, dict) else {}
                problem = str(told.get("type", "")).removeprefix(TYPE)
                raise NotSent(f"the collector refuses it ({status}): {told.get('detail', '')}", problem)
            if time.monotonic() + wait > end:
                raise NotSent(f"the collector did not take it within {self._patience:g} seconds: {why}")
            # at random, so that many senders do not come back at once
            if self._stop.wait(wait * random.uniform(0.5, 1.0)):
                raise NotSent(f"the collector has not taken it: {why}")
            wait = min(2 * wait, LONGEST_WAIT)

    def _ask(self, method: str, path: str, body: bytes | None = None, kind: str = JSON) -> tuple[int, Any]:
        if self._connection is None:
            self._connection = self._kind(self._host, self._port, timeout=TIMEOUT)
        headers = {"Content-Type": kind} if body is not None else {}
        self._connection.request(method, self._path + path, body, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, None
