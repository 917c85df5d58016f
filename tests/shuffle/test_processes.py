"""Shuffles through real processes: all reports arrive, and a party that ends ends them all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from bench import peos as bench
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.shuffle.peos import TEST_MODULUS_BITS, PartyStopped, PeosResult, peos_run
from sottovoce.shuffle.peos import run as running
from tests.packaging import installs
from tests.waiting import HANG

PEOPLE, FAKES = 400, 150


def crowd(oracle: str, **options: Any) -> tuple[Plan, Reports]:
    question = sv.Frequencies("x", oracle=oracle, **options)
    plan = sv.plan(sv.Schema(x=sv.Categorical(range(8))), question, epsilon=3.0, people=PEOPLE)
    return plan, sv.simulate(plan, {"x": np.arange(PEOPLE) % 2}, seed=1)


def run(plan: Plan, reports: Reports, **options: Any) -> PeosResult:
    given: dict[str, Any] = {"fakes": FAKES, "least": 100, "modulus_bits": TEST_MODULUS_BITS}
    return peos_run(plan, reports, **(given | options))


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[str]]]:
    """The processes that a test starts; none is left in the end."""
    found: list[subprocess.Popen[str]] = []
    start = subprocess.Popen

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        found.append(start(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(running.subprocess, "Popen", noted)
    yield found
    assert all(process.returncode is not None for process in found)


@pytest.mark.parametrize(
    ("oracle", "options", "parties"), [("grr", {}, 3), ("olh", {"hash_bits": 4}, 5)]
)
def test_the_server_has_all_reports_and_the_fakes(
    oracle: str, options: dict[str, Any], parties: int, started: list[subprocess.Popen[str]]
) -> None:
    plan, reports = crowd(oracle, **options)
    result = run(plan, reports, parties=parties)
    assert len(started) == parties + 1
    assert len({process.pid for process in started} | {os.getpid()}) == parties + 2
    sent, found = (Counter(map(bytes, each.payload)) for each in (reports, result.reports))
    assert not sent - found
    assert (found - sent).total() == FAKES
    assert (result.people, result.fakes, result.malformed) == (PEOPLE, FAKES, 0)
    shares, variances = result.frequencies()
    truth = np.array([0.5, 0.5, *[0.0] * 6])
    assert (np.abs(shares - truth) < 6 * np.sqrt(variances)).all()
    order = [bytes(row) for row in result.reports.payload]
    assert order[:PEOPLE] != [bytes(row) for row in reports.payload]
    costs = result.costs
    assert len(costs.shufflers) == len(costs.shuffler_bytes) == parties
    assert costs.server_bytes == (PEOPLE + FAKES) * (64 + 4 * (parties - 1))
    assert costs.user_bytes == 64 + 4 * (parties - 1)


def test_a_batch_that_is_too_small_is_not_shuffled() -> None:
    plan, reports = crowd("grr")
    with pytest.raises(PartyStopped, match=r"batch \(400 reports\) must have at least 401"):
        run(plan, reports, least=401)


@pytest.mark.parametrize("place", [1, 3])
def test_a_party_that_is_killed_ends_the_shuffle(
    place: int, started: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, reports = crowd("grr")
    send = running._PeosProcesses._send_shares

    async def killing(*arguments: Any) -> tuple[float, int]:
        os.kill(started[place].pid, signal.SIGKILL)
        return await send(*arguments)

    monkeypatch.setattr(running._PeosProcesses, "_send_shares", killing)
    with pytest.raises(PartyStopped, match="nothing was released"):
        run(plan, reports)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """An interrupt is heard, also where it was ignored from the start, as in the background of a
    shell, or answered by somebody else.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_all_parties(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]
) -> None:
    """The caller waits in its main thread, and the parties are driven from another one."""
    plan, reports = crowd("grr")
    ended = []

    async def interrupting(*_: Any) -> tuple[float, int]:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.sleep(HANG)
        except asyncio.CancelledError:
            ended.append("before it was over")
            raise
        return 0.0, 0

    monkeypatch.setattr(running._PeosProcesses, "_send_shares", interrupting)
    with pytest.raises(KeyboardInterrupt):
        run(plan, reports)
    assert ended
    assert len(started) == 4


def test_a_shuffle_that_takes_too_long_is_given_up() -> None:
    plan, reports = crowd("grr")
    with pytest.raises(PartyStopped, match=r"timeout \(0.001 s\) is over"):
        run(plan, reports, timeout=0.001)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parties": 4}, r"parties \(4\) must be odd"),
        ({"fakes": -1}, r"fakes \(-1\) must lie between"),
        ({"least": 0}, r"least \(0\) must lie between"),
        ({"modulus_bits": 1024}, r"modulus_bits \(1024\) must be"),
    ],
)
def test_numbers_that_no_shuffle_has_are_refused(
    options: dict[str, Any], message: str, started: list[subprocess.Popen[str]]
) -> None:
    plan, reports = crowd("grr")
    with pytest.raises(InvalidInput, match=message):
        run(plan, reports, **options)
    assert not started


def test_reports_of_another_plan_are_refused() -> None:
    plan, _ = crowd("grr")
    _, reports = crowd("olh", hash_bits=4)
    with pytest.raises(sv.PlanMismatch):
        run(plan, reports)


def test_the_bench_checks_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["200", "--fakes", "20", "--test-key"]) == 0
    printed = capsys.readouterr().out
    assert "r = 3, 200 reports, 20 fakes" in printed
    assert "thesis, table 9.3: user 1.6 ms" in printed


def test_without_its_libraries_one_line_says_what_to_install() -> None:
    ended = installs.run([], installs.without("peos"), "import sottovoce.shuffle.peos")
    assert ended.returncode != 0
    assert 'pip install "sottovoce[peos]"' in ended.stderr.splitlines()[-1]
