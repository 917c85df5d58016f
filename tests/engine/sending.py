"""An engine of threads to which all is sent in bytes, as to workers elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

from sottovoce.aggregation.pieces import Piece
from sottovoce.engine import LocalEngine
from sottovoce.engine.base import Task


class Sending(LocalEngine):
    """What stands in for Spark where Spark itself is not what is tested."""

    def run(self, task: Task, jobs: Sequence[Any], merge: bool) -> Iterator[Piece]:
        sent = pickle.loads(pickle.dumps((task, list(jobs))))
        return super().run(*sent, merge)
