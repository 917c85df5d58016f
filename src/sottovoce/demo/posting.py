"""The demo's collector: a real one in a process of its own, and people who post to it over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from sottovoce.ground.errors import SottovoceError

if TYPE_CHECKING:
    from sottovoce.console.progress import Advance
    from sottovoce.protocol.plan import Plan

CONNECTIONS = 32
STORE = "survey.db"


@dataclass(frozen=True)
class Posted:
    """How the posting went."""

    people: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.people / self.seconds


@contextmanager
def collector(folder: Path) -> Iterator[tuple[str, str]]:
    """`sottovoce studio` on a new store in the folder, with the folder's plan.

    Gives the collector's address, and the link that logs in to the studio once.
    """
    for old in (
        *folder.glob(f"{STORE}*"),
        *folder.glob("*.journal"),
    ):  # a new store has heard nobody
        old.unlink()
    command = [
        sys.executable,
        "-m",
        "sottovoce.cli",
        "studio",
        str(folder / "plan.json"),
        "--port",
        "0",
    ]
    command += ["--store", f"sqlite:///{folder / STORE}"]
    with (folder / "collector.log").open("w", encoding="utf-8") as log:
        own = {
            name: value for name, value in os.environ.items() if not name.startswith("SOTTOVOCE_")
        }
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=own)
        try:
            assert process.stdout is not None
            page, link = (
                "http://" + process.stdout.readline().strip().partition("http://")[2]
                for _ in range(2)
            )
            if "/login?code=" not in link:
                raise SottovoceError(f"the collector did not start; see {folder / 'collector.log'}")
            yield page.removesuffix("/studio"), link
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]


def post(plan: Plan, people: Path, url: str, advance: Advance) -> Posted:
    """Everybody of a file posts one report, each a request of its own."""
    from sottovoce.sending.sending import send_people

    start = perf_counter()
    sent = send_people(plan, people, url, 1, CONNECTIONS, None, advance)
    return Posted(sent.now, perf_counter() - start)


def wait_for_interrupt() -> None:
    """Until somebody has seen enough."""
    with suppress(KeyboardInterrupt):
        signal.pause()
