"""Plans that a client must refuse: changed on the way, malformed, or promising more privacy than
their coins keep.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sottovoce as sv
from sottovoce.protocol.encodings import Ask, Padded
from tests.oracles import NAMES
from tests.vectors.intervals import bad_intervals
from tests.vectors.public import bad_public_plans
from tests.vectors.queries import bad_grids, bad_measures

Body = dict[str, Any]
NAMES_OF_ATTRIBUTES = (
    ("that is a whole number", "5"),
    ("that is zero", "0"),
    ("that is a whole number beyond all lists", "4294967296"),
    ("with a space at its end", "age "),
    ("with a space before it", "\u00a0age"),
    ("with two spaces", "my  age"),
    ("with a space of another width", "my\u2003age"),
    ("with a line's end", "my\nage"),
    ("with a control character", "age\u0085"),
    ("with a joiner", "age\u200d"),
    ("with a mark of the order of bytes", "\ufeffage"),
    ("that turns about", "\u202eega"),
    ("with a soft hyphen", "a\u00adge"),
    ("with a filler", "age\u3164"),
    ("with a selector of variants", "age\ufe0f"),
    ("with a tag", "age\U000e0061"),
    ("whose accent stands apart", "e\u0301ge"),
)


def bad_plans(plans: Mapping[str, sv.Plan]) -> list[dict[str, str]]:
    """Each with the id that a client expects and the error it must raise."""
    rows = [
        (why, text, "InvalidInput")
        for why, text in (*_weak(plans), *_malformed(plans), *_costly(plans), *_padding(plans))
    ]
    listed = [
        {"why": why, "id": hashlib.sha256(text.encode()).hexdigest(), "plan": text, "error": error}
        for why, text, error in rows
    ]
    plan = plans["grr"]
    changed = plan.to_json().replace('"people": 1000', '"people": 1001')
    for why, text in (
        ("one digit changed", changed),
        ("a space more", plan.to_json() + " "),
        ("nothing in it", ""),
    ):
        listed.append({"why": why, "id": plan.id, "plan": text, "error": "PlanMismatch"})
    for why, text in bad_public_plans(plans):
        id = hashlib.sha256(text.encode()).hexdigest()
        listed.append({"why": why, "id": id, "plan": text, "error": "InvalidInput"})
    for why, text in (*bad_grids(plans), *bad_measures(plans), *bad_intervals(plans)):
        id = hashlib.sha256(text.encode()).hexdigest()
        listed.append({"why": why, "id": id, "plan": text, "error": "InvalidInput"})
    return listed


def _body(plan: sv.Plan) -> Body:
    body: Body = json.loads(plan.to_json())
    return body


def _text(body: Body) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _oracle(body: Body) -> Body:
    found: Body = body["cohorts"]["cohorts"][0]["asks"][0]["oracle"]
    return found


def _weak(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Coins of a larger epsilon than the plan says, by much and by little; and coins that tell the
    opposite.
    """
    for name in NAMES:
        body = _body(plans[name])
        said = _oracle(body)
        # thresholding takes some of the noise's epsilon away: its coins are weak only far beyond it
        for epsilon in ("10",) if name == "the" else ("10", "1.5001"):
            coins = sv.oracle(
                name, size=int(said["size"]), epsilon=epsilon, **said["options"]
            ).to_json()["thresholds"]
            changed = copy.deepcopy(body)
            _oracle(changed)["thresholds"] = coins
            yield f"{name}'s coins of epsilon {epsilon}, not 1.5", _text(changed)
    for name, coins in (
        ("sue", {"one": "1000", "zero": str(2**63)}),
        ("oue", {"one": str(2**63), "zero": str(2**64)}),
        ("oue", {"one": str(2**64), "zero": "1"}),
        ("oue", {"one": str(2**63), "zero": "0"}),
        ("grr", {"truth": str(2**64)}),
        ("hr", {"agree": "1"}),
        ("hrr", {"agree": "0"}),
        ("ss", {"include": "7"}),
        ("cms", {"one": "1", "zero": str(2**64 - 1)}),
        ("o-rappor", {"zero": str(2**64 - 1)}),
        ("o-rappor", {"zero": "0"}),
        ("she", {"scale": "1", "rate": "1"}),
        ("she", {"scale": "0", "rate": "0"}),
    ):
        body = _body(plans[name])
        _oracle(body)["thresholds"] |= coins
        yield f"{name} that tells the truth: {coins}", _text(body)
    for name, part, option, value in (
        ("rappor", "options", "hashes", 4),  # more bits of a filter for the same coins
        ("whole sets", "options", "hash_size", 500),
        ("cms", "options", "hashes", 3),
        ("hcms", "options", "width", 12),
        ("o-rr", "options", "cohorts", 5),
        ("o-rr", "options", "buckets", 300),
        ("olh", "options", "hash_bits", 6),
        ("ss of 2000", "options", "chosen", 1),
    ):
        body = _body(plans[name])
        _oracle(body)[part][option] = value
        yield f"{name} with {option} {value}, which its coins do not fit", _text(body)


