"""What devices send: reports as JSON or in the compact binary form, with ids and assignments."""

from __future__ import annotations

import builtins
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from sottovoce.device.assignment import ID_BYTES, KEY_BYTES, LATEST, Assignment
from sottovoce.device.messages import BINARY, JSON
from sottovoce.ground.errors import CorruptReport
from sottovoce.protocol.columns import Values
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import (
    WIRE_VERSION,
    CheckedReports,
    Report,
    Reports,
    read_leb128,
    split_payload,
)
from sottovoce.service.plan_cache import PlanCache
from sottovoce.service.problems import Problem
from sottovoce.service.remembered import Remembered, digest_of
from sottovoce.service.settings import Settings

Ids = NDArray[np.uint8]
_PREFIX = 8  # bytes of a plan's id in a report
_REPORT, _ASSIGNMENT, _PUBLIC = 64, 256, 64  # bytes of memory that one takes besides what was sent
_BATCH = re.compile(rb'\s*\{\s*"reports"\s*:')


class Body(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One report as JSON."""

    id: str
    sottovoce: int
    plan: str
    cohort: int
    payload: str
    public: dict[str, bool | int | str] | None = None
    expires: int | None = None
    signature: str | None = None


class Bodies(msgspec.Struct, forbid_unknown_fields=True):
    """A batch as JSON."""

    reports: list[Body]


_ONE, _MANY = msgspec.json.Decoder(Body), msgspec.json.Decoder(Bodies)
_LIST = msgspec.json.Decoder(list[Body])


@dataclass(frozen=True)
class Envelope:
    """The reports of one request, all of one plan, with the assignments of assigned coins."""

    plan: Plan
    ids: builtins.bytes  # 16 for each report
    cohorts: list[int]
    payloads: list[builtins.bytes]
    assignments: tuple[Assignment, ...] = ()
    public: tuple[Values, ...] = ()  # of each report, if its plan has public columns

    def __len__(self) -> int:
        return len(self.cohorts)

    @cached_property
    def bytes(self) -> int:
        """About what it holds in memory when written: payloads as they came, and padded."""
        each = ID_BYTES + _REPORT + self.plan.row_bytes + len(self.plan.columns) * _PUBLIC
        return len(self) * each + sum(map(len, self.payloads)) + len(self.assignments) * _ASSIGNMENT


def gathered(plan: Plan, envelopes: Sequence[Envelope]) -> tuple[Ids, CheckedReports]:
    """The columns of many requests for one plan, if the plan can have produced every report.

    All at once, since a look at one report takes as long as a look at a hundred.
    """
    ids = np.frombuffer(b"".join([each.ids for each in envelopes]), np.uint8).reshape(-1, ID_BYTES)
    payloads = [payload for each in envelopes for payload in each.payloads]
    try:
        cohorts = np.array([cohort for each in envelopes for cohort in each.cohorts], np.uint32)
    except OverflowError:
        raise CorruptReport(f"report: cohort must be below {len(plan.cohorts)}") from None
    public = plan.public.collect([values for each in envelopes for values in each.public])
    return ids, Reports(plan.id, cohorts, _payload(plan, cohorts, payloads), public).checked(plan)


def check_assignments(
    envelope: Envelope, keys: Sequence[bytes], now: float, remembered: Remembered
) -> None:
    """Refuse a request with an assignment that does not hold, or that its report did not use.

    All signatures first: that is quick, and a forged one costs no more. A report that the request
    has many times, or that was checked lately, is not derived again.
    """
    plan = envelope.plan
    public = envelope.public or [()] * len(envelope)
    rows = zip(envelope.assignments, envelope.cohorts, envelope.payloads, public, strict=True)
    distinct = list(dict.fromkeys(rows))
    for assignment, *_ in distinct:
        assignment.verify(keys[0], now, keys[1:])
    if len({assignment.id for assignment, *_ in distinct}) < len(distinct):
        raise Problem(
            "assignment-used", "two reports of this request have one id; nothing of it was stored"
        )
    for assignment, cohort, payload, values in distinct:
        digest = digest_of(assignment, cohort, payload)
        if not remembered.has(digest):
            assignment.check(
                Report(plan.id, cohort, payload, values, plan.public).checked(plan), plan
            )
            remembered.add(digest)


def read_json(data: bytes, plan_cache: PlanCache, settings: Settings) -> Envelope:
    """One report, a list of them, or ``{"reports": [...]}``."""
    try:
        bodies = _decoded(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Problem(
            "malformed-body", "the body must be JSON: a report, or reports with a list of them"
        ) from None
    _check_count(len(bodies), settings.most_reports)
    first = bodies[0]
    if any(body.plan != first.plan for body in bodies):
        raise Problem("invalid-report", "reports: those of one request must belong to one plan")
    if any(body.sottovoce != WIRE_VERSION for body in bodies):
        raise CorruptReport(f"report: wire version must be {WIRE_VERSION}")
    plan = plan_cache.plan(first.plan)
    _check_size(plan, len(bodies), settings)
    _check_lengths(plan, [len(body.payload) // 2 for body in bodies])
    ids = _hex([body.id for body in bodies], ID_BYTES, "id")
    payloads = [_bytes(body.payload) for body in bodies]
    public = tuple(plan.public.from_json(body.public) for body in bodies)
    given = _json_assignments(plan, bodies, ids)
    return Envelope(
        plan, ids, [body.cohort for body in bodies], payloads, given, public if plan.columns else ()
    )


def _decoded(data: bytes) -> list[Body]:
    if _BATCH.match(data):
        return _MANY.decode(data).reports
    return _LIST.decode(data) if data.lstrip()[:1] == b"[" else [_ONE.decode(data)]


def _check_count(count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise Problem(
            "malformed-body", f"reports ({count}) must be between 1 and {most} in one request"
        )


def _check_size(plan: Plan, count: int, settings: Settings) -> None:
    """Refuse what would take too long to check, or too much memory once padded to one width."""
    if plan.coin == "assigned" and count > settings.most_assigned:
        most = settings.most_assigned
        raise Problem(
            "malformed-body",
            f"reports ({count}) must be at most {most} in one request: coins are assigned",
        )
    if count * plan.row_bytes > settings.most_padded:
        most = settings.most_padded // plan.row_bytes
        raise Problem(
            "body-too-large",
            f"reports ({count}) of this plan must be at most {most} in one request",
        )


def most_together(plan: Plan, settings: Settings) -> int:
    """How many reports of a plan one request may hold, and at least 1."""
    most = settings.most_assigned if plan.coin == "assigned" else settings.most_reports
    return max(1, min(most, settings.most_padded // plan.row_bytes))


def _check_lengths(plan: Plan, lengths: Iterable[int]) -> None:
    """Refuse payloads of a length that no cohort sends, before they are kept."""
    if not _lengths(plan).issuperset(lengths):
        raise CorruptReport("report: payload must have as many bytes as its cohort sends")


def _bytes(text: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if 2 * len(data) != len(text):
        raise CorruptReport("report: payload must be hexadecimal")
    return data


def _hex(texts: Sequence[str], width: int, what: str) -> bytes:
    """Many fields of one width, read at once."""
    try:
        data = bytes.fromhex("".join(texts))
    except ValueError:
        data = b""
    if set(map(len, texts)) != {2 * width} or len(data) != width * len(texts):
        raise CorruptReport(f"report: {what} must be {2 * width} hexadecimal digits")
    return data


def _payload(plan: Plan, cohorts: NDArray[np.uint32], parts: Sequence[bytes]) -> NDArray[np.uint8]:
    """Rows padded to the plan's width, each of exactly the bytes that its cohort sends."""
    width = plan.cohorts.bytes
    if int(cohorts.max()) >= len(plan.cohorts):
        raise CorruptReport(f"report: cohort must be below {len(plan.cohorts)}")
    if set(map(len, parts)) != {width} or len(_lengths(plan)) > 1:
        lengths = np.array([len(part) for part in parts])
        for batch in plan.cohorts.groups(cohorts):
            wanted = batch.slices[-1].stop
            if (lengths[batch.rows] != wanted).any():
                raise CorruptReport(f"report: payload must have {wanted} bytes")
        parts = [part.ljust(width, b"\0") for part in parts]
    return np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), width)


