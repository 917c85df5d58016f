"""The demo's middle way: the same people, if shufflers had mixed their reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sottovoce.demo.curator import RELEASE_DELTA, Curated, table_error

if TYPE_CHECKING:
    from sottovoce.demo.survey import Finding
    from sottovoce.protocol.plan import Plan

SIMULATION_SEED = 3  # if the coins are real: shuffled reports are simulated here


@dataclass(frozen=True)
class Mixed:
    """One table as shuffled reports tell it, beside the truth."""

    plan: Plan
    finding: Finding

    @property
    def sentence(self) -> str:
        """What an analyst is kept from learning, and what else is promised."""
        promises = "; ".join(str(self.plan.guarantee).split("\n"))
        return (
            "If others shuffle the reports before anybody opens them, each person hides in the "
            "crowd, so that a report may be clearer while the analyst learns no more: "
            f"{promises}."
        )


@dataclass(frozen=True)
class TrustModel:
    """A row of the comparison: who sees what, and how far a table is off."""

    name: str
    who: str
    error: float


def mixed(
    plan: Plan, people: Mapping[str, Sequence[Any]], local: Finding, up_to: int, seed: int | None
) -> Mixed:
    """Ask the same people the same question, shuffled, and look at one table.

    Args:
        plan: the local one.
        people: made up.
        local: a table as it was whispered, with the truth.
        up_to: attributes of a table.
        seed: of the simulated devices.
    """
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.api.planning import plan as planned
    from sottovoce.api.surveys import asked
    from sottovoce.demo.survey import Finding
    from sottovoce.device.simulation import simulate
    from sottovoce.protocol.terms import SHUFFLED

    shuffled = planned(
        plan.schema,
        asked("marginals", up_to=up_to),
        epsilon=plan.epsilon,
        people=plan.people,
        trust=SHUFFLED,
        delta=RELEASE_DELTA,
    )
    reports = simulate(shuffled, people, SIMULATION_SEED if seed is None else seed)
    estimate: Any = Aggregate(shuffled).add(reports).estimate()
    return Mixed(shuffled, Finding(estimate.marginal(*local.table.attributes), local.truth))


def trust_models(local: Finding, middle: Mixed, curated: Curated) -> list[TrustModel]:
    """The same table at the same epsilon, by whom people must trust."""
    return [
        TrustModel("local", "nobody sees an answer", table_error(local)),
        TrustModel("shuffled", "nobody, if one shuffler keeps apart", table_error(middle.finding)),
        TrustModel("central", "the curator sees all answers", table_error(curated.central)),
    ]
