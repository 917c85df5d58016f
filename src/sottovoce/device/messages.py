"""What a sender writes: reports with their ids and assignments, as JSON or in binary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sottovoce.device.assignment import ID_BYTES, Assignment
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.reports import Report, leb128

JSON, BINARY = "application/json", "application/vnd.sottovoce.reports"
ONIONS = "application/vnd.sottovoce.onions"
ONIONS_PATH = "/v1/onions/"  # then the plan's id; where a first shuffler takes onions
# how the type of what went wrong begins, in a collector's answer
PROBLEM = "https://sottovoce.dev/problems/"


def write_binary(
    ids: Sequence[bytes], reports: Sequence[Report], assignments: Sequence[Assignment] = ()
) -> bytes:
    """The binary form, as a sender makes it."""
    out = bytearray()
    for place, (id, report) in enumerate(zip(ids, reports, strict=True)):
        data = report.to_bytes()
        if len(id) != ID_BYTES:
            raise InvalidInput(f"id ({len(id)} bytes) must have {ID_BYTES} bytes")
        out += id + leb128(len(data)) + data
        if assignments:
            given = assignments[place]
            out += b"\x01" + given.expires.to_bytes(8, "little") + given.signature
        else:
            out += b"\x00"
    return bytes(out)


def write_json(id: bytes, report: Report, assignment: Assignment | None = None) -> dict[str, Any]:
    """One report as JSON, as a sender makes it."""
    body: dict[str, Any] = {"id": id.hex(), **report.to_body()}
    if assignment is not None:
        body |= {"expires": assignment.expires, "signature": assignment.signature.hex()}
    return body
