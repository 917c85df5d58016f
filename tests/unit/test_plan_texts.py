"""A plan has one text: numbers, names and options of its question in every other spelling are
refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.oracles import rules
from sottovoce.protocol import families
from sottovoce.protocol.families import subsets
from sottovoce.questions.marginals.methods import subsets as marginal_subsets

LETTERS = sv.Schema(x=sv.Categorical(list("abcdefgh")))
WORDS = sv.Schema(x=sv.Text(bytes=4))
BASKETS = sv.Schema(x=sv.Items(range(64)))
YES_NO = sv.Schema(**{f"x{place}": sv.Boolean() for place in range(6)})


def plan(schema: sv.Schema, question: Any) -> sv.Plan:
    return sv.plan(schema, question, epsilon=2, people=10_000)


def frequencies(name: str, **options: Any) -> Callable[[], sv.Plan]:
    return lambda: plan(LETTERS, sv.Frequencies("x", oracle=name, **options))


def popular(method: str, **options: Any) -> Callable[[], sv.Plan]:
    return lambda: plan(WORDS, sv.HeavyHitters("x", top=4, method=method, **options))


def items(method: str, **options: Any) -> Callable[[], sv.Plan]:
    return lambda: plan(BASKETS, sv.TopItems("x", top=4, method=method, **options))


MADE: dict[str, Callable[[], sv.Plan]] = {
    "above": lambda: plan(WORDS, sv.HeavyHitters("x", above="0.01")),
    "above a third": lambda: plan(WORDS, sv.HeavyHitters("x", above="1/3")),
    "hash bits": frequencies("olh", hash_bits=2),
    "theta": frequencies("the", theta=0.25),
    "salt": frequencies("cms", hashes=16, width=16, salt=7),
    "no noise": frequencies("rappor", instantaneous=("1", "0")),
    "bytes": frequencies("adaptive", bytes=8),
    **{
        method: popular(method)
        for method in ("pem", "pem1", "tree-hist", "spm", "hash", "priv-trie", "o-rr")
    },
    "psfo": items("psfo", length=2),
    **{method: items(method) for method in ("ldpminer", "svim", "wheel")},
    "delta": items("psfo", length=2, delta="1/20000"),
    "calm": lambda: plan(YES_NO, sv.Marginals(2, method="calm")),
}


def scalars(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for key, each in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(each, dict | list):
            yield from scalars(each, (*path, key))
        else:
            yield (*path, key), each


def spellings(value: Any) -> list[Any]:
    """Other ways to write a number or a truth."""
    if isinstance(value, bool):
        return [int(value), str(value), str(value).lower()]
    if isinstance(value, int):
        return [str(value), f" {value}", f"0{value}", f"{value}.0", f"{value}/1", f"{value}e0"]
    try:
        number = Fraction(value)
    except (TypeError, ValueError):
        return []
    whole = int(number) if number.denominator == 1 else f"{float(number):e}"
    others = [
        f" {value}",
        f"+{value}",
        f"0{value}",
        f"{2 * number.numerator}/{2 * number.denominator}",
    ]
    return [each for each in (*others, str(number), f"{float(number)}0", whole) if each != value]


def refused(body: Any, by_device: bool = False) -> bool:
    """Whether it is no plan: for a device, which looks no question up, or for whoever analyses."""
    try:
        plan = sv.Plan.from_json(json.dumps(body, indent=1, ensure_ascii=False) + "\n")
        return not by_device and plan.question is None
    except sv.InvalidInput:
        return True


@pytest.mark.parametrize("name", MADE)
def test_other_spellings_in_a_question_are_refused(name: str) -> None:
    text = MADE[name]().text
    assert sv.Plan.from_json(text).text == text
    accepted = []
    for path, value in scalars(json.loads(text)["question"]):
        for other in spellings(value):
            body = json.loads(text)
            part = body["question"]
            for step in path[:-1]:
                part = part[step]
            part[path[-1]] = other
            if not refused(body):
                accepted.append((path, value, other))
    assert not accepted


@pytest.mark.parametrize(
    "above", ["0.010", "1/100", " 0.01", "+0.01", "0.0_1", "2/200", "1e-2", 0.01, Fraction(1, 100)]
)
def test_a_frequency_is_written_in_one_way(above: Any) -> None:
    made = plan(WORDS, sv.HeavyHitters("x", above=above))
    assert made.text == MADE["above"]().text
    if isinstance(above, str):
        body = json.loads(made.text)
        body["question"]["above"] = above
        assert refused(body, by_device=True)


@pytest.mark.parametrize("alias", ["de", "k-rr", "ps"])
def test_aliases_of_an_oracle_make_one_plan(alias: str) -> None:
    made = frequencies(alias)()
    assert made == frequencies("grr")()
    body = json.loads(made.text)
    body["question"]["oracle"] = alias
    assert refused(body)


def test_options_that_are_given_as_text_make_one_plan() -> None:
    assert frequencies("olh", hash_bits="2")() == MADE["hash bits"]()
    assert (
        frequencies("the", theta="1/4")() == frequencies("the", theta="0.250")() == MADE["theta"]()
    )


@pytest.mark.parametrize(
    "number", ["1e-1000000000", "1e1000000000", f"0.{'0' * 100_000}1", f"1/{'9' * 100_000}"]
)
def test_numbers_that_nobody_means_are_no_numbers(number: str) -> None:
    """Exact ones of a billion digits would take all memory."""
    with pytest.raises(sv.InvalidInput, match="must be a number"):
        sv.HeavyHitters("x", above=number)
    body = json.loads(MADE["theta"]().text)
    body["question"]["options"]["theta"] = number
    assert refused(body)


# -- small texts that would take much work

PRIMES = [
    2,
    3,
    5,
    7,
    11,
    13,
    17,
    19,
    23,
    29,
    31,
    37,
    41,
    43,
    47,
    53,
    59,
    61,
    67,
    71,
    73,
    79,
    83,
    89,
]
MANY = {
    f"x{size}": {"kind": "ordinal", "sensitive": True, "low": 0, "high": size - 1, "bins": None}
    for size in PRIMES
}


def tables(order: int) -> Any:
    """A plan about tables whose oracles are as many as sets of attributes, of which it lists the
    first three.
    """
    few = sv.Schema(a=sv.Ordinal(0, 4), b=sv.Ordinal(0, 6), c=sv.Ordinal(0, 10))
    made = sv.plan(few, sv.Marginals(up_to=2, method="marg-ps"), epsilon=1, people=10**6)
    body = json.loads(made.text)
    body["schema"] = MANY
    body["cohorts"] |= {"attributes": list(MANY), "order": order, "oracle": "olh-seeded"}
    return body


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the oracles that are built from now on: by a question's rule, or as a plan lists
    them.
    """
    built: list[int] = []
    by_rule, by_list = rules.oracle_by, subsets.oracle_from_json

    def build(name: str, size: int, epsilon: Any) -> Any:
        built.append(size)
        return by_rule(name, size, epsilon)

    def read(data: Any) -> Any:
        built.append(data["size"])
        return by_list(data)

    monkeypatch.setattr(marginal_subsets, "oracle_by", build)
    monkeypatch.setattr(subsets, "oracle_from_json", read)
    return built


