"""The collector as the last hop of shuffled plans: it takes batches, and stores what is in them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sottovoce.device.sealing import PrivateKey, onion_size
from sottovoce.ground.errors import CorruptReport, InvalidInput, SurveyClosed, UnknownPlan
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.service.hop_routes import answered, take_chunk
from sottovoce.service.hop_work import IDLE_SECONDS, HopWork, HopWorkers
from sottovoce.service.logs import log
from sottovoce.service.problems import Problem
from sottovoce.service.streams import PIECE
from sottovoce.service.survey_service import SurveyService
from sottovoce.shuffle import messages
from sottovoce.shuffle.batch import ReadBatch, added_fakes, hop_of, read_batch, shuffling_of
from sottovoce.shuffle.checks import report_id, written_list
from sottovoce.shuffle.fakes import (
    BEACON_BYTES,
    FAKE_SEED_BYTES,
    BiasedFakes,
    check_opening,
    opened_half,
)
from sottovoce.shuffle.messages import Message, split
from sottovoce.store import Store
from sottovoce.store.hops import BatchState, HopStore

LIST = "list"  # under which the hashes of a finished batch's nonces are kept
_STORED, _CHOICE = "stored", "choice"
LISTED_KIND = "application/octet-stream"


class CollectorWork(HopWork):
    """One plan's batch at the collector: opened, checked, stored without a trace of its order."""

    def __init__(self, plan: Plan, key: PrivateKey, store: HopStore, analysts: Store) -> None:
        super().__init__(plan, key, store)
        self._analysts = analysts
        self._read: ReadBatch | None = None
        part = shuffling_of(plan)
        # whoever adds fakes, and how many of them stay when half were opened
        self._adding = [hop for hop in range(part.shufflers) if part.fakes_of(hop)]
        self._least = part.least + part.fakes

    def step(self) -> float | None:
        match self.store.state(self.plan.id):
            case BatchState.COLLECTING:
                return self.close_whole()
            case BatchState.CLOSED:
                return self._finish()
        return None

    def _finish(self) -> float | None:
        """Store the reports, if all shufflers have opened their fakes."""
        missing = [hop for hop in self._adding if not self._has_opened(hop)]
        if missing:
            return IDLE_SECONDS
        plan_id = self.plan.id
        read = self._read = self._read or self._batch()
        counts = {"malformed": read.malformed, "duplicates": read.replayed}
        try:
            opened = self._opened_fakes(read)
        except (BiasedFakes, CorruptReport) as wrong:
            self.refuse(str(wrong), **counts)
            return None
        nonces = [nonce for nonce in read.reports if nonce not in opened]
        counts |= {"received": len(read.reports), "opened_fakes": len(opened)}
        if len(nonces) < self._least:
            self.refuse(f"{len(nonces)} reports, fewer than {self._least}", **counts)
            return None
        if self.store.noted(plan_id, _STORED) is None:
            try:
                self._store_reports(read, nonces)
            except (SurveyClosed, UnknownPlan) as wrong:
                if not self._are_stored(nonces):
                    self.refuse(str(wrong), **counts)
                    return None
            self.store.note(plan_id, _STORED, b"1")
        self._analysts.close_survey(plan_id)  # there is one batch
        self.store.note(plan_id, LIST, written_list(plan_id, nonces))
        self.store.finish(plan_id, BatchState.DONE, LIST, stored=len(nonces), **counts)
        log("stored a batch", plan=plan_id[:16])
        return None

    def _batch(self) -> ReadBatch:
        data = self.store.incoming(self.plan.id, messages.BATCH_KIND)
        return read_batch(self.plan, self.key, split(data, onion_size(self.plan, self.hop)))

    def _store_reports(self, read: ReadBatch, nonces: list[bytes]) -> None:
        """All reports in one transaction, sorted by ids that say nothing but their nonces."""
        rows = sorted((report_id(self.plan.id, nonce), nonce) for nonce in nonces)
        ids = np.frombuffer(b"".join(id for id, _ in rows), np.uint8).reshape(len(rows), -1)
        reports = Reports.collect(self.plan, (read.reports[nonce] for _, nonce in rows))
        self._analysts.append(self.plan, ids, reports)

    def _are_stored(self, nonces: list[bytes]) -> bool:
        """Whether just these were before: somebody may have closed the survey after a crash."""
        try:
            stretches = list(self._analysts.scan(self.plan))
        except UnknownPlan:
            return False
        found = sorted(id.tobytes() for stretch in stretches for id in stretch.ids)
        return found == sorted(report_id(self.plan.id, nonce) for nonce in nonces)

    # -- fakes

    def _has_opened(self, hop: int) -> bool:
        return self.store.is_whole(self.plan.id, _name(messages.OPENING_KIND, hop))

    def _opened_fakes(self, read: ReadBatch) -> set[bytes]:
        """The nonces of the fakes that shufflers opened, as they had to."""
        plan, found = self.plan, set[bytes]()
        for hop in self._adding:
            committed = self.store.noted(plan.id, _name(messages.COMMIT_KIND, hop))
            beacon = self.store.noted(plan.id, _beacon(hop))
            choice = self.store.noted(plan.id, _CHOICE)
            if committed is None or beacon is None or choice is None:
                raise BiasedFakes(f"fakes: shuffler {hop} committed to none")
            opened = opened_half(choice, added_fakes(plan, hop))
            shown = self.store.incoming(plan.id, _name(messages.OPENING_KIND, hop))
            try:
                found |= check_opening(plan, committed, beacon, opened, shown, read.reports)
            except BiasedFakes as wrong:
                raise BiasedFakes(f"shuffler {hop}: {wrong}") from None
        return found


