"""Spot checks: whether what was sent to shufflers is in the batch that a collector finished."""

from __future__ import annotations

import http.client
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.device.sealing import hops_of
from sottovoce.device.sender import address_parts
from sottovoce.ground.errors import InvalidInput
from sottovoce.sending.journal import Record, journal_beside
from sottovoce.shuffle.checks import chance_of_seeing, missing

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan

STATED_SHARES = (0.01, 0.05)  # of a batch, whose change is seen with a stated chance
LIST_TIMEOUT = 60.0


@dataclass(frozen=True)
class SpotCheck:
    """How many reports were looked for in a batch, and how many are not there."""

    checked: int
    missing: int

    def to_json(self) -> dict[str, Any]:
        chances = {str(share): chance_of_seeing(share, self.checked) for share in STATED_SHARES}
        return {"checked": self.checked, "missing": self.missing, "chance_of_seeing": chances}

    def __str__(self) -> str:
        if self.missing:
            return f"{self.missing:,} of {self.checked:,} reports are not in the batch"
        seen = [
            f"a change of {share:.0%} of it with {_percent(chance_of_seeing(share, self.checked))}"
            for share in STATED_SHARES
        ]
        return f"All {self.checked:,} reports are in the batch; so many see {', '.join(seen)}"


def _percent(chance: float) -> str:
    """A chance in percent, rounded down: none is certain.

    >>> _percent(0.95039), _percent(1 - 1e-9)
    ('95.0%', '99.9%')
    """
    return f"{math.floor(1000 * chance) / 10:.1f}%" if chance < 1 else "99.9%"


def spot_check(plan: Plan, people: Path, url: str, journal: Path | None = None) -> SpotCheck:
    """Look for all acknowledged reports of a journal in a collector's list."""
    hops_of(plan)
    path = journal or journal_beside(people, plan)
    if not path.exists():
        raise InvalidInput(
            f"journal ({path}) must be a file that `sottovoce send` wrote for this plan"
        )
    record = Record(path, plan)
    record.read_file()
    nonces = record.acknowledged_ids()
    if not nonces:
        raise InvalidInput(f"journal ({record.path}) has no report that a shuffler took")
    return SpotCheck(len(nonces), len(missing(plan.id, nonces, _published(url, plan))))


def _published(url: str, plan: Plan) -> bytes:
    parts = address_parts(url)
    if parts is None or not parts.hostname:
        raise InvalidInput(f"at ({url}) must be http://HOST[:PORT] or https://HOST[:PORT]")
    is_secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=LIST_TIMEOUT)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/v1/batches/{plan.id}/nonces")
        answer = connection.getresponse()
        data = answer.read()
    except (OSError, http.client.HTTPException) as wrong:
        raise InvalidInput(f"at ({url}) does not answer ({type(wrong).__name__})") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise InvalidInput(
            f"at ({url}) has no list for this plan ({answer.status}); there is one when its batch "
            "is finished"
        )
    return data
