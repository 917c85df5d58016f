"""What a shuffler does between taking a batch and having passed it on: a thread for each plan."""

from __future__ import annotations

import http.client
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from sottovoce.device.messages import PROBLEM
from sottovoce.device.sealing import PrivateKey, hops_of, onion_size
from sottovoce.device.sender import Sender
from sottovoce.ground.entropy import System
from sottovoce.ground.errors import SottovoceError
from sottovoce.protocol.plan import Plan
from sottovoce.service.logs import log, log_mistake
from sottovoce.service.problems import PROBLEMS
from sottovoce.shuffle import messages
from sottovoce.shuffle.batch import (
    OpenedLayers,
    added_fakes,
    fewest_onions,
    hop_of,
    mixed,
    shuffling_of,
)
from sottovoce.shuffle.fakes import (
    BEACON_BYTES,
    FAKE_SEED_BYTES,
    commitment,
    draw_seeds,
    hash_of,
    opened_half,
    opening,
    sealed_fakes,
)
from sottovoce.shuffle.messages import HopLink, chunks, split
from sottovoce.store.hops import REASON, BatchState, HopStore

LOOK_SECONDS = 0.2  # between two looks whether a batch may close
LOOK_SHARE = 20  # times as long as a look took is waited, if that is longer
IDLE_SECONDS = 5.0  # the same for what wakes a thread when it comes
FIRST_WAIT, MOST_WAIT = 0.1, 30.0  # seconds before a hop that did not answer is asked again
MESSAGE_KIND = "application/octet-stream"


class Unanswered(SottovoceError):
    """A hop that did not answer, or not as the plan's hop answers; it is asked again."""


class Neighbour:
    """Another hop of a plan, over HTTP: one attempt a call, whoever calls comes again."""

    def __init__(self, plan: Plan, hop: int, key: PrivateKey, other: int, url: str) -> None:
        self._plan_id, self._sender = plan.id, Sender(url)
        self._link = HopLink(plan, hop, key, other)

    def ask(self, kind: str, body: bytes) -> bytes:
        """What the other hop says to a message."""
        sent = self._link.write(kind, body)
        path = f"{HOP_PATHS[kind]}/{self._plan_id}" + (
            "" if kind == messages.BATCH_KIND else f"/{kind}"
        )
        try:
            answer = self._sender.ask("POST", path, sent, MESSAGE_KIND)
        except (OSError, http.client.HTTPException) as wrong:
            self._sender.close()
            raise Unanswered(f"no answer ({type(wrong).__name__})") from None
        if answer.status != 200:
            told = answer.body if isinstance(answer.body, dict) else {}
            problem = str(told.get("type", "")).removeprefix(PROBLEM)
            problem = problem if problem in PROBLEMS else ""  # or whoever answers writes our log
            raise Unanswered(f"it answered {answer.status} {problem}".rstrip())
        return self._link.read_answer(sent, answer.body)

    def close(self) -> None:
        self._sender.close()


HOP_PATHS = dict.fromkeys(
    (messages.COMMIT_KIND, messages.HALF_KIND, messages.OPENING_KIND), "/v1/fakes"
) | {messages.BATCH_KIND: "/v1/batches"}


def _until_next_look(start: float) -> float:
    """Seconds to wait: a look at many onions takes a while, and should not take most of the time,
    or a trickle of garbage would keep everybody else's from being taken.
    """
    return max(LOOK_SECONDS, LOOK_SHARE * (time.perf_counter() - start))


