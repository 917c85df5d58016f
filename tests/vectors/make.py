"""Write the test vectors of the wire's version 1: fixed random bytes in, exact reports out, and
what must be refused.

`python -m tests.vectors.make` writes v1.json. Once released a version's vectors never change: a new
wire is a new file.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import sottovoce as sv
from sottovoce.ground.entropy import Tape
from sottovoce.ground.hashes import bucket, keyed_hash, keys, permuted, scramble, tag
from sottovoce.protocol.reports import leb128
from sottovoce.schema import SPELLING, Attribute, Text
from tests.vectors.broken import bad_plans
from tests.vectors.case import Case, Record
from tests.vectors.plans import cases
from tests.vectors.popular import TEXTS, TEXTS_RECORDS
from tests.vectors.public import bad_json, bad_parts, bad_public_records
from tests.vectors.spellings import spellings

PATH = Path(__file__).with_name("v1.json")
KEY = hashlib.sha256(b"the collector's key").digest()
EXPIRES = 4_102_444_800  # the year 2100
ID_TIME = bytes.fromhex("018bcfe50000")


@cache
def tape(label: str, count: int = 65_536) -> bytes:
    """Bytes that look random and that any language can make: SHA-256 of a label and a counter."""
    blocks = (hashlib.sha256(f"{label}/{index}".encode()).digest() for index in range(count // 32))
    return b"".join(blocks)


def assignment(plan: sv.Plan, label: str) -> sv.Assignment | None:
    """What a collector would have handed out, if the plan's coin is assigned."""
    if plan.coin == "device":
        return None
    return sv.Assignment.sign(KEY, plan.id, ID_TIME + tape(label, 32)[:10], EXPIRES)


def drawn(
    plan: sv.Plan, record: Record, label: str, invalid: str = "raise"
) -> tuple[dict[str, Any], sv.Report | None]:
    """A device that reads these bytes: the row of the vectors, and its report unless it must stay
    silent.
    """
    source = Tape(tape(label))
    given = assignment(plan, label)
    state = sv.ClientState() if len(plan.series.shares) > 1 else None
    try:
        report = sv.Client(plan, state, entropy=source, assignment=given, invalid=invalid).report(
            record
        )
    except sv.NotInThisRound:
        report = None
    row: dict[str, Any] = {"record": record, "entropy": tape(label)[: source.position].hex()}
    if given is not None:
        row["assignment"] = given.to_json()
    return row, report


