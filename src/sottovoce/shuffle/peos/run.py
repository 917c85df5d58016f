"""A whole shuffle on one machine: every party a process, the caller in the place of the users."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from time import process_time
from typing import Any

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import System
from sottovoce.ground.errors import InvalidInput, SottovoceError
from sottovoce.oracles import Noise, PureOracle
from sottovoce.oracles.base import Floats
from sottovoce.oracles.direct import GeneralizedRandomizedResponse
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import CheckedReports, Reports
from sottovoce.questions.frequencies import Frequencies
from sottovoce.results.estimate import Table
from sottovoce.shuffle.peos.dgk import FULL_MODULUS_BITS, DgkPublicKey, check_modulus_bits
from sottovoce.shuffle.peos.links import LINK_KEY_BYTES, Link
from sottovoce.shuffle.peos.oblivious import check_parties
from sottovoce.shuffle.peos.party import HOST, PartySettings, server_of, users_of
from sottovoce.shuffle.peos.shares import read_words, split
from sottovoce.shuffle.peos.words import ReportWords

MOST_BATCH = 1 << 26
REASON_SECONDS = 30.0  # to hear why a party stopped, once another has lost it
LOST = "a party stopped; nothing was released"
_COMMAND = (
    sys.executable,
    "-c",
    "import sys; from sottovoce.shuffle.peos.party import main; sys.exit(main())",
)


class PartyStopped(SottovoceError):
    """A party of a shuffle stopped, so that nothing was released."""


class _OtherLost(PartyStopped):
    """A party stopped because it lost another one, which has the reason."""


@dataclass(frozen=True)
class PeosCosts:
    """What a shuffle cost: CPU seconds by party and by what they were for, and bytes sent."""

    user_ms: float  # of CPU time, for one report
    user_bytes: int
    shufflers: tuple[dict[str, float], ...]
    shuffler_bytes: tuple[int, ...]
    server: dict[str, float]
    server_bytes: int  # received


@dataclass(frozen=True)
class PeosResult:
    """What the analyst has in the end: people's reports and fakes, in an order nobody knows."""

    plan: Plan
    reports: CheckedReports
    people: int
    fakes: int
    malformed: int  # rows whose ciphertext held no word; they are not among the reports
    costs: PeosCosts

    def frequencies(self, cohort: int = 0, ask: int = 0) -> tuple[Floats, Floats]:
        """Unbiased frequencies among the people of a cohort, and the variances of their errors.

        Fakes are taken out by what they add on average: of several cohorts each has its share.
        """
        aggregate = Aggregate(self.plan).add(self.reports)
        found, variances = aggregate.frequencies(cohort, ask)
        oracle = self.plan.cohorts[cohort].oracles[ask]
        assert isinstance(oracle, PureOracle)  # ReportWords admits no other
        total = aggregate.cohort_people(cohort)
        people = total - self.fakes / len(self.plan.cohorts)
        return without_fakes(oracle, found, people, total), variances * (total / people) ** 2

    def tables(self) -> list[Table]:
        """The frequencies of each attribute, if they are what the plan asks; otherwise none."""
        question = self.plan.question
        if not isinstance(question, Frequencies):
            return []
        found = []
        for place, name in enumerate(question.attributes):
            cohort, ask = (0, place) if question.split == "budget" else (place, 0)
            values, variances = self.frequencies(cohort, ask)
            labels = self.plan.schema[name].labels()
            # for sums of several values; what fakes add is not in the oracle's own
            noise = Noise(float(variances.mean()), 0.0)
            method = self.plan.cohorts[cohort].oracles[ask].names[0]
            found.append(
                Table((name,), labels, values, variances, self.people, noise, method=method)
            )
        return found


