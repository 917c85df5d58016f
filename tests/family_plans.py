"""Plans of every family of cohorts, and people who answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import prod
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.oracles.rules import oracle_by
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import (
    Block,
    Family,
    Listed,
    Subsets,
    ViewFamily,
)
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.questions.marginals.models.signs import sign_family
from tests.vectors.asks import BUILDS, Asks

SCHEMA = sv.Schema(
    a=sv.Boolean(),
    b=sv.Categorical(range(3)),
    c=sv.Categorical(range(4)),
    d=sv.Categorical(range(5)),
)
NAMES = ("a", "b", "c", "d")
SIZES = (2, 3, 4, 5)


def ask(name: str, oracle: str, epsilon: float) -> Ask:
    cells = Cells.of(SCHEMA, name)
    return Ask(cells, sv.oracle(oracle, size=cells.size, epsilon=epsilon))


def listed(epsilon: Decimal) -> Family:
    half = float(epsilon) / 2
    split = Cohort((ask("b", "grr", half), ask("c", "oue", half)), weight=2)
    return Listed([split, Cohort((ask("d", "olh", float(epsilon)),), weight=3)])


def subsets(epsilon: Decimal) -> Family:
    return Subsets(SCHEMA, NAMES, 2, "grr", epsilon, oracle_by)


def views(epsilon: Decimal) -> Family:
    """Sets of several orders, whose tables have several sizes."""
    sets = [(2,), (0, 2), (1, 3), (0, 1), (0, 2, 3)]
    sizes = {prod(SIZES[place] for place in own) for own in sets}
    return ViewFamily(SCHEMA, NAMES, sets, [oracle_by("grr", size, epsilon) for size in sizes])


def signs(epsilon: Decimal) -> Family:
    blocks = [Block("parity", 1, 3), Block("parity", 3), Block("corner", 2, 2), Block("star", 3)]
    return sign_family(SCHEMA, NAMES, [3, 1, 2, 1], blocks, epsilon)


def together(epsilon: Decimal) -> Family:
    part = float(epsilon) / 4
    asks = (
        ask("a", "rr", part),
        ask("b", "grr", part),
        ask("d", "hr", part),
        ask("c", "oue", part),
    )
    return Listed([Cohort(asks)], keep="rows")


def kept(epsilon: Decimal) -> Family:
    """Reports that cannot be summed beside such that can, in one cohort."""
    part = float(epsilon) / 4
    asks = ask("b", "olh-seeded", part), ask("c", "oue", part), ask("d", "olh-wide", 2 * part)
    return Listed([Cohort(asks), Cohort((ask("d", "olh-seeded", 4 * part),), weight=2)])


KINDS: Mapping[str, Callable[[Decimal], Family]] = {
    "listed": listed,
    "subsets": subsets,
    "views": views,
    "signs": signs,
    "together": together,
    "kept": kept,
}
each_family = pytest.mark.parametrize("kind", list(KINDS))


for _kind, _family in KINDS.items():
    BUILDS[_kind] = lambda _, epsilon, family=_family: family(epsilon)


def plan_of(kind: str, epsilon: float = 2.0) -> Plan:
    return sv.plan(SCHEMA, Asks(kind), epsilon=epsilon, people=1000)


def people(count: int, seed: int = 1) -> dict[str, Any]:
    draws = np.random.default_rng(seed)
    return {name: draws.integers(0, size, count) for name, size in zip(NAMES, SIZES, strict=True)}


def reports_of(plan: Plan, count: int = 400, seed: int = 1) -> sv.Reports:
    return sv.simulate(plan, people(count, seed), seed=seed)
