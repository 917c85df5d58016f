"""What anybody may ask besides sending reports: plans, assignments, health, counters."""

from __future__ import annotations

import time

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sottovoce.device.assignment import Assignment, new_id
from sottovoce.service.metrics import Metrics
from sottovoce.service.problems import Problem
from sottovoce.service.settings import Settings
from sottovoce.service.survey_service import SurveyService
from sottovoce.service.tokens import needs_token
from sottovoce.service.writer import Writer

_FOREVER = "public, max-age=31536000, immutable"  # a plan is named by its hash


def public_routes(
    service: SurveyService, writer: Writer, metrics: Metrics, settings: Settings
) -> list[Route]:
    """The routes that need no token, and the counters,
    which do unless the settings say otherwise.
    """
    check = needs_token(service.store, "read")
    # threads of their own: nobody who waits for an estimate holds them up
    probes = CapacityLimiter(2)

    async def plan(request: Request) -> Response:
        found = await service.plan_cache.insist(
            lambda: service.plan_cache.plan(request.path_params["id"])
        )
        return Response(
            found.to_json().encode(),
            media_type="application/json",
            headers={"Cache-Control": _FOREVER, "ETag": f'"{found.id}"'},
        )

    async def assignment(request: Request) -> Response:
        found = await service.plan_cache.insist(
            lambda: service.plan_cache.plan(request.path_params["id"])
        )
        if found.coin != "assigned":
            raise Problem(
                "not-found", "this plan's coins are the device's own; nothing is assigned"
            )
        entry = await run_in_threadpool(service.store.entry, found.id)
        if entry.closed:
            raise Problem("survey-closed", "the survey takes no more reports")
        # each time, since it may be replaced
        key = await run_in_threadpool(service.store.signing_key)
        given = Assignment.sign(
            key, found.id, new_id(), int(time.time()) + settings.assignment_seconds
        )
        return JSONResponse(given.to_json(), headers={"Cache-Control": "no-store"})

    async def health(_: Request) -> Response:
        await to_thread.run_sync(service.store.ping, limiter=probes)  # fails if the store does
        if not writer.is_alive:
            raise Problem("internal", "the collector cannot write; start it again")
        return JSONResponse({"status": "ok"})

    async def readiness(_: Request) -> Response:
        await to_thread.run_sync(service.store.ping, limiter=probes)
        if not writer.is_ready:
            raise Problem(
                "not-ready", "the collector stops, or has too much to write", {"Retry-After": "1"}
            )
        return JSONResponse({"status": "ready", "waiting_bytes": writer.waiting_bytes})

    async def counters(request: Request) -> Response:
        if settings.metrics != "public":
            await run_in_threadpool(check, request)
        damaged = await run_in_threadpool(service.damaged)
        text = metrics.text(writer.waiting_bytes, damaged)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    routes = [
        Route("/v1/plans/{id:str}", plan, methods=["GET"]),
        Route("/v1/plans/{id:str}/assignment", assignment, methods=["GET"]),
        Route("/healthz", health, methods=["GET"]),
        Route("/readyz", readiness, methods=["GET"]),
    ]
    if settings.metrics != "off":
        routes.append(Route("/metrics", counters, methods=["GET"]))
    return routes
