"""Whole reports sampled: events that tell two records apart. It can convict, never acquit."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from sottovoce.audit.devices import Device, Outcome, Session, Told, joined, new_state, tell
from sottovoce.audit.oracles import clopper_pearson
from sottovoce.audit.records import Record, Records
from sottovoce.device.assignment import LATEST, Assignment
from sottovoce.device.client import Client, ClientState
from sottovoce.ground.entropy import Entropy, Seeded, exact_law
from sottovoce.ground.errors import InvalidInput, NotEnumerable, SottovoceError
from sottovoce.protocol.encodings import Ask
from sottovoce.protocol.plan import Plan

MIN_DRAWS = 1000
MAX_VALUES = 16  # values of each record that a report's support is looked up for
LATER = 2  # reports of a device that keeps its state, after the first
_BATCH = 500
Feature = Hashable


@dataclass
class ReportSample:
    """Lower bounds, of one report and of two of three; beyond what is stated, it is convicted."""

    draws: int
    confidence: float
    epsilon: float = 0.0
    lifetime: float = 0.0
    delta: float = 0.0
    faults: list[str] = field(default_factory=list)


def sample_reports(
    plan: Plan,
    draws: int,
    confidence: float,
    device: Device = Client,
    entropy: Entropy | None = None,
    progress: Callable[[int], None] | None = None,
) -> ReportSample:
    """Draw reports of pairs of records as devices do, and bound what tells the two apart.

    The first half of the draws chooses events, the second half counts them. Every other device
    keeps a state and reports three times.

    Args:
        plan: the plan whose devices are audited.
        draws: reports in all, over both records of all pairs.
        confidence: that none of the bounds is wrong.
        device: what makes a device of a plan, called as ``Client`` is.
        entropy: the devices' coins; None for those of the operating system.
        progress: told how many reports were drawn so far.
    """
    if draws < MIN_DRAWS or not 0 < confidence < 1:
        raise InvalidInput(
            f"draws ({draws}) must be at least {MIN_DRAWS} and confidence ({confidence}) between 0 "
            "and 1"
        )
    pairs = Records(plan).pairs()
    # for each record of a pair, to choose events and to count them
    each = draws // (4 * len(pairs))
    found = ReportSample(4 * len(pairs) * each, confidence)
    devices = _SampledDevices(plan, device, entropy, progress)
    for pair in pairs:
        _compare(plan, devices, pair, each, len(pairs), found)
    _judge(plan, found)
    return found


def _judge(plan: Plan, found: ReportSample) -> None:
    stated = plan.guarantee
    if stated.delta:
        if found.delta > stated.delta:
            found.faults.append(
                f"sampled reports show a delta of at least {found.delta:.3g}, stated "
                f"{stated.delta:.3g}"
            )
        return
    # thresholds that were tampered with change what is stated, not what was asked for
    if found.epsilon > min(stated.per_report, float(plan.epsilon)):
        found.faults.append(f"sampled reports show that one costs at least {found.epsilon:.4g}")
    if found.lifetime > min(stated.lifetime, float(plan.epsilon)):
        found.faults.append(
            f"sampled reports show that a lifetime costs at least {found.lifetime:.4g}"
        )


class _SampledDevices:
    """Devices that report, one after another."""

    def __init__(
        self,
        plan: Plan,
        device: Device,
        entropy: Entropy | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._plan, self._device, self._entropy, self._progress = plan, device, entropy, progress
        self._key = os.urandom(32)
        self._made = 0

    def tell(self, record: Record, other: Record) -> Outcome:
        """One report of a new device, or three of one: on another answer, and after a restart."""
        self._made += 1
        if self._progress is not None and self._made % _BATCH == 0:
            self._progress(self._made)
        if self._made % 2:
            return self._told(
                [[record]], None if len(self._plan.series.shares) == 1 else new_state()
            )
        return self._told([[record, other], [record]], joined(self._plan))

    def _told(self, sessions: list[Session], state: ClientState | None) -> Outcome:
        return tell(self._plan, self._device, sessions, self._entropy, self._assignment, state)

    def _assignment(self, place: int) -> Assignment | None:
        if self._plan.coin != "assigned":
            return None
        return Assignment.sign(
            self._key, self._plan.id, (place << 64 | self._made).to_bytes(16, "big"), LATEST
        )


class _Looks:
    """What a report looks like to somebody who wants to tell two records apart."""

    def __init__(self, plan: Plan, pair: tuple[Record, Record]) -> None:
        self._plan = plan
        self._codes = [
            plan.schema.encode(record, plan.cohorts.attributes, plan.cohorts.form)
            for record in pair
        ]
        # cohort -> ask -> values of one record only
        self._telling: dict[int, list[tuple[list[int], list[int]]]] = {}

    def pattern(self, told: Told | None) -> Feature:
        """For each ask, whether the report supports a value of only one of the two records."""
        if told is None:
            return None
        if not told.is_plain(self._plan) or not 0 <= told.cohort < len(self._plan.cohorts):
            return "impossible", told.wire
        cohort = self._plan.cohorts[told.cohort]
        if told.cohort not in self._telling:
            self._telling[told.cohort] = [self._values(ask) for ask in cohort.asks]
        signs = []
        for ask, part, values in zip(
            cohort.asks, cohort.slices, self._telling[told.cohort], strict=True
        ):
            try:
                output = ask.oracle.unpack(told.payload[part])
            except SottovoceError:
                return "impossible", told.payload
            signs.append(
                tuple(any(ask.oracle.supports(output, value) for value in some) for some in values)
            )
        return tuple(signs)

    def _values(self, ask: Ask) -> tuple[list[int], list[int]]:
        one, other = (self._reached(ask, place) for place in (0, 1))
        return sorted(one - other)[:MAX_VALUES], sorted(other - one)[:MAX_VALUES]

    def _reached(self, ask: Ask, place: int) -> set[int]:
        """The values that an encoding may give for a record;
        a set of values counts as all of them.
        """

        def encode(entropy: Entropy) -> object:
            return ask.encoding.encode(self._codes[place], entropy)

        try:
            values = set(exact_law(encode, 1 << 10))
        except NotEnumerable:
            source = Seeded(place)
            values = {encode(source) for _ in range(256)}
        flat: set[int] = set()
        for value in values:
            flat.update(value if isinstance(value, tuple) else {value})  # type: ignore[arg-type]
        return flat


def _compare(
    plan: Plan,
    devices: _SampledDevices,
    pair: tuple[Record, Record],
    each: int,
    pairs: int,
    found: ReportSample,
) -> None:
    looks = _Looks(plan, pair)
    # [half][record] -> (outcome's features) for one report and for the first with a later one
    halves = [[_features(devices, looks, pair, side, each) for side in (0, 1)] for _ in range(2)]
    kinds = len(halves[0][0])
    # two bounds for two events in two directions of each kind
    alpha = (1 - found.confidence) / (2 * 4 * kinds * pairs)
    bound = math.exp(plan.guarantee.per_report)
    for kind in range(kinds):
        for side in (0, 1):
            mine, theirs = halves[0][side][kind], halves[0][1 - side][kind]
            for event in _events(mine, theirs):
                counted, against = halves[1][side][kind], halves[1][1 - side][kind]
                true_rate = _rate(counted, event, alpha)[0]
                false_rate = _rate(against, event, alpha)[1]
                cost = math.log(true_rate / false_rate) if true_rate > 0 else 0.0
                if kind >= kinds - LATER:
                    found.lifetime = max(found.lifetime, cost)
                else:
                    found.epsilon = max(found.epsilon, cost)
                    found.delta = max(found.delta, true_rate - bound * false_rate)


def _features(
    devices: _SampledDevices, looks: _Looks, pair: tuple[Record, Record], side: int, count: int
) -> list[Counter[Feature]]:
    """How often each look was seen: cohort, pattern, both; and the pattern beside later ones."""
    seen: list[Counter[Feature]] = [Counter() for _ in range(3 + LATER)]
    for _ in range(count):
        outcome = devices.tell(pair[side], pair[1 - side])
        told = outcome[0]
        cohort = None if told is None else told.cohort
        pattern = looks.pattern(told)
        seen[0][cohort] += 1
        seen[1][pattern] += 1
        seen[2][cohort, pattern] += 1
        for place, later in enumerate(outcome[1:], start=3):
            seen[place][pattern, looks.pattern(later)] += 1
    return seen


def _events(mine: Counter[Feature], theirs: Counter[Feature]) -> list[set[Feature]]:
    """Events that speak for the first: features seen more often there, and far more often."""
    odds = {feature: (count + 1) / (theirs[feature] + 1) for feature, count in mine.items()}
    frequent = {feature: ratio for feature, ratio in odds.items() if mine[feature] >= 50}
    best = max(frequent.values(), default=1.0)
    return [
        {feature for feature, ratio in odds.items() if ratio > 1},
        {feature for feature, ratio in frequent.items() if ratio >= 0.9 * best},
    ]


def _rate(seen: Counter[Feature], event: set[Feature], alpha: float) -> tuple[float, float]:
    hits = sum(seen[feature] for feature in event)
    return clopper_pearson(hits, max(1, seen.total()), alpha)
