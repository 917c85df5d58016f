"""Crowds in which exact shares hold planted values, and what a method finds of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.api.planning import simulate_rounds
from sottovoce.results.findings import Findings

PLANTED = {0xBEEF12: 0.20, 0x00C0DE: 0.15, 0xFACADE: 0.12, 0x123456: 0.10}
NUMBERS = sv.Schema(x=sv.Integer(bits=24))
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


def found_by(
    schema: sv.Schema, table: dict[str, Any], epsilon: float = 4.0, seed: int = 5, **options: Any
) -> Findings:
    """Plan, simulate all rounds, estimate."""
    question = sv.HeavyHitters("x", **{"top": 4, **options})
    plan = sv.plan(schema, question, epsilon=epsilon, people=len(table["x"]))
    assert sv.Plan.from_json(plan.to_json()) == plan
    found = simulate_rounds(plan, table, seed)
    assert isinstance(found, Findings)
    return found
