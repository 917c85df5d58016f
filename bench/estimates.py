"""What reading a wide estimate costs the collector: how long a health probe waits, and the memory
that is left.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sottovoce as sv
from bench.collector import Server, serving
from bench.rows import Row
from bench.timing import Timing
from sottovoce.device.assignment import new_id
from sottovoce.device.messages import write_json
from sottovoce.service.tokens import new_token
from sottovoce.store import open_store

VALUES = 1 << 21
LONGEST = 1.0  # seconds that the slowest probe may wait
MEMORY = 32.0  # MiB that an estimate may leave in the collector


def estimates(_: Any, __: Mapping[str, Any], values: int = VALUES) -> Iterator[Row]:
    """One report to a plan of many values, the first page of its estimate, and the whole table as
    CSV.
    """
    schema = sv.Schema(x=sv.Categorical(range(values)))
    plan = sv.plan(schema, sv.Frequencies("x", oracle="olh"), epsilon=2.0, people=100_000)
    with (
        tempfile.TemporaryDirectory(prefix="sottovoce-bench-") as name,
        serving(plan, Path(name)) as server,
    ):
        with open_store(f"sqlite:///{name}/survey.db") as opened:
            token = new_token(opened, "bench")
        base, before = f"http://127.0.0.1:{server.port}", server.mib
        report = write_json(new_id(), sv.Client(plan).report({"x": 5}))
        _got(
            f"{base}/v1/reports", {"Content-Type": "application/json"}, json.dumps(report).encode()
        )
        for what, path in (
            ("first page", "estimates"),
            ("CSV", "marginals?attributes=x&format=csv"),
        ):
            longest = Timing.of(
                [_longest_probe(server, f"{base}/v1/surveys/{plan.id}/{path}", token)]
            )
            yield Row(
                "estimates",
                f"longest probe, {what} of {values:,} values",
                "s",
                longest,
                limit=LONGEST,
            )
        left = Timing.of([max(server.mib - before, 0.0)])
        yield Row(
            "estimates", f"left in the collector by {values:,} values", "MiB", left, limit=MEMORY
        )


def _longest_probe(server: Server, path: str, token: str) -> float:
    """Seconds of the slowest health probe while an answer is made and sent."""
    waits = [0.0]
    done = threading.Event()

    def probe() -> None:
        while not done.is_set():
            start = time.perf_counter()
            _got(f"http://127.0.0.1:{server.port}/healthz", {})
            waits.append(time.perf_counter() - start)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        while not _is_answered(path, token):
            pass
    finally:
        done.set()
        thread.join()
    return max(waits)


def _is_answered(path: str, token: str) -> bool:
    """Whether it is there; the collector says so when it is still being made."""
    try:
        _got(path, {"Authorization": f"Bearer {token}"})
    except urllib.error.HTTPError as wrong:
        if wrong.code != 503:
            raise
        time.sleep(float(wrong.headers["Retry-After"]))
        return False
    return True


def _got(url: str, headers: Mapping[str, str], body: bytes | None = None) -> None:
    request = urllib.request.Request(url, body, dict(headers))
    with urllib.request.urlopen(request, timeout=600) as answer:
        while answer.read(1 << 20):
            pass
