"""An app behind a real server, on loopback and a port of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from sottovoce.service.server import make_config
from tests.waiting import until


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """The port at which the app answers; it is drained at the end."""
    server = uvicorn.Server(make_config(app, "127.0.0.1", 0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started, thread.is_alive)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