def without_fakes(oracle: PureOracle, found: Floats, people: float, total: float) -> Floats:
    """Frequencies among people, from those among people and uniform fakes.

    Args:
        oracle: what people and fakes reported through.
        found: frequencies as if all reports were of people, (values,).
        people: how many of the reports are.
        total: how many reports there are.

    >>> import numpy as np
    >>> import sottovoce as sv
    >>> half = np.array([0.5, 0.5])
    >>> without_fakes(sv.oracle("grr", size=2, epsilon=1), half, 100, 150).round(6).tolist()
    [0.5, 0.5]
    """
    # f_v = (n + n_r)/n f~_v - n_r/n (q_f - q)/(p - q)     wang2021thesis, eq. (9.5), corrected:
    # a fake supports a value with chance q_f. GRR: q_f = 1/d, and the quotient is 1/d as printed.
    # Local hashing: q_f = 1/g = q, and nothing is to be taken off; see docs/errata, 6.
    fake = _fake_support(oracle)
    share = (fake - oracle.q) / (oracle.p - oracle.q)
    return found * (total / people) - share * (total - people) / people


def _fake_support(oracle: PureOracle) -> float:
    """The chance that a uniform report supports a given value."""
    direct = isinstance(oracle, GeneralizedRandomizedResponse)
    return 1 / oracle.size if direct else oracle.q


def peos_run(
    plan: Plan,
    reports: Reports,
    *,
    fakes: int,
    least: int,
    parties: int = 3,
    modulus_bits: int = FULL_MODULUS_BITS,
    timeout: float = 24 * 3600.0,
) -> PeosResult:
    """Shuffle a plan's reports through processes on this machine: shufflers, and a server.

    Args:
        plan: a plan whose reports can have uniform fakes (:class:`ReportWords`).
        reports: what people's devices made of their answers.
        fakes: uniform reports that the shufflers add together.
        least: people below which no shuffler takes part.
        parties: shufflers, an odd number; half of them, rounded down, may conspire with the server.
        modulus_bits: of the server's key, which it draws for this shuffle alone.
        timeout: seconds after which all is given up.

    Returns:
        The reports and the fakes, and what it cost.

    Raises:
        PartyStopped: a party ended, or the time is over; nothing was released.
    """
    check_parties(parties)
    check_modulus_bits(modulus_bits)
    form = ReportWords.of(plan)
    if plan.shuffling is not None and plan.shuffling.fakes:
        raise InvalidInput(
            f"plan: fakes ({plan.shuffling.fakes}) must be 0 for an oblivious shuffle, whose "
            "parties add their own"
        )
    reports = reports.checked(plan)
    people = whole("reports", len(reports), 1, MOST_BATCH)
    run = _PeosProcesses(
        form,
        reports,
        parties,
        whole("fakes", fakes, 0, MOST_BATCH),
        whole("least", least, 1, MOST_BATCH),
        modulus_bits,
    )
    # in a thread, so that a notebook, whose own loop runs already, can call this too
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(asyncio.run, run.whole_run(timeout))
        try:
            told, costs = running.result()
        except BaseException:  # an interrupt, which the thread does not see
            run.stop()
            raise
    words = read_words(base64.b64decode(told["words"]), form.word_bits)
    return PeosResult(plan, form.reports(words), people, fakes, told["malformed"], costs)


