"""The audit of a plan: its devices' whole reports, enumerated where they can be, sampled beyond."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sottovoce.audit.crowds import CrowdAudit, CrowdParts, audit_crowds
from sottovoce.audit.devices import Device
from sottovoce.audit.draws import faults_of_draws
from sottovoce.audit.enumeration import MAX_WAYS, Enumeration, enumerate_reports
from sottovoce.audit.oracles import AUDIT_DRAWS, CONFIDENCE
from sottovoce.audit.sampling import ReportSample, sample_reports
from sottovoce.device.client import Client
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import NotEnumerable
from sottovoce.protocol.guarantee import Guarantee, at_most
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.promises import Recount, recount

CHECKED_DRAWS = 10_000  # of the devices' real coins, where all else was enumerated
EXACT, GIVEN_PUBLIC, SAMPLED = ("exact", "exact given sampled public coins", "sampled")
_SCOPES = {
    "all": "all records",
    "all read": "all values of what a cohort reads, some of the rest",
    "some": "some records",
}


@dataclass(frozen=True)
class PlanAudit:
    """What an audit of a plan found. It passed if nothing is at fault."""

    plan_id: str
    stated: Guarantee
    requested: str  # the plan's epsilon as it was asked for
    cohorts: int
    enumeration: Enumeration | None  # None if there were too many ways
    sample: ReportSample
    faults: tuple[str, ...]
    # of a shuffled plan: its numbers counted again, and tiny crowds
    recount: Recount | None = None
    crowds: CrowdAudit | None = None

    @property
    def passed(self) -> bool:
        return not self.faults

    @property
    def kind(self) -> str:
        """How it was audited: ``exact``, ``exact given sampled public coins`` or ``sampled``."""
        if self.enumeration is None:
            return SAMPLED
        return GIVEN_PUBLIC if self.enumeration.public_samples else EXACT

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "kind": self.kind,
            "passed": self.passed,
            "faults": list(self.faults),
            "epsilon_requested": float(self.requested),
            "epsilon_claimed": self.stated.per_report,
            "lifetime_claimed": self.stated.lifetime,
            "delta_claimed": self.stated.delta,
            "sample": {
                "draws": self.sample.draws,
                "confidence": self.sample.confidence,
                "epsilon_at_least": self.sample.epsilon,
                "lifetime_at_least": self.sample.lifetime,
                "delta_at_least": self.sample.delta,
            },
        }
        found = self.enumeration
        if found is not None:
            told |= {
                "epsilon_found": _finite(found.epsilon),
                "lifetime_found": _finite(found.lifetime),
                "delta_found": found.delta,
                "records": found.records,
                "records_scope": _SCOPES[found.scope],
                "cohorts": found.cohorts,
                "cohorts_in_plan": self.cohorts,
                "public_samples": found.public_samples,
                "ways": found.ways,
                "reports": found.reports,
            }
        if self.recount is not None and self.crowds is not None:
            told["shuffled"] = self.recount.to_json() | {"crowds": self.crowds.to_json()}
        return told

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        lines = [f"{verdict} plan {self.plan_id[:16]}: {self.kind}"]
        lines += [f"  fault: {fault}" for fault in self.faults]
        if self.enumeration is not None:
            lines += self._enumerated(self.enumeration)
        lines.append(self._sampled())
        if self.recount is not None and self.crowds is not None:
            lines += [self._recounted(self.recount), f"  {self.crowds}"]
        return "\n".join(lines)

    def _recounted(self, found: Recount) -> str:
        if found.delta is None:
            return "  counted again: the accountant does not know this plan"
        among = found.colluding_delta
        fakes = "" if among is None else f", {at_most(among)} among fakes alone"
        return (
            f"  counted again: delta {at_most(found.delta)} for the least number of people{fakes} "
            f"(stated {at_most(found.stated)}), by the code that bounds the crowds below"
        )

    def _enumerated(self, found: Enumeration) -> list[str]:
        scope = f"{_SCOPES[found.scope]} ({found.records} at once)"
        public = (
            "all public coins"
            if not found.public_samples
            else f"{found.public_samples} draws of public coins"
        )
        first = (
            f"  enumerated: {scope}, {found.cohorts:,} of {self.cohorts:,} cohorts, {public}; "
            f"{found.ways:,} ways that coins fall, {found.reports:,} reports"
        )
        if self.stated.delta:
            cost = (
                f"delta {found.delta:.3g} at epsilon {self.stated.per_report:.6g} (stated "
                f"{self.stated.delta:.3g})"
            )
            return [first, f"  {cost}"]
        largest = (
            f"  largest log ratio: {found.epsilon:.12g} of one report (stated "
            f"{self.stated.per_report:.12g}, asked for {self.requested})"
        )
        if found.lifetime is None:
            return [first, f"{largest}; two reports of one device have too many ways"]
        lifetime = f"{found.lifetime:.12g} of {found.lifetime_reports} by one device"
        return [first, f"{largest}, {lifetime} (stated {self.stated.lifetime:.12g})"]

    def _sampled(self) -> str:
        sample = self.sample
        bound = f"epsilon is at least {sample.epsilon:.4g}, over a lifetime {sample.lifetime:.4g}"
        if self.stated.delta:
            bound = f"delta is at least {sample.delta:.3g}"
        return (
            f"  sampled: {sample.draws:,} reports with real coins, {bound} (confidence "
            f"{sample.confidence:.2%})"
        )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def audit_plan(
    plan: Plan,
    draws: int = AUDIT_DRAWS,
    confidence: float = CONFIDENCE,
    device: Device = Client,
    entropy: Entropy | None = None,
    seed: bytes | None = None,
    limit: int | None = None,
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
    crowd: CrowdParts | None = None,
) -> PlanAudit:
    """Audit a plan by its devices' reports: cohort, encoding, all asks together, one and several.

    Every way that the coins can fall is gone for many pairs of records, if there are at most about
    ``limit``; draws with real coins follow, more of them where nothing could be enumerated. Of a
    shuffled plan its frozen numbers are counted again, and tiny crowds are mixed along all ways.

    Args:
        plan: the plan to audit.
        draws: reports to sample where they cannot be enumerated.
        confidence: of the bounds from samples.
        device: what makes a device of a plan, called as ``Client`` is.
        entropy: the sampled devices' coins; None for those of the operating system.
        seed: of the public coins that are sampled where they are too many; by default a new one.
        limit: of the ways that are enumerated, about; ``MAX_WAYS`` by default.
        progress: told how many reports were made so far.
        say: told what comes next, in words, before it is begun.
        crowd: of a shuffled plan: fakes, mixing and accountant; the real ones by default.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> found = audit_plan(plan, draws=1000)
    >>> found.kind, found.passed, found.enumeration.reports
    ('exact', True, 2)
    """
    enumeration = None
    faults: list[str] = []
    seed = seed or os.urandom(16)
    say = say or (lambda line: None)
    most = limit or MAX_WAYS
    cohorts = f"{len(plan.cohorts):,} cohort{'s' if len(plan.cohorts) > 1 else ''}"
    say(f"enumerating reports of {cohorts}, about {most:,} ways that coins fall")
    try:
        enumeration = enumerate_reports(plan, device, seed=seed, limit=most, progress=progress)
    except NotEnumerable:
        count = draws
        say(f"reports have too many ways to list: sampling {count:,} of them with real coins")
    else:
        count = min(draws, CHECKED_DRAWS)
        faults += [*enumeration.faults, *faults_of_draws(enumeration.draws)]
    before = 0 if enumeration is None else enumeration.ways
    further = None if progress is None else (lambda done: progress(before + done))
    sample = sample_reports(plan, count, confidence, device, entropy, further)
    faults += sample.faults
    counted, crowds = None, None
    if plan.shuffling is not None:
        say("mixing reports of tiny crowds")
        counted = recount(plan)
        faults += counted.faults
        # without a bound there is nothing to compare
        crowds = (
            CrowdAudit(reason="nothing bounds them")
            if counted.delta is None
            else audit_crowds(plan, device, seed, most, crowd)
        )
        faults += crowds.faults
    return PlanAudit(
        plan.id,
        plan.guarantee,
        str(plan.epsilon),
        len(plan.cohorts),
        enumeration,
        sample,
        tuple(faults),
        counted,
        crowds,
    )