@lru_cache(maxsize=1024)
def _lengths(plan: Plan) -> frozenset[int]:
    """Of the payloads that its cohorts send."""
    return frozenset(cohort.bytes for cohort in plan.cohorts.kinds)


def _json_assignments(plan: Plan, bodies: Sequence[Body], ids: bytes) -> tuple[Assignment, ...]:
    given = [body for body in bodies if body.expires is not None or body.signature is not None]
    _check_given(plan, len(given), len(bodies))
    if not given:
        return ()
    signatures = _hex([body.signature or "" for body in bodies], KEY_BYTES, "signature")
    expires = [-1 if body.expires is None else body.expires for body in bodies]
    return _assignments(plan, ids, expires, signatures)


def _assignments(
    plan: Plan, ids: bytes, expires: Sequence[int], signatures: bytes
) -> tuple[Assignment, ...]:
    if not all(0 <= each < LATEST for each in expires):
        raise CorruptReport("report: expires must be a time in seconds")
    rows = zip(_cut(ids, ID_BYTES), expires, _cut(signatures, KEY_BYTES), strict=True)
    return tuple(Assignment(plan.id, id, when, signature) for id, when, signature in rows)


def _cut(data: bytes, width: int) -> list[bytes]:
    return [data[low : low + width] for low in range(0, len(data), width)]


