"""``python -m tests.service.crashes --kills 200``: kill a collector at random moments under load,
then count.

Every report that was acknowledged must be in the store exactly once, and none twice, whatever was
under way.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import sottovoce as sv
from bench.collector import free_port, waiting_for
from sottovoce.store import open_store
from tests.waiting import until

PLAN = sv.plan(
    sv.Schema(x=sv.Categorical(["a", "b", "c"])), sv.Frequencies("x"), epsilon=1.0, people=100_000
)
COMMAND = [sys.executable, "-m", "sottovoce.cli"]


@dataclass(frozen=True)
class Tally:
    """What was acknowledged and what is stored."""

    kills: int
    acknowledged: int
    stored: int
    lost: int  # acknowledged and not there
    twice: int  # there more than once
    counted: int  # by the aggregate


def start(folder: Path, url: str, port: int) -> subprocess.Popen[bytes]:
    """A collector that is ready."""
    arguments = ["serve", str(folder / "plan.json"), "--store", url, "--port", str(port)]
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    waiting_for(process, port)
    return process


def crash(folder: Path, kills: int, seed: int, batch: int = 1, url: str | None = None) -> Tally:
    """Kill it so often while a crowd sends; then let nobody wait and count."""
    url = url or f"sqlite:///{folder}/survey.db"
    (folder / "plan.json").write_bytes(PLAN.to_json().encode())
    rows = 3_000 * (kills + 2) * (1 if batch == 1 else 10)  # more than it can send meanwhile
    (folder / "people.csv").write_text("x\n" + "a\nb\nc\n" * (rows // 3))
    log, port, draws = folder / "acknowledged.txt", free_port(), random.Random(seed)
    target = [
        "--to",
        f"http://127.0.0.1:{port}",
        "--batch",
        str(batch),
        "--connections",
        "8",
        "--log",
        str(log),
    ]
    collector = start(folder, url, port)
    sender = subprocess.Popen(
        [*COMMAND, "send", str(folder / "plan.json"), str(folder / "people.csv"), *target],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for_growth(log, sender)
        for _ in range(kills):
            time.sleep(draws.uniform(0.02, 0.6))
            collector.kill()
            collector.wait()
            collector = start(folder, url, port)
            _wait_for_growth(log, sender)
    finally:
        sender.send_signal(signal.SIGKILL)
        sender.wait()
        collector.send_signal(signal.SIGTERM)
        collector.wait()
    return _counted(url, log, kills)


def _wait_for_growth(log: Path, sender: subprocess.Popen[bytes]) -> None:
    """Until the sender has been thanked again."""

    def size() -> int:
        return log.stat().st_size if log.exists() else 0

    before = size()
    until(lambda: size() > before, lambda: sender.poll() is None)


def _counted(url: str, log: Path, kills: int) -> Tally:
    acknowledged = [line for line in log.read_text().split("\n")[:-1] if len(line) == 32]
    store = open_store(url, create=False)
    try:
        stored = Counter(row.tobytes().hex() for _, ids, _ in store.read(PLAN) for row in ids)
        counted = store.rebuild(PLAN).people
    finally:
        store.close()
    return Tally(
        kills=kills,
        acknowledged=len(acknowledged),
        stored=sum(stored.values()),
        lost=sum(id not in stored for id in acknowledged),
        twice=sum(count > 1 for count in stored.values()),
        counted=counted,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seed", type=int, default=os.getpid())
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally = crash(Path(folder), asked.kills, asked.seed, asked.batch)
    print(tally)
    return int(tally.lost > 0 or tally.twice > 0 or tally.counted != tally.stored)


if __name__ == "__main__":
    raise SystemExit(main())
