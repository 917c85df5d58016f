"""Whether a shuffled plan keeps what it promises: its frozen numbers, counted again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sottovoce.accounting.shuffling import shuffled_delta
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.thresholds import exceeds, log_ratio
from sottovoce.protocol.guarantee import at_most

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan

# relative, of a delta: another machine's Fourier transform may round otherwise, which the margin of
# the grid covers many times
RECOUNTED_TO = 1e-9


@dataclass(frozen=True)
class Recount:
    """What the accountant finds for the frozen numbers of a shuffled plan.

    Attributes:
        stated: the delta that is promised.
        delta: an upper bound of it, at the analyst's epsilon and for ``least`` people.
        colluding_delta: the same at ``colluding`` among fakes alone; None without fakes.
        local: what a report costs by itself, exactly rounded up.
        faults: what is promised and not kept, in words.
    """

    stated: float
    delta: float | None = None
    colluding_delta: float | None = None
    local: float = math.inf
    faults: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "delta_stated": self.stated,
            "delta_counted": self.delta,
            "colluding_delta_counted": self.colluding_delta,
            "local_epsilon": self.local if math.isfinite(self.local) else None,
        }


@lru_cache(maxsize=64)
def recount(plan: Plan) -> Recount:
    """Count again what a shuffled plan's numbers promise; once for every plan.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x", oracle="sh"), epsilon=0.5,
    ...     delta="1e-6", people=20_000, trust="shuffled")
    >>> found = recount(plan)
    >>> found.delta <= found.stated, found.faults
    (True, ())
    """
    part = plan.shuffling
    if part is None:
        raise InvalidInput("plan: it is not shuffled")
    stated = float(part.delta)
    try:
        mixture = plan.cohorts.mixture
        delta = shuffled_delta(mixture, float(part.epsilon), part.least, part.fakes)
        among_fakes = None
        if part.colluding is not None:
            among_fakes = shuffled_delta(mixture, float(part.colluding), 1, part.fakes)
    except InvalidInput as wrong:
        return Recount(stated, faults=(str(wrong),))
    ratio = max(Fraction(math.prod(ask.ratio for ask in asks)) for _, asks in mixture)
    faults = []
    if delta > stated * (1 + RECOUNTED_TO):
        faults.append(
            f"least ({part.least}) people are too few: at epsilon {part.epsilon} they keep delta "
            f"{at_most(delta)}, not {at_most(stated)}"
        )
    if among_fakes is not None and among_fakes > stated * (1 + RECOUNTED_TO):
        faults.append(
            f"fakes ({part.fakes}) are too few for colluding ({part.colluding}): they keep delta "
            f"{at_most(among_fakes)}, not {at_most(stated)}"
        )
    if exceeds(ratio, min(plan.epsilon, part.cap)):
        faults.append(
            f"a report by itself costs {log_ratio(ratio):.12g}, more than epsilon ({plan.epsilon}) "
            f"or cap ({part.cap})"
        )
    return Recount(stated, delta, among_fakes, log_ratio(ratio), tuple(faults))
