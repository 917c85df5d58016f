"""Releases by a small method that is known in every detail."""

from __future__ import annotations

import pytest

from sottovoce.central import comparison, release
from tests.central.methods import NoisyValues


@pytest.fixture
def only_noisy_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but :class:`NoisyValues` releases."""
    for module in (release, comparison):
        monkeypatch.setattr(module, "METHODS", (NoisyValues(),))
