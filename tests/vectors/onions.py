"""Write the test vectors of sealed reports: the wire's version 1, in layers for those who mix them.

`python -m tests.vectors.onions` writes onions.json. A device reads `entropy` front to back: what
its report takes, then a nonce of 16 bytes, then a private key of 32 bytes for each layer, the
innermost first. `keys` are the hops' private keys, so that others can open what it sealed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import sottovoce as sv
from sottovoce.device.sealing import PrivateKey, seal
from sottovoce.ground.entropy import Tape
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.shuffling import Shuffling
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from tests.vectors.case import Record
from tests.vectors.make import ID_TIME, tape
from tests.vectors.popular import popular

PATH = Path(__file__).with_name("onions.json")
ROWS = 3
SCHEMA = sv.Schema(
    drinks=sv.Categorical(["never", "monthly", "weekly", "daily"]),
    smoker=sv.Boolean(),
    age=sv.Ordinal(18, 97, bins=16),
)
RECORDS: tuple[Record, ...] = (
    {"drinks": "never", "smoker": True, "age": 18},
    {"drinks": "daily", "smoker": False, "age": 97},
)
SOME = {"split": "people", "oracle": "oue"}  # cohorts whose reports differ in length
TOGETHER = sv.Frequencies("smoker", "age", split="budget", oracle="grr")


def private_keys(count: int) -> list[PrivateKey]:
    """Those of the first hops."""
    return [PrivateKey(tape(f"hop/{hop}", 32)) for hop in range(count)]


def shuffling(hops: int, fakes: int = 0, **changes: Any) -> Shuffling:
    """The part of a plan with so many hops."""
    colluding = Decimal("1.5") if fakes else None
    keys = tuple(key.public for key in private_keys(hops))
    options = {"least": 100, "fakes": fakes, "colluding": colluding, "hops": keys, **changes}
    return Shuffling(Decimal("0.5"), Fraction(1, 10**9), **options)


def plan_of(question: Question, part: Shuffling) -> Plan:
    return question.plan(SCHEMA, Terms.of(2, 1000, trust="shuffled"), shuffling=part)


def cases() -> dict[str, Plan]:
    """Plans by name."""
    direct = sv.Frequencies("drinks", oracle="grr")
    return {
        "one shuffler": plan_of(direct, shuffling(2)),
        "three shufflers": plan_of(sv.Frequencies("drinks", "age", **SOME), shuffling(4)),
        "fakes": plan_of(TOGETHER, shuffling(3, fakes=500)),
        "no keys": plan_of(direct, shuffling(0)),
    }


def row_of(plan: Plan, record: Record, label: str) -> dict[str, Any]:
    """A report from these bytes, and its onion."""
    source = Tape(tape(label))
    report = sv.Client(plan, entropy=source).report(record)
    said = json.loads(report.to_json())
    sent_id = (ID_TIME + tape(f"{label}/id", 32)[:10]).hex()
    assert plan.shuffling is not None
    onion = {"onion": seal(report, plan, source).hex()} if plan.shuffling.hops else {}
    return {
        "record": record,
        "entropy": tape(label)[: source.position].hex(),
        "report": report.to_bytes().hex(),
        "json": said,
        "sent": {"id": sent_id, **said},
        **onion,
    }


def entry(name: str, plan: Plan) -> dict[str, Any]:
    assert plan.shuffling is not None
    labels = [f"{name}/{row}" for row in range(ROWS)]
    return {
        "name": name,
        "id": plan.id,
        "plan": plan.to_json(),
        "keys": [key.raw.hex() for key in private_keys(len(plan.shuffling.hops))],
        "good": [row_of(plan, RECORDS[row % 2], label) for row, label in enumerate(labels)],
        "silent": [],
        "bad_records": [],
    }


def text_of(body: dict[str, Any]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def changed(plan: Plan, change: Callable[[dict[str, Any]], object]) -> str:
    """A plan's text after a change of its body."""
    body = json.loads(plan.to_json())
    change(body)
    return text_of(body)


