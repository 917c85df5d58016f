"""Running a collector: a web server that drains before it stops."""

from __future__ import annotations

import gc
import logging
import signal
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from sottovoce.service.certificates import Certificate
from sottovoce.service.connections import Connection
from sottovoce.service.logs import log_to_stderr

MAX_CONNECTIONS = 8192  # connections; beyond, they are told to come again
DRAIN = 20  # seconds that requests under way get when the server is told to stop


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, listening: Callable[[int], None] | None) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        # what is there now stays: looking through it again and again would hold everybody up
        gc.freeze()
        if self.started and self._listening is not None:
            self._listening(self.servers[0].sockets[0].getsockname()[1])


def run(
    app: Any,
    host: str,
    port: int,
    listening: Callable[[int], None] | None = None,
    to_the_minute: bool = False,
    certificate: Certificate | None = None,
    is_quiet: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM; then finish what has begun. ``listening`` is told the port.

    With ``to_the_minute`` the log says of a time no more; if ``is_quiet``, it holds what went wrong
    alone. With a ``certificate`` the server speaks HTTPS, and nothing else.
    """
    log_to_stderr(logging.WARNING if is_quiet else logging.INFO, to_the_minute)
    for number in (
        signal.SIGTERM,
        signal.SIGINT,
    ):  # the server repeats the signal when it has stopped, and that is well
        signal.signal(number, lambda *_: None)
    _Server(make_config(app, host, port, certificate), listening).run()


def make_config(
    app: Any, host: str, port: int, certificate: Certificate | None = None
) -> uvicorn.Config:
    """A web server that says nothing of its requests."""
    logging.getLogger("uvicorn.access").disabled = True
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",  # nothing here speaks it, and its log lines name addresses
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=DRAIN,
        ssl_certfile=None if certificate is None else certificate.certificate,
        ssl_keyfile=None if certificate is None else certificate.key,
        proxy_headers=False,  # the application itself knows which proxies to believe
    )
