"""What stands before every route: who asks, headers that keep browsers safe, rate limits."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sottovoce.service.addresses import Network, client_of, household, is_believed, is_host
from sottovoce.service.bodies import refuse
from sottovoce.service.problems import Problem

# what a machine asks again and again to know whether the collector is well
PROBES = (
    "/healthz",
    "/readyz",
)

API_POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors "
    "'none'"
)
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
_POLICY = (b"content-security-policy", API_POLICY.encode())


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


class ValidHost:
    """Refuses a Host header that is no host, before anything tries to build an address of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value for name, value in scope.get("headers", ()) if name == b"host"]
        if scope["type"] == "http" and not _is_one_host(hosts, scope.get("http_version", "1.1")):
            await refuse(
                Problem(
                    "malformed-host", "there must be one Host header, a name with or without a port"
                ),
                send,
            )
            return
        await self._app(scope, receive, send)


def _is_one_host(hosts: Sequence[bytes], version: str) -> bool:
    if not hosts:
        return version == "1.0"  # which has none
    return len(hosts) == 1 and is_host(hosts[0].decode("latin-1"))


class BehindProxies:
    """Takes some proxies' word, nobody else's, for whose request it is and if it came by https."""

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        self._app, self._proxies = app, tuple(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = str((scope.get("client") or ("",))[0])
        if scope["type"] == "http" and is_believed(peer, self._proxies):
            client = client_of(peer, _values(scope, b"x-forwarded-for"), self._proxies)
            schemes = _values(scope, b"x-forwarded-proto")
            is_secure = bool(schemes) and schemes[-1].rpartition(",")[2].strip() == "https"
            scope = {**scope, "client": (client, 0), "scheme": "https" if is_secure else "http"}
        await self._app(scope, receive, send)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


class RateLimit:
    """At most so many requests a second from one address, twice at once; kept in memory only.

    The first 64 bits of an IPv6 address count as one address, since whoever has them has them all.
    Probes of the collector's health are not counted.
    """

    MOST = 100_000  # addresses that are remembered

    def __init__(self, app: ASGIApp, rate: float) -> None:
        self._app, self._rate, self._burst = app, rate, max(1.0, 2 * rate)
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, when

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_free = scope["type"] != "http" or scope["path"] in PROBES
        if is_free or self._allowed(household(str((scope.get("client") or ("",))[0]))):
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
