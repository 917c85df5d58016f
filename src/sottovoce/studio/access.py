"""Who may see what: participants' pages are for everybody, analysts' need a token where one is required."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sottovoce.service.problems import Problem
from sottovoce.service.tokens import holder
from sottovoce.store import Store
from sottovoce.studio.forms import Fields, read_form

COOKIE = "sottovoce_token"
_OWN = ("localhost", "127.0.0.1", "::1")  # names by which a computer calls itself

Page = Callable[[Request], Response]
Action = Callable[[Request, Fields], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


class Access:
    """Stands before every page. Without tokens, analysts' pages answer only on this computer's own names."""

    def __init__(self, store: Store, token_required: bool) -> None:
        self._store = store
        self.token_required = token_required

    def is_analyst(self, request: Request) -> bool:
        """Whether whoever asks may see analysts' pages."""
        if not self.token_required:
            return _is_local(request)
        return self.knows(request.cookies.get(COOKIE, ""))

    def knows(self, token: str) -> bool:
        """Whether this is somebody's token."""
        return bool(token) and holder(self._store, f"Bearer {token}") is not None

    def public(self, page: Page) -> Endpoint:
        """A page for everybody."""

        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(page, request)

        return endpoint

    def page(self, page: Page) -> Endpoint:
        """A page for analysts."""

        def checked(request: Request) -> Response:
            return page(request) if self.is_analyst(request) else self._refused(request)

        return self.public(checked)

    def action(self, action: Action) -> Endpoint:
        """Something that analysts do by a form of these pages."""

        def checked(request: Request, fields: Fields) -> Response:
            return action(request, fields) if self.is_analyst(request) else self._refused(request)

        return self.public_action(checked)

    @staticmethod
    def public_action(action: Action) -> Endpoint:
        """Something that anybody does by a form of these pages, and of no others."""

        async def endpoint(request: Request) -> Response:
            if not is_own(request):
                raise HTTPException(403, "forms are taken from the studio's own pages only")
            fields = await read_form(request)
            return await run_in_threadpool(action, request, fields)

        return endpoint

    def _refused(self, request: Request) -> Response:
        if not self.token_required:
            raise Problem("unauthorized", "without tokens the studio answers only as localhost, on its own computer")
        if request.method != "GET" or ("sec-fetch-mode" in request.headers and not _is_visit(request)):
            raise Problem("unauthorized", "log in first")
        base = request.scope["root_path"]
        return RedirectResponse(f"{base}/login?next={quote(request.url.path)}", 303)


def _is_local(request: Request) -> bool:
    """Whether a browser on this computer asks, by one of its own names, and nobody on behalf of others.

    A page elsewhere could have its own name point here, and read what this browser may read.
    """
    address = request.client.host if request.client else ""
    is_passed_on = any(name == "forwarded" or name.startswith("x-forwarded") for name in request.headers)
    named = urlsplit(f"//{request.headers.get('host', '')}").hostname in _OWN
    return named and address in _OWN and not is_passed_on


def _is_visit(request: Request) -> bool:
    return request.headers["sec-fetch-mode"] == "navigate"


def is_own(request: Request) -> bool:
    """Whether one of the studio's own pages sent it, as browsers say."""
    if request.headers.get("sec-fetch-site") == "same-origin":
        return True
    origin = urlsplit(request.headers.get("origin", ""))
    return bool(origin.netloc) and origin.netloc == request.headers.get("host")


def safe_next(path: str, base: str) -> str:
    """Where to go after the login: a page of the studio, nowhere else."""
    is_own_page = path.startswith(f"{base}/") and "\\" not in path and not urlsplit(path).netloc
    return path if is_own_page else f"{base}/"
