"""Places: a folder, and an object store on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sottovoce.shipping.places import Place
from tests.shipping.object_store import serving
from tests.store.conftest import cluster, store, url

__all__ = ["address", "cluster", "place", "store", "url"]


@pytest.fixture(params=["folder", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "collected")
        return
    with serving() as server:
        yield server.url


@pytest.fixture
def place(address: str) -> Place:
    return Place.at(address)
