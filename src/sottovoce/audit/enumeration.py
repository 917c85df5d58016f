"""Reports enumerated: a device's own code, record by record, along every way its coins can fall."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.audit.devices import Assigning, Device, Outcome, Session, joined, new_state, tell
from sottovoce.audit.records import MAX_RECORDS, Record, Records
from sottovoce.audit.walk import (
    MAX_BRANCHES,
    Draws,
    EndsFirst,
    Law,
    Path,
    PublicCoins,
    Tickets,
    Walker,
    law_of,
    of_one_total,
)
from sottovoce.device.assignment import LATEST, Assignment
from sottovoce.device.client import ClientState, InvalidValueWarning
from sottovoce.ground.entropy import Stream
from sottovoce.ground.errors import NotEnumerable, SottovoceError
from sottovoce.oracles.thresholds import exceeds, log_ratio
from sottovoce.protocol.plan import Plan

MAX_WAYS = 1 << 16  # of all reports that one audit makes
MAX_WAYS_PER_RECORD = 1 << 12  # of one record's report, given the public coins
MAX_WAYS_PER_LIFETIME = 1 << 8  # of five reports by one device; two of them may have as many as one
MAX_COHORTS = 512  # that are gone through where tickets are too many to list
SPREAD_TICKETS = 1 << 16  # among which one of each cohort is looked for
PUBLIC_SAMPLES = 32  # public coins that are drawn where they are too many to list
DELTA_SAMPLES = 400  # the same where a delta is their mean: many of them, of few records
DELTA_RECORDS = 8
MIN_SAMPLES = 4
MIN_RECORDS = 4
EPSILON_ROUNDING = 1e-12  # of a stated epsilon, which is a double


# what a device goes through, of an answer and another
Lifetime = Callable[[Record, Record], list[Sequence[Session]]]


def _long(record: Record, other: Record) -> list[Sequence[Session]]:
    """All in one: the same answer again, another one, and both again after a restart."""
    return [[[record, record, other], [record, other]]]


def _short(record: Record, other: Record) -> list[Sequence[Session]]:
    """The same one by one, where all in one has too many ways."""
    return [[[record, record]], [[record, other]], [[record], [record]], [[record], [other]]]


@dataclass
class Enumeration:
    """What the enumerated reports showed, exactly; ``None``: some record cannot send the report."""

    public_samples: int = 0  # 0 if public coins were all enumerated
    scope: str = "all"
    records: int = 0  # the most that were compared at once
    cohorts: int = 0
    ways: int = 0
    reports: int = 0
    ratio: Fraction | None = Fraction(1)
    lifetime_ratio: Fraction | None = Fraction(1)
    lifetime_reports: int = 0  # by one device, as compared; 0 if they have too many ways
    delta: float = 0.0
    draws: Draws = field(default_factory=Draws)
    faults: list[str] = field(default_factory=list)

    @property
    def epsilon(self) -> float:
        return _log(self.ratio)

    @property
    def lifetime(self) -> float | None:
        return _log(self.lifetime_ratio) if self.lifetime_reports else None

    def accuse(self, fault: str) -> None:
        """Note a fault once."""
        if fault not in self.faults:
            self.faults.append(fault)


def _log(ratio: Fraction | None) -> float:
    return math.inf if ratio is None else log_ratio(ratio)


def larger(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    """The larger ratio; None is infinite."""
    return None if one is None or other is None else max(one, other)


def enumerate_reports(
    plan: Plan,
    device: Device,
    seed: bytes,
    limit: int,
    progress: Callable[[int], None] | None = None,
) -> Enumeration:
    """The exact law of reports for all pairs of records; ``NotEnumerable`` if too many ways.

    Args:
        plan: the plan whose devices are audited.
        device: what makes a device of a plan, called as ``Client`` is.
        seed: where sampled public coins come from; they are as private whatever they are.
        limit: of the ways in all.
        progress: told how many ways were gone so far.
    """
    work = _Enumerator(plan, device, seed, limit, progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidValueWarning)  # one of the records lacks a value
        work.run()
    return work.found


class _Enumerator:
    def __init__(
        self,
        plan: Plan,
        device: Device,
        seed: bytes,
        limit: int,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.plan, self.device, self.seed, self.progress = plan, device, seed, progress
        self.has_delta = plan.guarantee.delta > 0
        self.is_assigned = plan.coin == "assigned"
        self.limit = 2 * limit if self.has_delta else limit
        self.found = Enumeration()
        self.records = Records(plan, DELTA_RECORDS if self.has_delta else MAX_RECORDS)
        self.tickets = _tickets(plan)
        self.is_one_round = len(plan.series.shares) == 1  # more of them need a state
        # public branch -> one matrix of pairs per sample
        self.excess: dict[Any, list[NDArray[np.float64]]] = {}
        self.lifetimes: list[Lifetime] = [_long, _short]
        self.seen: set[int] = set()

    def run(self) -> None:
        """Go all ways that are few enough, or those of sampled public coins."""
        ways, public = self._probe()
        if 2 * ways * MAX_RECORDS * MIN_SAMPLES > self.limit and not self.has_delta:
            self.records = Records(
                self.plan, max(MIN_RECORDS, self.limit // (2 * ways * MIN_SAMPLES))
            )
        people = self.records.of_cohort(self._cohort(public))
        # with new assignments, and with one
        lifetimes = 0 if self.has_delta else 2 if self.is_assigned else 1
        each = ways * len(people) * (1 + lifetimes)
        wanted = DELTA_SAMPLES if self.has_delta else PUBLIC_SAMPLES
        is_listed = public.ways * each * (MIN_SAMPLES if public.is_sampled else 1) <= self.limit
        if is_listed:
            samples = (
                min(wanted, max(1, self.limit // (public.ways * each))) if public.is_sampled else 1
            )
        else:
            wanted = max(wanted, min(2 * len(self.plan.cohorts), MAX_COHORTS))
            samples = min(wanted, max(MIN_SAMPLES, self.limit // each))
        if is_listed:
            self._check_widths()
        for number in range(samples):
            self._sample(number, is_listed)
        self.found.public_samples = samples if public.is_sampled or not is_listed else 0
        self.found.scope = self.records.scope
        self.found.cohorts = len(self.seen)
        self._judge_delta()
        self._judge_ratios()

    def _probe(self) -> tuple[int, PublicCoins]:
        """(ways of the widest of two records, what the public coins were like)."""
        public = self._public(0, Path())
        ways = []
        for record in (self.records.lowest, self.records.highest):
            before = self.found.ways
            self._law([[record]], public, self._assigning(0), self._first_state)
            ways.append(self.found.ways - before)
        self.found.ways = 0
        public.is_sampled |= self.is_assigned
        return max(ways), public

    def _check_widths(self) -> None:
        """Go one record's ways under all public coins: who finds too many at the end goes in vain.

        It takes a small part of what comparing all records does.
        """
        before = self.found.ways
        path = Path()
        while True:
            public = self._public(0, path)
            self._law([[self.records.lowest]], public, self._assigning(0), self._first_state)
            if not path.advance():
                break
        self.found.ways = before

    def _cohort(self, public: PublicCoins) -> int:
        """The cohort that the public coins say, by the report of one record."""
        return self._named(
            self._law([[self.records.lowest]], public, self._assigning(0), self._first_state)
        )

    def _named(self, law: Law[Outcome]) -> int:
        """The cohort that a record's reports name, if the plan has it."""
        cohorts = [
            told.cohort
            for (told,) in law.chances
            if told is not None and told.cohort < len(self.plan.cohorts)
        ]
        return cohorts[0] if cohorts else 0

    def _first_state(self) -> ClientState | None:
        return None if self.is_one_round else new_state()

    def _sample(self, number: int, is_listed: bool) -> None:
        path = Path()
        while True:
            public = self._public(number, path if is_listed else None)
            self._compare(public, self._assigning(number))
            if not is_listed or not path.advance():
                return

    def _public(self, number: int, path: Path | None) -> PublicCoins:
        source = Stream(b"public coins" + self.seed + number.to_bytes(8, "little"))
        if path is None and self.plan.cohorts.weight > 1:
            return PublicCoins(EndsFirst(source, number), None)
        return PublicCoins(source, path, self.tickets)

    def _assigning(self, number: int) -> Assigning:
        """Of one sample: each session of a device gets an assignment of its own."""
        if not self.is_assigned:
            return lambda place: None
        key = hashlib.sha256(b"assigned coins" + self.seed).digest()

        def sign(place: int) -> Assignment:
            return Assignment.sign(
                key, self.plan.id, (place << 64 | number).to_bytes(16, "big"), LATEST
            )

        return sign

    # -- one choice of public coins

    def _compare(self, public: PublicCoins, assigning: Assigning) -> None:
        """The laws of all records' reports, given the public coins."""
        first = self._law([[self.records.lowest]], public, assigning, self._first_state)
        cohort = self._named(first)
        is_new = cohort not in self.seen
        self.seen.add(cohort)
        people = self.records.of_cohort(cohort)
        self.found.records = max(self.found.records, len(people))
        laws = [self._law([[record]], public, assigning, self._first_state) for record in people]
        laws += self._outside(cohort, public, assigning)
        chances = of_one_total(laws)
        self.found.reports += len(set().union(*chances))
        self.found.ratio = larger(self.found.ratio, worst_ratio(chances))
        self._check_reports(set().union(*chances))
        self._check_cohorts(chances)
        key = (cohort, *public.branched)
        if self.has_delta:
            self.excess.setdefault(key, []).append(self._excess(chances))
        if not self.has_delta or len(self.excess[key]) == 1:
            outside = self.records.outside(cohort) if is_new else []  # once: they have many ways
            self._compare_lifetimes(people, outside, public, assigning)
            if self.is_assigned:
                self._compare_lifetimes(people, outside, public, lambda place: assigning(0))
        if public.differs:
            self.found.accuse(
                "which public coins are drawn depends on the record or on private coins"
            )

    def _outside(
        self, cohort: int, public: PublicCoins, assigning: Assigning
    ) -> list[Law[Outcome]]:
        """Reports of people without a valid value: silence, or any other law, would tell that."""
        laws = []
        for record in self.records.outside(cohort):
            with suppress(NotEnumerable):
                laws.append(self._law([[record]], public, assigning, self._first_state))
        return laws

    def _compare_lifetimes(
        self, people: list[Record], outside: list[Record], public: PublicCoins, assigning: Assigning
    ) -> None:
        """Several reports of a device: on the same and on another answer, restarted or not.

        Whoever hands out assignments chooses them, so laws are compared under the same ones.
        """
        laws: list[Law[Outcome]] = []
        while self.lifetimes and not laws:
            try:
                laws = self._lifetimes(self.lifetimes[0], people, outside, public, assigning)
            except NotEnumerable:
                self.lifetimes.pop(0)
        if not laws:
            self.found.lifetime_reports = 0
            return
        self.found.lifetime_reports = len(next(iter(laws[0].chances)))
        if not self.has_delta:
            self.found.lifetime_ratio = larger(
                self.found.lifetime_ratio, worst_ratio(of_one_total(laws))
            )
        elif any(len(set(outcome)) > 1 for law in laws for outcome in law.chances):
            self.found.accuse("a device that keeps its state does not repeat its report")

    def _lifetimes(
        self,
        lifetime: Lifetime,
        people: list[Record],
        outside: list[Record],
        public: PublicCoins,
        assigning: Assigning,
    ) -> list[Law[Outcome]]:
        most = MAX_WAYS_PER_LIFETIME if lifetime is _long else MAX_WAYS_PER_RECORD

        def law(sessions: Sequence[Session]) -> Law[Outcome]:
            return self._law(sessions, public, assigning, lambda: joined(self.plan), most)

        laws = []
        for record, other in zip(people, people[1:] + people[:1], strict=True):
            laws += [law(sessions) for sessions in lifetime(record, other)]
        for strange in outside:
            for sessions in lifetime(people[0], strange) + lifetime(strange, people[0]):
                with suppress(
                    NotEnumerable
                ):  # values that stand in are drawn, and may have many ways
                    laws.append(law(sessions))
        return laws

    def _law(
        self,
        sessions: Sequence[Session],
        public: PublicCoins,
        assigning: Assigning,
        state: Callable[[], ClientState | None],
        most: int = MAX_WAYS_PER_RECORD,
    ) -> Law[Outcome]:
        def draw(path: Path) -> Outcome:
            public.start()
            walker = Walker(path, public, self.found.draws)
            told = tell(self.plan, self.device, sessions, walker, assigning, state())
            public.finish(told[0] is not None)
            return told

        return law_of(draw, most, self._count)

    def _count(self) -> None:
        self.found.ways += 1
        if self.found.ways > 4 * self.limit:
            raise NotEnumerable(
                f"a plan's reports have more than {4 * self.limit} ways; use a sampling audit"
            )
        if self.progress is not None and self.found.ways % 256 == 0:
            self.progress(self.found.ways)

    # -- verdicts

    def _check_reports(self, outcomes: set[Outcome]) -> None:
        """A report that its plan refuses, or that says too much, carries more than it may."""
        if outcomes == {(None,)}:
            self.found.accuse("a device never sends a report")
        for (told,) in outcomes:
            if told is None:
                continue
            try:
                told.plain(self.plan).checked(self.plan)
            except SottovoceError:
                self.found.accuse("a device sends a report that the plan refuses")
            if not told.is_plain(self.plan):
                self.found.accuse("a device sends other bytes than those of its report")

    def _check_cohorts(self, laws: list[dict[Outcome, int]]) -> None:
        """Whether a report is sent, and of which cohort, must have one law for all records."""
        marginals = []
        for law in laws:
            sums: dict[int | None, int] = {}
            for (told,), chance in law.items():
                cohort = None if told is None else told.cohort
                sums[cohort] = sums.get(cohort, 0) + chance
            marginals.append(sums)
        if len({None in sums for sums in marginals}) > 1:
            self.found.accuse("silence depends on the record")
        named = [sums.keys() - {None} for sums in marginals]
        spoken = [cohorts for cohorts in named if cohorts]
        if any(cohorts != spoken[0] for cohorts in spoken):
            self.found.accuse("the cohort depends on the record")
        elif any(sums != marginals[0] for sums in marginals):
            self.found.accuse("the chance of a cohort depends on the record")

    def _excess(self, laws: list[dict[Outcome, int]]) -> NDArray[np.float64]:
        """For each pair of records, sum over reports of max(0, P - e^epsilon Q)."""
        reports = sorted(set().union(*laws), key=repr)
        total = sum(laws[0].values())
        # (records, reports)
        chances = np.array([[law.get(report, 0) / total for report in reports] for law in laws])
        bound = math.exp(self.plan.guarantee.per_report)
        over: NDArray[np.float64] = np.maximum(
            chances[:, None, :] - bound * chances[None, :, :], 0
        ).sum(axis=2)
        return over

    def _judge_delta(self) -> None:
        stated = self.plan.guarantee.delta
        if not stated:
            return
        comparisons = sum(matrices[0].size for matrices in self.excess.values())
        for matrices in self.excess.values():
            means = np.mean(matrices, axis=0)
            largest = float(means.max())
            self.found.delta = max(self.found.delta, largest)
            if mean_exceeds(largest, stated, len(matrices), comparisons):
                self.found.accuse(
                    f"chances exceed e^epsilon times another's by {largest:.3g}, delta is "
                    f"{stated:.3g}"
                )

    def _judge_ratios(self) -> None:
        stated = self.plan.guarantee
        if stated.delta:
            return
        ratios = [("one report", self.found.ratio, stated.per_report)]
        if self.found.lifetime_reports:
            ratios.append(("a lifetime of reports", self.found.lifetime_ratio, stated.lifetime))
        for what, ratio, claimed in ratios:
            if ratio is None:
                self.found.accuse(f"{what} can be such that some record rules it out")
            elif exceeds(ratio, self.plan.epsilon):
                self.found.accuse(
                    f"{what} costs {log_ratio(ratio):.12g}, more than epsilon {self.plan.epsilon}"
                )
            elif log_ratio(ratio) > claimed * (1 + EPSILON_ROUNDING) + EPSILON_ROUNDING:
                self.found.accuse(
                    f"{what} costs {log_ratio(ratio):.12g}, more than the {claimed:.12g} stated"
                )


