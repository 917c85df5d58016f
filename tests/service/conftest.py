"""One collector for the tests that only talk to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.collector import Collector, collecting


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(f"sqlite:///{tmp_path_factory.mktemp('store')}/survey.db") as running:
        yield running
