"""Bearer tokens of analysts: made once, shown once, kept as a hash; a scope, perhaps an end."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable

from starlette.requests import Request

from sottovoce.ground.errors import InvalidInput
from sottovoce.service.problems import Problem
from sottovoce.store import Store, Token

TOKEN_PREFIX = "svt_"
MAX_TOKEN_DAYS = 3650.0  # days
_READING = ("GET", "HEAD", "OPTIONS")


def digest(token: str) -> bytes:
    """What a store keeps. A token has 256 random bits, so a plain hash cannot be turned round."""
    return hashlib.sha256(token.encode()).digest()


def new_token(store: Store, name: str, scope: str = "manage", days: float | None = None) -> str:
    """A token for somebody, good for so many days or for ever; nobody can read it again."""
    if days is not None and not 0 < days <= MAX_TOKEN_DAYS:
        raise InvalidInput(f"days ({days:g}) must be greater than 0 and at most {MAX_TOKEN_DAYS:g}")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    store.add_token(
        name, digest(token), scope, None if days is None else time.time() + days * 86_400
    )
    return token


def scope_of(method: str) -> str:
    """What a token must allow for a request: ``read`` to ask, ``manage`` to change something."""
    return "read" if method in _READING else "manage"


def find_token(store: Store, text: str) -> Token:
    """A token that is good now, or a problem that says why not."""
    if not text:
        raise _unauthorized("give a token that `sottovoce token` made")
    found = store.token(digest(text))
    if found is None:
        raise _unauthorized("this token is not known here")
    if found.is_expired(time.time()):
        raise _unauthorized("this token has expired; make another one with `sottovoce token`")
    return found


def _unauthorized(detail: str) -> Problem:
    return Problem("unauthorized", detail, {"WWW-Authenticate": "Bearer"})


def require(token: Token, scope: str) -> None:
    """Refuse a token that does not allow this."""
    if not token.allows(scope):
        detail = f"this token allows to {token.scope}; this needs one with the scope {scope}"
        header = f'Bearer error="insufficient_scope", scope="{scope}"'
        raise Problem("forbidden", detail, {"WWW-Authenticate": header})


def needs_token(store: Store, scope: str | None = None) -> Callable[[Request], Token]:
    """A dependency for routes: the request's token if it allows ``scope``, or the method's."""

    def check(request: Request) -> Token:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        token = find_token(store, text.strip() if scheme.lower() == "bearer" else "")
        require(token, scope or scope_of(request.method))
        return token

    return check
