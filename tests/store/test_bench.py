"""The bench of the store runs, whatever the machine's speed."""

from __future__ import annotations

import pytest

from bench import store


def test_every_row_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "WINDOW", 2)
    monkeypatch.setattr(store, "WINDOWS", 2)
    rows = list(store.store(None, {}, rows=16_000))
    assert len(rows) == 7
    assert all(row.measured.best > 0 for row in rows)
    assert "24,064 rows" in rows[4].what


def test_ids_tell_the_minute_and_no_more() -> None:
    import numpy as np

    ids = store.new_ids(100, np.random.default_rng(1))
    assert len({row[:6].tobytes() for row in ids}) == 1
    assert not ids[:, 4:6].any()
    assert len({row.tobytes() for row in ids}) == 100
