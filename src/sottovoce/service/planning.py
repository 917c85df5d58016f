"""Plans, made in their own processes: what takes too long is ended; estimates never wait."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from sottovoce.service.concurrency import Turns
from sottovoce.service.timed import TimedWorkers

# plans that are made at once, each in a process; the second is started only if it is needed
AT_ONCE = 2
MAX_WAITING_PLANS = 8  # plans under way or waiting for their turn
LONGEST_PLANNING = 50.0  # seconds, less than the 60 for which a proxy waits


class Planning(TimedWorkers):
    """Makes plans, each for so long and no longer."""

    def __init__(self, seconds: float = LONGEST_PLANNING) -> None:
        super().__init__(
            AT_ONCE, seconds, "planning takes too long; ask about fewer attributes", "planning"
        )
        self._turns = Turns(MAX_WAITING_PLANS)

    def submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have a plan made; a problem at once if too many wait."""
        start = super().submit
        return self._turns.taken(lambda: start(work, *args))
