"""Shufflers and a collector as processes on loopback, which may be killed at any moment."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sottovoce.device.sealing import PrivateKey
from sottovoce.protocol.plan import Plan
from tests.service.processes import COMMAND, environment

PATIENCE = 60.0  # seconds for a batch to come through


@dataclass
class HopProcess:
    """One hop: its command, and its process, which keeps its port when it is started again."""

    arguments: list[str]
    log: Path
    port: int
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> None:
        """Start it, without waiting until it listens."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*COMMAND, *self.arguments, "--port", str(self.port)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(),
                cwd=Path(__file__).parents[2],
            )

    def listen(self) -> None:
        """Wait until it listens."""
        assert self.process is not None
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first.startswith(f"Listening at {self.url}"), self.log.read_text()

    def start(self) -> None:
        self.begin()
        self.listen()

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.send_signal(number)
        code = self.process.wait()
        self.process.stdout.close()
        self.process = None
        return code

    def kill(self) -> None:
        """As a machine that loses its power."""
        self.end(signal.SIGKILL)


@dataclass
class System:
    """A plan's shufflers in turn, and the collector last."""

    plan: Plan
    folder: Path
    hops: list[HopProcess] = field(default_factory=list)

    @property
    def collector(self) -> HopProcess:
        return self.hops[-1]

    def store(self, hop: int) -> str:
        """The address of a hop's store; of the collector's batches."""
        name = "survey-batches.db" if hop == len(self.hops) - 1 else f"hop{hop}.db"
        return f"sqlite:///{self.folder / name}"

    @property
    def survey(self) -> str:
        return f"sqlite:///{self.folder / 'survey.db'}"

    def state(self) -> dict[str, Any]:
        """What the collector tells everybody of the batch."""
        url = f"{self.collector.url}/v1/batches/{self.plan.id}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def wait(self, *states: str) -> str:
        """Until the collector's batch is in one of some states."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                state = str(self.state()["state"])
            except OSError:
                state = "down"
            if state in states:
                return state
            time.sleep(0.05)
        raise AssertionError("the batch did not come through")

    def logs(self) -> str:
        return "".join(hop.log.read_text() for hop in self.hops)


def written(folder: Path, plan: Plan, keys: Sequence[PrivateKey]) -> tuple[Path, list[Path]]:
    """The plan and its keys as files."""
    plan_file = folder / "plan.json"
    plan_file.write_text(plan.to_json())
    files = []
    for hop, key in enumerate(keys):
        file = folder / f"hop{hop}.key"
        file.write_text(f"sottovoce private key 1 {key.raw.hex()}\n")
        file.chmod(0o600)
        files.append(file)
    return plan_file, files


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@contextmanager
def system(plan: Plan, keys: Sequence[PrivateKey], folder: Path) -> Iterator[System]:
    """All hops, which listen; ended with the block."""
    plan_file, files = written(folder, plan, keys)
    made = System(plan, folder)
    last = len(keys) - 1
    ports = free_ports(len(keys))
    made.hops = [HopProcess([], folder / f"hop{hop}.log", port) for hop, port in enumerate(ports)]
    made.collector.arguments = [
        "serve", str(plan_file), "--store", made.survey, "--key", str(files[last]),
    ]  # fmt: skip
    for hop in range(last):
        first = ["--close-after", "0"] if not hop else []
        made.hops[hop].arguments = [
            "shuffler", str(plan_file), "--key", str(files[hop]),
            "--next", made.hops[hop + 1].url, "--store", made.store(hop),
            "--collector", made.collector.url, *first,
        ]  # fmt: skip
    try:
        for process in made.hops:
            process.begin()
        for process in made.hops:
            process.listen()
        yield made
    finally:
        codes = [hop.end(signal.SIGTERM) for hop in made.hops if hop.process is not None]
    assert not any(codes), codes
