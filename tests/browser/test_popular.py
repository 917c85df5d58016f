"""Plans of questions about popular values and items: the client in Node draws what the Python
client draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.planning import next_plan
from sottovoce.questions.heavyhitters.methods import METHODS
from sottovoce.questions.itemsets.methods import METHODS as ITEM_METHODS
from tests.browser.machines import HAS_NODE, MISMATCHES, in_node
from tests.vectors.case import Case
from tests.vectors.make import rows

pytestmark = pytest.mark.skipif(
    not HAS_NODE, reason="Node is missing: the client was not run in it"
)

PEOPLE = 4000
WORDS = ("adagio", "allegro", "presto", "lento", "è già", "")
SCHEMA = sv.Schema(word=sv.Text(bytes=7), address=sv.Integer(bits=40), basket=sv.Items(range(40)))
MOST_ROUNDS = 3  # of priv-trie's many


def questions() -> Iterator[tuple[str, Any]]:
    for method in METHODS:
        for attribute in ("word", "address"):
            yield (
                f"{method.name} of {attribute}",
                sv.HeavyHitters(attribute, top=4, method=method.name),
            )
    for item_method in ITEM_METHODS:
        name = item_method.name
        length = 3 if name == "psfo" else None
        if item_method.for_items:
            yield f"{name} of items", sv.TopItems("basket", top=4, method=name, length=length)
        if item_method.for_sets:
            yield f"{name} of itemsets", sv.TopItemsets("basket", top=4, method=name)


QUESTIONS = dict(questions())


def people() -> dict[str, Any]:
    draws = np.random.default_rng(1)
    words = [WORDS[place] for place in draws.integers(0, len(WORDS), PEOPLE)]
    baskets = [
        sorted({int(item) for item in draws.geometric(0.3, 6) if item < 40}) for _ in range(PEOPLE)
    ]
    return {"word": words, "address": draws.integers(0, 9, PEOPLE) ** 12, "basket": baskets}


def plans(question: Any) -> Iterator[sv.Plan]:
    """The plan of a question, and those of the rounds that follow it."""
    table = people()
    plan: sv.Plan | None = sv.plan(SCHEMA, question, epsilon=4.0, people=PEOPLE)
    while plan is not None:
        yield plan
        if isinstance(question, sv.HeavyHitters) and len(plan.series.shares) == 1:
            return
        plan = next_plan(plan, sv.Aggregate(plan).add(sv.simulate(plan, table, seed=1)).estimate())


RECORDS = (
    {"word": "è già", "address": 7, "basket": [1, 2, 3]},
    {"word": "", "address": str(2**40 - 1), "basket": []},
    {"word": "allegro", "address": 8**12, "basket": list(range(39, -1, -1))},
)


def entry(name: str, plan: sv.Plan) -> dict[str, Any]:
    good, silent = rows(Case(name, plan, RECORDS, 6))
    wrong = {
        "why": "outside the schema",
        "secret": "",
        "record": {"word": "lentamente", "address": -1, "basket": [40]},
    }
    return {
        "name": name,
        "id": plan.id,
        "plan": plan.to_json(),
        "good": good,
        "silent": silent,
        "bad_records": [wrong],
    }


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_clients_draw_the_same(name: str, tmp_path: Path) -> None:
    entries = [
        entry(f"{name}, {number}", plan)
        for number, plan in enumerate(islice(plans(QUESTIONS[name]), MOST_ROUNDS))
    ]
    assert in_node(MISMATCHES, {"plans": entries, "bad_plans": []}, tmp_path) == []
