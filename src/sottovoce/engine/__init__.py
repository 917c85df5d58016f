"""Who does the work that adds up: this machine's threads, or Spark."""

from __future__ import annotations

from sottovoce.engine.base import TaskEngine
from sottovoce.engine.local import LocalEngine
from sottovoce.engine.opening import open_engine

__all__ = ["LocalEngine", "TaskEngine", "open_engine"]
