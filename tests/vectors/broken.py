"""Plans that a client must refuse: changed on the way, malformed, or promising more privacy than their coins keep."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import sottovoce as sv
from tests.oracles import NAMES

Body = dict[str, Any]


def bad_plans(plans: Mapping[str, sv.Plan]) -> list[dict[str, str]]:
    """Each with the id that a client expects and the error it must raise."""
    rows = [(why, text, "InvalidInput") for why, text in (*_weak(plans), *_malformed(plans), *_costly(plans))]
    listed = [
        {"why": why, "id": hashlib.sha256(text.encode()).hexdigest(), "plan": text, "error": error}
        for why, text, error in rows
    ]
    plan = plans["grr"]
    changed = plan.to_json().replace('"people": 1000', '"people": 1001')
    for why, text in (("one digit changed", changed), ("a space more", plan.to_json() + " "), ("nothing in it", "")):
        listed.append({"why": why, "id": plan.id, "plan": text, "error": "PlanMismatch"})
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
    """Coins of a larger epsilon than the plan says, by much and by little; and coins that tell the opposite."""
    for name in NAMES:
        body = _body(plans[name])
        said = _oracle(body)
        # thresholding takes some of the noise's epsilon away, so its coins are weak only far beyond it
        for epsilon in ("10",) if name == "the" else ("10", "1.5001"):
            coins = sv.oracle(name, size=int(said["size"]), epsilon=epsilon, **said["options"]).to_json()["thresholds"]
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
        ("o-rr", "options", "buckets", 300),
        ("olh", "options", "hash_bits", 6),
        ("ss of 2000", "options", "chosen", 1),
    ):
        body = _body(plans[name])
        _oracle(body)[part][option] = value
        yield f"{name} with {option} {value}, which its coins do not fit", _text(body)


def _costly(plans: Mapping[str, sv.Plan]) -> Iterator[tuple[str, str]]:
    """Coins that fit the asks' epsilons, which are more than the plan's."""
    for name in ("grr", "several asks", "em", "marg-ht", "latent", "calm-binary"):
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
        ("an attribute that is not there", ("cohorts", "cohorts", 0, "asks", 0, "encoding", "attributes"), ["z"]),
        ("another attribute's size", ("cohorts", "cohorts", 0, "asks", 0, "encoding", "attributes"), ["yes"]),
        ("an unknown oracle", ("cohorts", "cohorts", 0, "asks", 0, "oracle", "name"), "toString"),
        ("an oracle too large", ("cohorts", "cohorts", 0, "asks", 0, "oracle", "size"), str(2**40)),
        ("a threshold beyond 2^64", ("cohorts", "cohorts", 0, "asks", 0, "oracle", "thresholds", "truth"), str(2**65)),
        ("a negative threshold", ("cohorts", "cohorts", 0, "asks", 0, "oracle", "thresholds", "truth"), "-1"),
        ("no threshold", ("cohorts", "cohorts", 0, "asks", 0, "oracle", "thresholds"), {}),
        ("an unknown kind of attribute", ("schema", "x", "kind"), "constructor"),
        ("values that repeat", ("schema", "x", "values"), ["a", "b", "c", "d", "e", "a"]),
        ("an attribute of one value", ("schema", "word"), {"kind": "categorical", "sensitive": True, "values": ["a"]}),
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
    body = _body(plans["latent"])
    body["cohorts"]["blocks"][0]["shape"] = "circle"
    yield "an unknown shape", _text(body)
    body = _body(plans["em"])
    body["cohorts"]["cohorts"] *= 2
    yield "two cohorts that are kept together", _text(body)
