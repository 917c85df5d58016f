"""Bearer tokens of analysts: made once, shown once, kept as a hash."""

from __future__ import annotations

import hashlib
import secrets

from sottovoce.store import Store

PREFIX = "svt_"


def digest(token: str) -> bytes:
    """What a store keeps. A token has 256 random bits, so a plain hash cannot be turned round."""
    return hashlib.sha256(token.encode()).digest()


def new_token(store: Store, name: str) -> str:
    """A token for somebody; nobody can read it again."""
    token = PREFIX + secrets.token_urlsafe(32)
    store.add_token(name, digest(token))
    return token


def holder(store: Store, header: str | None) -> str | None:
    """Whose token an Authorization header carries; None if it is no token of this store."""
    scheme, _, token = (header or "").partition(" ")
    return store.token_name(digest(token.strip())) if scheme.lower() == "bearer" and token else None
