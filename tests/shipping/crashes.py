"""``python -m tests.shipping.crashes --kills 50 --place s3``: kill collectors, shippers and whoever
folds at random moments, then count.

Every report that was acknowledged counts once, also if two collectors have it, and nothing else
counts.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sottovoce as sv
from bench.collector import free_port, waiting_for
from sottovoce.device.assignment import new_id
from sottovoce.device.sender import NotSent, Sender
from sottovoce.shipping.minutes import fold_minutes
from sottovoce.shipping.places import Place
from sottovoce.shipping.ship import ship
from sottovoce.shipping.totals import collected
from sottovoce.store import open_store
from tests.service.crashes import COMMAND, PLAN
from tests.shipping.object_store import serving
from tests.waiting import until

COLLECTORS = 2
BATCH = 20  # reports of one request
TWICE = 0.3  # how often both collectors get the same request


@dataclass(frozen=True)
class ShippedTally:
    """What was acknowledged, and what counts."""

    kills: int
    acknowledged: int
    stored: int  # different ids in all stores
    counted: int  # people of the total
    duplicates: int
    lost: int  # acknowledged, and in no store
    is_equal: bool  # the total is that of each stored report once


class _Sender(threading.Thread):
    """Sends reports, some of them to both collectors; keeps the ids that were acknowledged."""

    def __init__(self, ports: Sequence[int], seed: int) -> None:
        super().__init__()
        self.acknowledged: list[bytes] = []
        self.stopped = threading.Event()
        self._ports, self._draws = ports, random.Random(seed)
        self._client = sv.Client(PLAN)

    def run(self) -> None:
        senders = [Sender(f"http://127.0.0.1:{port}", stop=self.stopped) for port in self._ports]
        try:
            while not self.stopped.is_set():
                ids = [new_id() for _ in range(BATCH)]
                reports = list(sv.simulate(PLAN, {"x": self._words()}, seed=1).single(PLAN))
                first = self._draws.randrange(len(senders))
                chosen = [first]
                if self._draws.random() < TWICE:
                    chosen.append(1 - first)
                for place in chosen:
                    senders[place].send(ids, reports)
                self.acknowledged += ids
        except NotSent:
            pass
        finally:
            for sender in senders:
                sender.close()

    def _words(self) -> list[str]:
        return self._draws.choices("abc", k=BATCH)


class _Fleet:
    """Collectors with a shipper each, and one that folds, as processes."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self.urls = [f"sqlite:///{folder}/{number}.db" for number in range(COLLECTORS)]
        self.ports = [free_port() for _ in self.urls]
        self._log = (folder / "errors.txt").open("ab")
        (folder / "plan.json").write_bytes(PLAN.to_json().encode())
        self._commands: list[tuple[list[str], int | None]] = []
        plan = str(folder / "plan.json")
        for url, port in zip(self.urls, self.ports, strict=True):
            self._commands.append((["serve", plan, "--store", url, "--port", str(port)], port))
        for url in self.urls:
            self._commands.append((["ship", url, "--to", address, "--every", "1"], None))
        folding = ["fold-minutes", plan, address, "--open", "--every", "1"]
        self._commands.append((folding, None))
        self._processes = [self._started(place) for place in range(len(self._commands))]

    def _started(self, place: int) -> subprocess.Popen[bytes]:
        arguments, port = self._commands[place]
        process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=self._log
        )
        if port is not None:
            waiting_for(process, port)
        return process

    def kill_one(self, draws: random.Random) -> None:
        """With signal 9, and start it again."""
        place = draws.randrange(len(self._processes))
        self._processes[place].kill()
        self._processes[place].wait()
        self._processes[place] = self._started(place)

    def are_alive(self) -> bool:
        return all(process.poll() is None for process in self._processes)

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        self._log.close()


def crash_shipping(folder: Path, address: str, kills: int, seed: int) -> ShippedTally:
    """Kill one after the other while a crowd sends; then ship and fold what is left, and count."""
    draws, place = random.Random(seed), Place.at(address)
    fleet = _Fleet(folder, address)
    sender = _Sender(fleet.ports, seed)
    sender.start()
    try:
        for kill in range(kills + 1):
            thanked, files = len(sender.acknowledged), len(place.names())
            until(
                lambda thanked=thanked, files=files: (  # type: ignore[misc]
                    len(sender.acknowledged) > thanked and len(place.names()) > files
                ),
                fleet.are_alive,
            )
            if kill < kills:
                time.sleep(draws.uniform(0, 0.5))
                fleet.kill_one(draws)
    finally:
        sender.stopped.set()
        sender.join()
        fleet.stop()
    return _tally(fleet.urls, place, sender.acknowledged, kills)


def _tally(
    urls: Sequence[str], place: Place, acknowledged: Sequence[bytes], kills: int
) -> ShippedTally:
    kept: dict[bytes, sv.Reports] = {}
    for url in urls:
        with open_store(url, create=False) as store:
            ship(store, place)
            for _, ids, reports in store.read(PLAN):
                for row in range(len(ids)):
                    kept.setdefault(ids[row].tobytes(), reports[row : row + 1])
    fold_minutes(PLAN, place, time.time(), wait=None, forget_days=None)
    found = collected(PLAN, place)
    once = sv.Aggregate(PLAN).add(sv.Reports.concat(kept.values()))
    assert np.array_equal(once.people, len(kept))
    return ShippedTally(
        kills=kills,
        acknowledged=len(acknowledged),
        stored=len(kept),
        counted=found.people,
        duplicates=found.duplicates,
        lost=sum(each not in kept for each in acknowledged),
        is_equal=found.aggregate == once,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--place", choices=("folder", "s3"), default="folder")
    parser.add_argument("--seed", type=int, default=os.getpid())
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving() if asked.place == "s3" else nullcontext() as server,
    ):
        address = f"{folder}/collected" if server is None else server.url
        tally = crash_shipping(Path(folder), address, asked.kills, asked.seed)
    print(tally)
    return int(tally.lost > 0 or tally.counted != tally.stored or not tally.is_equal)


if __name__ == "__main__":
    sys.exit(main())
