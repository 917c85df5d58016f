"""Engines by the names that commands know."""

from __future__ import annotations

from sottovoce.engine.base import TaskEngine
from sottovoce.engine.local import LocalEngine
from sottovoce.ground.errors import InvalidInput


def open_engine(name: str = "local", master: str | None = None) -> TaskEngine:
    """An engine to be closed again.

    Args:
        name: ``local`` (this machine's threads), ``spark``, or ``sc://host``, which is a server of
            Spark Connect.
        master: of ``spark``: ``local[2]`` (the default, with as many threads as the machine has
            cores), ``spark://host:7077``, or another that Spark knows.
    """
    if name == "spark":
        from sottovoce.engine.spark import start_spark

        return start_spark(master)
    if master is not None:
        raise InvalidInput("master is for the engine spark, and for no other")
    if name == "local":
        return LocalEngine()
    if name.startswith("sc://"):
        from sottovoce.engine.spark import connect_spark

        return connect_spark(name)
    raise InvalidInput(f"engine ({name}) must be local, spark or sc://host")
