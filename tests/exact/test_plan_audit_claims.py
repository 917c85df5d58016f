"""Devices that leak beside the common case, each within what an exact audit of a plan claims: all
must fail it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.audit import PlanAudit, audit_plan, enumeration
from sottovoce.audit.records import Records
from sottovoce.audit.sampling import sample_reports
from sottovoce.device.client import Client
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.reports import Report

ONE_ASK = sv.plan(
    sv.Schema(a=sv.Boolean(), unread=sv.Categorical(["x", "y", "z"])),
    sv.Frequencies("a"),
    epsilon=1,
    people=1000,
)
BOTH = sv.plan(
    sv.Schema(a=sv.Boolean(), b=sv.Boolean()),
    sv.Frequencies("a", "b", split="budget"),
    epsilon=1,
    people=1000,
)
BASKETS = sv.plan(
    sv.Schema(a=sv.Items("wxyz")),
    sv.TopItems("a", top=2, method="psfo", length=2, oracle="grr"),
    epsilon=1,
    people=1000,
)
ASSIGNED = sv.plan(
    sv.Schema(a=sv.Boolean()), sv.Frequencies("a"), epsilon=1, people=1000, coin="assigned"
)
ASSIGNED_WIDE = sv.plan(
    sv.Schema(a=sv.Categorical(range(100))),
    sv.Frequencies("a", oracle="oue"),
    epsilon="1.5",
    people=1000,
    coin="assigned",
)
AGES = sv.plan(sv.Schema(a=sv.Ordinal(1, 4)), sv.Frequencies("a"), epsilon=1, people=1000)


def audited(plan: sv.Plan, device: Callable[..., Client] = Client) -> PlanAudit:
    return audit_plan(plan, 1_000, device=device, entropy=Seeded(5), seed=b"fixed", limit=1 << 12)


def answered(report: Report, payload: bytes) -> Report:
    return Report(report.plan_id, report.cohort, payload)


class SameAgain(Client):
    """Fresh coins whenever the same answer is given again; what was answered is known until the
    device restarts.
    """

    last: Mapping[str, Any] | None = None

    def report(self, record: Mapping[str, Any]) -> Report:
        if self.state is not None and self.last == record:
            self.state.memos.clear()
        self.last = record
        return super().report(record)


class OtherAnswer(Client):
    """The same for another answer."""

    last: Mapping[str, Any] | None = None

    def report(self, record: Mapping[str, Any]) -> Report:
        if self.state is not None and self.last not in (None, record):
            self.state.memos.clear()
        self.last = record
        return super().report(record)


class Restarted(Client):
    """The memo is in the object and not in the state, so that every restart draws anew."""

    kept: Report | None = None

    def report(self, record: Mapping[str, Any]) -> Report:
        if self.kept is None:
            if self.state is not None:
                self.state.memos.clear()
            self.kept = super().report(record)
        return self.kept


class ByAssignment(Client):
    """A restarted device drops its memo if the assignment is another one than before, or (``same``)
    the same one.
    """

    same = False
    is_new = True

    def report(self, record: Mapping[str, Any]) -> Report:
        if self.state is None or self._assignment is None:
            return super().report(record)
        mine = (0, [self._assignment.id.hex()])
        before = self.state.memos.get("assignment")
        if self.is_new and before is not None and (before == mine) == self.same:
            del self.state.memos[self.plan.id]
        self.is_new = False
        told = super().report(record)
        self.state.memos["assignment"] = mine
        return told


class SameAssignment(ByAssignment):
    same = True


class Refusing(Client):
    """A device that has answered takes no other assignment: it is silent then,
    whatever the record.
    """

    def report(self, record: Mapping[str, Any]) -> Report:
        if self.state is None or self._assignment is None:
            return super().report(record)
        mine = (0, [self._assignment.id.hex()])
        if self.state.memos.setdefault("assignment", mine) != mine:
            raise InvalidInput("assignment: it is another one than that of the memo")
        return super().report(record)


class Third(Client):
    """Fresh coins from the third report on."""

    made = 0

    def report(self, record: Mapping[str, Any]) -> Report:
        self.made += 1
        if self.state is not None and self.made > 2:
            self.state.memos.clear()
        return super().report(record)


class Unread(Client):
    """The report tells whether an attribute that is not asked has its middle value."""

    def report(self, record: Mapping[str, Any]) -> Report:
        told = super().report(record)
        return answered(told, b"\x01") if record.get("unread") == "y" else told


class Longer(Report):
    """The bytes that leave have the answer behind them."""

    answer = False

    def to_bytes(self) -> bytes:
        return super().to_bytes() + bytes([self.answer])


class Spoken(Report):
    """The JSON that leaves has the answer in it."""

    answer = False

    def to_json(self) -> str:
        return super().to_json()[:-1] + f', "answer": {int(self.answer)}}}'


def writing(form: type[Report]) -> Callable[..., Client]:
    class Writing(Client):
        def report(self, record: Mapping[str, Any]) -> Report:
            told = super().report(record)
            written = form(told.plan_id, told.cohort, told.payload)
            object.__setattr__(written, "answer", record.get("a") is True)
            return written

    return Writing


class Strict(Client):
    """Silent for a value that is there and outside the schema."""

    def report(self, record: Mapping[str, Any]) -> Report:
        self._invalid = "raise" if record.get("a") is not None else "draw"
        return super().report(record)


class SilentNone(Client):
    """Silent for a value that is None."""

    def report(self, record: Mapping[str, Any]) -> Report:
        if record.get("a", 0) is None:
            raise InvalidInput("no value")
        return super().report(record)


class SilentWithState(Client):
    """Silent for a value outside the schema, once it keeps a state."""

    def report(self, record: Mapping[str, Any]) -> Report:
        self._invalid = "draw" if self.state is None else "raise"
        return super().report(record)


class SilentNoneWithState(Client):
    """Silent for a value that is None, once it keeps a state."""

    def report(self, record: Mapping[str, Any]) -> Report:
        if self.state is not None and record.get("a", 0) is None:
            raise InvalidInput("no value")
        return super().report(record)


class SilentSecond(Client):
    """Silent where the second of two attributes has no valid value, once it keeps a state."""

    def report(self, record: Mapping[str, Any]) -> Report:
        if self.state is not None and record.get("b") not in (True, False):
            raise InvalidInput("no value")
        return super().report(record)


class RedrawingInvalid(Client):
    """Fresh coins whenever a value is outside the schema."""

    def report(self, record: Mapping[str, Any]) -> Report:
        if self.state is not None and record.get("a") not in (True, False):
            self.state.memos.clear()
        return super().report(record)


class Failing(Client):
    """Fails, otherwise than by a refusal, for one answer."""

    def report(self, record: Mapping[str, Any]) -> Report:
        if record.get("a") is True:
            raise KeyError("a")
        return super().report(record)


class UnlistedMember(Client):
    """A member that the schema lacks, beside listed ones, makes the report all zeros."""

    def report(self, record: Mapping[str, Any]) -> Report:
        told = super().report(record)
        held = record.get("a")
        listed = [member in set("wxyz") for member in held] if isinstance(held, list) else []
        return answered(told, bytes(len(told.payload))) if any(listed) and not all(listed) else told


class AboveRange(Client):
    """A number above the range is told as the highest answer, always."""

    def report(self, record: Mapping[str, Any]) -> Report:
        told = super().report(record)
        return answered(told, b"\x03") if record.get("a") == 5 else told


@pytest.mark.parametrize("plan", [ONE_ASK, BASKETS, AGES, ASSIGNED])
def test_without_a_mutant_they_pass(plan: sv.Plan) -> None:
    found = audited(plan)
    assert found.passed, str(found)
    assert found.enumeration is not None
    assert found.enumeration.scope == "all"
    assert found.enumeration.lifetime_reports == 5


@pytest.mark.parametrize(
    ("plan", "device", "fault"),
    [
        (ONE_ASK, SameAgain, "a lifetime of reports"),
        (ONE_ASK, OtherAnswer, "a lifetime of reports"),
        (ONE_ASK, Restarted, "a lifetime of reports"),
        (ONE_ASK, Third, "a lifetime of reports"),
        (ASSIGNED, ByAssignment, "a lifetime of reports"),
        (ASSIGNED, SameAssignment, "a lifetime of reports"),
        (ONE_ASK, Unread, "one report"),
        (ONE_ASK, writing(Longer), "other bytes than those of its report"),
        (ONE_ASK, writing(Spoken), "other bytes than those of its report"),
        (ONE_ASK, Strict, "silence depends on the record"),
        (AGES, Strict, "silence depends on the record"),
        (ONE_ASK, SilentNone, "silence depends on the record"),
        (ONE_ASK, SilentWithState, "a lifetime of reports"),
        (ASSIGNED, SilentWithState, "a lifetime of reports"),
        (ONE_ASK, SilentNoneWithState, "a lifetime of reports"),
        (BOTH, SilentSecond, "a lifetime of reports"),
        (ONE_ASK, RedrawingInvalid, "a lifetime of reports"),
        (ASSIGNED, RedrawingInvalid, "a lifetime of reports"),
        (ONE_ASK, Failing, "silence depends on the record"),
        (BASKETS, UnlistedMember, "some record rules it out"),
        (AGES, AboveRange, "some record rules it out"),
    ],
)
def test_a_mutant_within_the_claim_fails(
    plan: sv.Plan, device: Callable[..., Client], fault: str
) -> None:
    found = audited(plan, device)
    assert not found.passed
    assert any(fault in each for each in found.faults), found.faults


@pytest.mark.parametrize("device", [Client, SameAgain, OtherAnswer, Restarted])
def test_two_reports_are_compared_where_five_have_too_many_ways(
    device: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enumeration, "MAX_WAYS_PER_LIFETIME", 1)
    found = audited(ONE_ASK, device)
    assert found.passed == (device is Client)
    assert "of 2 by one device" in str(found)


def test_a_device_that_refuses_a_second_assignment_passes() -> None:
    found = audited(ASSIGNED, Refusing)
    assert found.passed, str(found)


@pytest.mark.parametrize("device", [Client, ByAssignment])
def test_sampled_devices_are_restarted_with_a_new_assignment(device: Callable[..., Client]) -> None:
    found = sample_reports(ASSIGNED_WIDE, 8_000, 0.999, device, Seeded(5))
    assert bool(found.faults) == (device is ByAssignment), found


def test_a_device_that_never_reports_fails() -> None:
    class Broken(Client):
        def report(self, record: Mapping[str, Any]) -> Report:
            raise KeyError("a")

    assert "a device never sends a report" in audited(ONE_ASK, Broken).faults


def test_all_records_are_all_values_of_what_is_not_asked_too() -> None:
    records = Records(ONE_ASK)
    assert records.scope == "all"
    assert len(records.of_cohort(0)) == 6
    wide = sv.Schema(a=sv.Boolean(), unread=sv.Ordinal(0, 999))
    records = Records(sv.plan(wide, sv.Frequencies("a"), epsilon=1, people=1000))
    assert {0, 999} < {record["unread"] for record in records.of_cohort(0)}
    assert records.scope == "all read"


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        (sv.Boolean(), "?"),
        (sv.Categorical(["?", "x"]), "?" * 1024),
        (sv.Categorical(["?", "?" * 1024, -1]), 0.5),
        (sv.Ordinal(1, 4), 5),
        (sv.Integer(bits=3), "?"),
    ],
)
def test_people_without_a_valid_value_are_among_the_records(attribute: Any, value: Any) -> None:
    plan = sv.plan(
        sv.Schema(a=attribute, b=sv.Boolean()), sv.Frequencies("a"), epsilon=1, people=1000
    )
    outside = Records(plan).outside(0)
    assert [record.get("a", "lacking") for record in outside] == ["lacking", value, None]
    with pytest.raises(InvalidInput):
        Client(plan, invalid="raise").report(outside[1])