def worst_ratio(laws: list[dict[Outcome, int]]) -> Fraction | None:
    """The largest ratio of an outcome's chances under two laws; None if one rules it out."""
    most, least = 1, 1
    for outcome in set().union(*laws):
        chances = [law.get(outcome, 0) for law in laws]
        low, high = min(chances), max(chances)
        if low == 0:
            return None
        if high * least > most * low:
            most, least = high, low
    return Fraction(most, least)


def mean_exceeds(
    mean: float, stated: float, samples: int, comparisons: int, doubt: float = 1e-3
) -> bool:
    """Whether a mean of values in [0, 1] is too large for what is stated, over all comparisons.

    >>> mean_exceeds(0.02, 0.001, samples=400, comparisons=100)
    True
    >>> mean_exceeds(0.002, 0.001, samples=400, comparisons=100)
    False
    """
    if mean <= stated:
        return False
    # P(mean >= x) <= exp(-n KL(x || delta))   hoeffding1963, theorem 1
    apart = mean * math.log(mean / stated)
    if mean < 1:
        apart += (1 - mean) * math.log((1 - mean) / (1 - stated))
    return samples * apart > math.log(comparisons / doubt)


def _tickets(plan: Plan) -> Tickets | None:
    """One ticket of each cohort, where tickets are too many to list and cohorts are not."""
    cohorts = plan.cohorts
    if cohorts.weight <= MAX_BRANCHES or len(cohorts) > MAX_COHORTS:
        return None
    spread = np.linspace(0, cohorts.weight - 1, SPREAD_TICKETS).astype(np.int64)
    found, first = np.unique(cohorts.at_column(spread), return_index=True)
    return Tickets(cohorts.weight, spread[first].tolist()) if len(found) == len(cohorts) else None
