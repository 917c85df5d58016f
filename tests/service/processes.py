"""`sottovoce serve` and `sottovoce studio` as processes, as whoever runs them has them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = [sys.executable, "-m", "sottovoce.cli"]


@dataclass(frozen=True)
class Running:
    """A collector that listens."""

    process: subprocess.Popen[str]
    first: str  # the line it printed

    @property
    def url(self) -> str:
        return self.first.removeprefix("Listening at ").removesuffix("/studio")

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def next_line(self) -> str:
        """What it prints next; empty when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def environment(**settings: str) -> dict[str, str]:
    """This process's, with no settings of ours but these."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("SOTTOVOCE_")}
    return plain | settings


@contextmanager
def running(
    arguments: Sequence[str],
    settings: Mapping[str, str] | None = None,
    command: Sequence[str] = COMMAND,
    log: Path = Path(os.devnull),
) -> Iterator[Running]:
    """A collector that listens, until the block ends; then it is told to stop,
    and must end well. ``log``: where its log goes.
    """
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(**(settings or {})),
            cwd=Path(__file__).parents[2],
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        assert first.startswith("Listening at http"), first or "it did not start"
        yield Running(process, first)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert code == 0
