"""POST /v1/reports, the path that thousands take each second: a plain ASGI endpoint with as little
as can be on it.
"""

from __future__ import annotations

import time

from starlette.types import Receive, Scope, Send

from sottovoce.service.addresses import household
from sottovoce.service.bodies import HungUp, answer, read_body, refuse, within
from sottovoce.service.claimed_minutes import check_minutes
from sottovoce.service.logs import log_problem
from sottovoce.service.memory import HeldMemory
from sottovoce.service.metrics import Metrics
from sottovoce.service.plan_cache import PlanCache
from sottovoce.service.problems import Problem, problem_of
from sottovoce.service.settings import Settings
from sottovoce.service.wire import Envelope, read_envelope
from sottovoce.service.writer import Writer

PATH = "/v1/reports"
_JSON = {"content-type": "application/json"}


class Ingest:
    """Reads a body within its limits, has it written, says so."""

    def __init__(
        self, plan_cache: PlanCache, writer: Writer, metrics: Metrics, settings: Settings
    ) -> None:
        self._plan_cache, self._writer, self._metrics, self._settings = (
            plan_cache,
            writer,
            metrics,
            settings,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] != "POST":
                raise Problem("method-not-allowed", "reports are sent by POST", {"Allow": "POST"})
            envelope = await self._read(dict(scope["headers"]), receive)
            sender = (
                household(str((scope.get("client") or ("",))[0])) if envelope.assignments else ""
            )
            receipt = await self._writer.write(envelope, sender)
        except HungUp:
            return
        except Exception as wrong:
            problem = problem_of(wrong)
            self._metrics.answered(problem.name)
            log_problem(PATH, problem, wrong)
            await refuse(problem, send)
        else:
            self._metrics.answered("ok")
            self._metrics.taken(receipt.stored, receipt.duplicates)
            body = b'{"stored":%d,"duplicates":%d}' % (receipt.stored, receipt.duplicates)
            await answer(send, 200, _JSON, body)

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> Envelope:
        settings = self._settings
        with HeldMemory(self._writer.memory) as held:
            data = await within(settings, read_body(headers, receive, settings.most_bytes, held))
            kind = headers.get(b"content-type", b"").decode("latin-1")
            envelope = await self._plan_cache.insist(
                lambda: read_envelope(kind, data, self._plan_cache, settings)
            )
            if envelope.plan.shuffling is not None:
                raise Problem(
                    "shuffled-plan", "this plan's reports are sealed, and sent to its shufflers"
                )
            check_minutes(envelope.ids, time.time(), settings.oldest_days)
            return envelope