@dataclass
class _PeosProcesses:
    """One shuffle, as it is driven from here."""

    form: ReportWords
    reports: Reports
    parties: int
    fakes: int
    least: int
    modulus_bits: int

    def __post_init__(self) -> None:
        numbers = range(self.parties + 2)
        self._keys = {pair: os.urandom(LINK_KEY_BYTES) for pair in combinations(numbers, 2)}
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._readers = ThreadPoolExecutor(self.parties + 1)
        self._is_over = False

    def _key(self, one: int, other: int) -> bytes:
        return self._keys[min(one, other), max(one, other)]

    async def whole_run(self, timeout: float) -> tuple[dict[str, Any], PeosCosts]:
        """What the server says, and what it cost. No process is left, whatever happens."""
        try:
            return await asyncio.wait_for(self._run(), timeout)
        except TimeoutError:
            raise PartyStopped(f"timeout ({timeout} s) is over; nothing was released") from None
        except (OSError, EOFError):
            raise PartyStopped(LOST) from None
        finally:
            self.stop()
            self._readers.shutdown()  # each reader comes to the end of what a process said
            for process in self._processes.values():
                process.communicate()

    def stop(self) -> None:
        """End all parties, and so the shuffle; none is started any more."""
        self._is_over = True
        for process in list(self._processes.values()):
            process.kill()

    async def _run(self) -> tuple[dict[str, Any], PeosCosts]:
        server = server_of(self.parties)
        for number in range(self.parties + 1):
            self._processes[number] = self._start(number)
        said = {number: await self._said(number, whole=False) for number in self._processes}
        public = said[server]["public"]
        ports = {number: each["port"] for number, each in said.items()}
        for process in self._processes.values():
            _tell(process, json.dumps({"ports": ports, "public": public}))
        watchers = [
            asyncio.create_task(self._said(number, whole=True)) for number in self._processes
        ]
        key = DgkPublicKey.from_bytes(bytes.fromhex(public))
        sending = asyncio.create_task(self._send_shares(key, ports))
        await self._all_done([*watchers, sending])
        shufflers, last = [each.result() for each in watchers[:server]], watchers[server].result()
        user_ms, user_bytes = sending.result()
        costs = PeosCosts(
            user_ms,
            user_bytes,
            tuple(each["cpu"] for each in shufflers),
            tuple(each["sent"] for each in shufflers),
            last["cpu"],
            last["received"],
        )
        return last, costs

    async def _all_done(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Wait for all, or raise why one stopped: not that others lost it."""
        try:
            done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            if rest and not _reasons(done):
                done |= (await asyncio.wait(rest, timeout=REASON_SECONDS))[0]
        finally:
            for task in tasks:
                task.cancel()
        if any(task.exception() for task in done):
            raise next(iter(_reasons(done)), _OtherLost(LOST))

    def _start(self, number: int) -> subprocess.Popen[str]:
        if self._is_over:
            raise PartyStopped(LOST)
        keys = {
            other: self._key(number, other) for other in range(self.parties + 2) if other != number
        }
        if number == server_of(self.parties):
            del keys[users_of(self.parties)]
        settings = PartySettings(
            number,
            self.parties,
            self.form.word_bits,
            self.modulus_bits,
            self.fakes,
            self.least,
            keys,
        )
        pipe = subprocess.PIPE
        process = subprocess.Popen(_COMMAND, stdin=pipe, stdout=pipe, text=True)
        _tell(process, settings.to_json())
        return process

    async def _said(self, number: int, *, whole: bool) -> dict[str, Any]:
        """What a party says next: a line, or all that is left."""
        output = self._processes[number].stdout
        assert output is not None
        read = output.read if whole else output.readline
        return _read_said(await asyncio.get_running_loop().run_in_executor(self._readers, read))

    async def _send_shares(self, key: DgkPublicKey, ports: dict[int, int]) -> tuple[float, int]:
        """What every user does, one after another; (CPU milliseconds, bytes) of one."""
        begun = process_time()
        shares = split(self.form.words(self.reports, System()), self.parties, System())
        data = [share.tobytes() for share in shares[:-1]]
        data.append(key.pack(key.encrypt_many(shares[-1], System())))
        spent = process_time() - begun
        own = users_of(self.parties)
        for number, part in enumerate(data):
            link = await Link.connect(HOST, ports[number], own, number, self._key(own, number))
            await link.send(b"C" if number == self.parties - 1 else b"H", part)
            await link.close()
        people = len(self.reports)
        return 1000 * spent / people, sum(map(len, data)) // people


def _reasons(done: Iterable[asyncio.Task[Any]]) -> list[PartyStopped]:
    """Why parties stopped that lost no other one."""
    found = (task.exception() for task in done)
    return [each for each in found if type(each) is PartyStopped]


def _tell(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def _read_said(text: str) -> dict[str, Any]:
    """A line of a party; an error if it says one, or ended."""
    said: dict[str, Any] = json.loads(text) if text else {"error": "it ended", "lost": False}
    if "error" in said:
        raise (_OtherLost if said["lost"] else PartyStopped)(
            f"a party stopped: {said['error']}; nothing was released"
        )
    return said