class Batches:
    """The batches of a collector's shuffled plans, under its key."""

    def __init__(self, service: SurveyService, key: PrivateKey, store: HopStore) -> None:
        self.service, self.key, self.store = service, key, store
        self.workers = HopWorkers()
        self._list: tuple[str, bytes] | None = None  # a plan's, which does not change any more

    def start(self) -> None:
        """Go on with the batches of all plans that name this key."""
        for entry in self.service.store.entries():
            part = entry.plan.shuffling
            if part is not None and part.hops and part.hops[-1] == self.key.public:
                self._begin(entry.plan)

    def _begin(self, plan: Plan) -> None:
        self.store.begin(plan.id)
        self.workers.begin(CollectorWork(plan, self.key, self.store, self.service.store))

    def stop(self) -> None:
        """End after the steps under way."""
        self.workers.stop()
        self.store.close()

    def listed(self, plan_id: str) -> bytes | None:
        """The public list of a finished batch. One is kept, for all who ask at once."""
        kept = self._list
        if kept is not None and kept[0] == plan_id:
            return kept[1]
        found = self.store.noted(plan_id, LIST)
        if found is not None:
            self._list = (plan_id, found)
        return found

    async def plan(self, request: Request) -> Plan:
        """The plan that a request names, if this collector is its last hop."""
        cache = self.service.plan_cache
        plan = await cache.insist(lambda: cache.plan(request.path_params["id"]))
        if plan.shuffling is None or not plan.shuffling.hops:
            raise Problem("not-found", "this plan's reports come one by one; it has no batches")
        if plan.shuffling.hops[-1] != self.key.public:
            raise Problem("not-found", "this collector has not the key that the plan names")
        if not self.workers.has(plan.id):  # or everybody who asks would wait for the file, to write
            await run_in_threadpool(self._begin, plan)
        return plan

    def take(self, plan: Plan, message: Message) -> bytes:
        """What is said to a message of a shuffler."""
        match message.kind:
            case messages.BATCH_KIND:
                size = onion_size(plan, hop_of(plan, self.key))
                state = BatchState.COLLECTING
                take_chunk(self.store, plan, messages.BATCH_KIND, state, message.body, size)
            case messages.COMMIT_KIND:
                return self._committed(plan, message)
            case messages.HALF_KIND:
                if self.store.state(plan.id) == BatchState.COLLECTING:
                    return b""
                return self.store.note(plan.id, _CHOICE, os.urandom(BEACON_BYTES))
            case messages.OPENING_KIND:
                name = _name(messages.OPENING_KIND, message.sender)
                state = BatchState.CLOSED
                take_chunk(self.store, plan, name, state, message.body, FAKE_SEED_BYTES)
        return b""

    def _committed(self, plan: Plan, message: Message) -> bytes:
        """A beacon for the first commitment of a shuffler, drawn after it came; the same again."""
        if len(message.body) != FAKE_SEED_BYTES:
            raise CorruptReport(f"commitment: {len(message.body)} bytes must be {FAKE_SEED_BYTES}")
        name = _name(messages.COMMIT_KIND, message.sender)
        if self.store.note(plan.id, name, message.body) != message.body:
            raise InvalidInput("commitment: this shuffler has committed to other fakes")
        return self.store.note(plan.id, _beacon(message.sender), os.urandom(BEACON_BYTES))


def batch_routes(batches: Batches) -> list[Route]:
    """What shufflers send to a collector, and what everybody may see of a batch."""

    async def chunk(request: Request) -> Response:
        return await taken(request, messages.BATCH_KIND)

    async def fakes(request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in (messages.COMMIT_KIND, messages.HALF_KIND, messages.OPENING_KIND):
            raise Problem("not-found", "no route has this address")
        return await taken(request, kind)

    async def taken(request: Request, kind: str) -> Response:
        plan = await batches.plan(request)
        last = shuffling_of(plan).shufflers
        senders = range(last - 1, last) if kind == messages.BATCH_KIND else range(last)
        answer = await answered(
            request, plan, batches.key, kind, senders, lambda message: batches.take(plan, message)
        )
        batches.workers.wake(plan.id)
        return answer

    async def state(request: Request) -> Response:
        plan = await batches.plan(request)
        status = await run_in_threadpool(batches.store.status, plan.id)
        told = {"plan": plan.id, "state": str(status.state)}
        if status.reason is not None:
            told["reason"] = status.reason
        return JSONResponse(told)

    async def nonces(request: Request) -> Response:
        plan = await batches.plan(request)
        found = await run_in_threadpool(batches.listed, plan.id)
        if found is None:
            raise Problem("no-reports", "the batch of this plan is not finished")
        length = {"Content-Length": str(len(found))}
        return StreamingResponse(_pieces(found), media_type=LISTED_KIND, headers=length)

    return [
        Route("/v1/batches/{id:str}", chunk, methods=["POST"]),
        Route("/v1/batches/{id:str}", state, methods=["GET"]),
        Route("/v1/batches/{id:str}/nonces", nonces, methods=["GET"]),
        Route("/v1/fakes/{id:str}/{kind:str}", fakes, methods=["POST"]),
    ]


def _pieces(data: bytes) -> Iterator[bytes]:
    """What is sent at once, so that who reads slowly holds no copy of the whole."""
    return (data[start : start + PIECE] for start in range(0, len(data), PIECE))


def _name(kind: str, hop: int) -> str:
    """Under which a shuffler's part in the fakes is kept."""
    return f"{kind} {hop}"


def _beacon(hop: int) -> str:
    return f"beacon {hop}"