def _check_given(plan: Plan, given: int, reports: int) -> None:
    if plan.coin == "assigned" and given < reports:
        raise Problem(
            "bad-assignment",
            "report: its plan's coins are assigned; expires and signature are missing",
        )
    if plan.coin != "assigned" and given:
        raise CorruptReport("report: its plan's coins are the device's own; it takes no assignment")


def read_binary(data: bytes, plan_cache: PlanCache, settings: Settings) -> Envelope:
    """Records in turn: id, length, report, and 0, or 1, the assignment's expiry and signature."""
    ids, signatures = bytearray(), bytearray()
    raw: list[bytes] = []
    expires: list[int] = []
    place = 0
    while place < len(data) and len(raw) <= settings.most_reports:
        ids += data[place : place + ID_BYTES]
        length, start = read_leb128(data, place + ID_BYTES, "length")
        raw.append(data[start : start + length])
        place = start + length + 1
        flag = data[place - 1 : place]
        if flag == b"\x01":
            expires.append(int.from_bytes(data[place : place + 8], "little"))
            signatures += data[place + 8 : place + 8 + KEY_BYTES]
            place += 8 + KEY_BYTES
        elif flag != b"\x00":
            raise Problem("malformed-body", "a record must end in 0, or in 1 and an assignment")
    if place > len(data):
        raise Problem("malformed-body", "the last record was cut")
    _check_count(len(raw), settings.most_reports)
    return _unsealed(bytes(ids), raw, expires, bytes(signatures), plan_cache, settings)


def _unsealed(
    ids: bytes,
    raw: Sequence[bytes],
    expires: Sequence[int],
    signatures: bytes,
    plan_cache: PlanCache,
    settings: Settings,
) -> Envelope:
    """The reports inside the records: versions, checksums, plans, cohorts, payloads."""
    first = raw[0]
    if len(first) < 1 + _PREFIX + 1 + 4:
        raise CorruptReport(f"report: {len(first)} bytes are too few")
    head = first[: 1 + _PREFIX]
    if head[0] != WIRE_VERSION:
        raise CorruptReport(f"report: wire version must be {WIRE_VERSION}")
    cohorts, payloads = [], []
    for report in raw:
        body, check = report[:-4], report[-4:]
        if zlib.crc32(body) != int.from_bytes(check, "little") or len(check) < 4:
            raise CorruptReport("report: the checksum does not match; it was cut or damaged")
        if body[: 1 + _PREFIX] != head:
            raise Problem("invalid-report", "reports: those of one request must belong to one plan")
        cohort, start = read_leb128(body, 1 + _PREFIX)
        cohorts.append(cohort)
        payloads.append(body[start:])
    plan = plan_cache.short(head[1:])
    _check_size(plan, len(raw), settings)
    public: tuple[Values, ...] = ()
    if plan.columns:
        split = [split_payload(plan, *each) for each in zip(cohorts, payloads, strict=True)]
        payloads, public = [payload for payload, _ in split], tuple(values for _, values in split)
    _check_lengths(plan, map(len, payloads))
    _check_given(plan, len(expires), len(raw))
    given = _assignments(plan, ids, expires, signatures) if expires else ()
    return Envelope(plan, ids, cohorts, payloads, given, public)


READERS: dict[str, Callable[[bytes, PlanCache, Settings], Envelope]] = {
    JSON: read_json,
    BINARY: read_binary,
}


def read_envelope(
    content_type: str, data: bytes, plan_cache: PlanCache, settings: Settings
) -> Envelope:
    """What a request's body holds."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in READERS:
        raise Problem("unsupported-type", f"the body must be {JSON} or {BINARY}")
    return READERS[kind](data, plan_cache, settings)
