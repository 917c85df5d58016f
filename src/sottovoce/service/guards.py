"""What stands before every application, and the one shape of what goes wrong in it."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sottovoce.device.messages import ONIONS_PATH
from sottovoce.ground.errors import SottovoceError
from sottovoce.service.addresses import networks
from sottovoce.service.ingest import PATH
from sottovoce.service.logs import log_problem
from sottovoce.service.middleware import BehindProxies, RateLimit, SafeHeaders, ValidHost
from sottovoce.service.problems import MEDIA_TYPE, Problem, problem_of
from sottovoce.service.settings import Settings

_FOR_DEVICES = (PATH, ONIONS_PATH, "/v1/plans/")
HANDLED_ERRORS = (Problem, SottovoceError, HTTPException, Exception)
_BY_STATUS = {
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    413: "body-too-large",
}


def guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """An application behind what stands before every route."""
    app = _limited(app, settings)
    if settings.proxies:
        app = BehindProxies(app, networks(settings.proxies))
    return SafeHeaders(ValidHost(app))


def _limited(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Who may send: one address not too often, and pages of chosen sites, which see what devices
    ask and no more.
    """
    if settings.rate_limit is not None:
        app = RateLimit(app, settings.rate_limit)
    if not settings.origins:
        return app
    shared = CORSMiddleware(
        app,
        allow_origins=list(settings.origins),
        allow_methods=["GET", "POST"],
        allow_headers=["content-type"],
        max_age=600,
    )

    async def for_devices(scope: Scope, receive: Receive, send: Send) -> None:
        is_shared = scope["type"] == "http" and scope["path"].startswith(_FOR_DEVICES)
        await (shared if is_shared else app)(scope, receive, send)

    return for_devices


async def refused(request: Request, wrong: Exception) -> Response:
    """What an application answers to an exception."""
    problem = explained(wrong)
    log_problem(route_of(request), problem, wrong)
    return Response(problem.body(), problem.status, problem.headers, MEDIA_TYPE)


def route_of(request: Request) -> str:
    """The route's pattern, which holds nothing that a caller wrote."""
    return str(getattr(request.scope.get("route"), "path", "unknown"))


def explained(wrong: Exception) -> Problem:
    """The problem behind an exception."""
    if isinstance(wrong, HTTPException):
        name = _BY_STATUS.get(
            wrong.status_code, "malformed-body" if wrong.status_code < 500 else "internal"
        )
        detail = {
            "not-found": "no route has this address",
            "method-not-allowed": "see the API's description",
        }
        return Problem(
            name, detail.get(name, "the request cannot be read"), dict(wrong.headers or {})
        )
    return problem_of(wrong)
