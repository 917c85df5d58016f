"""A shuffler over HTTP: takes onions, or the batch of the hop before it, and passes a batch on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sottovoce.device.messages import ONIONS, ONIONS_PATH
from sottovoce.device.sealing import PrivateKey, onion_size
from sottovoce.ground.errors import CorruptReport, InvalidInput, UnknownPlan
from sottovoce.protocol.plan import Plan
from sottovoce.service.bodies import WholeBodies
from sottovoce.service.guards import HANDLED_ERRORS, guarded, refused
from sottovoce.service.hop_routes import answered, take_chunk
from sottovoce.service.hop_work import HopWorkers, ShufflerWork
from sottovoce.service.logs import log
from sottovoce.service.memory import Memory
from sottovoce.service.problems import Problem
from sottovoce.service.settings import Settings
from sottovoce.shuffle import messages
from sottovoce.shuffle.batch import fewest_onions, hop_of, shuffling_of
from sottovoce.shuffle.messages import Message, split
from sottovoce.store.hops import BatchState, HopStore


@dataclass(frozen=True)
class ShufflerTerms:
    """Where a shuffler passes its batches on, and when a first one closes them."""

    next_url: str
    closes: int | None = None  # unix time
    is_fixed: bool = False  # it closes then, whatever was said before
    min_batch: int = 0  # beside the plan's own least number
    collector_url: str | None = None  # if the next hop is another shuffler, and there are fakes


class Shuffler:
    """One hop for some plans: their batches, and a thread that works on each."""

    def __init__(
        self, plans: Sequence[Plan], key: PrivateKey, store: HopStore, terms: ShufflerTerms
    ) -> None:
        self.key, self.store = key, store
        self.plans: Mapping[str, Plan] = {plan.id: plan for plan in plans}
        self.workers = HopWorkers()
        self._works = [self._work(plan, terms) for plan in plans]
        for work in self._works:
            is_first = not work.hop
            closes = terms.closes if is_first else None
            store.begin(work.plan.id, closes, moves=is_first and terms.is_fixed)

    def _work(self, plan: Plan, terms: ShufflerTerms) -> ShufflerWork:
        hop, last = hop_of(plan, self.key), shuffling_of(plan).shufflers
        if hop == last:
            raise InvalidInput("key: the plan names it as the collector's, which is no shuffler")
        if not hop and terms.closes is None:
            raise InvalidInput(
                "close-after or close-at is required for the first shuffler of a plan: its batch "
                "closes by number and by clock"
            )
        fewest = fewest_onions(plan, hop)
        if terms.min_batch and terms.min_batch < fewest:
            raise InvalidInput(
                f"min-batch ({terms.min_batch}) must be at least {fewest}, below which the plan's "
                "promise does not hold"
            )
        url = terms.next_url if hop + 1 == last else terms.collector_url
        if url is None and shuffling_of(plan).fakes:
            raise InvalidInput(
                "collector is required for a plan with fakes, unless the next hop is the collector"
            )
        return ShufflerWork(
            plan, self.key, self.store, terms.next_url, url or terms.next_url, terms.min_batch
        )

    def start(self) -> None:
        """Go on from where the store stands."""
        for work in self._works:
            self.workers.begin(work)

    def states(self) -> dict[str, str]:
        """How far the batch of each plan is."""
        return {plan_id: str(self.store.state(plan_id)) for plan_id in self.plans}

    def plan(self, request: Request, is_first: bool) -> Plan:
        """The plan that a request names, if this hop of it takes such requests."""
        plan = self.plans.get(request.path_params["id"])
        if plan is None:
            raise UnknownPlan("plan: this shuffler does not have it")
        if (hop_of(plan, self.key) == 0) != is_first:
            raise Problem(
                "not-found",
                "this is not the first shuffler of the plan; onions go there"
                if is_first
                else "this is the first shuffler of the plan, which takes onions alone",
            )
        return plan


def shuffler_app(shuffler: Shuffler, settings: Settings | None = None) -> ASGIApp:
    """The application of a shuffler."""
    settings = settings or Settings()
    writer = OnionWriter(shuffler.store)

    async def onions(request: Request) -> Response:
        plan = shuffler.plan(request, is_first=True)
        if request.headers.get("content-type", "").partition(";")[0].strip() != ONIONS:
            raise Problem("unsupported-type", f"the body must be of type {ONIONS}")
        taken = _onions(await request.body(), onion_size(plan))
        await writer.write(plan.id, taken)
        return JSONResponse({"taken": len(taken)})

    async def batches(request: Request) -> Response:
        plan = shuffler.plan(request, is_first=False)
        hop = hop_of(plan, shuffler.key)

        def take(message: Message) -> bytes:
            size = onion_size(plan, hop)
            state = BatchState.COLLECTING
            take_chunk(shuffler.store, plan, messages.BATCH_KIND, state, message.body, size)
            return b""

        before = range(hop - 1, hop)
        answer = await answered(request, plan, shuffler.key, messages.BATCH_KIND, before, take)
        shuffler.workers.wake(plan.id)
        return answer

    async def states(_: Request) -> Response:
        # no numbers: how many came, and when, is what an observer would learn of others
        return JSONResponse({"status": "ok", "plans": await run_in_threadpool(shuffler.states)})

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        log("started", plans=len(shuffler.plans))
        shuffler.start()
        try:
            yield
        finally:
            await run_in_threadpool(shuffler.workers.stop)
            log("stopped")

    app = Starlette(
        routes=[
            Route(f"{ONIONS_PATH}{{id:str}}", onions, methods=["POST"]),
            Route("/v1/batches/{id:str}", batches, methods=["POST"]),
            Route("/healthz", states, methods=["GET"]),
        ],
        exception_handlers=dict.fromkeys(HANDLED_ERRORS, refused),
        lifespan=lifespan,
    )
    return guarded(WholeBodies(app, settings, Memory(settings.most_waiting)), settings)


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
