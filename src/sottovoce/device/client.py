"""The device: a record goes in, a whisper comes out."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from time import time
from typing import Any

from sottovoce.device.account import DEFAULT_CAP, DEFAULT_DELTA_CAP, Account, cost_of
from sottovoce.device.assignment import Assignment, assigned_cohort
from sottovoce.ground.entropy import Entropy, System
from sottovoce.ground.errors import InvalidInput, NotInThisRound, PlanMismatch
from sottovoce.protocol.columns import Values
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report

INVALID = ("draw", "raise")  # what becomes of a value that the schema does not have


@dataclass
class Membership:
    """A device's place in a series: the rounds' shares, its round, and the plan it answered."""

    shares: tuple[int, ...]
    number: int
    plan: str | None = None


class PrivacyWarning(UserWarning):
    """A report that costs epsilon anew, where the caller may not expect it."""


class InvalidValueWarning(UserWarning):
    """A record has no valid value of an attribute, so that another one is reported in its place."""


class ClientState:
    """What a device keeps between reports: its rounds, a memo for each plan, and its account.

    It never holds an answer. Threads may share it, and then answer one after the other; two
    processes may not, since each would draw for itself. The account says what was spent on each
    attribute by all plans together: a new plan that would pass ``cap`` (of epsilon) or
    ``delta_cap`` is not answered (:class:`sottovoce.BudgetExceeded`).

    Args:
        cap: how much epsilon all plans about an attribute may cost together.
        delta_cap: of their deltas.

    >>> state = ClientState(cap=2)
    >>> ClientState.from_json(state.to_json()).account.cap
    Spent(epsilon=2000000000, delta=10000000)
    """

    def __init__(self, cap: Any = DEFAULT_CAP, delta_cap: Any = DEFAULT_DELTA_CAP) -> None:
        self.rounds: dict[str, Membership] = {}
        self.memos: dict[str, tuple[int, list[str]]] = {}
        self.account = Account.capped(cap, delta_cap)
        self.lock = threading.RLock()  # held from the look at a memo until there is one

    def to_json(self) -> str:
        """All that is kept, as text; it holds no answer."""
        with self.lock:
            rounds = {series: asdict(member) for series, member in self.rounds.items()}
            return json.dumps(
                {"rounds": rounds, "memos": self.memos, "account": self.account.to_json()}
            )

    @classmethod
    def from_json(cls, text: str) -> ClientState:
        """The inverse of :meth:`to_json`.

        Args:
            text: what it gave.
        """
        try:
            data = json.loads(text)
            if set(data) != {"rounds", "memos", "account"}:
                raise ValueError
            state = cls()
            state.rounds = {
                str(series): Membership(tuple(part["shares"]), int(part["number"]), part["plan"])
                for series, part in data["rounds"].items()
            }
            state.memos = {
                str(plan): (int(memo[0]), [bytes.fromhex(part).hex() for part in memo[1]])
                for plan, memo in data["memos"].items()
            }
            state.account = Account.from_json(data["account"])
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise InvalidInput("client state: it must be the JSON that to_json wrote") from None
        return state


class Client:
    """One person's device.

    With a ``state``, answering again under the same plan recalls the memo, whatever is answered
    then, so a lifetime of reports costs what the plan says. Without one every call draws fresh
    coins, as if it were another person, and costs epsilon again: call it once (a second call
    warns). A plan whose coin is assigned needs the ``assignment`` that the collector handed out.

    A device that is asked always reports, since its silence would tell. With ``invalid="draw"`` a
    value that is missing, or that the schema does not have, is reported as the attribute's
    ``other``, or as a drawn one if it has none; members of a set that the schema does not list are
    left out, and what is no set is an empty one. With ``invalid="raise"`` such a record raises
    :class:`sottovoce.InvalidInput`, and the caller knows why nothing is sent.

    Args:
        plan: to be answered.
        state: what the device keeps; without it every report is as of another person.
        entropy: the coins; the system's by default.
        assignment: what the collector handed out, if the plan's coin is assigned.
        invalid: ``draw``, or ``raise`` to refuse a record without a valid value.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> len(Client(plan).report({"x": True}).to_bytes())
    15
    """

    def __init__(
        self,
        plan: Plan,
        state: ClientState | None = None,
        entropy: Entropy | None = None,
        assignment: Assignment | None = None,
        invalid: str = INVALID[0],
    ) -> None:
        if invalid not in INVALID:
            raise InvalidInput(f"invalid ({invalid}) must be one of {', '.join(INVALID)}")
        if (plan.coin == "assigned") != (assignment is not None):
            raise InvalidInput(
                "assignment is required for a plan whose coin is assigned, and for no other"
            )
        if assignment is not None and assignment.plan_id != plan.id:
            raise PlanMismatch("assignment: it belongs to another plan")
        self.plan = plan
        self.state = state
        self._entropy = entropy or System()
        self._assignment = assignment
        self._invalid = invalid
        self._fresh = 0

    def report(self, record: Mapping[str, Any]) -> Report:
        """The whisper for a record, which stays here; attributes that no ask reads may be missing.

        The plan's public columns leave in clear beside it. A record without a valid value of one of
        them raises :class:`sottovoce.InvalidInput`, whatever ``invalid`` says, before any coin is
        drawn and anything is spent: public values are public, so that this silence tells nothing of
        the attributes that are whispered.

        Args:
            record: the answers by attribute.
        """
        if not isinstance(record, Mapping):
            raise InvalidInput("record must be a mapping of attributes to values")
        with nullcontext() if self.state is None else self.state.lock:
            return self._report(record)

    def _report(self, record: Mapping[str, Any]) -> Report:
        plan = self.plan
        public = plan.public.read(record)
        memo = self.state.memos.get(plan.id) if self.state is not None else None
        if memo is None and self._assignment is not None:
            # before any coin: what is drawn too late is drawn for nothing
            self._assignment.check_time(time())
        self._join_round()
        if memo is not None:
            return self._recalled(memo, public)
        valid = self._read(record)
        if self.state is not None:
            self.state.account.charge(plan.cohorts.attributes, cost_of(plan.cohorts))
        entropy = self._assignment.entropy(self._entropy) if self._assignment else self._entropy
        index = assigned_cohort(plan, entropy)
        cohort = plan.cohorts[index]
        codes = {name: self._value(name, valid, entropy) for name in plan.cohorts.attributes}
        self._count_fresh()
        if self.state is not None and len(plan.series.shares) > 1:
            self.state.rounds[plan.series.origin or plan.id].plan = plan.id
        memos = [
            ask.oracle.memorize(ask.encoding.encode(codes, entropy), entropy) for ask in cohort.asks
        ]
        if self.state is not None:
            packed = [
                ask.oracle.pack(kept).hex() for ask, kept in zip(cohort.asks, memos, strict=True)
            ]
            self.state.memos[plan.id] = (index, packed)
        payload = b"".join(
            ask.oracle.pack(ask.oracle.recall(kept, entropy))
            for ask, kept in zip(cohort.asks, memos, strict=True)
        )
        return Report(plan.id, index, payload, public, plan.public)

    def _read(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """What the asks read, of all cohorts; without what is not valid,
        unless that is to raise.
        """
        cohorts = self.plan.cohorts
        if self._invalid == "raise":
            return self.plan.schema.encode(record, cohorts.attributes, cohorts.form)
        valid = self.plan.schema.encode_valid(record, cohorts.attributes, cohorts.form)
        for name in cohorts.attributes:
            if name not in valid:
                message = (
                    f"attribute {name!r}: the record has no valid value of it, so another one is "
                    "reported"
                )
                with suppress(InvalidValueWarning):  # where warnings are errors it would tell, too
                    warnings.warn(message, InvalidValueWarning, stacklevel=4)
        return valid

    def _value(self, name: str, valid: Mapping[str, Any], entropy: Entropy) -> Any:
        """What is reported of an attribute."""
        if name in valid:
            return valid[name]
        return self.plan.schema[name].substitute(self.plan.cohorts.form, entropy)

    def _count_fresh(self) -> None:
        self._fresh += 1
        if self._fresh == 2:
            message = (
                "a second report without a state draws fresh coins: of the same person it costs "
                "epsilon again"
            )
            warnings.warn(message, PrivacyWarning, stacklevel=4)

    def _recalled(self, memo: tuple[int, list[str]], public: Values) -> Report:
        index, packed = memo
        if not 0 <= index < len(self.plan.cohorts) or len(packed) != len(
            self.plan.cohorts[index].asks
        ):
            raise InvalidInput("client state: its memo does not fit the plan")
        cohort = self.plan.cohorts[index]
        payload = b""
        for ask, kept in zip(cohort.asks, packed, strict=True):
            output = ask.oracle.recall(ask.oracle.unpack(bytes.fromhex(kept)), self._entropy)
            payload += ask.oracle.pack(output)
        return Report(self.plan.id, index, payload, public, self.plan.public)

    def _join_round(self) -> None:
        """In a series: draw a round once, answer one plan of it, and no other."""
        series = self.plan.series
        if len(series.shares) == 1:
            return
        if self.state is None:
            raise InvalidInput(
                "state is required for a plan of several rounds, so that nobody answers twice"
            )
        name = series.origin or self.plan.id
        if name not in self.state.rounds:
            number = series.at(self._entropy.below(sum(series.shares)))
            self.state.rounds[name] = Membership(series.shares, number)
        member = self.state.rounds[name]
        if member.shares != series.shares:
            raise NotInThisRound("this device joined the series when its rounds had other shares")
        if member.number != series.number:
            raise NotInThisRound(f"this device belongs to another round than round {series.number}")
        if member.plan not in (None, self.plan.id):
            raise NotInThisRound("this device has answered another plan of this round")
