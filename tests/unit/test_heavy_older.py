"""The older ways to find heavy hitters: what they find, how honest their estimates are, what they
refuse.
"""

from __future__ import annotations

from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.planning import next_plan
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput, NotInThisRound
from sottovoce.questions.heavyhitters.method import Target
from sottovoce.questions.heavyhitters.trie import Node, complete, possible
from sottovoce.results.findings import Findings
from tests.planted import NUMBERS, PEOPLE, PLANTED, crowd, found_by, numbers
from tests.statistics import z_limit

WORDS = {"alma": 0.25, "bea": 0.2, "celeste": 0.15, "": 0.1}
ONE_ROUND = [
    ("spm", {}),
    ("spm", {"split": "people"}),
    ("hash", {}),
    ("hash", {"split": "people"}),
    ("hash", {"strict": True}),
]


def words() -> dict[str, Any]:
    rest = ["".join(letters) for letters in product("abcde", repeat=5)]
    return {"x": np.array(crowd(WORDS, rest), object)}


def errors(found: Findings, truth: dict[Any, float]) -> list[float]:
    """How many standard errors each estimate is off."""
    rows = zip(found.table.labels, found.values, found.std_error, strict=True)
    return [float((value - truth[label]) / error) for label, value, error in rows if label in truth]


# -- one round


@pytest.mark.parametrize(("method", "options"), ONE_ROUND)
def test_planted_numbers_are_found_and_counted_honestly(
    method: str, options: dict[str, Any]
) -> None:
    found = found_by(NUMBERS, numbers(), method=method, **options)
    assert set(found.table.labels) == set(PLANTED)
    off = errors(found, PLANTED)
    assert max(map(abs, off)) < z_limit(len(off))
    assert found.significant().all()
    assert list(found.values) == sorted(found.values, reverse=True)
    # an estimator whose scale is wrong by half would not pass
    wrong = errors(found, {label: share / 1.5 for label, share in PLANTED.items()})
    assert max(map(abs, wrong)) > z_limit(len(off))


@pytest.mark.parametrize("method", ["spm", "hash"])
@pytest.mark.parametrize("alphabet", [None, "abcdefghijklmnopqrstuvwxyz"])
def test_planted_words_are_found(method: str, alphabet: str | None) -> None:
    schema = sv.Schema(x=sv.Text(bytes=8, alphabet=alphabet))
    found = found_by(schema, words(), epsilon=6.0, method=method)
    assert set(found.table.labels) == set(WORDS)
    off = errors(found, WORDS)
    assert max(map(abs, off)) < z_limit(len(off))


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie"])
def test_all_above_a_frequency(method: str) -> None:
    found = found_by(NUMBERS, numbers(), method=method, top=None, above="0.175")
    assert found.table.labels == [0xBEEF12]  # of 0.20; the next one has 0.15


def test_errors_of_repeated_crowds_have_the_variance_stated() -> None:
    """The whole values of one crowd, whispered again and again: errors are standard normal."""
    table = numbers(20_000)
    off = [
        e
        for seed in range(12)
        for e in errors(found_by(NUMBERS, table, method="hash", seed=seed), PLANTED)
    ]
    assert len(off) > 30
    # sum of squares of n standard normals: n, with a deviation of sqrt(2 n)
    assert abs(sum(e**2 for e in off) - len(off)) < z_limit(1) * sqrt(2 * len(off))
    assert abs(sum(off)) < z_limit(1) * sqrt(len(off))


@pytest.mark.parametrize(("method", "options"), ONE_ROUND)
def test_nobody_in_a_cohort_is_said(method: str, options: dict[str, Any]) -> None:
    question = sv.HeavyHitters("x", top=4, method=method, **options)
    plan = sv.plan(sv.Schema(x=sv.Integer(bits=48)), question, epsilon=1.0, people=2)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [1]}, seed=1))
    with pytest.raises(
        InvalidInput, match=r"nobody who tells .* was heard yet; more people are needed"
    ):
        heard.estimate()
    with pytest.raises(InvalidInput, match="no reports yet"):
        sv.Aggregate(plan).estimate()


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie"])
def test_few_people_give_an_answer_that_marks_nothing(method: str) -> None:
    found = found_by(NUMBERS, numbers(400), epsilon=0.5, method=method)
    assert len(found.table.labels) <= 4
    assert not (found.significant() & ~np.isin(found.table.labels, list(PLANTED))).any()
    assert str(found)


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie"])
@pytest.mark.parametrize("bits", [2, 3, 9, 128])
def test_any_number_of_bits(method: str, bits: int) -> None:
    values = [(1 << bits) - 1, 1]
    column = np.array(values * 8_000, object)
    found = found_by(
        sv.Schema(x=sv.Integer(bits=bits)), {"x": column}, epsilon=8.0, method=method, top=16
    )
    assert set(found.table.labels[:2]) == set(values)


# -- rounds


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
    target = Target("x", attribute, 4, None)
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


# -- lists