class HopWork(ABC):
    """The work on one plan's batch at one hop, as steps that may be interrupted anywhere."""

    def __init__(self, plan: Plan, key: PrivateKey, store: HopStore) -> None:
        self.plan, self.key, self.store = plan, key, store
        self.hop = hop_of(plan, key)
        self._failures = 0

    @abstractmethod
    def step(self) -> float | None:
        """Do what is next; seconds to wait before the next step, or None if nothing is left."""

    def attempt(self) -> float | None:
        """A step; if it fails, how long to wait before it is tried again."""
        try:
            wait = self.step()
        except Exception as wrong:  # nothing is lost: the store has what was done so far
            self._failures += 1
            if isinstance(wrong, SottovoceError):
                log("waiting", plan=self.plan.id[:16], hop=self.hop, reason=str(wrong))
            else:
                log_mistake("a step failed", wrong)
            return float(min(MOST_WAIT, FIRST_WAIT * 2 ** min(self._failures, 20)))
        self._failures = 0
        return wait

    def close_whole(self) -> float:
        """Close a batch that another hop has sent, if all of it is there."""
        if not self.store.is_whole(self.plan.id, messages.BATCH_KIND):
            return IDLE_SECONDS
        self.store.set_state(self.plan.id, BatchState.CLOSED)
        return 0

    def refuse(self, reason: str, **counts: int) -> None:
        """End a batch that must not be passed on."""
        log("refused a batch", plan=self.plan.id[:16], hop=self.hop, reason=reason)
        self.store.note(self.plan.id, REASON, reason.encode())
        self.store.finish(self.plan.id, BatchState.REFUSED, REASON, **counts)


