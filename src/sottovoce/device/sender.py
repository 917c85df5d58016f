"""Sending reports to a collector: with the same id until acknowledged, so each counts once."""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from sottovoce.device.assignment import Assignment
from sottovoce.device.messages import (
    BINARY,
    JSON,
    ONIONS,
    ONIONS_PATH,
    PROBLEM,
    write_binary,
    write_json,
)
from sottovoce.ground.errors import InvalidInput, SottovoceError
from sottovoce.protocol.reports import Report

FIRST_RETRY_WAIT, MAX_RETRY_WAIT, RETRY_PATIENCE = 0.05, 1.0, 300.0  # seconds
TIMEOUT = 60.0  # of one attempt
_AGAIN = (408, 425, 429, 500, 502, 503, 504, 507)
_PORTS = {"http": 80, "https": 443}
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,40}")
T = TypeVar("T")


class NotSent(SottovoceError):
    """Reports that a collector refuses, or that could not be sent in time."""

    def __init__(self, message: str, problem: str | None = None) -> None:
        super().__init__(message)
        self.problem = problem  # the name of what the collector said, if it said it


class _NotAnswered(Exception):
    """An answer with status 200 that is not what was asked for."""


@dataclass(frozen=True)
class SenderAnswer:
    """What was said to one request."""

    status: int
    body: Any  # what its JSON says; None if it is no JSON
    media_type: str


def address_parts(url: str) -> SplitResult | None:
    """What a server's address says; None of what is none.

    >>> address_parts("https://example.org/to").path, address_parts("http://example.org:x")
    ('/to', None)
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # which refuses others than numbers
    except ValueError:
        return None
    return parts if parts.scheme in _PORTS and parts.hostname else None


class Sender:
    """One connection to a collector, kept open. Once ``stop`` is set it does not wait any more."""

    def __init__(
        self, url: str, patience: float | None = None, stop: threading.Event | None = None
    ) -> None:
        parts = address_parts(url)
        if parts is None or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInput(f"url ({url}) must be http://HOST[:PORT] or https://HOST[:PORT]")
        self._kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/")
        host = f"[{self._host}]" if ":" in self._host else self._host
        port = "" if self._port in (None, _PORTS[parts.scheme]) else f":{self._port}"
        # one for all spellings of a URL
        self.address = f"{parts.scheme}://{host}{port}{self._path}"
        self._patience = RETRY_PATIENCE if patience is None else patience
        self._stop = stop or threading.Event()
        self._connection: http.client.HTTPConnection | None = None

    def send(
        self, ids: Sequence[bytes], reports: Sequence[Report], given: Sequence[Assignment] = ()
    ) -> None:
        """Returns when the collector says that every report is durable.

        One report goes as JSON, more in the compact form.
        """
        read = partial(_check_receipt, count=len(reports))
        if len(reports) == 1:
            body = json.dumps(write_json(ids[0], reports[0], given[0] if given else None)).encode()
            self._insist(lambda: self.ask("POST", "/v1/reports", body, JSON), read)
        else:
            data = write_binary(ids, reports, given)
            self._insist(lambda: self.ask("POST", "/v1/reports", data, BINARY), read)

    def send_onions(self, plan_id: str, onions: Sequence[bytes]) -> None:
        """The same for sealed reports, to the first shuffler of their plan."""
        body = b"".join(onions)
        try:
            self._insist(
                lambda: self.ask("POST", f"{ONIONS_PATH}{plan_id}", body, ONIONS),
                partial(_check_taken, count=len(onions)),
                "shuffler",
            )
        except NotSent as wrong:
            if wrong.problem != "not-found":
                raise
            told = f"{wrong}; a shuffled plan's reports go to its first shuffler"
            raise NotSent(told, wrong.problem) from None

    def assignment(self, plan_id: str) -> Assignment:
        """Public coins for one report."""
        return self._insist(
            lambda: self.ask("GET", f"/v1/plans/{plan_id}/assignment"), _read_assignment
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _insist(
        self,
        attempt: Callable[[], SenderAnswer],
        read: Callable[[Any], T],
        receiver: str = "collector",
    ) -> T:
        """Attempt until an answer can be read, is a refusal for good, or patience ends."""
        end = time.monotonic() + self._patience
        wait = FIRST_RETRY_WAIT
        while True:
            try:
                answer = attempt()
                if answer.status == 200:
                    return read(answer.body)
                why = f"it answered {answer.status}"
                if answer.status not in _AGAIN:
                    raise _refusal(answer, receiver)
            except (
                _NotAnswered
            ) as wrong:  # a network's login page, or another server, answers in its place
                why = (
                    f"it answered 200 ({answer.media_type}) without {wrong} (is it the {receiver}?)"
                )
            except (OSError, http.client.HTTPException) as wrong:
                self.close()
                why = type(wrong).__name__
            if time.monotonic() + wait > end:
                raise NotSent(
                    f"the {receiver} did not take it within {self._patience:g} seconds: {why}"
                )
            # at random, so that many senders do not come back at once
            if self._stop.wait(wait * random.uniform(0.5, 1.0)):
                raise NotSent(f"the {receiver} has not taken it: {why}")
            wait = min(2 * wait, MAX_RETRY_WAIT)

    def ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = JSON
    ) -> SenderAnswer:
        """One request, once."""
        if self._connection is None:
            self._connection = self._kind(self._host, self._port, timeout=TIMEOUT)
        headers = {"Content-Type": kind} if body is not None else {}
        self._connection.request(method, self._path + path, body, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        media_type = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if not _MEDIA_TYPE.fullmatch(media_type):
            media_type = "of no known type"
        try:
            return SenderAnswer(answer.status, json.loads(data), media_type)
        except (ValueError, RecursionError):
            return SenderAnswer(answer.status, None, media_type)


def _check_receipt(body: Any, count: int) -> None:
    """Refuse what does not say that so many reports are stored, now or before."""
    told: dict[str, Any] = body if isinstance(body, dict) else {}
    numbers = [told.get("stored"), told.get("duplicates")]
    whole = [number for number in numbers if type(number) is int and number >= 0]
    if len(whole) < len(numbers) or sum(whole) != count:
        raise _NotAnswered(f"a receipt for {count} reports")


def _check_taken(body: Any, count: int) -> None:
    """Refuse what does not say that a shuffler took so many onions."""
    if body != {"taken": count}:
        raise _NotAnswered(f"a receipt for {count} onions")


def _read_assignment(body: Any) -> Assignment:
    try:
        return Assignment.from_json(body)
    except InvalidInput:
        raise _NotAnswered("an assignment") from None


def _refusal(answer: SenderAnswer, receiver: str) -> NotSent:
    told = answer.body if isinstance(answer.body, dict) else {}
    problem = str(told.get("type", "")).removeprefix(PROBLEM)
    refusal = f"the {receiver} refuses it ({answer.status}): {told.get('detail', '')}"
    return NotSent(refusal, problem)
