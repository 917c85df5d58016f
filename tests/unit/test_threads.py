"""One setting for threads: what a person says, else what affinity and containers leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.threads import VARIABLE, thread_count, usable_cores


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    assert thread_count() == 3
    for wrong in ("0", "-1", "1025", "two", "", "1.5"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(InvalidInput, match=VARIABLE):
            thread_count()
    monkeypatch.delenv(VARIABLE)
    assert thread_count() == usable_cores()


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "250000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "1600000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ],
)
def test_affinity_and_quotas_are_respected(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == cores
