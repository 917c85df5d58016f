"""The collector over HTTP: a server in one process, a crowd in another, every report durable before
its thanks.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import sottovoce as sv
from bench.rows import Row
from bench.timing import Timing
from sottovoce.device.assignment import new_id
from sottovoce.device.messages import BINARY, write_binary, write_json

# reports a second, one by one and in thousands; seconds of a POST
SINGLES, BATCHED, SLOWEST = (
    4000.0,
    60_000.0,
    0.050,
)
BATCH = 1000
FLAT = 64.0  # MiB that a collector may grow by while it takes many reports


@dataclass(frozen=True)
class Load:
    """How much is sent; the targets hold for the defaults."""

    singles: int = 40_000
    batched: int = 10_000_000
    connections: int = 64
    window: int = 300_000  # reports of the first and of the last stretch that are compared
    steady_seconds: float = 10.0
    repeats: int = 3


def plan_and_reports(count: int) -> tuple[sv.Plan, list[sv.Report]]:
    """A survey of ten attributes, and what some of its people say."""
    draws = np.random.default_rng(1)
    columns = {f"a{place}": draws.random(count) < 0.3 for place in range(10)}
    schema = sv.Schema(**{name: sv.Boolean() for name in columns})
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="latent"), epsilon=1.0, people=1_000_000)
    return plan, list(sv.simulate(plan, columns, seed=1).single(plan))


@dataclass
class Server:
    """A collector's process."""

    port: int
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def mib(self) -> float:
        """What it holds now."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def waiting_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Until a collector is ready."""
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1).close()
            return
        except OSError:
            if process.poll() is not None:
                raise RuntimeError("the collector did not start") from None
            time.sleep(0.05)


