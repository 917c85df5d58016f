"""A limit of time for a command, on systems whose clock can send a signal."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from sottovoce.ground.errors import InvalidInput

OUT_OF_TIME = 124  # as timeout(1) has it


class _TimeIsUp(BaseException):
    """No Exception, so that nothing on the way takes it for an error of its own."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """End what runs inside after so many seconds, with one line and exit code 124; None: never."""
    if seconds is None:
        yield
        return
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidInput(f"timeout ({seconds}) must be finite and greater than 0 seconds")
    if not hasattr(signal, "setitimer"):
        raise InvalidInput("timeout: this system has no clock that sends signals; use Ctrl-C")

    def end(_: int, __: FrameType | None) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    except _TimeIsUp:
        typer.echo(f"error: no answer after {seconds:g} seconds (--timeout)", err=True)
        raise typer.Exit(OUT_OF_TIME) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
