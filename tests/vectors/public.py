"""Plans with public columns: every kind of attribute that may travel in clear; what must be refused
of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import sottovoce as sv
from tests.vectors.case import Case, Record, each_coin

Body = dict[str, Any]
PUBLIC = sv.Schema(
    smoker=sv.Boolean(),
    member=sv.Boolean(sensitive=False),
    state=sv.Categorical(["NY", "WA", "è già", "7"], sensitive=False),
    rating=sv.Categorical([3, 1, 2], sensitive=False),
    level=sv.Categorical(range(10, -4000, -5), sensitive=False),
    age=sv.Ordinal(-40, 297, bins=4, sensitive=False),
    wide=sv.Ordinal(-(2**53), 2**53, sensitive=False),
    zip=sv.Integer(bits=17, sensitive=False),
    long=sv.Integer(bits=53, sensitive=False),
    note=sv.Text(bytes=6, longer="cut", sensitive=False),
    remark=sv.Text(bytes=300, sensitive=False),
    grade=sv.Text(bytes=4, alphabet="ab-é", other="-", sensitive=False),
    amount=sv.FixedPoint(-100, "9999.99", decimals=2, sensitive=False),
    weight=sv.FixedPoint("-9007199.254740992", "9007199.254740992", decimals=9, sensitive=False),
    count=sv.FixedPoint(0, 70_000, decimals=0, sensitive=False),
    huge=sv.Integer(bits=54, sensitive=False),
    mixed=sv.Categorical(["a", 1], sensitive=False),
    id=sv.Boolean(sensitive=False),
    book=sv.Text(bytes=1025, sensitive=False),
    basket=sv.Items(["milk", "bread"], sensitive=False),
)
NAMES = tuple(PUBLIC)[1:15]
RECORDS: tuple[Record, ...] = tuple(
    {"smoker": place % 2 == 0} | dict(zip(NAMES, values, strict=True))
    for place, values in enumerate((
        (True, "NY", 3, 10, -40, -(2**53), 0, 0, "", "", "", "-100", "-9007199.254740992", 0),
        (False, "WA", 2, -3995, 297, 2**53, 131_071, 2**53 - 1, "è già!", "é" * 150, "axé",
         "9999.99", "9007199.254740992", "70000"),
        ("Yes ", "è già", "1", "0", " 41 ", "12", "90210", str(2**53 - 1), "piano forte", "\0 \n",
         "a\U0001f3b9b", 12.3, 0.000000001, 7.0),
        (0, "7", 1, -5, 41.0, 0, 5, 3, "\U0001f3b9\U0001f3b9", "x", "b", " +0.50 ",
         "1.5000000000", 65_536),
        (1, "NY", 3, 10, 0, -1, 1, 1, "a", "b", "-", -0.07, -1, "00"),
    ))
)  # fmt: skip
MONEY = sv.Schema(
    owns=sv.Categorical(["rent", "own", "other"]),
    state=sv.Categorical(["NY", "WA", "TX"], sensitive=False),
    amount=sv.FixedPoint(0, "999.99", sensitive=False),
)
MONEY_RECORDS: tuple[Record, ...] = (
    {"owns": "rent", "state": "TX", "amount": "12.30"},
    {"owns": "own", "state": "NY", "amount": 999.99},
)
OUTSIDE: dict[str, list[Any]] = {
    "member": ["mf-secret", 2, None],
    "state": ["mf-secret", 7.5, None],
    "rating": [4, True, "mf-secret"],
    "level": [11, -4000, 5.5],
    "age": [-41, 298, 41.5, True, "mf-secret"],
    "wide": [str(2**53 + 1), None],
    "zip": [131_072, -1],
    "long": [str(2**53)],
    "note": [5, None],
    "remark": ["mf-secret" * 40],
    "grade": [7, None],
    "amount": [
        "12.345",
        "10000",
        "-100.01",
        "1e3",
        "",
        "mf-secret",
        "1.",
        ".5",
        0.001,
        True,
        None,
        [1],
        "٦",
    ],
    "weight": ["9007199.254740993", 0.1 + 0.2 + 1e-10, "0.0000000001"],
    "count": ["1.5", 70_001, -1, 0.5],
}


def cases() -> Iterator[Case]:
    """Columns of every kind beside one ask; and a few beside cohorts whose payloads differ in
    length.
    """

    def every(coin: str) -> sv.Plan:
        question = sv.Frequencies("smoker", oracle="rr")
        return sv.plan(PUBLIC, question, epsilon="1.5", people=1000, coin=coin, public=NAMES)

    yield from each_coin("public columns", every, RECORDS, 5)
    question = sv.Frequencies("owns", oracle="oue")
    yield Case(
        "two public columns, the last one first",
        sv.plan(MONEY, question, epsilon="1", people=1000, public=("amount", "state")),
        MONEY_RECORDS,
    )


def bad_public_records(case: Case) -> list[dict[str, Any]]:
    """Records that are refused whatever a caller says of invalid values, since a report needs its
    public ones.
    """
    record, listed = case.records[0], []
    for name in case.plan.columns:
        lacking = {each: value for each, value in record.items() if each != name}
        listed.append({"why": f"{name} is missing", "record": lacking, "secret": ""})
        for value in OUTSIDE[name]:
            secret = "mf-secret" if isinstance(value, str) and "mf-secret" in value else ""
            listed.append(
                {
                    "why": f"{name} outside the schema",
                    "record": {**record, name: value},
                    "secret": secret,
                }
            )
    return listed


def bad_parts(plan: sv.Plan, report: sv.Report) -> Iterator[tuple[str, bytes]]:
    """Public parts that no device can have sent."""
    good = plan.public.pack(report.public)
    yield "no public part", b""
    yield "a public part that was cut", good[:-1]
    yield "a byte to spare behind the public part", good + b"\0"
    parts = [each.pack(value) for each, value in zip(plan.public, report.public, strict=True)]
    for place, each in enumerate(plan.public):
        before, after = b"".join(parts[:place]), b"".join(parts[place + 1 :])
        size = getattr(each, "size", None)
        if size is None:
            prefix = each.width - each.attribute.bytes
            for why, text in (
                ("that is no UTF-8", b"\xff"),
                ("of half a surrogate pair", b"\xed\xa0\x80"),
            ):
                yield (
                    f"{each.name} {why}",
                    before + len(text).to_bytes(prefix, "little") + text + after,
                )
            long = b"a" * (each.attribute.bytes + 1)
            if len(long) < 1 << 8 * prefix:
                yield (
                    f"{each.name} that is too long",
                    before + len(long).to_bytes(prefix, "little") + long + after,
                )
        elif size < 1 << 8 * each.width:
            yield f"{each.name} at its limit", before + size.to_bytes(each.width, "little") + after
    if "grade" in plan.columns:
        place = plan.columns.index("grade")
        yield "grade of other letters", b"".join([*parts[:place], b"\x01z", *parts[place + 1 :]])


def bad_json(case: Case, report: sv.Report) -> list[dict[str, Any]]:
    """JSON reports whose public part is not the plan's."""
    good = json.loads(report.to_json())
    public = good["public"]
    first = case.plan.columns[0]
    listed: list[tuple[str, Any]] = [
        ("no public part", None),
        ("an empty public part", {}),
        ("a list", list(public.values())),
        ("a column is missing", {name: value for name, value in public.items() if name != first}),
        ("a column more", {**public, "smoker": True}),
        ("null", {**public, first: None}),
    ]
    wrong = {
        "member": [1, "true"], "state": [0, "nowhere", True], "rating": ["3", True, 3.0, 4],
        "age": ["41", 41.0, 298], "wide": [2**53 + 1], "note": [5, "piano forte"], "grade": ["z"],
        "count": [7, "07", "7.0"],
        "amount": [12.3, "12.3", "12.300", "+12.30", " 12.30", "-0.00", "1e1", "10000.00", 1230],
    }  # fmt: skip
    for name in case.plan.columns:
        listed += [
            (f"{name} as {value!r}", {**public, name: value}) for value in wrong.get(name, ())
        ]
    rest = {key: part for key, part in good.items() if key != "public"}
    return [
        {"why": why, "json": rest if part is None else {**rest, "public": part}}
        for why, part in listed
    ]