@contextmanager
def serving(plan: sv.Plan, folder: Path) -> Iterator[Server]:
    """`sottovoce serve` on a SQLite store, ready."""
    (folder / "plan.json").write_bytes(plan.to_json().encode())
    port = free_port()
    command = [sys.executable, "-m", "sottovoce.cli", "serve", str(folder / "plan.json")]
    command += ["--store", f"sqlite:///{folder}/survey.db", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        waiting_for(process, port)
        yield Server(port, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


class _Connection(asyncio.Protocol):
    """Sends the next request when the last one is answered; notes how long each took."""

    def __init__(
        self, requests: Iterator[bytes], seconds: list[float], failed: list[bytes]
    ) -> None:
        self._requests, self._seconds, self._failed = requests, seconds, failed
        self._start, self._heard = 0.0, b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self.done.set_result(None)
            return
        self._start = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found or len(body) < int(
            head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        ):
            return
        self._seconds.append(time.perf_counter() - self._start)
        if not head.startswith(b"HTTP/1.1 200"):
            self._failed.append(self._heard[:400])
        self._heard = b""
        self._next()


def post(body: bytes, kind: str) -> bytes:
    """A whole request."""
    head = (
        "POST /v1/reports HTTP/1.1\r\nHost: x\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def load(port: int, requests: Iterator[bytes], connections: int) -> tuple[float, list[float]]:
    """(seconds in all, seconds of each request), as fast as so many connections go."""
    seconds: list[float] = []
    failed: list[bytes] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(
                lambda: _Connection(requests, seconds, failed), "127.0.0.1", port
            )
            for _ in range(connections)
        ]
        await asyncio.gather(*(protocol.done for _, protocol in made))

    start = time.perf_counter()
    _uvloop(run)
    took = time.perf_counter() - start
    if failed:
        raise RuntimeError(f"{len(failed)} requests were refused, the first: {failed[0]!r}")
    return took, seconds


def steady(port: int, requests: Iterator[bytes], rate: float, seconds: float) -> list[float]:
    """Seconds of each request at a steady rate, from when it should have been sent."""
    took: list[float] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        idle: asyncio.Queue[Any] = asyncio.Queue()
        for _ in range(64):
            idle.put_nowait(await asyncio.open_connection("127.0.0.1", port))

        async def one(due: float, request: bytes) -> None:
            reader, writer = await idle.get()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(
                int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            )
            took.append(loop.time() - due)
            idle.put_nowait((reader, writer))

        start = loop.time()
        tasks = []
        for number in range(int(rate * seconds)):
            due = start + number / rate
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            tasks.append(asyncio.create_task(one(due, next(requests))))
        await asyncio.gather(*tasks)

    gc.disable()  # a pause here would be taken for one of the collector
    try:
        _uvloop(run)
    finally:
        gc.enable()
    return took


def _uvloop(run: Callable[[], Any]) -> None:
    import uvloop

    uvloop.run(run())


def singles(reports: list[sv.Report], count: int | None = None) -> Iterator[bytes]:
    """Requests of one report each, as JSON."""
    number = 0
    while count is None or number < count:
        yield post(
            json.dumps(write_json(new_id(), reports[number % len(reports)])).encode(),
            "application/json",
        )
        number += 1


def batches(reports: list[sv.Report], count: int) -> Iterator[bytes]:
    """Requests of a thousand reports each, in the compact form; only the ids are new."""
    template = bytearray(
        write_binary([bytes(16)] * BATCH, [reports[n % len(reports)] for n in range(BATCH)])
    )
    width = len(template) // BATCH
    rows = np.frombuffer(template, np.uint8).reshape(BATCH, width)
    for _ in range(count // BATCH):
        stamp = np.frombuffer(new_id()[:6], np.uint8)
        rows[:, :6] = stamp
        rows[:, 6:16] = np.frombuffer(os.urandom(10 * BATCH), np.uint8).reshape(BATCH, 10)
        yield post(rows.tobytes(), BINARY)


def collector(_: Any, __: Mapping[str, Any], size: Load = Load()) -> Iterator[Row]:
    """Every target of the collector."""
    group = "collector"
    plan, reports = plan_and_reports(BATCH)
    kinds = {len(report.to_bytes()) for report in reports}
    reports = [report for report in reports if len(report.to_bytes()) == min(kinds)]
    with (
        tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as folder,
        serving(plan, Path(folder)) as server,
    ):
        load(server.port, singles(reports, size.singles // 10), size.connections)
        rates = [
            size.singles / load(server.port, singles(reports, size.singles), size.connections)[0]
            for _ in range(size.repeats)
        ]
        what = f"single POSTs, {size.connections} connections"
        yield Row(
            group, what, "per s", Timing(max(rates), median(rates), size.repeats), least=SINGLES
        )
        waits = [
            np.array(steady(server.port, singles(reports), SINGLES / 2, size.steady_seconds))
            for _ in range(size.repeats)
        ]
        tails = Timing.of([float(np.quantile(each, 0.99)) for each in waits])
        note = (
            f"median {min(float(np.median(each)) for each in waits) * 1e3:.1f} ms, from when each "
            "was due"
        )
        yield Row(
            group, f"p99 at {SINGLES / 2:,.0f} a second", "s", tails, limit=SLOWEST, note=note
        )

        before = server.mib
        first = _stretches(server.port, reports, size)
        rest = size.batched - 2 * size.repeats * size.window
        middle = rest / load(server.port, batches(reports, rest), 4)[0]
        last = _stretches(server.port, reports, size)
        what = f"batches of {BATCH:,}"
        yield Row(group, f"{what}: at the start", "per s", first, least=BATCHED)
        yield Row(
            group,
            f"{what}: the {rest:,} reports between",
            "per s",
            Timing(middle, middle, 1),
            least=BATCHED,
        )
        note = (
            f"best of {size.repeats} stretches of {size.window:,}: {last.best:,.0f} a second over "
            f"{first.best:,.0f}"
        )
        yield Row(
            group,
            f"{what}: speed after {size.batched:,}",
            "times",
            last.over(first),
            least=0.9,
            note=note,
        )
        grown = max(0.0, server.mib - before)
        note = "ids of the current minute are kept, within a bound"
        what = f"memory grown over {size.batched:,} reports"
        yield Row(group, what, "MiB", Timing(grown, grown, 1), limit=FLAT, note=note)


def _stretches(port: int, reports: list[sv.Report], size: Load) -> Timing:
    """Reports a second, in batches, several times over."""
    rates = [
        size.window / load(port, batches(reports, size.window), 4)[0] for _ in range(size.repeats)
    ]
    return Timing(max(rates), median(rates), size.repeats)