class HopWorkers:
    """A thread for each plan, woken when something came for it."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._wake: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def begin(self, work: HopWork) -> None:
        """Have the work on a plan done, once."""
        with self._lock:
            if work.plan.id in self._wake or self._stop.is_set():
                return
            wake = self._wake[work.plan.id] = threading.Event()
            thread = threading.Thread(target=self._run, args=(work, wake), daemon=True)
            self._threads.append(thread)
            thread.start()

    def has(self, plan_id: str) -> bool:
        """Whether the work on a plan was begun."""
        return plan_id in self._wake

    def wake(self, plan_id: str) -> None:
        """Look at a plan now."""
        if self.has(plan_id):
            self._wake[plan_id].set()

    def _run(self, work: HopWork, wake: threading.Event) -> None:
        while not self._stop.is_set():
            wait = work.attempt()
            if wait is None:
                return
            wake.wait(wait)
            wake.clear()

    def stop(self) -> None:
        """End after the steps under way."""
        self._stop.set()
        with self._lock:
            for wake in self._wake.values():
                wake.set()
        for thread in self._threads:
            thread.join()


class ShufflerWork(HopWork):
    """One plan at one shuffler: close, open, add fakes, mix, keep, send, open fakes, delete."""

    def __init__(
        self, plan: Plan, key: PrivateKey, store: HopStore, next_url: str, collector_url: str,
        least: int,
    ) -> None:  # fmt: skip
        super().__init__(plan, key, store)
        last = len(hops_of(plan)) - 1
        self.least = max(least, fewest_onions(plan, self.hop))
        self._next = Neighbour(plan, self.hop, key, self.hop + 1, next_url)
        self._collector = Neighbour(plan, self.hop, key, last, collector_url)
        self._layers = OpenedLayers(plan, self.hop, key)
        self._tried = 0  # onions that were not enough

    def step(self) -> float | None:
        match self.store.state(self.plan.id):
            case BatchState.COLLECTING:
                return self._close()
            case BatchState.CLOSED:
                self._mix()
                return 0
            case BatchState.MIXED:
                return self._send()
            case BatchState.SENT:
                return self._open_fakes()
        return None

    # -- closing

    def _close(self) -> float:
        """Close the batch of a first hop, if the clock and the number of good onions allow it; that
        of a later hop, if all of it has come.
        """
        if self.hop:
            return self.close_whole()
        closes = self.store.closes(self.plan.id)
        if closes is None or time.time() < closes:
            return LOOK_SECONDS
        start = time.perf_counter()
        waiting = self.store.count(self.plan.id)
        if waiting < self.least + self._tried:
            return _until_next_look(start)
        self._layers.open(self.store.onions(self.plan.id))
        good = len(self._layers.inner())
        if good < self.least:  # it stays open for others, and nothing of it is passed on
            self._tried = waiting - good
            return _until_next_look(start)
        self.store.set_state(self.plan.id, BatchState.CLOSED)
        return 0

    # -- mixing

    def _mix(self) -> None:
        onions = self._onions()
        if len(onions) < self.least:
            self._refuse_small(len(onions))
            return
        self._layers.open(onions)
        inner = self._layers.inner()
        if len(inner) < self.least:
            self._refuse_small(len(onions))
            return
        out = mixed(inner, self._fakes())
        size = onion_size(self.plan, self.hop + 1)
        parts = [chunk.write() for chunk in chunks(out, size)]
        malformed = self._layers.malformed
        copies = len(onions) - malformed - len(inner)
        self.store.keep_outgoing(
            self.plan.id, messages.BATCH_KIND, parts, BatchState.MIXED,
            received=len(onions), malformed=malformed, duplicates=copies,
            fakes=len(out) - len(inner), passed=len(out),
        )  # fmt: skip
        self._layers = OpenedLayers(self.plan, self.hop, self.key)
        log("mixed a batch", plan=self.plan.id[:16], hop=self.hop)

    def _onions(self) -> Sequence[bytes]:
        if not self.hop:
            return self.store.onions(self.plan.id)
        data = self.store.incoming(self.plan.id, messages.BATCH_KIND)
        return list(split(data, onion_size(self.plan, self.hop)))

    def _refuse_small(self, received: int) -> None:
        self.refuse(f"fewer than {self.least} good onions", received=received)

    def _fakes(self) -> list[bytes]:
        """This hop's fakes, whose seeds are kept and committed to before the beacon is known."""
        count = added_fakes(self.plan, self.hop)
        if not count:
            return []
        seeds = self._seeds(count)
        beacon = self.store.noted(self.plan.id, "beacon")
        if beacon is None:
            committed = commitment([hash_of(seed) for seed in seeds])
            told = self._collector.ask(messages.COMMIT_KIND, committed)
            if len(told) != BEACON_BYTES:
                raise Unanswered("the collector's beacon is none")
            beacon = self.store.note(self.plan.id, "beacon", told)
        return sealed_fakes(self.plan, seeds, beacon, self.hop, System())

    def _seeds(self, count: int) -> list[bytes]:
        drawn = b"".join(draw_seeds(count, System()))
        return list(split(self.store.note(self.plan.id, "seeds", drawn), FAKE_SEED_BYTES))

    # -- sending

    def _send(self) -> float:
        following = self.store.next_outgoing(self.plan.id, messages.BATCH_KIND)
        if following is None:
            self.store.finish(self.plan.id, BatchState.SENT, "seeds", "beacon")
            log("passed a batch on", plan=self.plan.id[:16], hop=self.hop)
            return 0
        number, data = following
        self._next.ask(messages.BATCH_KIND, data)
        self.store.taken(self.plan.id, messages.BATCH_KIND, number)
        return 0

    def _open_fakes(self) -> float | None:
        """Show half of the fakes when the collector has drawn which, then forget all of them."""
        plan_id = self.plan.id
        if not shuffling_of(self.plan).fakes_of(self.hop):
            self.store.finish(plan_id, BatchState.DONE)
            return None
        if not self.store.has_outgoing(plan_id, messages.OPENING_KIND):
            choice = self._collector.ask(messages.HALF_KIND, b"")
            if not choice:
                return LOOK_SECONDS * 5  # it has not received the batch
            seeds = self._seeds(added_fakes(self.plan, self.hop))
            shown = opening(seeds, opened_half(choice, len(seeds)))
            parts = [
                chunk.write() for chunk in chunks(split(shown, FAKE_SEED_BYTES), FAKE_SEED_BYTES)
            ]
            self.store.keep_outgoing(plan_id, messages.OPENING_KIND, parts, BatchState.SENT)
        following = self.store.next_outgoing(plan_id, messages.OPENING_KIND)
        if following is None:
            self.store.finish(plan_id, BatchState.DONE)
            return None
        self._collector.ask(messages.OPENING_KIND, following[1])
        self.store.taken(plan_id, messages.OPENING_KIND, following[0])
        return 0
