"""``python -m bench.shufflers``: what sealing costs a device, and what a hop does with a batch.

One process and one core at a time; a figure is CPU time, so that other load on the machine adds
little. Hops open, drop, sort and write what they pass on into a store, as the service does. What
the first one's web server takes besides is measured apart, in a process of its own.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TypeVar

import sottovoce as sv
from sottovoce.device.sealing import PrivateKey, new_nonce, onion_size, seal
from sottovoce.device.sender import Sender
from sottovoce.ground.entropy import Seeded, System
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.shuffling import Shuffling
from sottovoce.protocol.terms import Terms
from sottovoce.shuffle import messages
from sottovoce.shuffle.batch import OpenedLayers, mixed, read_batch
from sottovoce.store.hops import BatchState, HopStore

SHUFFLERS = 3
MOST_SENT, CONNECTIONS = 5000, 16  # onions over HTTP
USER_MILLISECONDS, USER_BYTES, HOP_SECONDS = 0.5, 256, 60.0  # goals; the last a million onions
MILLION = 1_000_000
T = TypeVar("T")


def made_plan(people: int, shufflers: int = SHUFFLERS) -> tuple[Plan, list[PrivateKey]]:
    """A survey of one question, and the keys of its hops."""
    keys = [PrivateKey.generate(System()) for _ in range(shufflers + 1)]
    part = Shuffling(
        Decimal(4),  # that of a report: what is measured does not depend on it
        Fraction(1, 10**9),
        min(people, 1000),
        hops=tuple(key.public for key in keys),
    )
    schema = sv.Schema(value=sv.Categorical(range(1024)))
    question = sv.Frequencies("value", oracle="olh")
    return question.plan(schema, Terms.of(4, people, trust="shuffled"), shuffling=part), keys


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """(what it gives, CPU seconds of this process)."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def hop(plan: Plan, number: int, key: PrivateKey, onions: list[bytes]) -> list[bytes]:
    """All that a shuffler does with a batch but take it and send it."""
    with tempfile.TemporaryDirectory() as folder, HopStore(f"sqlite:///{folder}/hop.db") as store:
        store.begin(plan.id)
        layers = OpenedLayers(plan, number, key)
        layers.open(onions)
        out = mixed(layers.inner())
        parts = [chunk.write() for chunk in messages.chunks(out, onion_size(plan, number + 1))]
        store.keep_outgoing(plan.id, messages.BATCH_KIND, parts, BatchState.MIXED)
        store.finish(plan.id, BatchState.DONE)
    return out


def taking(plan: Plan, key: PrivateKey, onions: list[bytes], together: int) -> float:
    """CPU seconds of a first shuffler that takes onions over HTTP, so many in a request, from when
    its process begins to its end.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.json").write_text(plan.to_json())
        (folder / "hop.key").write_text(f"sottovoce private key 1 {key.raw.hex()}\n")
        (folder / "hop.key").chmod(0o600)
        command = [
            str(Path(sys.executable).parent / "sottovoce"), "shuffler", str(folder / "plan.json"),
            "--key", str(folder / "hop.key"), "--next", "http://127.0.0.1:1",
            "--store", f"sqlite:///{folder}/hop.db", "--close-after", "100000", "--port", "0",
        ]  # fmt: skip
        before = _of_children()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                list(
                    pool.map(
                        lambda first: _send(url, plan, onions[first::CONNECTIONS], together),
                        range(CONNECTIONS),
                    )
                )
            process.send_signal(signal.SIGTERM)
        return _of_children() - before


def _of_children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _send(url: str, plan: Plan, onions: list[bytes], together: int) -> None:
    sender = Sender(url)
    for start in range(0, len(onions), together):
        sender.send_onions(plan.id, onions[start : start + together])
    sender.close()


def measured(people: int, shufflers: int = SHUFFLERS) -> list[str]:
    """The figures, a line each."""
    plan, keys = made_plan(people, shufflers)
    entropy = System()
    client = [sv.Client(plan, entropy=Seeded(row)) for row in range(people)]
    reports = [each.report({"value": row % 1024}) for row, each in enumerate(client)]
    nonces = [new_nonce(entropy) for _ in reports]

    def sealed() -> list[bytes]:
        pairs = zip(reports, nonces, strict=True)
        return [seal(report, plan, entropy, nonce) for report, nonce in pairs]

    onions, seconds = timed(sealed)
    told = [
        _judged("user, CPU ms", seconds / people * 1000, USER_MILLISECONDS),
        _judged("user, bytes", onion_size(plan), USER_BYTES),
    ]
    sent = onions[:MOST_SENT]
    idle = taking(plan, keys[0], onions[:1], 1)
    for together in (1, 100):
        seconds = taking(plan, keys[0], sent, together) - idle
        told.append(
            f"{f'over HTTP, {together} in a request':<32} {_million(seconds, len(sent)):>10.3f}"
            "   CPU s a million, of shuffler 0"
        )
    for number in range(shufflers):
        batch = onions
        onions, seconds = timed(lambda at=number, got=batch: hop(plan, at, keys[at], got))  # type: ignore[misc]
        told.append(
            _judged(f"shuffler {number}, CPU s a million", _million(seconds, people), HOP_SECONDS)
        )
    found, seconds = timed(lambda: read_batch(plan, keys[-1], onions))
    told.append(_judged("collector, CPU s a million", _million(seconds, people), HOP_SECONDS))
    assert len(found.reports) == people
    return told


def _million(seconds: float, people: int) -> float:
    return seconds * MILLION / people


def _judged(what: str, figure: float, goal: float) -> str:
    verdict = "PASS" if figure <= goal else "FAIL"
    return f"{what:<32} {figure:>10.3f}   goal {goal:g}   {verdict}"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--shufflers", type=int, default=SHUFFLERS)
    given = parser.parse_args()
    print(f"{given.people:,} people, {given.shufflers} shufflers")
    print("\n".join(measured(given.people, given.shufflers)))


if __name__ == "__main__":
    main()