def bad_parts() -> Iterator[tuple[str, dict[str, Any]]]:
    """Values of a shuffled plan's part that no such plan has."""
    first, second = (key.public for key in private_keys(2))
    many = [f"{number:064x}" for number in range(1, 18)]
    yield "an analyst's epsilon above the plan's own", {"epsilon": "2.1"}
    yield "one above it by what floats do not hold", {"epsilon": "2.0000000000000000001"}
    yield "a cap below the plan's epsilon", {"cap": "1.9"}
    yield "a cap below it by what floats do not hold", {"cap": "1.9999999999999999999"}
    yield "epsilon as a number", {"epsilon": 0.5}
    for epsilon in ("0", "0.50", "-0.5", ".5", "101", "1E+1", "x", "", None):
        yield f"epsilon {epsilon!r}", {"epsilon": epsilon}
        yield f"cap {epsilon!r}", {"cap": epsilon}
    for delta in ("1/999", "1/1000", "2/2000000", "0/1", "0", "1e-9", None, 0, "01/100000000"):
        yield f"delta {delta!r}", {"delta": delta}
    for least in (0, 1, 1001, -5, 100.0, 100.5, "100", None, True, 2**53 + 2):
        yield f"least {least!r}", {"least": least}
    for fakes in (-1, 16_001, 2**53 + 2, 0.5, "0", None, False):
        yield f"fakes {fakes!r}", {"fakes": fakes, "colluding": "1"}
    yield "fakes without colluding", {"fakes": 5}
    yield "colluding without fakes", {"colluding": "1"}
    yield "colluding that is no number", {"fakes": 5, "colluding": "much"}
    yield "colluding in another spelling", {"fakes": 5, "colluding": "1.0"}
    for why, hops in (
        ("one hop", [first]),
        ("a hop twice", [first, second, first]),
        ("17 hops", many),
        ("a key in capitals", [first.upper(), second]),
        ("a short key", [first[:-2], second]),
        ("a long key", [first + "00", second]),
        ("a key with a line's end", [first + "\n", second]),
        ("a key that is a number", [5, second]),
        ("hops that are null", None),
        ("hops that are text", ""),
        ("hops by name", {}),
        ("a list of lists", [[first], [second]]),
    ):
        yield why, {"hops": hops}
    field = 2**255 - 19
    eighths = (  # of order 8 (RFC 7748's curve)
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
    )
    for point in (0, 1, field - 1, *eighths):
        yield f"a key of low order: {point}", {"hops": [first, _key_of(point)]}
    good = int.from_bytes(bytes.fromhex(second), "little")
    for why, number in (("zero", field), ("one", field + 1), ("a key", good + 2**255)):
        yield f"another way to write {why}", {"hops": [first, _key_of(number)]}


def _key_of(number: int) -> str:
    return number.to_bytes(32, "little").hex()


def bad_texts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Plans that must be refused, by why."""
    for why, values in bad_parts():
        yield why, changed(plan, lambda body, values=values: body["shuffle"].update(values))
    for key in json.loads(plan.to_json())["shuffle"]:
        yield f"no {key}", changed(plan, lambda body, key=key: body["shuffle"].pop(key))
    yield "one part more", changed(plan, lambda body: body["shuffle"].update(mixed=True))
    yield "no part at all", changed(plan, lambda body: body.update(shuffle=None))
    yield "an empty part", changed(plan, lambda body: body.update(shuffle={}))
    yield "an assigned coin", changed(plan, lambda body: body.update(coin="assigned"))
    turned = json.loads(plan.to_json())
    turned["shuffle"] = dict(reversed(turned["shuffle"].items()))
    yield "parts in another order", text_of(turned)
    moved = json.loads(plan.to_json())
    moved["shuffle"] = moved.pop("shuffle")
    yield "the part at another place", text_of(moved)
    yield from _with_others(plan)


def _with_others(plan: Plan) -> Iterator[tuple[str, str]]:
    """Shuffled plans with what names a sender, what is not added up, and rounds that are small."""
    part = json.loads(plan.to_json())["shuffle"]

    def with_part(local: Plan, **changes: Any) -> str:
        body = json.loads(local.to_json())
        series, cohorts = body.pop("series"), body.pop("cohorts")
        return text_of(
            {**body, "shuffle": {**part, **changes}, "series": series, "cohorts": cohorts}
        )

    open_schema = sv.Schema(**SCHEMA, town=sv.Categorical(["a", "b"], sensitive=False))
    question = sv.Frequencies("drinks", oracle="grr")
    clear = sv.plan(open_schema, question, epsilon=2, people=1000, public=("town",))
    yield "a public column", with_part(clear)
    rare = next(case.plan for case in popular() if case.plan.cohorts.delta)
    yield "an ask with a delta", with_part(rare, least=2)
    rounds = sv.plan(SCHEMA, question, epsilon=2, people=1000, rounds=(1, 19))
    yield "a round with fewer people than the least", with_part(rounds)


def vectors() -> dict[str, Any]:
    """The whole file."""
    plans = cases()
    bad = [
        {
            "why": why,
            "id": hashlib.sha256(text.encode()).hexdigest(),
            "plan": text,
            "error": "InvalidInput",
        }
        for why, text in bad_texts(plans["one shuffler"])
    ]
    return {
        "onion": 1,
        "plans": [entry(name, plan) for name, plan in plans.items()],
        "bad_plans": bad,
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n")
