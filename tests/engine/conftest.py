"""For all engines: many jobs of few reports, where users have few jobs of many."""

from __future__ import annotations

import pytest

from sottovoce.engine import jobs


@pytest.fixture(autouse=True)
def _small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MIN_JOB_REPORTS", 1)
