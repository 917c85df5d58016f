"""Tokens and signing keys: what every store keeps of them."""

from __future__ import annotations

from hashlib import sha256

import pytest

from sottovoce.ground.errors import InvalidInput
from sottovoce.store import Token, open_store


def test_tokens_and_the_signing_key_are_kept(url: str) -> None:
    digest = sha256(b"secret").digest()
    with open_store(url) as store:
        store.add_token("ann", digest)
        store.add_token("bob", digest, "read", 5.0)  # it is ann's
        key = store.signing_key()
        assert len(key) == 32
        for wrong in (b"short", "text"):
            with pytest.raises(InvalidInput, match="digest must be 32 bytes"):
                store.add_token("ann", wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=r"scope \(write\) must be one of read, manage"):
            store.add_token("ann", digest, "write")
    with open_store(url) as store:
        assert store.token(digest) == Token("ann", "manage", None)
        assert store.token(sha256(b"guess").digest()) is None
        store.add_token("cleo", sha256(b"other").digest(), "read", 1.75e9)
        assert store.tokens() == [Token("ann", "manage", None), Token("cleo", "read", 1.75e9)]
        assert (store.remove_tokens("cleo"), store.remove_tokens("cleo")) == (1, 0)
        assert store.token(sha256(b"other").digest()) is None
        assert store.tokens() == [Token("ann", "manage", None)]
        assert store.signing_key() == key


def test_a_token_allows_and_ends() -> None:
    reader, manager = Token("ann", "read", 100.0), Token("bob", "manage", None)
    assert [reader.allows(scope) for scope in ("read", "manage")] == [True, False]
    assert [manager.allows(scope) for scope in ("read", "manage")] == [True, True]
    assert [reader.is_expired(now) for now in (99.9, 100.0)] == [False, True]
    assert not manager.is_expired(1e12)


def test_the_signing_key_is_replaced(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for who has the store open already."""
    clock = [1.7e9]
    monkeypatch.setattr("sottovoce.store.keys.time.time", lambda: clock[0])
    with open_store(url) as one, open_store(url) as two:
        first = one.signing_key()
        two.replace_signing_key(100)
        second = one.signing_key()
        assert second != first
        assert one.accepted_keys() == [second, first]
        clock[0] += 60
        two.replace_signing_key(100)
        third = one.signing_key()
        assert one.accepted_keys()[0] == third
        assert set(one.accepted_keys()) == {first, second, third}
        clock[0] += 60
        assert set(one.accepted_keys()) == {second, third}
        two.replace_signing_key(0)
        assert one.accepted_keys() == [one.signing_key()]
        assert one.signing_key() not in (first, second, third)