def rows(case: Case) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Records with the bytes that a device read from its entropy and the report it sent; and those
    who were silent.
    """
    good: list[dict[str, Any]] = []
    silent: list[dict[str, Any]] = []
    for place in count():
        label = f"{case.name}/{place}"
        row, report = drawn(case.plan, case.records[place % len(case.records)], label)
        if report is None:
            silent.append(row)
            continue
        given = row.get("assignment", {})
        sent_id = given.get("id", (ID_TIME + tape(f"{label}/id", 32)[:10]).hex())
        signed = {key: given[key] for key in ("expires", "signature") if key in given}
        row |= {
            "report": report.to_bytes().hex(),
            "json": json.loads(report.to_json()),
            "sent": {"id": sent_id, **json.loads(report.to_json()), **signed},
            "envelope": envelope(bytes.fromhex(sent_id), report.to_bytes(), signed).hex(),
        }
        good.append(row)
        if len(good) == case.rows:
            break
    return good, silent[:3]


def substituted(case: Case, everything: bool) -> list[dict[str, Any]]:
    """Records that are not valid, and what a device reports of them that must always report."""
    listed = []
    for place, bad in enumerate(bad_records(case, everything)):
        for attempt in count():
            row, report = drawn(
                case.plan, bad["record"], f"{case.name}/invalid/{place}/{attempt}", invalid="draw"
            )
            if report is not None:  # else it is of another round
                listed.append({"why": bad["why"], **row, "report": report.to_bytes().hex()})
                break
    return listed


def envelope(sent_id: bytes, report: bytes, signed: dict[str, Any]) -> bytes:
    """The binary form that a collector takes: id, length, report, assignment."""
    tail = b"\x00"
    if signed:
        tail = (
            b"\x01" + signed["expires"].to_bytes(8, "little") + bytes.fromhex(signed["signature"])
        )
    return sent_id + leb128(len(report)) + report + tail


def sealed(body: bytes) -> bytes:
    """A report with a good checksum, whatever it says."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def bad_reports(case: Case, other: bytes) -> list[dict[str, str]]:
    """Reports that must be refused, each with the error that says why. ``other``: a report of
    another plan.
    """
    good = bytes.fromhex(rows(case)[0][0]["report"])
    report = sv.Report.from_bytes(good, case.plan)
    head, index, payload = good[:9], leb128(report.cohort), report.payload
    public = case.plan.public.pack(report.public)
    longer = index[:-1] + bytes([index[-1] | 0x80, 0])
    listed = [
        ("empty", b"", "CorruptReport"),
        ("truncated", good[:-1], "CorruptReport"),
        ("truncated to the header", good[:9], "CorruptReport"),
        ("a bit flipped", good[:10] + bytes([good[10] ^ 4]) + good[11:], "CorruptReport"),
        ("unknown version", sealed(b"\x02" + head[1:] + index + payload + public), "CorruptReport"),
        ("another plan", other, "PlanMismatch"),
        (
            "unknown cohort",
            sealed(head + leb128(len(case.plan.cohorts)) + payload + public),
            "CorruptReport",
        ),
        ("cohort in a longer form", sealed(head + longer + payload + public), "CorruptReport"),
        ("payload too long", sealed(head + index + payload + b"\x00" + public), "CorruptReport"),
        ("payload too short", sealed(head + index + payload[:-1] + public), "CorruptReport"),
        *(
            (why, sealed(head + index + wrong + public), "CorruptReport")
            for why, wrong in _bad_payloads(case.plan, report)
        ),
    ]
    if public:
        wrong_parts = bad_parts(case.plan, report)
        listed += [
            (why, sealed(head + index + payload + wrong), "CorruptReport")
            for why, wrong in wrong_parts
        ]
    return [{"why": why, "report": wrong.hex(), "error": error} for why, wrong, error in listed]


def _bad_payloads(plan: sv.Plan, report: sv.Report) -> Iterator[tuple[str, bytes]]:
    """Payloads of the right length that no device can have sent."""
    source = plan.cohorts[report.cohort].asks[0].oracle
    size, rest = source.layout.bytes, report.payload[source.layout.bytes :]
    packed = int.from_bytes(report.payload[:size], "little")
    if source.layout.bits % 8:
        yield (
            "padding that is not zero",
            (packed | 1 << 8 * size - 1).to_bytes(size, "little") + rest,
        )
    if source.names[0] == "ss":
        yield "an empty set", bytes(size) + rest
    offset = 0
    for field in source.layout.fields:
        if field.limit is not None and field.limit < 1 << field.width:
            cleared = packed & ~(((1 << field.width) - 1) << offset)
            wrong = cleared | field.limit << offset
            yield f"field {field.name} at its limit", wrong.to_bytes(size, "little") + rest
        offset += field.width


OUTSIDE: dict[str, list[Any]] = {
    "boolean": ["mf-secret", 2, -1, 0.5, None],
    "categorical": ["mf-secret", 987_654_321_987, str(2**53 + 1), True, 1.5, None],
    "ordinal": ["mf-secret", 90_071_992_547_409_931, True, 41.5, None],
    "text": [5, None],
    "integer": ["mf-secret", -1, "-1", "", str(2**129), True, 4.5, None],
    "items": [
        ["mf-secret"],
        "mf-secret; 7",
        "7;;7",
        [None],
        [["7"]],
        {"7": "mf-secret"},
        7,
        True,
        None,
    ],
}


def outside(attribute: Attribute, form: str) -> list[Any]:
    """Values that an attribute does not have."""
    listed = OUTSIDE[attribute.kind]
    if not isinstance(attribute, Text):
        return listed if attribute.kind != "integer" else [*listed, str(attribute.size)]
    if attribute.longer == "refuse":
        listed = ["mf-secret" + "!" * 40, "è" * 25, *listed]
    if attribute.other is None and form == SPELLING:
        listed = [*listed, "a\0"]
    return (
        [*listed, "aXa"] if attribute.alphabet is not None and attribute.other is None else listed
    )


