"""Who may see what: participants' pages are open, analysts' need a token, or the printed link."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from threading import Lock
from time import monotonic
from typing import Any, cast
from urllib.parse import quote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sottovoce.service.addresses import parsed
from sottovoce.service.problems import Problem
from sottovoce.service.tokens import digest, find_token, require
from sottovoce.store import Store, Token
from sottovoce.studio.forms import Fields, read_form

COOKIE = "sottovoce_token"
SESSION = "svs_"  # how the secret of a session begins
CODE_SECONDS = 600.0  # for which a code is good

Endpoint = Callable[[Request], Awaitable[Response]]
# one that waits is a coroutine, and holds no thread meanwhile
Page = Callable[[Request], Response] | Endpoint
Action = Callable[[Request, Fields], Response] | Callable[[Request, Fields], Awaitable[Response]]


class Access:
    """Stands before every page.

    A browser that has logged in holds a secret in a cookie: an analyst's token, or that of the one
    session that a link with a code begins. Code and session are kept here as hashes, and end with
    this process.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._code: bytes | None = None
        self._code_ends = 0.0  # by a clock that nobody sets
        self._session: bytes | None = None

    # -- logging in

    def new_code(self) -> str:
        """A code that lets in one browser, once and soon, in the place of an unused one."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._code, self._code_ends = digest(code), monotonic() + CODE_SECONDS
        return code

    def spend(self, code: str) -> str | None:
        """The secret of a new session, if this is the code; from then on it is nobody's."""
        with self._lock:
            if monotonic() >= self._code_ends:
                self._code = None
            if self._code is None or not hmac.compare_digest(self._code, digest(code)):
                return None
            secret = SESSION + secrets.token_urlsafe(32)
            self._code, self._session = None, digest(secret)
        return secret

    def end(self, secret: str) -> None:
        """Forget a session; a token stays good."""
        with self._lock:
            if self._is_session(secret):
                self._session = None

    def _is_session(self, secret: str) -> bool:
        return self._session is not None and hmac.compare_digest(self._session, digest(secret))

    def holder(self, secret: str) -> Token:
        """Who holds this secret, and what it allows; or a problem that says why it is not good."""
        if self._is_session(secret):
            return Token("this computer", "manage", None)
        return find_token(self._store, secret)

    def check(self, request: Request, scope: str) -> None:
        """Refuse whoever has not logged in, or may not do this."""
        require(self.holder(request.cookies.get(cookie_name(request), "")), scope)

    # -- pages

    def public(self, page: Page) -> Endpoint:
        """A page for everybody."""

        async def endpoint(request: Request) -> Response:
            return await answered(page, request)

        return endpoint

    def page(self, page: Page, scope: str = "read") -> Endpoint:
        """A page for analysts."""

        async def checked(request: Request) -> Response:
            try:
                await run_in_threadpool(self.check, request, scope)
            except Problem as wrong:
                return self._refused(request, wrong)
            return await answered(page, request)

        return self.public(checked)

    def action(self, action: Action, scope: str = "manage") -> Endpoint:
        """Something that analysts change, or ask, by a form of these pages."""

        taken = self.public_action(action)

        async def endpoint(request: Request) -> Response:
            check_own(request)
            # before anything of the form is parsed
            await run_in_threadpool(self.check, request, scope)
            return await taken(request)

        return endpoint

    @staticmethod
    def public_action(action: Action) -> Endpoint:
        """Something that anybody does by a form of these pages, and of no others."""

        async def endpoint(request: Request) -> Response:
            check_own(request)
            fields = await read_form(request)
            return await answered(action, request, fields)

        return endpoint

    @staticmethod
    def _refused(request: Request, wrong: Problem) -> Response:
        """To the login, if somebody visits who has not logged in."""
        is_visit = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
        if wrong.name != "unauthorized" or not is_visit:
            raise wrong
        base = request.scope["root_path"]
        return RedirectResponse(f"{base}/login?next={quote(request.url.path)}", 303)


async def answered(page: Callable[..., Response | Awaitable[Response]], *args: Any) -> Response:
    """What a page says: a coroutine here, a function in a thread."""
    if iscoroutinefunction(page):
        waiting: Awaitable[Response] = page(*args)
        return await waiting
    return cast(Response, await run_in_threadpool(page, *args))


def cookie_name(request: Request) -> str:
    """With the port, since browsers send one port's cookies to all others of a computer."""
    port = request.url.port
    return COOKIE if port is None else f"{COOKIE}_{port}"


def is_local(request: Request) -> bool:
    """Whether it is asked for by a name that means this computer,
    and not by one that a proxy has.
    """
    host = request.url.hostname or ""
    address = parsed(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def check_own(request: Request) -> None:
    """Refuse a form of another site's page."""
    if not is_own(request):
        raise HTTPException(403, "forms are taken from the studio's own pages only")


def is_own(request: Request) -> bool:
    """Whether one of the studio's own pages sent it, as browsers say."""
    if request.headers.get("sec-fetch-site") == "same-origin":
        return True
    try:
        origin = urlsplit(request.headers.get("origin", "")).netloc
    except ValueError:
        return False
    return bool(origin) and origin == request.headers.get("host")


def safe_next(path: str, base: str) -> str:
    """Where to go after the login: a page of the studio, nowhere else."""
    is_own_page = path.startswith(f"{base}/") and "\\" not in path and not urlsplit(path).netloc
    return path if is_own_page else f"{base}/"
