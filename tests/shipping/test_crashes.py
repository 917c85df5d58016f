"""Kills: nothing that was acknowledged is lost, and nothing counts twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shipping.crashes import crash_shipping


def test_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, address: str) -> None:
    _check(tmp_path, address, kills=3)


@pytest.mark.slow
def test_fifty_kills(tmp_path: Path, address: str) -> None:
    _check(tmp_path, address, kills=50)


def _check(folder: Path, address: str, kills: int) -> None:
    tally = crash_shipping(folder, address, kills, seed=1)
    assert tally.acknowledged > 0
    assert tally.lost == 0
    assert tally.counted == tally.stored >= tally.acknowledged
    assert tally.duplicates > 0
    assert tally.is_equal