def bad_records(case: Case, everything: bool) -> list[dict[str, Any]]:
    """Records that are not valid, each with what an error may not contain that refuses them; a few,
    or all of them.
    """
    record, schema = case.records[0], case.plan.schema
    asked = case.plan.cohorts.attributes
    listed = [
        ("an attribute is missing", {name: record[name] for name in record if name != asked[0]}, "")
    ]
    listed.append(("an attribute that nobody knows", {**record, "mystery": 1}, ""))
    for name in asked:
        for value in outside(schema[name], case.plan.cohorts.form):
            if value is True and name in ("truths", "number"):  # which it knows
                continue
            secret = str(value) if isinstance(value, str | int) and len(str(value)) > 4 else ""
            secret = "mf-secret" if isinstance(value, list | dict) else secret
            listed.append((f"{name} outside the schema", {**record, name: value}, secret))
    rows = [{"why": why, "record": wrong, "secret": secret} for why, wrong, secret in listed]
    return rows if everything else rows[:3]


def hashes() -> dict[str, Any]:
    """What a second implementation of the hashes must reproduce."""
    words = [0, 1, 2**32, 2**64 - 1, 1234567890123456789]
    numbers = [
        (n & (1 << bits) - 1, bits)
        for n in (1, 2**128 // 3)
        for bits in (1, 2, 3, 33, 64, 65, 127, 128)
    ]
    return {
        "keyed_hash": [[str(k), str(v), str(keyed_hash(k, v))] for k in words for v in words[:3]],
        "bucket": [
            [str(word), size, bucket(word, size)] for word in words for size in (2, 3, 1000)
        ],
        "keys": {"salt": "42", "keys": [str(key) for key in keys(42, 4)]},
        "scrambled": {str(width): scrambled_list(width) for width in (1, 3, 4)},
        "permuted": [[str(n), bits, str(permuted(n, bits))] for n, bits in numbers],
        "tag": [
            [str(n), key, bits, str(tag(n, key, bits))] for n, key in numbers for bits in (1, 8, 32)
        ],
        "spellings": [
            [options, value, str(TEXTS[name].spell(value))] for name, options, value in spelled()
        ],
        "fingerprints": [[word, str(Text(bytes=40).code(word))] for word in ("", "piano", "è già")],
    }


def spelled() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Attribute, its options and a value, for every text of the vectors."""
    for name, options in TEXTS.to_json().items():
        if options["kind"] == "text":
            yield from ((name, options, record[name]) for record in TEXTS_RECORDS)


def scrambled_list(width: int) -> list[int]:
    return [scramble(value, width) for value in range(1 << width)]


def _entry(case: Case, other: bytes, everything: bool) -> dict[str, Any]:
    good, silent = rows(case)
    entry = {
        "name": case.name,
        "id": case.plan.id,
        "plan": case.plan.to_json(),
        "good": good,
        "silent": silent,
        "bad": bad_reports(case, other),
        "bad_records": bad_records(case, everything),
        "substituted": substituted(case, everything),
    }
    if case.plan.columns:
        report = sv.Report.from_bytes(bytes.fromhex(good[0]["report"]), case.plan)
        entry |= {"bad_public": bad_public_records(case), "bad_json": bad_json(case, report)}
    return entry


def vectors() -> dict[str, Any]:
    """The whole file."""
    made = cases()
    others = [bytes.fromhex(rows(case)[0][0]["report"]) for case in made[:2]]
    thorough = {
        case.plan.schema.to_json().__str__(): case.name for case in reversed(made)
    }.values()  # one per schema
    return {
        "wire": 1,
        "about": "A device reads `entropy` front to back: k bits are ceil(k/8) bytes, little "
        "endian, low bits kept. `sent` and `envelope` are what it posts, with the id given there, "
        "as JSON and in binary.",
        "key": KEY.hex(),
        "hashes": hashes(),
        "plans": [_entry(case, others[case is made[0]], case.name in thorough) for case in made],
        "bad_plans": bad_plans({case.name: case.plan for case in made}),
        "spellings": spellings({case.name: case.plan for case in made}),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore", sv.InvalidValueWarning)
    PATH.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n")
