"""Tiny shuffled crowds, enumerated: what mixed reports tell of a person, beside what is counted.

The law of a real device's whole report gives the exact law of the mixture of a few of them, for
every two records of one person and all records of the others; reports of nobody may be among them.
Nobody can list the crowd that a plan promises for: its number is computed by the same code that
bounds these.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from sottovoce.accounting.shuffling import Mixture, shuffled_delta
from sottovoce.audit.devices import Device, Told, joined, tell, told_of
from sottovoce.audit.records import Records
from sottovoce.audit.walk import (
    FEW_PUBLIC,
    MAX_BRANCHES,
    BranchingPublic,
    Draws,
    Law,
    Path,
    Walker,
    law_of,
    of_one_total,
)
from sottovoce.ground.entropy import WHOLE, Entropy
from sottovoce.ground.errors import NotEnumerable
from sottovoce.protocol.fakes import fake_report
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report

MAX_CROWD = 5  # people and fakes that are mixed
MAX_CROWD_FAKES = 2
CROWD_RECORDS = 16  # of which the laws of reports are listed
FEWEST_RECORDS = 3  # where there are as many: a person's two, and another for everybody else
STEPS_PER_WAY = 8  # products of long integers that one crowd may take, for each way of an audit
_LOCAL_SHARES = (0.3, 0.7)  # of the local epsilon: where deltas are compared, too

Pile = tuple[int, ...]  # what is seen of several reports, each by the number of its type
Mixing = Callable[[Pile, int], Pile]
Bound = Callable[..., float]  # as shuffled_delta is called
Laws = tuple[tuple[int, ...], ...]  # for each record, the chances of each type of report


def mixed(pile: Pile, report: int) -> Pile:
    """A pile of reports with one more, whose places say nothing.

    >>> mixed((1, 4), 3)
    (1, 3, 4)
    """
    return tuple(sorted((*pile, report)))


@dataclass(frozen=True)
class CrowdParts:
    """What stands between devices and the analyst, and what is claimed of it.

    Attributes:
        fake: makes a report of nobody.
        mix: adds a report to those that the analyst sees.
        bound: the delta that is claimed for a mixture, an epsilon, people and fakes.
    """

    fake: Callable[[Plan, Entropy], Report] = fake_report
    mix: Mixing = mixed
    bound: Bound = shuffled_delta


@dataclass(frozen=True)
class CrowdCase:
    """The worst of all data sets of one size, at one epsilon."""

    people: int
    fakes: int
    records: int
    data_sets: int
    epsilon: float
    delta: Fraction  # exact, for an e^epsilon that is a little larger: at most the true one
    bound: float

    @property
    def is_exceeded(self) -> bool:
        return self.delta > Fraction(self.bound)

    def to_json(self) -> dict[str, Any]:
        return {
            "people": self.people,
            "fakes": self.fakes,
            "records": self.records,
            "data_sets": self.data_sets,
            "epsilon": self.epsilon,
            "delta": float(self.delta),
            "bound": self.bound,
        }

    def __str__(self) -> str:
        people = f"{self.people} people" if self.people > 1 else "one person"
        return f"{people} among {self.fakes} fakes" if self.fakes else people


@dataclass(frozen=True)
class CrowdAudit:
    """What enumerated crowds showed. ``reason`` says why there were none."""

    cases: tuple[CrowdCase, ...] = ()
    is_sampled: bool = False  # hashes are few that were drawn, in place of all
    reason: str = ""

    @property
    def faults(self) -> tuple[str, ...]:
        """The first case that tells more than is counted, for people with fakes and alone."""
        found: dict[bool, str] = {}
        for case in self.cases:
            if case.is_exceeded and (case.people > 1) not in found:
                found[case.people > 1] = (
                    f"mixed reports ({case}) have delta {float(case.delta):.6g} at epsilon "
                    f"{case.epsilon:.6g}, more than the {case.bound:.6g} that is counted"
                )
        return tuple(found.values())

    @property
    def nearest(self) -> CrowdCase:
        """The case whose bound is reached best."""
        return max(self.cases, key=lambda case: float(case.delta) / max(case.bound, 1e-300))

    def to_json(self) -> dict[str, Any]:
        return {
            "cases": [case.to_json() for case in self.cases],
            "sampled_public_coins": self.is_sampled,
            "reason": self.reason or None,
        }

    def __str__(self) -> str:
        if not self.cases:
            return f"shuffled crowds: none enumerated, {self.reason}"
        people = max(case.people for case in self.cases)
        fakes = max(case.fakes for case in self.cases)
        sizes = f"up to {people} people" + (f", and up to {fakes} fakes" if fakes else "")
        sets = sum({(case.people, case.fakes): case.data_sets for case in self.cases}.values())
        near = self.nearest
        given = ", given sampled public coins" if self.is_sampled else ""
        share = float(near.delta) / near.bound
        return (
            f"shuffled crowds: {sizes}; {sets:,} data sets of the others{given}; exact delta is at "
            f"most {share:.4g} of what is counted ({near}, epsilon {near.epsilon:.4g})"
        )


def audit_crowds(
    plan: Plan,
    device: Device,
    seed: bytes,
    ways: int,
    parts: CrowdParts | None = None,
) -> CrowdAudit:
    """The exact delta of tiny crowds of a shuffled plan, beside the accountant's bound.

    Args:
        plan: a shuffled plan.
        device: what makes a device of a plan, called as ``Client`` is.
        seed: where hashes come from that are too many to list.
        ways: about how much is enumerated; see :data:`STEPS_PER_WAY`.
        parts: fakes, mixing and bound; the real ones by default.
    """
    parts = parts or CrowdParts()
    records = Records(plan, CROWD_RECORDS).across()
    mixture: Mixture = plan.cohorts.mixture
    try:
        laws, is_sampled = _laws(plan, device, records, seed, parts)
    except NotEnumerable:
        return CrowdAudit(reason="reports have too many ways to list")
    if is_sampled:
        mixture = for_any_hashes(mixture)
    people, nobody = (laws[:-1], laws[-1:]) if _has_fakes(plan) else (laws, [])
    cases: list[CrowdCase] = []
    for count, fakes in _sizes(plan):
        crowd = _fitting(people, nobody, count, fakes, STEPS_PER_WAY * ways)
        if crowd is not None:
            cases += crowd.cases(plan, mixture, parts)
    reason = "" if cases else "records or reports are too many"
    return CrowdAudit(tuple(cases), is_sampled, reason)


def _has_fakes(plan: Plan) -> bool:
    return plan.shuffling is not None and plan.shuffling.fakes > 0


def _sizes(plan: Plan) -> Iterator[tuple[int, int]]:
    """(people, fakes), small crowds first."""
    most = min(plan.shuffling.fakes, MAX_CROWD_FAKES) if plan.shuffling is not None else 0
    for total in range(2, MAX_CROWD + 1):
        for fakes in range(min(most, total - 1) + 1):
            yield total - fakes, fakes


# -- the laws of reports


def for_any_hashes(mixture: Mixture) -> Mixture:
    """The same, counting on no report of the blanket to support two values: whatever the hashes.

    >>> from sottovoce.oracles import oracle
    >>> [(_, [ask])] = for_any_hashes([(1, [oracle("ss", size=8, epsilon=1).blanket()])])
    >>> ask.both
    Fraction(0, 1)
    """
    return [
        (weight, [replace(ask, both=max(Fraction(0), 2 * ask.q - 1)) for ask in asks])
        for weight, asks in mixture
    ]


def _laws(
    plan: Plan, device: Device, records: Sequence[Any], seed: bytes, parts: CrowdParts
) -> tuple[list[dict[Told | None, int]], bool]:
    """The law of each record's report, and of a fake if the plan has any, as parts of one total;
    whether a few public coins stand for all.
    """
    try:
        every = partial(BranchingPublic, seed, WHOLE)
        return of_one_total(_listed(plan, device, records, parts, every)), False
    except NotEnumerable:
        few = partial(BranchingPublic, seed, FEW_PUBLIC)
        return of_one_total(_listed(plan, device, records, parts, few)), True


def _listed(
    plan: Plan,
    device: Device,
    records: Sequence[Any],
    parts: CrowdParts,
    public: Callable[[Path, int], BranchingPublic],
) -> list[Law[Told | None]]:
    weight = plan.cohorts.weight

    def report(path: Path, record: Any) -> Told | None:
        # the first public draw of a device is its cohort's, if there are several
        walker = Walker(path, public(path, weight if weight > 1 else 0), Draws())
        state = joined(plan) if len(plan.series.shares) > 1 else None
        return tell(plan, device, [[record]], walker, lambda place: None, state)[0]

    def fake(path: Path) -> Told | None:
        return told_of(parts.fake(plan, Walker(path, public(path, 0), Draws())))

    laws = [law_of(partial(report, record=record), MAX_BRANCHES) for record in records]
    return [*laws, law_of(fake, MAX_BRANCHES)] if _has_fakes(plan) else laws


# -- crowds


def _fitting(
    people: list[dict[Told | None, int]],
    nobody: list[dict[Told | None, int]],
    count: int,
    fakes: int,
    steps: int,
) -> _TinyCrowd | None:
    """The crowd of as many of the records as there is room for; None if these are too few."""
    for kept in range(len(people), 1, -1):
        crowd = _TinyCrowd.of(people[:kept], nobody, count, fakes)
        if crowd.steps <= steps:
            return crowd
        if kept <= FEWEST_RECORDS:
            break
    return None


@dataclass(frozen=True)
class _TinyCrowd:
    """People of a few records, and fakes. Reports are of one type if they are as likely, up to one
    factor, for every record and as a fake: which one it is then tells nothing of anybody.
    """

    laws: Laws  # of the records, each different one once
    fake: tuple[int, ...]
    total: int  # of all chances
    people: int
    fakes: int

    @classmethod
    def of(
        cls,
        people: list[dict[Told | None, int]],
        nobody: list[dict[Told | None, int]],
        count: int,
        fakes: int,
    ) -> _TinyCrowd:
        listed = [*people, *nobody]
        types: dict[tuple[int, ...], int] = {}
        for report in set().union(*listed):
            vector = tuple(law.get(report, 0) for law in listed)
            factor = math.gcd(*vector)
            shape = tuple(chance // factor for chance in vector)
            types[shape] = types.get(shape, 0) + factor
        columns = [tuple(part * times for part in shape) for shape, times in types.items()]
        rows = list(zip(*columns, strict=True))
        fake = rows.pop() if nobody else ()
        return cls(tuple(dict.fromkeys(rows)), fake, sum(rows[0]), count, fakes)

    @property
    def data_sets(self) -> int:
        """How many there are of the others."""
        return comb(len(self.laws) + self.people - 2, self.people - 1)

    @property
    def steps(self) -> int:
        """About how many products of integers it takes."""
        types, records, size = len(self.laws[0]), len(self.laws), self.people + self.fakes
        piles = comb(types + size - 1, size)
        return self.data_sets * records * piles * (size + records * (len(_LOCAL_SHARES) + 1))

    def cases(self, plan: Plan, mixture: Mixture, parts: CrowdParts) -> list[CrowdCase]:
        """The worst data set at each epsilon."""
        epsilons = _epsilons(plan, self.people)
        # a little above e^epsilon, so that what is found is at most the true delta
        odds = [_above(epsilon) for epsilon in epsilons]
        worst = [0 for _ in epsilons]
        for others in self._others(parts.mix):
            seen = [self._with(others, law, parts.mix) for law in self.laws]
            piles = list(set().union(*seen))
            table = np.array([[law.get(pile, 0) for pile in piles] for law in seen], object)
            for place, odd in enumerate(odds):
                excess = _largest_excess(table, odd)
                worst[place] = max(worst[place], excess)
        whole = self.total ** (self.people + self.fakes)
        return [
            CrowdCase(
                self.people,
                self.fakes,
                len(self.laws),
                self.data_sets,
                epsilon,
                Fraction(excess, whole * odd.denominator),
                parts.bound(mixture, epsilon, self.people, fakes=self.fakes),
            )
            for epsilon, odd, excess in zip(epsilons, odds, worst, strict=True)
        ]

    def _others(self, mix: Mixing) -> Iterator[Counter[Pile]]:
        """For every data set of the others, the law of what is seen of their reports and fakes."""
        start: Counter[Pile] = Counter({(): 1})
        for _ in range(self.fakes):
            start = self._with(start, self.fake, mix)
        for others in combinations_with_replacement(range(len(self.laws)), self.people - 1):
            seen = start
            for record in others:
                seen = self._with(seen, self.laws[record], mix)
            yield seen

    def _with(self, seen: Counter[Pile], law: Sequence[int], mix: Mixing) -> Counter[Pile]:
        """The same with one more report."""
        more: Counter[Pile] = Counter()
        for pile, chance in seen.items():
            for report, part in enumerate(law):
                if part:
                    more[mix(pile, report)] += chance * part
        return more


def _largest_excess(table: Any, odds: Fraction) -> int:
    """max over two records x, x' of sum over piles (den P(. | x) - num P(. | x'))_+."""
    scaled = table * odds.numerator
    largest = 0
    for law in table * odds.denominator:
        over = law - scaled  # (records, piles)
        sums = np.where(over > 0, over, 0).sum(axis=1)
        largest = max(largest, *sums.tolist())
    return largest


def _above(epsilon: float) -> Fraction:
    """A fraction surely above e^epsilon, by a few units of a double's last place."""
    return Fraction(math.exp(epsilon)) * (1 + Fraction(1, 1 << 50))


def _epsilons(plan: Plan, people: int) -> list[float]:
    """Those that are promised, and some between 0 and what a report costs by itself."""
    part, local = plan.shuffling, float(plan.epsilon)
    stated = []
    if part is not None:
        stated.append(float(part.epsilon))
        if part.colluding is not None and people == 1:
            stated = [float(part.colluding)]
    return sorted({*stated, *(share * local for share in _LOCAL_SHARES)})