def bad_public_plans(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Plans that ask for what must not travel in clear, or in a way that is not the one."""
    plan = plans["public columns"]
    for why, names in (
        ("asks for a sensitive attribute in clear", ["smoker"]),
        ("asks for a sensitive attribute in clear, among others", ["state", "smoker"]),
        ("names a public attribute that is not there", ["nothing"]),
        ("names a public attribute of the prototype", ["__proto__"]),
        ("names a public attribute twice", ["state", "state"]),
        ("names no public attribute in a list", []),
        ("has a name for a list", "state"),
        ("has nothing for a list", None),
        ("has a number for a name", [1]),
        ("has a set in clear", ["basket"]),
        ("has an integer of 54 bits in clear", ["huge"]),
        ("has values of two types in clear", ["mixed"]),
        ("has text of 1025 bytes in clear", ["book"]),
        ("has a public column called id", ["id"]),
    ):
        body = json.loads(plan.to_json())
        body["public"] = names
        yield why, _text(body)
    body = json.loads(plan.to_json())
    public = body.pop("public")
    yield "names its public columns last", _text({**body, "public": public})
    for why, attribute, part, value in (
        ("has a sensitive fixed-point number", "amount", "sensitive", True),
        ("has a fixed-point number without all its decimals", "amount", "low", "-100"),
        ("has a number for a decimal", "amount", "low", -100),
        ("has a fixed-point number of ten decimals", "amount", "decimals", 10),
        ("has a fixed-point number with text for its decimals", "amount", "decimals", "2"),
        ("has a fixed-point number whose ends are swapped", "amount", "high", "-200.00"),
        ("has a fixed-point number beyond 2^53", "amount", "high", "90071992547409.93"),
        ("has a fixed-point number that is less than nothing", "amount", "low", "-0.00"),
    ):
        body = json.loads(plan.to_json())
        body["schema"][attribute][part] = value
        yield why, _text(body)
    body = json.loads(plan.to_json())
    body["cohorts"]["cohorts"][0]["asks"][0]["encoding"]["attributes"] = ["amount"]
    yield "asks about a fixed-point number", _text(body)
    body = json.loads(plans["two public columns, the last one first"].to_json())
    body["schema"]["amount"] = {
        "kind": "fixed-point",
        "sensitive": False,
        "low": "0",
        "high": "2",
        "decimals": 0,
    }
    body["cohorts"]["cohorts"][0]["asks"][0]["encoding"]["attributes"] = ["amount"]
    yield "asks about a fixed-point number of the right size", _text(body)


def _text(body: Body) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"
