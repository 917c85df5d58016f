"""Write the test vectors of the wire's version 1: fixed random bytes in, exact reports out, and bad reports.

`python -m tests.vectors.make` writes v1.json. Once released a version's vectors never change: a new wire is a new file.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import sottovoce as sv
from sottovoce.entropy import Tape
from sottovoce.kernels.mixing import bucket, keyed_hash, keys, scramble
from sottovoce.schema import Text
from tests.oracles import NAMES

PATH = Path(__file__).with_name("v1.json")
SMALL: dict[str, dict[str, Any]] = {
    "cms": {"hashes": 4, "width": 16},
    "hcms": {"hashes": 4, "width": 16},
    "rappor": {"cohorts": 4, "buckets": 16},
    "o-rappor": {"cohorts": 4, "buckets": 16},
    "o-rr": {"cohorts": 4},
}


def tape(label: str, count: int = 65_536) -> bytes:
    """Bytes that look random and that any language can make: SHA-256 of a label and a counter."""
    blocks = (hashlib.sha256(f"{label}/{index}".encode()).digest() for index in range(count // 32))
    return b"".join(blocks)


def sealed(body: bytes) -> bytes:
    """A report with a good checksum, whatever it says."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def plans() -> dict[str, sv.Plan]:
    """One plan per oracle, and two with several asks or cohorts."""
    schema = sv.Schema(x=sv.Categorical(["a", "b", "c", "d", "e", "f"]), yes=sv.Boolean(), word=sv.Text(bytes=12))
    made = {}
    for name in NAMES:
        question = sv.Frequencies("yes" if name == "rr" else "x", oracle=name, **SMALL.get(name, {}))
        made[name] = sv.plan(schema, question, epsilon="1.5", people=1000)
    for name in ("olh-seeded", "o-rr"):
        question = sv.Frequencies("word", oracle=name, **SMALL.get(name, {}))
        made[f"{name}, open"] = sv.plan(schema, question, epsilon="1.5", people=1000)
    both = ("x", "yes")
    made["several cohorts"] = sv.plan(schema, sv.Frequencies(*both), epsilon="2", people=1000)
    made["several asks"] = sv.plan(schema, sv.Frequencies(*both, split="budget"), epsilon="2", people=1000)
    return made


def good(name: str, plan: sv.Plan) -> list[dict[str, Any]]:
    """Records with the bytes that a device read from its entropy, and the report it sent."""
    rows = []
    for record in (
        {"x": "a", "yes": False, "word": "piano"},
        {"x": "d", "yes": True, "word": "forte"},
        {"x": "f", "yes": True, "word": "è già"},
    ):
        source = Tape(tape(f"{name}/{record['x']}"))
        report = sv.Client(plan, entropy=source).report(record)
        used = tape(f"{name}/{record['x']}")[: source.position]
        rows.append(
            {
                "record": record,
                "entropy": used.hex(),
                "report": report.to_bytes().hex(),
                "json": json.loads(report.to_json()),
            }
        )
    return rows


def bad(plan: sv.Plan, other: sv.Plan) -> list[dict[str, str]]:
    """Reports that must be refused, each with the error that says why."""
    record = {"x": "a", "yes": True, "word": "piano"}
    data = sv.Client(plan, entropy=Tape(tape("bad"))).report(record).to_bytes()
    body = data[:-4]
    foreign = sv.Client(other, entropy=Tape(tape("bad"))).report(record).to_bytes()
    cases = [
        ("empty", b"", "CorruptReport"),
        ("truncated", data[:-1], "CorruptReport"),
        ("truncated to the header", data[:9], "CorruptReport"),
        ("a bit flipped", data[:10] + bytes([data[10] ^ 4]) + data[11:], "CorruptReport"),
        ("unknown version", sealed(b"\x02" + body[1:]), "CorruptReport"),
        ("another plan", foreign, "PlanMismatch"),
        ("unknown cohort", sealed(body[:9] + b"\x7f" + body[10:]), "CorruptReport"),
        ("cohort in a longer form", sealed(body[:9] + b"\x80\x00" + body[10:]), "CorruptReport"),
        ("payload too long", sealed(body + b"\x00"), "CorruptReport"),
        ("payload too short", sealed(body[:-1]), "CorruptReport"),
    ]
    return [{"why": why, "report": wrong.hex(), "error": error} for why, wrong, error in cases]


def hashes() -> dict[str, Any]:
    """What a second implementation of the hashes must reproduce."""
    words = [0, 1, 2**32, 2**64 - 1, 1234567890123456789]
    return {
        "keyed_hash": [[str(k), str(v), str(keyed_hash(k, v))] for k in words for v in words[:3]],
        "bucket": [[str(word), size, bucket(word, size)] for word in words for size in (2, 3, 1000)],
        "keys": {"salt": "42", "keys": [str(key) for key in keys(42, 4)]},
        "scrambled": {str(width): scrambled_list(width) for width in (1, 3, 4)},
        "fingerprints": [[word, str(Text(bytes=40).code(word))] for word in ("", "piano", "è già")],
    }


def scrambled_list(width: int) -> list[int]:
    return [scramble(value, width) for value in range(1 << width)]


def vectors() -> dict[str, Any]:
    """The whole file."""
    made = plans()
    return {
        "wire": 1,
        "about": "A device reads `entropy` front to back: k bits are ceil(k/8) bytes, little endian, low bits kept.",
        "hashes": hashes(),
        "plans": [
            {
                "name": name,
                "id": plan.id,
                "plan": plan.to_json(),
                "good": good(name, plan),
                "bad": bad(plan, made["hr" if name != "hr" else "grr"]),
            }
            for name, plan in made.items()
        ],
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n")
