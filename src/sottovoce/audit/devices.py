"""What a device that is audited sends: its reports one after another, restarts between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sottovoce.audit.records import Record
from sottovoce.device.assignment import Assignment
from sottovoce.device.client import Client, ClientState, Membership
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import NotEnumerable, SottovoceError
from sottovoce.oracles.thresholds import LARGEST_EPSILON
from sottovoce.protocol.columns import Values
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report

Device = Callable[..., Client]  # as Client is called
Session = Sequence[Record]  # what one device reports until it is started anew
# the assignment of each session, by its place: one serves once
Assigning = Callable[[int], Assignment | None]


class Told(NamedTuple):
    """A report as it leaves a device: what it says of itself, and what it writes."""

    plan_id: str
    cohort: int
    payload: bytes
    wire: bytes
    text: str
    public: Values = ()

    def plain(self, plan: Plan) -> Report:
        """What it says, as a report of its plan."""
        return Report(self.plan_id, self.cohort, self.payload, self.public, plan.public)

    def is_plain(self, plan: Plan) -> bool:
        """Whether it writes what it says, and nothing else."""
        try:
            plain = self.plain(plan)
            return (self.wire, self.text) == (plain.to_bytes(), plain.to_json())
        except SottovoceError:
            return False


Outcome = tuple[Told | None, ...]  # None where no report leaves


def new_state() -> ClientState:
    """A state whose account takes any plan: audits look at what a report costs."""
    return ClientState(cap=LARGEST_EPSILON, delta_cap=1)


def joined(plan: Plan) -> ClientState:
    """The state of a device that is in this plan's round and has not answered yet."""
    state = new_state()
    if len(plan.series.shares) > 1:
        state.rounds[plan.series.origin or plan.id] = Membership(
            plan.series.shares, plan.series.number
        )
    return state


def tell(
    plan: Plan,
    device: Device,
    sessions: Sequence[Session],
    entropy: Entropy | None,
    assigning: Assigning,
    state: ClientState | None,
) -> Outcome:
    """What one person's device sends. Later sessions are new devices on the state as written."""
    told: list[Told | None] = []
    for place, records in enumerate(sessions):
        if place and state is not None:
            state = ClientState.from_json(state.to_json())
        client = device(plan, state=state, entropy=entropy, assignment=assigning(place))
        told += [_told(client, record) for record in records]
    return tuple(told)


def told_of(report: Report) -> Told:
    """A report as it leaves."""
    return Told(
        report.plan_id,
        report.cohort,
        report.payload,
        report.to_bytes(),
        report.to_json(),
        report.public,
    )


def _told(client: Client, record: Record) -> Told | None:
    """One report; a device that refuses or fails is silent, which tells as a report does."""
    try:
        return told_of(client.report(record))
    except NotEnumerable:
        raise
    except Exception:
        return None
