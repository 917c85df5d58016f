"""POST /v1/onions/ID, the path that every device of a shuffled plan takes: a plain ASGI endpoint,
and the writer that makes many requests' onions durable at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from sottovoce.device.messages import ONIONS, ONIONS_PATH
from sottovoce.device.sealing import onion_size
from sottovoce.ground.errors import CorruptReport
from sottovoce.protocol.plan import Plan
from sottovoce.service.bodies import HungUp, answer, read_body, refuse, within
from sottovoce.service.logs import log_problem
from sottovoce.service.memory import HeldMemory, Memory
from sottovoce.service.problems import Problem, problem_of
from sottovoce.service.settings import MOST_ANALYST_BYTES, Settings
from sottovoce.shuffle.messages import split
from sottovoce.store.hops import HopStore

GATHER_SECONDS = 0.01  # that a write waits for others: making onions durable costs most
_ROUTE = f"{ONIONS_PATH}{{id}}"  # for the log, which holds nothing that a caller wrote
_JSON = {"content-type": "application/json"}


class OnionIngest:
    """Reads a body within its limits, has its onions written, says how many they were."""

    def __init__(
        self, plan_of: Callable[[str], Plan], store: HopStore, memory: Memory, settings: Settings
    ) -> None:
        self._plan_of, self._memory, self._settings = plan_of, memory, settings
        self._writer = OnionWriter(store)
        self._most = min(settings.most_bytes, MOST_ANALYST_BYTES)
        self._sizes: dict[str, int] = {}  # of the plans whose onions are taken here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] != "POST":
                raise Problem("method-not-allowed", "onions are sent by POST", {"Allow": "POST"})
            with HeldMemory(self._memory) as held:
                count = await self._take(scope, receive, held)
        except HungUp:
            return
        except Exception as wrong:
            problem = problem_of(wrong)
            log_problem(_ROUTE, problem, wrong)
            await refuse(problem, send)
        else:
            await answer(send, 200, _JSON, b'{"taken":%d}' % count)

    async def _take(self, scope: Scope, receive: Receive, held: HeldMemory) -> int:
        plan_id, headers = scope["path"].removeprefix(ONIONS_PATH), dict(scope["headers"])
        data = await within(self._settings, read_body(headers, receive, self._most, held))
        size = self._sizes.get(plan_id) or onion_size(self._plan_of(plan_id))
        self._sizes[plan_id] = size
        kind = headers.get(b"content-type", b"").decode("latin-1")
        if kind.partition(";")[0].strip() != ONIONS:
            raise Problem("unsupported-type", f"the body must be of type {ONIONS}")
        onions = _onions(data, size)
        await self._writer.write(plan_id, onions)
        return len(onions)


def _onions(data: bytes, size: int) -> list[bytes]:
    """What a body holds; its size is all that is looked at."""
    try:
        found = list(split(data, size))
    except CorruptReport:
        found = []
    if not found:
        raise Problem(
            "malformed-body", f"the body must be onions of {size} bytes each, and no more"
        )
    return found


@dataclass
class _Waiting:
    """Onions of one plan that are to be written, and whoever waits for them."""

    onions: list[bytes] = field(default_factory=list)
    futures: list[tuple[asyncio.Future[None], int]] = field(default_factory=list)


class OnionWriter:
    """Group commit: many requests' onions become durable at once; only then is anybody told so."""

    def __init__(self, store: HopStore) -> None:
        self._store = store
        self._waiting: dict[str, _Waiting] = {}
        self._task: asyncio.Task[None] | None = None

    async def write(self, plan_id: str, onions: Sequence[bytes]) -> None:
        """Returns when they are durable."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        group = self._waiting.setdefault(plan_id, _Waiting())
        group.onions.extend(onions)
        group.futures.append((future, len(onions)))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all())
        await future

    async def _write_all(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER_SECONDS)
            plan_id, group = self._waiting.popitem()
            try:
                await run_in_threadpool(self._store.add_onions, plan_id, group.onions)
                results: list[Exception | None] = [None] * len(group.futures)
            except Exception:  # of one request, or of all; each is told its own
                results = await run_in_threadpool(self._one_by_one, plan_id, group)
            for (future, _), wrong in zip(group.futures, results, strict=True):
                if future.done():
                    continue  # its sender is gone
                if wrong is None:
                    future.set_result(None)
                else:
                    future.set_exception(wrong)

    def _one_by_one(self, plan_id: str, group: _Waiting) -> list[Exception | None]:
        results: list[Exception | None] = []
        start = 0
        for _, count in group.futures:
            try:
                self._store.add_onions(plan_id, group.onions[start : start + count])
                results.append(None)
            except Exception as wrong:
                results.append(wrong)
            start += count
        return results
