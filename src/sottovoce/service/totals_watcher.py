"""Watches a place of totals: every so often the store's surveys say what is there."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

from sottovoce.service.logs import log_mistake
from sottovoce.service.workers import Workers
from sottovoce.shipping.watching import take_totals_at

WATCH_SECONDS = 10.0  # between two looks


class TotalsWatcher:
    """A thread that looks, with a process that reads; both until :meth:`stop`."""

    def __init__(self, url: str, address: str, seconds: float = WATCH_SECONDS) -> None:
        self._args = (url, address)
        self._seconds = seconds
        self._workers = Workers(1)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sottovoce-totals", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._workers.submit(take_totals_at, *self._args).result()
            except CancelledError:  # it was stopped
                return
            except Exception as wrong:  # out of reach, say; the next look may find it
                if not self._stopped.is_set():
                    log_mistake("totals could not be read", wrong)
            self._stopped.wait(self._seconds)

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._workers.stop()
        self._thread.join()