@pytest.mark.parametrize(
    ("method", "options"), [("o-rr", {}), ("rappor", {}), ("rappor", {"decoder": "nnls"})]
)
def test_a_list_of_candidates_is_decoded(method: str, options: dict[str, Any]) -> None:
    schema = sv.Schema(x=sv.Text(bytes=8, longer="cut"))
    rest = [f"name{number}" for number in range(12)]
    table = {"x": np.array(crowd(WORDS, rest), object)}
    question = sv.HeavyHitters("x", top=4, method=method, **options)
    plan = sv.plan(schema, question, epsilon=4.0, people=PEOPLE)
    assert sv.Plan.from_json(plan.to_json()) == plan
    heard = sv.Aggregate(plan).add(sv.simulate(plan, table, seed=3))
    found = heard.estimate(candidates=[*WORDS, *rest, "alma", "celeste and her brother"])
    assert isinstance(found, Findings)
    if not options:
        assert found.is_unbiased
        off = errors(found, WORDS)
        assert max(map(abs, off)) < z_limit(len(off))
    else:
        assert not found.is_unbiased
    assert [label for label in found.table.labels if label in WORDS][:3] == [
        "alma",
        "bea",
        "celeste",
    ]
    assert found.significant()[:3].all()
    with pytest.raises(InvalidInput, match=f"candidates are required for {method}"):
        heard.estimate()
    for few in ([], ["alma"]):
        with pytest.raises(InvalidInput, match="must be 2 to 4096 different values"):
            heard.estimate(candidates=few)
    with pytest.raises(InvalidInput, match="candidates: value must be text"):
        heard.estimate(candidates=["alma", 5])


# -- what is refused


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("spm", {"split": "money"}, r"split \(money\) must be one of people, budget"),
        ("spm", {"segment": 0}, r"segment \(0\) must lie between 1 and 16"),
        ("spm", {"segment": 17}, r"segment \(17\) must lie between 1 and 16"),
        ("spm", {"block": 2}, "option 'block' is not one of spm's"),
        ("hash", {"block": 17}, r"block \(17\) must lie between 1 and 16"),
        ("hash", {"block": "wide"}, r"block \(wide\) must be a whole number"),
        ("hash", {"split": 1}, r"split \(1\) must be one of"),
        ("hash", {"strict": "yes"}, r"strict \(yes\) must be true or false"),
        ("priv-trie", {"batches": 0}, r"batches \(0\) must lie between 1 and 1024"),
        (
            "priv-trie",
            {"batches": 101},
            r"people \(100\) must be at least one for each of 101 batches",
        ),
        ("priv-trie", {"factor": "-1"}, r"factor \(-1\) must be greater than 0"),
        ("priv-trie", {"factor": "much"}, r"factor \(much\) must be a number"),
        ("priv-trie", {"known": 3}, "known must be what the round before found"),
        ("rappor", {"decoder": "magic"}, r"decoder \(magic\) must be one of"),
        ("o-rr", {"hashes": 2}, r"hashes \(2\) must be 1 for o-rr"),
        ("o-rr", {"instantaneous": ["1", "0"]}, "option 'instantaneous' is not one of o-rr's"),
    ],
)
def test_bad_options_are_refused(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sv.plan(
            NUMBERS, sv.HeavyHitters("x", top=4, method=method, **options), epsilon=1.0, people=100
        )


@pytest.mark.parametrize(
    ("method", "attribute", "message"),
    [
        ("spm", sv.Integer(bits=1), "spm needs values of 2 bits or more"),
        ("spm", sv.Text(bytes=20), "at most 128 bits"),
        ("hash", sv.Text(bytes=20), "at most 128 bits"),
        ("priv-trie", sv.Text(bytes=20), "at most 128 bits"),
        ("rappor", sv.Integer(bits=65), "codes of more than 64 bits, which rappor does not take"),
    ],
)
def test_attributes_that_do_not_fit_are_refused(method: str, attribute: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sv.plan(
            sv.Schema(x=attribute),
            sv.HeavyHitters("x", top=4, method=method),
            epsilon=1.0,
            people=100,
        )


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie"])
def test_a_list_is_for_other_methods(method: str) -> None:
    plan = sv.plan(NUMBERS, sv.HeavyHitters("x", top=4, method=method), epsilon=1.0, people=100)
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [1] * 100}, seed=1))
    with pytest.raises(InvalidInput, match=f"not for {method}"):
        heard.estimate(candidates=[1, 2])


@pytest.mark.parametrize("method", ["spm", "hash", "priv-trie", "rappor", "o-rr"])
def test_a_plan_says_what_it_asks(method: str) -> None:
    plan = sv.plan(NUMBERS, sv.HeavyHitters("x", top=4, method=method), epsilon=1.0, people=10_000)
    said = str(plan)
    assert f"Method: {method}" in said
    assert {"spm": "Segments of 12, 12 bits", "hash": "8 channels", "priv-trie": "12 batches"}.get(
        method, ""
    ) in said
