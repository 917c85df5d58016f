"""Keys of a size that protects nothing, for tests."""

from __future__ import annotations

import pytest

from sottovoce.ground.entropy import Seeded
from sottovoce.shuffle.peos.dgk import TEST_MODULUS_BITS, DgkPrivateKey


@pytest.fixture(scope="session")
def keys() -> dict[int, DgkPrivateKey]:
    """A key by the bits of its words."""
    return {
        bits: DgkPrivateKey.generate(Seeded(bits), bits, TEST_MODULUS_BITS) for bits in (32, 64)
    }


@pytest.fixture(scope="session")
def key(keys: dict[int, DgkPrivateKey]) -> DgkPrivateKey:
    return keys[64]
