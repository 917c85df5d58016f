"""The application: plain routes first, then analysts', and one shape for all that goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sottovoce import __version__
from sottovoce.service.analyst_routes import analyst_routes
from sottovoce.service.bodies import WholeBodies
from sottovoce.service.guards import HANDLED_ERRORS, guarded, refused
from sottovoce.service.ingest import PATH, Ingest
from sottovoce.service.logs import log, logger
from sottovoce.service.memory import Memory
from sottovoce.service.metrics import Metrics
from sottovoce.service.openapi import with_public
from sottovoce.service.problems import Problem
from sottovoce.service.public_routes import public_routes
from sottovoce.service.settings import Settings
from sottovoce.service.survey_service import SurveyService
from sottovoce.service.temporary_folders import remove_leftovers
from sottovoce.service.writer import Writer


def make_app(service: SurveyService, settings: Settings | None = None) -> FastAPI:
    """A collector of a survey service. Closing it writes what waits; the store stays open."""
    settings = settings or Settings()
    service.most_cells = settings.most_cells
    metrics = Metrics()
    writer = Writer(service.store, metrics, settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        left = await run_in_threadpool(remove_leftovers)
        log("started", surveys=len(service.store.plan_ids()), leftovers_removed=left)
        keeping = asyncio.create_task(_keep_fresh(service, settings.refresh_seconds))
        try:
            yield
        finally:
            keeping.cancel()
            await run_in_threadpool(writer.close)
            await run_in_threadpool(service.stop)
            log("stopped")

    app = _Collector(
        Ingest(service.plan_cache, writer, metrics, settings),
        writer.memory,
        settings,
        title="sottovoce collector",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.service, app.state.writer = service, writer
    app.router.routes.extend(public_routes(service, writer, metrics, settings))
    app.include_router(analyst_routes(service))
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    for kind in HANDLED_ERRORS:
        app.add_exception_handler(kind, refused)
    app.add_exception_handler(RequestValidationError, _refused_input)
    return app


class _Collector(FastAPI):
    """The framework for all but one path: reports go straight to it, past the same guards."""

    def __init__(self, ingest: ASGIApp, memory: Memory, settings: Settings, **options: Any) -> None:
        super().__init__(**options)
        self._ingest = ingest
        self._bounded = WholeBodies(super().__call__, settings, memory)
        self._guarded = guarded(self._dispatch, settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_report = scope["type"] == "http" and scope["path"] == PATH
        await (self._ingest if is_report else self._bounded)(scope, receive, send)


async def _keep_fresh(service: SurveyService, seconds: float) -> None:
    """Fold what has come and estimate anew, so that whoever looks does not wait."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await run_in_threadpool(service.refresh)
        except Exception:  # of the store, say; the next round tries again
            logger.exception("refresh failed")


def _described(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = with_public(
            get_openapi(title=app.title, version=app.version, routes=app.routes)
        )
    return app.openapi_schema


async def _refused_input(request: Request, wrong: Exception) -> Response:
    """The answer to a body or a parameter that the framework could not read."""
    assert isinstance(wrong, RequestValidationError)
    first: Any = next(iter(wrong.errors()), {})
    if first.get("type") == "json_invalid":
        return await refused(request, Problem("malformed-body", "the body must be JSON"))
    place = ".".join(str(part) for part in first.get("loc", ()))
    detail = f"{place}: {first.get('msg', 'it breaks a rule')}"
    return await refused(request, Problem("invalid-input", detail))