def _costly(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Coins that fit the asks' epsilons, which are more than the plan's."""
    for name in (
        "grr",
        "several asks",
        "em",
        "marg-ht",
        "latent",
        "calm-binary",
        "windows",
        "amplified sets",
    ):
        body = _body(plans[name])
        body["epsilon"] = "0.25"
        yield f"{name}'s asks cost more than the plan says", _text(body)


def _malformed(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    yield "text that is not JSON", "{"
    yield "JSON that is no plan", "[]"
    yield "nothing", "null"
    for why, path, value in (
        ("another format", ("sottovoce",), 2),
        ("an unknown coin", ("coin",), "collector"),
        ("epsilon zero", ("epsilon",), "0"),
        ("epsilon beyond all", ("epsilon",), "1000"),
        ("an epsilon that is no number", ("epsilon",), "NaN"),
        ("an unknown family", ("cohorts", "family"), "everybody"),
        ("no cohorts", ("cohorts", "cohorts"), []),
        ("no cohorts at all", ("cohorts",), {"family": "listed"}),
        ("a weight of zero", ("cohorts", "cohorts", 0, "weight"), 0),
        ("half a weight", ("cohorts", "cohorts", 0, "weight"), "1/2"),
        ("an unknown encoding", ("cohorts", "cohorts", 0, "asks", 0, "encoding", "kind"), "whole"),
        (
            "an attribute that is not there",
            ("cohorts", "cohorts", 0, "asks", 0, "encoding", "attributes"),
            ["z"],
        ),
        (
            "another attribute's size",
            ("cohorts", "cohorts", 0, "asks", 0, "encoding", "attributes"),
            ["yes"],
        ),
        ("an unknown oracle", ("cohorts", "cohorts", 0, "asks", 0, "oracle", "name"), "toString"),
        ("an oracle too large", ("cohorts", "cohorts", 0, "asks", 0, "oracle", "size"), str(2**40)),
        (
            "a threshold beyond 2^64",
            ("cohorts", "cohorts", 0, "asks", 0, "oracle", "thresholds", "truth"),
            str(2**65),
        ),
        (
            "a negative threshold",
            ("cohorts", "cohorts", 0, "asks", 0, "oracle", "thresholds", "truth"),
            "-1",
        ),
        ("no threshold", ("cohorts", "cohorts", 0, "asks", 0, "oracle", "thresholds"), {}),
        ("an unknown kind of attribute", ("schema", "x", "kind"), "constructor"),
        ("values that repeat", ("schema", "x", "values"), ["a", "b", "c", "d", "e", "a"]),
        (
            "an attribute of one value",
            ("schema", "word"),
            {"kind": "categorical", "sensitive": True, "values": ["a"]},
        ),
        ("no rounds", ("series", "shares"), []),
        ("a round beyond the last", ("series", "round"), 1),
        ("a first round with a parent", ("series", "parent"), "0" * 64),
    ):
        body = _body(plans["grr"])
        part: Any = body
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        yield why, _text(body)
    for why, name in NAMES_OF_ATTRIBUTES:
        body = _body(plans["grr"])
        attributes = {
            name if each == "yes" else each: part for each, part in body["schema"].items()
        }
        yield f"a name {why}", _text({**body, "schema": attributes})
    body = _body(plans["grr"])
    body["schema"] = {"5": body["schema"]["yes"], **body["schema"]}
    yield "a first name that is a whole number", _text(body)
    body = _body(plans["latent"])
    body["cohorts"]["blocks"][0]["shape"] = "circle"
    yield "an unknown shape", _text(body)
    for why, part, value in OF_VIEWS:
        body = _body(plans["views of several orders"])
        block = body["cohorts"]["blocks"][1]  # two of ten pairs
        block[part] = value
        yield f"views with {why}", _text(body)
    for why, change in OF_ALL_VIEWS:
        body = _body(plans["views of several orders"])
        change(body["cohorts"])
        yield f"views {why}", _text(body)
    for why, name, index, part, value in OF_ENCODINGS:
        body = _body(plans[name])
        body["cohorts"]["cohorts"][index]["asks"][0]["encoding"][part] = value
        yield why, _text(body)
    body = _body(plans["windows"])
    body["cohorts"]["cohorts"][2]["asks"][0]["encoding"] |= {
        "tag": 40,
        "fresh": 20,
    }  # as many values as before
    yield "a tag of 40 bits", _text(body)
    for why, name, attribute, part, value in OF_ATTRIBUTES:
        body = _body(plans[name])
        body["schema"][attribute][part] = value
        yield why, _text(body)
    body = _body(plans["windows"])
    body["cohorts"]["cohorts"].append(_body(plans["codes of 128 bits"])["cohorts"]["cohorts"][0])
    body["epsilon"] = "3"
    yield "a spelling for one cohort and a code for another", _text(body)


OF_VIEWS: tuple[tuple[str, str, Any], ...] = (
    ("an order of zero", "order", 0),
    ("an order beyond all attributes", "order", 6),
    ("an order as text", "order", "2"),
    ("runs that are a list", "runs", [1, 1, 5, 1]),
    ("no runs", "runs", ""),
    ("a run that is not there", "runs", "1 1 5"),
    ("runs that take nothing", "runs", "1 0 5 1"),
    ("runs that pass over nothing", "runs", "1 1 0 1"),
    ("runs below zero", "runs", "1 1 -1 1"),
    ("runs beyond the last set", "runs", "1 1 8 1"),
    ("runs of another spelling", "runs", "01 1 5 1"),
    ("runs with spaces to spare", "runs", "1 1  5 1"),
    ("runs of other digits", "runs", "1 1 \u0665 1"),
    ("more runs than are meant", "runs", "9" * 5000 + " 1"),
)
OF_ALL_VIEWS: tuple[tuple[str, Callable[[Body], Any]], ...] = (
    ("of one order twice", lambda cohorts: cohorts["blocks"].append(cohorts["blocks"][-1])),
    ("of falling orders", lambda cohorts: cohorts["blocks"].reverse()),
    ("in no blocks", lambda cohorts: cohorts["blocks"].clear()),
    ("without an oracle", lambda cohorts: cohorts["oracles"].pop()),
    ("with an oracle twice", lambda cohorts: cohorts["oracles"].append(cohorts["oracles"][-1])),
    (
        "of an attribute that is not there",
        lambda cohorts: cohorts["attributes"].__setitem__(0, "z"),
    ),
    ("of fewer attributes", lambda cohorts: cohorts["attributes"].pop()),
)

# why, plan, cohort, what of its first ask's encoding, and what it should not be
OF_ENCODINGS: tuple[tuple[str, str, int, str, Any], ...] = (
    ("a window of an unknown attribute", "windows", 0, "attribute", "z"),
    ("a window of another attribute, which is too short", "windows", 4, "attribute", "word"),
    ("a window that is wider than its oracle", "windows", 0, "fresh", 17),
    ("a window without bits", "windows", 0, "fresh", 0),
    ("a window that ends behind the spelling", "windows", 0, "start", 113),
    ("a window that starts before the spelling", "windows", 0, "start", -1),
    ("a tag that is wider than its oracle", "windows", 2, "tag", 33),
    ("a tag of bits that are not there", "windows", 2, "tagged", 129),
    ("a prefix that leaves no room to go on", "prefixes", 0, "prefixes", [[125, "0"]]),
    ("a prefix that is longer than it says", "prefixes", 0, "prefixes", [[3, "8"]]),
    ("a prefix more than the oracle takes", "prefixes", 0, "prefixes", [[1, "0"], [1, "1"]]),
    ("no prefix", "prefixes", 0, "prefixes", []),
    ("prefixes that go on for no bits", "prefixes", 0, "fresh", 0),
    ("a set that is padded to nothing", "sets", 0, "length", 0),
    ("a set that is padded to more than its oracle takes", "sets", 0, "length", 2),
    (
        "more candidates than an oracle takes",
        "sets",
        0,
        "candidates",
        [[item] for item in range(8)],
    ),
    ("a candidate that is no list", "sets", 2, "candidates", [6, 0, 3]),
    ("at most none", "sets", 7, "most", 0),
    ("a whole set of fewer values than its oracle takes", "whole sets", 1, "length", 2),
    ("a whole set of more values than its oracle takes", "whole sets", 1, "length", 4),
)
OF_ATTRIBUTES: tuple[tuple[str, str, str, str, Any], ...] = (
    ("an integer of 129 bits", "windows", "address", "bits", 129),
    ("an integer without bits", "windows", "address", "bits", 0),
    ("text without bytes", "spellings", "word", "bytes", 0),
    ("a shorter text than its window", "spellings", "word", "bytes", 15),
    ("an item more than an oracle takes", "sets", "basket", "values", list("abcdefgh")),
)


def _padding(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Sets whose sampling does not keep what they say, by much and by little."""
    grr, seeded = "amplified sets", "amplified sets with a delta"
    cohorts = {name: _body(plans[name])["cohorts"]["cohorts"] for name in (grr, seeded)}
    for why, name, index, part, value in (
        ("grr that is amplified for more than the set says", grr, 1, "epsilon", "1.1999"),
        (
            "a seeded hash that is amplified for more than the set says",
            seeded,
            15,
            "epsilon",
            "1.1999",
        ),
        ("grr that nothing amplifies", grr, 1, "epsilon", None),
        ("a seeded hash that nothing amplifies", seeded, 15, "epsilon", None),
        ("an amplified epsilon of zero", grr, 1, "epsilon", "0"),
        ("grr with a delta", grr, 1, "delta", "1/1000"),
        ("a seeded hash without a delta", seeded, 15, "delta", None),
        ("a smaller delta than the hash allows", seeded, 15, "delta", "1/100000000"),
        ("a delta of zero", seeded, 15, "delta", "0"),
        ("a delta of one", seeded, 15, "delta", "1"),
        ("a delta above one", seeded, 15, "delta", "3/2"),
        ("a delta of nothing over nothing", seeded, 15, "delta", "0/0"),
        ("a delta below zero", seeded, 15, "delta", "-1/2"),
        ("a delta that is no number", seeded, 15, "delta", "little"),
    ):
        body = _body(plans[name])
        encoding = cohorts[name][index]["asks"][0]["encoding"] | {part: value}
        body["cohorts"]["cohorts"] = [copy.deepcopy(cohorts[name][index])]
        body["cohorts"]["cohorts"][0]["asks"][0]["encoding"] = encoding
        yield why, _text(body)
    yield from _deltas(plans)
    for name in ("oue", "olh"):
        body = _body(plans[grr])
        oracle = cohorts[grr][1]["asks"][0]["oracle"]
        made = sv.oracle(name, size=int(oracle["size"]), epsilon=oracle["epsilon"]).to_json()
        body["cohorts"]["cohorts"][1]["asks"][0]["oracle"] = made
        yield f"a padded set through {name}, which nothing amplifies", _text(body)
    body = _body(plans["whole sets"])
    body["cohorts"]["cohorts"][0]["asks"][0]["oracle"] = sv.oracle(
        "grr", size=7, epsilon="1.5"
    ).to_json()
    yield "a whole set through grr, which takes one value", _text(body)
    # fewer buckets, so that more items share one, and coins that fit them
    body = _body(plans[seeded])
    oracle = body["cohorts"]["cohorts"][15]["asks"][0]["oracle"]
    made = sv.oracle(
        "olh-seeded", size=int(oracle["size"]), epsilon=oracle["epsilon"], hash_size=2
    ).to_json()
    body["cohorts"]["cohorts"][15]["asks"][0]["oracle"] = made
    yield "a hash to so few values that too many items share one", _text(body)


SPELLINGS = (  # of what is at best 1/1001
    "2/2002", "01/1001", "1/01001", "+1/1001", "1 / 1001", "1/1001 ", "1/1001\n", "1/1001/1",
    "1/-1001", "0x1/1001", "1/1001.0", "1/1e400", "1e-400/1", "1e0/1001", "0.000999", "1_0/10010",
    "\u0661/1001", "0/1001", "1/0", "", "9007199254740993/9016206453995733741",
    "1/9007199254740993", 1, ["1", "1001"],
)  # fmt: skip


def _deltas(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Deltas that are no small chance, that somebody can bring about, or that two readers may read
    in two ways.
    """
    name = "amplified sets with a delta"

    def plan(*asks: Ask, people: int = 1000, coin: str = "device") -> Body:
        body = _body(plans[name]) | {"people": people, "coin": coin}
        body["cohorts"]["cohorts"] = [{"weight": 1, "asks": [ask.to_json() for ask in asks]}]
        return body

    def padded(length: int, epsilon: str, delta: Fraction) -> Ask:
        encoding = Padded("tags", 43, None, length, Decimal(epsilon), delta)
        return Ask(encoding, encoding.oracle(Decimal(epsilon)))

    small = padded(30, "1.2", Fraction(1, 1001))
    yield "assigned coins and a delta", _text(plan(small, coin="assigned"))
    yield "a delta of one in all people", _text(plan(small, people=1001))
    yield "a delta above the ceiling", _text(plan(padded(30, "1.2", Fraction(1, 999)), people=10))
    half = padded(30, "0.6", Fraction(1, 1999))
    yield "two deltas that are too large together", _text(plan(half, half, people=10))
    yield "a delta near one", _text(plan(padded(30, "1.2", Fraction(999, 1000)), people=1))
    for why, delta in (
        ("near one", "999999999/1000000000"),
        ("of a tenth", "1/10"),
        ("of nothing", "1/1e400"),
    ):
        body = plan(padded(1, "0.1", Fraction(1, 10)), people=1)
        ask = body["cohorts"]["cohorts"][0]["asks"][0]
        ask["encoding"]["delta"] = delta
        ask["oracle"] = sv.oracle("olh-seeded", size=44, epsilon=20, hash_size=60_000).to_json()
        yield f"a set of one that tells nearly all, with a delta {why}", _text(body)
    body = plan(padded(2, "1.2", Fraction(1, 2**53)))  # which needs coins that nothing amplifies
    body["cohorts"]["cohorts"][0]["asks"][0]["encoding"]["delta"] = "1/1e400"
    yield "a delta that is nothing as a float", _text(body)
    for hash_size in (5, 200):  # one that is too small, and one that is too large
        body = plan(small)
        oracle = body["cohorts"]["cohorts"][0]["asks"][0]["oracle"]
        made = sv.oracle(
            "olh-seeded", size=73, epsilon=oracle["epsilon"], hash_size=hash_size
        ).to_json()
        body["cohorts"]["cohorts"][0]["asks"][0]["oracle"] = made
        yield f"a hash of {hash_size} values, which its delta does not give", _text(body)
    for delta in SPELLINGS:
        body = plan(small)
        body["cohorts"]["cohorts"][0]["asks"][0]["encoding"]["delta"] = delta
        yield f"a delta written as {delta!r}", _text(body)
    body = plan(small)
    body["cohorts"]["cohorts"][0]["asks"][0]["encoding"]["epsilon"] = None
    yield "a delta beside no epsilon", _text(body)