@pytest.mark.parametrize("order", [2, 3, 4, 6, 8])
def test_no_oracle_is_built_for_tables_that_a_plan_does_not_list(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = tables(order)
    built = counting(monkeypatch)
    assert refused(body)
    assert not built


def test_no_oracle_is_built_for_a_question_whose_cohorts_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = sv.Schema(**{name: sv.Ordinal(0, part["high"]) for name, part in MANY.items()})
    body = json.loads(sv.plan(schema, sv.Frequencies("x2"), epsilon=1, people=10**6).text)
    body["question"] = {
        "kind": "marginals",
        "up_to": 6,
        "attributes": list(MANY),
        "workload": None,
        "method": "marg-ps",
        "options": {},
    }
    built = counting(monkeypatch)
    assert refused(body)
    assert not built


def test_products_are_counted_only_as_far_as_they_are_listed() -> None:
    for sizes in ((2, 3, 4, 6, 9, 2), (5, 5, 5, 5), (2, 3, 5, 7, 11)):
        for order in range(1, len(sizes) + 1):
            exact = {prod(some) for some in combinations(sizes, order)}
            assert families.products_of(sizes, order, 1000) == exact
            for most in range(len(exact) + 2):
                found = families.products_of(sizes, order, most)
                assert (len(found) > most) == (len(exact) > most)
                assert len(found) <= most * (order + 1) + 1
    assert len(families.products_of(PRIMES * 100, 8, 3)) <= 8


def test_tables_of_more_attributes_than_have_two_values_each_are_refused() -> None:
    names = [f"x{place}" for place in range(200)]
    schema = sv.Schema(**{name: sv.Boolean() for name in names})
    for order in (199, 129):
        with pytest.raises(sv.InvalidInput, match="between 1 and 128"):
            families.Subsets(schema, names, order, "grr", Decimal(1), rules.oracle_by)
    with pytest.raises(sv.InvalidInput, match="more than a report can name"):
        families.Subsets(schema, names, 100, "grr", Decimal(1), rules.oracle_by)
