"""Crowds of whom exact shares hold what is planted, and what a search finds in them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.api.planning import simulate_rounds
from sottovoce.results.findings import Findings

PLANTED = {0xBEEF12: 0.20, 0x00C0DE: 0.15, 0xFACADE: 0.12, 0x123456: 0.10}
NUMBERS = sv.Schema(x=sv.Integer(bits=24))
WORDS = {"alma": 0.25, "bea": 0.2, "celeste": 0.15, "": 0.1}
PEOPLE = 60_000


def crowd(
    planted: dict[Any, float], rest: list[Any], people: int = PEOPLE, seed: int = 1
) -> list[Any]:
    """People of whom exact shares hold what is planted, and the others what they like."""
    column = [value for value, share in planted.items() for _ in range(round(share * people))]
    draws = np.random.default_rng(seed)
    others = draws.integers(0, len(rest), people - len(column)).tolist()
    column += [rest[place] for place in others]
    return [column[place] for place in draws.permutation(people).tolist()]


def numbers(people: int = PEOPLE) -> dict[str, Any]:
    rest = np.random.default_rng(9).integers(0, 1 << 24, 5_000).tolist()
    return {"x": np.array(crowd(PLANTED, rest, people))}


def words() -> dict[str, Any]:
    rest = ["".join(letters) for letters in product("abcde", repeat=5)]
    return {"x": np.array(crowd(WORDS, rest), object)}


def found_by(
    schema: sv.Schema, table: dict[str, Any], epsilon: float = 4.0, seed: int = 5, **options: Any
) -> Findings:
    question = sv.HeavyHitters("x", **{"top": 4, **options})
    plan = sv.plan(schema, question, epsilon=epsilon, people=len(table["x"]))
    assert sv.Plan.from_json(plan.to_json()) == plan
    found = simulate_rounds(plan, table, seed)
    assert isinstance(found, Findings)
    return found


def errors(found: Findings, truth: dict[Any, float]) -> list[float]:
    """How many standard errors each estimate is off."""
    rows = zip(found.table.labels, found.values, found.std_error, strict=True)
    return [float((value - truth[label]) / error) for label, value, error in rows if label in truth]
