"""A shuffler over HTTP: takes onions, or the batch of the hop before it, and passes a batch on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sottovoce.device.messages import ONIONS_PATH
from sottovoce.device.sealing import PrivateKey, onion_size
from sottovoce.ground.errors import InvalidInput, UnknownPlan
from sottovoce.protocol.plan import Plan
from sottovoce.service.bodies import WholeBodies
from sottovoce.service.guards import HANDLED_ERRORS, guarded, refused
from sottovoce.service.hop_routes import answered, take_chunk
from sottovoce.service.hop_work import HopWorkers, ShufflerWork
from sottovoce.service.logs import log
from sottovoce.service.memory import Memory
from sottovoce.service.onions import OnionIngest
from sottovoce.service.problems import Problem
from sottovoce.service.settings import Settings
from sottovoce.shuffle import messages
from sottovoce.shuffle.batch import fewest_onions, hop_of, shuffling_of
from sottovoce.shuffle.messages import Message
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

    def plan(self, plan_id: str, is_first: bool) -> Plan:
        """The plan of an id, if this hop of it takes such requests."""
        plan = self.plans.get(plan_id)
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
    memory = Memory(settings.most_waiting)
    onions = OnionIngest(
        lambda plan_id: shuffler.plan(plan_id, is_first=True), shuffler.store, memory, settings
    )

    async def batches(request: Request) -> Response:
        plan = shuffler.plan(request.path_params["id"], is_first=False)
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
            Route("/v1/batches/{id:str}", batches, methods=["POST"]),
            Route("/healthz", states, methods=["GET"]),
        ],
        exception_handlers=dict.fromkeys(HANDLED_ERRORS, refused),
        lifespan=lifespan,
    )
    bounded = WholeBodies(app, settings, memory)

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        is_onion = scope["type"] == "http" and scope["path"].startswith(ONIONS_PATH)
        await (onions if is_onion else bounded)(scope, receive, send)

    return guarded(dispatch, settings)
