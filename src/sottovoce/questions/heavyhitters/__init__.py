"""Heavy hitters: the frequent values of an attribute that has more values than anybody can list."""

from __future__ import annotations

from sottovoce.questions.heavyhitters.question import HeavyHitters

__all__ = ["HeavyHitters"]
