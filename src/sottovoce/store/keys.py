"""Tokens of analysts, and the keys that sign assignments: the same statements for every store."""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sottovoce.device.assignment import KEY_BYTES
from sottovoce.ground.arguments import plain_text
from sottovoce.ground.errors import InvalidInput

TOKEN_DIGEST_BYTES = 32  # of a token's SHA-256
SCOPES = ("read", "manage")  # what a token allows; each allows what stands before it too
# in the settings: the current one, and those that it replaced
SIGNING_KEYS = "(name = 'signing key' OR name LIKE 'former signing key %')"
_CURRENT = "signing key"
# then a name of its own; the value is the last second (8 bytes) and the key
_FORMER = "former signing key "

# takes a statement with ? for each value, and the values; gives a cursor
Execute = Callable[..., Any]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Token:
    """Whose a token is, what it allows, and when it ends (unix time; None if never)."""

    name: str
    scope: str
    expires: float | None

    def is_expired(self, now: float) -> bool:
        """Whether it has ended."""
        return self.expires is not None and now >= self.expires

    def allows(self, scope: str) -> bool:
        """Whether it is enough where ``scope`` is needed."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


class KeyStore(ABC):
    """The part of a store that keeps secrets. Tokens are kept as hashes,
    signing keys as they are.
    """

    _prefix = ""  # of the tables' names

    @abstractmethod
    def _look(self, work: Callable[[Execute], Result]) -> Result:
        """Run queries."""

    @abstractmethod
    def _change(self, work: Callable[[Execute], Result]) -> Result:
        """Run statements in one transaction, durable when it returns; ``work`` may run twice."""

    # -- tokens

    def add_token(
        self, name: str, digest: bytes, scope: str = SCOPES[-1], expires: float | None = None
    ) -> None:
        """Keep the SHA-256 digest of a bearer token under its owner's name."""
        if not isinstance(digest, bytes) or len(digest) != TOKEN_DIGEST_BYTES:
            raise InvalidInput(f"digest must be {TOKEN_DIGEST_BYTES} bytes")
        if scope not in SCOPES:
            raise InvalidInput(f"scope ({scope}) must be one of {', '.join(SCOPES)}")
        row = (digest, plain_text("name", name), scope, expires)
        insert = (
            f"INSERT INTO {self._prefix}tokens (digest, name, scope, expires) VALUES (?, ?, ?, ?)"
        )
        self._change(lambda execute: execute(f"{insert} ON CONFLICT DO NOTHING", row))

    def token(self, digest: bytes) -> Token | None:
        """The token with this digest, expired or not; None if there is none."""
        query = f"SELECT name, scope, expires FROM {self._prefix}tokens WHERE digest = ?"
        found = self._look(lambda execute: execute(query, (digest,)).fetchone())
        return None if found is None else Token(*found)

    def tokens(self) -> list[Token]:
        """All tokens, by their owners' names."""
        query = f"SELECT name, scope, expires FROM {self._prefix}tokens ORDER BY name, expires"
        return [Token(*row) for row in self._look(lambda execute: execute(query).fetchall())]

    def remove_tokens(self, name: str) -> int:
        """Forget all tokens of one owner; how many there were."""
        delete = f"DELETE FROM {self._prefix}tokens WHERE name = ?"
        return int(self._change(lambda execute: execute(delete, (name,)).rowcount))

    # -- signing keys

    def signing_key(self) -> bytes:
        """32 random bytes that sign assignments: made once for this store,
        until they are replaced.
        """
        found = self._look(self._current_key)
        if found is None:
            insert = (
                f"INSERT INTO {self._prefix}settings (name, value) VALUES (?, ?) ON CONFLICT DO "
                "NOTHING"
            )
            new = secrets.token_bytes(KEY_BYTES)
            self._change(lambda execute: execute(insert, (_CURRENT, new)))
            return self.signing_key()
        return found

    def accepted_keys(self) -> list[bytes]:
        """The signing key, and those that it replaced while what they signed is still good."""
        current, now = self.signing_key(), time.time()
        query = f"SELECT value FROM {self._prefix}settings WHERE name LIKE ?"
        rows = self._look(lambda execute: execute(query, (f"{_FORMER}%",)).fetchall())
        former = [bytes(value) for (value,) in rows]
        return [current, *(value[8:] for value in former if _until(value) >= now)]

    def replace_signing_key(self, keep_seconds: int, new: bytes | None = None) -> None:
        """Sign with another key, a ``new`` one by default; the former ones hold for so long, or
        with 0 never again.
        """
        self.signing_key()
        new, now = new or secrets.token_bytes(KEY_BYTES), time.time()
        settings = f"{self._prefix}settings"

        def work(execute: Execute) -> None:
            current = self._current_key(execute)
            if current == new:  # it was done, and only the answer was lost
                return
            rows = execute(
                f"SELECT name, value FROM {settings} WHERE name LIKE ?", (f"{_FORMER}%",)
            ).fetchall()
            for name, value in rows:
                if not keep_seconds or _until(bytes(value)) < now:
                    execute(f"DELETE FROM {settings} WHERE name = ?", (name,))
            if keep_seconds:
                execute(*self._former(current or b"", int(now) + keep_seconds))
            execute(f"UPDATE {settings} SET value = ? WHERE name = ?", (new, _CURRENT))

        self._change(work)

    def accept_signing_key(self, key: bytes, seconds: int) -> None:
        """Take what another store signs with ``key`` for so long, and go on signing as before."""
        row = self._former(key, int(time.time()) + seconds)
        self._change(lambda execute: execute(*row))

    def _former(self, key: bytes, until: int) -> tuple[str, tuple[str, bytes]]:
        """A statement that keeps a key which is accepted until then, and its values."""
        insert = f"INSERT INTO {self._prefix}settings (name, value) VALUES (?, ?)"
        return insert, (_FORMER + secrets.token_hex(8), until.to_bytes(8, "big") + key)

    def _current_key(self, execute: Execute) -> bytes | None:
        found = execute(
            f"SELECT value FROM {self._prefix}settings WHERE name = ?", (_CURRENT,)
        ).fetchone()
        return None if found is None else bytes(found[0])


def _until(value: bytes) -> int:
    """The last second at which a former key is accepted."""
    return int.from_bytes(value[:8], "big")
