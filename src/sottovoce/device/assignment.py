"""Assigned coins: the collector hands out cohort and hashes, signed, so nobody chooses them."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sottovoce.ground.arguments import whole
from sottovoce.ground.entropy import Assigned, Entropy, Stream
from sottovoce.ground.errors import BadAssignment, InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report

LABEL = b"sottovoce assignment 1"
ID_BYTES, KEY_BYTES = 16, 32
LATEST = 1 << 53  # seconds


def new_id(now: float | None = None) -> bytes:
    """A report's id: the minute (milliseconds without 16 bits, so that ids sort), then chance.

    >>> new_id(1.7e9)[:6].hex()
    '018bcfe50000'
    """
    milliseconds = int((time.time() if now is None else now) * 1000)
    return (milliseconds >> 16 << 16).to_bytes(6, "big") + os.urandom(10)


@dataclass(frozen=True)
class Assignment:
    """One person's public coins: whoever holds it reads cohort and hashes off its signature.

    The signature is an HMAC-SHA256 under the collector's key, so that a device can neither make nor
    alter one; and any signature is as private as another, since public coins tell nothing of an
    answer. A plan with a delta takes none: there a chosen hash would tell more.

    Args:
        plan_id: of the plan.
        id: of the person's report.
        expires: unix time in seconds.
        signature: of all that, from which the coins follow.

    Throughout:
        key: the collector's.
        plan: that the report answers.
        now: unix time in seconds.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(x=sv.Boolean())
    >>> made = sv.plan(schema, sv.Frequencies("x"), epsilon=1.0, people=1000, coin="assigned")
    >>> given = Assignment.sign(bytes(32), made.id, new_id(1.7e9), expires=1_700_003_600)
    >>> given.verify(bytes(32), now=1.7e9)
    """

    plan_id: str
    id: bytes
    expires: int  # unix time in seconds
    signature: bytes

    def __post_init__(self) -> None:
        if len(self.id) != ID_BYTES or len(self.signature) != KEY_BYTES:
            raise InvalidInput(
                f"assignment: id must have {ID_BYTES} bytes and signature {KEY_BYTES}"
            )
        whole("assignment: expires", self.expires, 0, LATEST)

    @classmethod
    def sign(cls, key: bytes, plan_id: str, id: bytes, expires: int) -> Assignment:
        """What a collector hands out."""
        return cls(plan_id, id, expires, _signature(key, plan_id, id, expires))

    def verify(self, key: bytes, now: float, former: Sequence[bytes] = ()) -> None:
        """Refuse what neither this key signed nor one of the ``former`` ones,
        and what has expired.

        Args:
            former: keys that signed before this one.
        """
        if not any(self._is_signed_by(each) for each in (key, *former)):
            raise BadAssignment("assignment: this collector did not sign it")
        self.check_time(now)

    def check_time(self, now: float) -> None:
        """Refuse what has expired."""
        if now > self.expires:
            raise BadAssignment("assignment: it has expired; ask for another one")

    def _is_signed_by(self, key: bytes) -> bool:
        return hmac.compare_digest(
            self.signature, _signature(key, self.plan_id, self.id, self.expires)
        )

    def entropy(self, private: Entropy) -> Entropy:
        """A device's coins: the public ones from here, all others its own.

        Args:
            private: the device's own coins.
        """
        return Assigned(Stream(self.signature), private)

    def check(self, report: Report, plan: Plan) -> None:
        """Refuse a report whose cohort or hashes are not those that were assigned.

        Args:
            report: that came with it.
        """
        public = Stream(self.signature)
        index = assigned_cohort(plan, public)
        if report.cohort != index or report.plan_id != self.plan_id:
            raise BadAssignment("report: its cohort is not the one that was assigned")
        cohort = plan.cohorts[index]
        for ask, part in zip(cohort.asks, cohort.slices, strict=True):
            drawn = ask.oracle.public_coins(public)
            if drawn and ask.oracle.public_part(ask.oracle.unpack(report.payload[part])) != drawn:
                raise BadAssignment("report: its hashes are not those that were assigned")

    def to_json(self) -> dict[str, Any]:
        """As JSON, the id and the signature in hexadecimal digits."""
        return {
            "plan": self.plan_id,
            "id": self.id.hex(),
            "expires": self.expires,
            "signature": self.signature.hex(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Assignment:
        """The inverse of :meth:`to_json`.

        Args:
            data: what :meth:`to_json` gave.
        """
        try:
            parts = (
                str(data["plan"]),
                bytes.fromhex(data["id"]),
                data["expires"],
                bytes.fromhex(data["signature"]),
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidInput("assignment: it must have plan, id, expires and signature") from None
        return cls(*parts)


def assigned_cohort(plan: Plan, entropy: Entropy) -> int:
    """The cohort that public coins say."""
    weight = plan.cohorts.weight
    return int(plan.cohorts.at(entropy.public.below(weight))) if weight > 1 else 0


def _signature(key: bytes, plan_id: str, id: bytes, expires: int) -> bytes:
    if len(key) != KEY_BYTES:
        raise InvalidInput(f"key must have {KEY_BYTES} bytes")
    return hmac.digest(
        key, LABEL + bytes.fromhex(plan_id) + id + expires.to_bytes(8, "little"), "sha256"
    )
