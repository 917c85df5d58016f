"""Every contract runs on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sottovoce.store import Store, open_store
from tests.postgres import Cluster, started


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with started() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/survey.db"
    found: str = request.getfixturevalue("cluster").fresh_url()
    return found


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def cluster_url(cluster: Cluster) -> str:
    return cluster.fresh_url()
