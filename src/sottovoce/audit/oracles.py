"""One oracle by itself: every way its code can go, or draws enough to convict it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from sottovoce.ground.entropy import Entropy, System
from sottovoce.ground.errors import InvalidInput, NotEnumerable
from sottovoce.ground.extras import imported
from sottovoce.oracles import Oracle
from sottovoce.oracles.thresholds import exceeds, log_ratio

AUDIT_DRAWS = 200_000
CONFIDENCE = 0.999
_BATCH = 5_000


@dataclass(frozen=True)
class ExactAudit:
    """The largest log ratio over all outputs and pairs of inputs,
    from the randomizer's own code.
    """

    oracle: str
    epsilon_claimed: float
    epsilon_found: float
    outputs: int
    passed: bool

    def to_json(self) -> dict[str, Any]:
        found = self.epsilon_found if math.isfinite(self.epsilon_found) else None
        return {"kind": "exact", **asdict(self), "epsilon_found": found}

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        return (
            f"{verdict} {self.oracle}: {self.outputs} outputs enumerated, largest log ratio "
            f"{self.epsilon_found:.12g}, claimed {self.epsilon_claimed:.12g}"
        )


@dataclass(frozen=True)
class SampledAudit:
    """A lower bound on epsilon from draws: beyond what is claimed, the mechanism is convicted."""

    oracle: str
    epsilon_claimed: float
    lower_bound: float
    draws: int
    confidence: float
    passed: bool

    def to_json(self) -> dict[str, Any]:
        return {"kind": "sampled", **asdict(self)}

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        return (
            f"{verdict} {self.oracle}: epsilon is at least {self.lower_bound:.4g} "
            f"({self.draws:,} draws, confidence {self.confidence:.2%}), claimed "
            f"{self.epsilon_claimed:.6g}"
        )


def worst_ratio(oracle: Oracle) -> Fraction | None:
    """The largest ratio in the enumerated channel; None if an output needs a certain input."""
    laws = oracle.exact_channel()
    worst = Fraction(1)
    for output in oracle.outputs():
        chances = [law.get(output, Fraction(0)) for law in laws]
        if min(chances) == 0:
            return None
        worst = max(worst, max(chances) / min(chances))
    return worst


def exact(oracle: Oracle) -> ExactAudit:
    """Enumerate the channel of the randomizer as coded; compare it with what the oracle claims.

    >>> from sottovoce.oracles import oracle
    >>> exact(oracle("grr", size=4, epsilon=1.0)).passed
    True
    """
    worst = worst_ratio(oracle)
    found = math.inf if worst is None else log_ratio(worst)
    passed = (
        worst is not None and worst <= oracle.worst_ratio and not exceeds(worst, oracle.requested)
    )
    return ExactAudit(
        oracle.names[0], float(oracle.requested), found, len(oracle.outputs()), passed
    )


def sample(
    oracle: Oracle,
    draws: int,
    confidence: float,
    entropy: Entropy,
    progress: Callable[[int], None] | None = None,
) -> SampledAudit:
    """Bound epsilon from below: events that tell two values apart, by Clopper-Pearson.

    The events say which of the two values a report supports. For each, ln(TPR/FPR) with the true
    rate bounded from below and the false rate from above is a lower bound on epsilon; the error is
    shared over all of them.
    """
    if draws < 1000 or not 0 < confidence < 1:
        raise InvalidInput(
            f"draws ({draws}) must be at least 1000 and confidence ({confidence}) between 0 and 1"
        )
    pair = (0, oracle.size - 1)
    each = draws // 2
    counts = [[0] * 4, [0] * 4]
    for side, value in enumerate(pair):
        for done in range(each):
            output = oracle.randomize(value, entropy)
            counts[side][
                oracle.supports(output, pair[0]) + 2 * oracle.supports(output, pair[1])
            ] += 1
            if progress is not None and done % _BATCH == 0:
                progress(side * each + done)
    alpha = (1 - confidence) / (2 * 8)  # two bounds for each of four events in two directions
    bound = 0.0
    for side in (0, 1):
        for event in range(4):
            true_rate = clopper_pearson(counts[side][event], each, alpha)[0]
            false_rate = clopper_pearson(counts[1 - side][event], each, alpha)[1]
            if true_rate > 0:
                bound = max(bound, math.log(true_rate / false_rate))
    # thresholds that were tampered with change the first
    claimed = min(oracle.epsilon, float(oracle.requested))
    return SampledAudit(oracle.names[0], claimed, bound, 2 * each, confidence, bound <= claimed)


def clopper_pearson(hits: int, draws: int, alpha: float) -> tuple[float, float]:
    """Bounds of a rate, each wrong with probability at most alpha."""
    betaincinv = imported("scipy.special").betaincinv

    low = float(betaincinv(hits, draws - hits + 1, alpha)) if hits else 0.0
    high = float(betaincinv(hits + 1, draws - hits, 1 - alpha)) if hits < draws else 1.0
    return low, high


def audit(
    oracle: Oracle,
    draws: int = AUDIT_DRAWS,
    confidence: float = CONFIDENCE,
    progress: Callable[[int], None] | None = None,
) -> ExactAudit | SampledAudit:
    """Exact where the outputs can be enumerated, else sampled from the system's entropy."""
    try:
        return exact(oracle)
    except NotEnumerable:
        return sample(oracle, draws, confidence, System(), progress)
