"""What stands before every route: headers that keep browsers safe, and a limit per address if one is wanted."""

from __future__ import annotations

import time
from collections import OrderedDict

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sottovoce.service.bodies import refuse
from sottovoce.service.problems import Problem

POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
_POLICY = (b"content-security-policy", POLICY.encode())


class SafeHeaders:
    """Adds headers to every answer; a page that sets its own content policy keeps it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"] = [*message.get("headers", ()), *_HEADERS]
                if not any(name == _POLICY[0] for name, _ in headers):
                    headers.append(_POLICY)
            await send(message)

        await self._app(scope, receive, safe)


class RateLimit:
    """At most so many requests a second from one address, twice as many at once. Addresses are kept in memory only."""

    MOST = 100_000  # addresses that are remembered

    def __init__(self, app: ASGIApp, rate: float) -> None:
        self._app, self._rate, self._burst = app, rate, max(1.0, 2 * rate)
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, when

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._allowed(str((scope.get("client") or ("",))[0])):
            await self._app(scope, receive, send)
            return
        limit = f"at most {self._rate:g} requests a second from one address"
        await refuse(Problem("too-many-requests", limit, {"Retry-After": "1"}), send)

    def _allowed(self, address: str) -> bool:
        now = time.monotonic()
        tokens, before = self._seen.pop(address, (self._burst, now))
        tokens = min(self._burst, tokens + (now - before) * self._rate)
        allowed = tokens >= 1
        self._seen[address] = (tokens - allowed, now)
        if len(self._seen) > self.MOST:
            self._seen.popitem(last=False)
        return allowed
