"""At most so much at once: whoever comes beyond that is told to come again, and holds up nobody."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any

from sottovoce.service.problems import Problem


class Turn:
    """Leave to do something, until it is given back; to give it back twice does nothing."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back: Callable[[], None] | None = give_back
        self._lock = Lock()

    def end(self) -> None:
        """Give it back."""
        with self._lock:
            give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


class Turns:
    """So many turns; each is one's own until the work is done, even if nobody waits any longer."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = Lock()

    def take(self) -> Turn:
        """A turn, which whoever takes it ends; a problem if none is left."""
        with self._lock:
            if not self._left:
                raise Problem(
                    "busy", "too many ask for it at once; ask again", {"Retry-After": "10"}
                )
            self._left -= 1
        return Turn(self._give_back)

    def taken(self, start: Callable[[], Future[Any]]) -> Future[Any]:
        """Start work that has a turn until it ends."""
        turn = self.take()
        try:
            future = start()
        except BaseException:
            turn.end()
            raise
        future.add_done_callback(lambda _: turn.end())
        return future

    def _give_back(self) -> None:
        with self._lock:
            self._left += 1


class HouseholdTurns:
    """So many requests of one household at once, or so many reports if the requests are small.

    Small ones are let in beyond the number of requests, because many people may share an address.
    Of the event loop alone; a household that asks for nothing is not remembered.
    """

    def __init__(self, most_requests: int, most_reports: int) -> None:
        self._most_requests, self._most_reports = most_requests, most_reports
        self._used: dict[str, tuple[int, int]] = {}  # requests, reports

    def __len__(self) -> int:
        return len(self._used)

    def take(self, household: str, reports: int) -> Turn:
        """A turn for a request of so many reports; a problem if the household has too many."""
        has_requests, has_reports = self._used.get(household, (0, 0))
        if has_requests >= self._most_requests and has_reports + reports > self._most_reports:
            detail = "reports from this address are being checked; send these again"
            raise Problem("busy", detail, {"Retry-After": "1"})
        self._used[household] = (has_requests + 1, has_reports + reports)
        return Turn(lambda: self._give_back(household, reports))

    def _give_back(self, household: str, reports: int) -> None:
        has_requests, has_reports = self._used.pop(household)
        if has_requests > 1:
            self._used[household] = (has_requests - 1, has_reports - reports)
