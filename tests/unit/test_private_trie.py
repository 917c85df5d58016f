"""The trie that grows in rounds: what it finds, what a round hands on to the next, and who is
asked.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.planning import next_plan
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput, NotInThisRound
from sottovoce.questions.heavyhitters.method import SearchTarget
from sottovoce.questions.heavyhitters.trie import Node, complete, possible
from tests.planted import NUMBERS, PLANTED, WORDS, errors, found_by, numbers, words
from tests.statistics import z_limit


@pytest.mark.parametrize(
    ("attribute", "place", "is_complete", "is_possible"),
    [
        (sv.Integer(bits=12), (8, 200), False, True),
        (sv.Integer(bits=12), (12, 200), True, True),
        (sv.Text(bytes=3), (8, 0), True, True),  # the empty text
        (sv.Text(bytes=3), (16, 0x6100), True, True),  # "a" has ended
        (sv.Text(bytes=3), (16, 0x6162), False, True),
        (sv.Text(bytes=3), (8, 0xC3), False, True),  # the first half of a letter
        (sv.Text(bytes=3), (16, 0xC361), False, False),  # which must go on otherwise
        (sv.Text(bytes=3), (16, 0xC300), True, False),
        (sv.Text(bytes=3, alphabet="abcde"), (3, 5), False, True),
        (sv.Text(bytes=3, alphabet="abcde"), (3, 6), False, False),  # three bits, but five letters
    ],
)
def test_what_a_prefix_may_be(
    attribute: Any, place: tuple[int, int], is_complete: bool, is_possible: bool
) -> None:
    target = SearchTarget("x", attribute, 4, None)
    assert complete(target, place) == is_complete
    assert possible(target, place) == is_possible


def test_a_trie_finds_planted_numbers() -> None:
    found = found_by(NUMBERS, numbers(), method="priv-trie", batches=12)
    assert set(found.table.labels) == set(PLANTED)
    off = errors(found, PLANTED)
    assert max(map(abs, off)) < z_limit(len(off))
    wrong = errors(found, {label: share / 1.5 for label, share in PLANTED.items()})
    assert max(map(abs, wrong)) > z_limit(len(off))
    assert found.next is None


def test_what_rounds_add_up_to_has_the_variance_stated() -> None:
    """Every batch tosses its own coins: if rounds shared theirs, errors would add up instead of
    averaging out.
    """
    off: list[float] = []
    shares = {f"{first:08b}": 1 / 16 for first in range(16)}
    column = np.arange(20_000) % 16 << 8 | 5
    for seed in range(4):
        schema = sv.Schema(x=sv.Integer(bits=16))
        found = found_by(
            schema, {"x": column}, epsilon=2.0, seed=seed, method="priv-trie", batches=16, top=16
        )
        steps = [step for step in found.steps if step.label in shares]
        off += [(step.frequency - shares[step.label]) / step.std_error for step in steps]
    assert len(off) > 40
    assert abs(sum(e**2 for e in off) - len(off)) < z_limit(1) * sqrt(2 * len(off))


def test_a_trie_shows_the_way_to_its_words() -> None:
    schema = sv.Schema(x=sv.Text(bytes=8, alphabet="abcdefghijklmnopqrstuvwxyz"))
    found = found_by(schema, words(), method="priv-trie", batches=16)
    assert set(found.table.labels) == set(WORDS)
    off = errors(found, WORDS)
    assert max(map(abs, off)) < z_limit(len(off))
    for step in found.steps:
        if step.parent is not None:
            parent = found.steps[step.parent]
            assert parent.length < step.length
            assert step.label.rstrip("…").startswith(parent.label.rstrip("…"))
    assert {"a…", "al…", "alma"} <= {step.label for step in found.steps}
    assert {step.length for step in found.steps if step.label == "bea"} == {
        4 * 5
    }  # it ends at its fourth character


def test_nobody_answers_two_rounds() -> None:
    people = 3_000
    column = np.arange(people)
    question = sv.HeavyHitters("x", top=2, method="priv-trie", batches=4)
    current: Any = sv.plan(sv.Schema(x=sv.Integer(bits=12)), question, epsilon=3.0, people=people)
    heard = 0
    state = sv.ClientState()
    refused = 0
    while current is not None:
        reports = sv.simulate(current, {"x": column}, seed=8)
        heard += len(reports)
        try:
            sv.Client(current, state=state, entropy=Seeded(current.series.number)).report({"x": 5})
        except NotInThisRound:
            refused += 1
        current = next_plan(current, sv.Aggregate(current).add(reports).estimate())
    assert heard == people  # everybody once: the rounds of one seed are disjoint
    assert refused == 3  # a device joins one round of the four


def test_a_later_round_holds_what_is_known_in_strings() -> None:
    schema = sv.Schema(x=sv.Integer(bits=128))
    question = sv.HeavyHitters("x", top=2, method="priv-trie", batches=16)
    plan: Any = sv.plan(schema, question, epsilon=6.0, people=40_000)
    table = {"x": np.array([(1 << 127) + 5, 7] * 20_000, object)}
    for _ in range(10):
        plan = next_plan(plan, sv.Aggregate(plan).add(sv.simulate(plan, table, seed=1)).estimate())
        assert sv.Plan.from_json(plan.to_json()) == plan
    known = plan.question.options["known"]
    assert max(int(node[1]) for node in known) > 1 << 53
    assert all(isinstance(node[1], str) for node in known)


def test_a_node_is_what_its_json_says() -> None:
    for node in (Node(40, 1 << 39, 1_000, 12.125, 99.5, True), Node(8, 0, 1, -0.25, 1e-05, False)):
        assert Node.from_json(node.to_json(), 48) == node
    for broken in (
        [1, 2],
        "x",
        [49, "0", 1, "1", "1", True],
        [4, "16", 1, "1", "1", True],
        [4, "1", 1, "1", "0", True],
    ):
        with pytest.raises(InvalidInput, match="known"):
            Node.from_json(broken, 48)


def test_a_plan_that_knows_what_no_round_found_is_refused() -> None:
    question = sv.HeavyHitters("x", top=4, method="priv-trie", batches=4)
    plan = sv.plan(NUMBERS, question, epsilon=1.0, people=1000)
    for known in (3, [[8, "7"]], [[8, "256", 5, "1", "1", True]], [[8, "7", 5, "1", "0", True]]):
        stored = plan.question.to_json()
        stored["options"] = {**stored["options"], "known": known}
        with pytest.raises(InvalidInput, match="known"):
            sv.HeavyHitters.from_json(stored).cohorts(NUMBERS, plan.terms)


def test_a_trie_that_grows_too_wide_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from sottovoce.questions.heavyhitters import trie

    monkeypatch.setattr(trie, "LEAST_GROWN", 1)
    found = found_by(NUMBERS, numbers(), method="priv-trie", batches=6, top=1)
    assert any(
        note.startswith("more prefixes of 8") and "only the 2 surest" in note
        for note in found.notes
    )
    assert found.table.labels == [0xBEEF12]


def test_batches_are_not_too_small() -> None:
    def rounds(people: int, epsilon: float) -> int:
        question = sv.HeavyHitters("x", top=2, method="priv-trie")
        return len(sv.plan(NUMBERS, question, epsilon=epsilon, people=people).series.shares)

    assert rounds(1_000_000, 1.0) == 32
    assert rounds(16_000, 1.0) == 20
    assert rounds(100, 1.0) == 3  # one for each character
