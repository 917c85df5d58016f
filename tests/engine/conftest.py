"""For all engines: many jobs of few reports, where users have few jobs of many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sottovoce.engine import jobs
from tests.engine.cluster import ROOT

# Java that lives for seconds: it compiles once, and needs no threads beside its own.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="package", autouse=True)
def _workers_import_tests() -> Iterator[None]:
    """Before anything starts a Java process: the first one serves all tests of this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("JAVA_TOOL_OPTIONS", QUICK_JAVA)
        yield


@pytest.fixture(autouse=True)
def _small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MIN_JOB_REPORTS", 1)
