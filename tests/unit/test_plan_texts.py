"""A plan has one text: numbers, names and options of its question in every other spelling are refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv

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
    **{method: popular(method) for method in ("pem", "pem1", "tree-hist", "spm", "hash", "priv-trie", "o-rr")},
    **{method: items(method) for method in ("psfo", "ldpminer", "svim", "wheel")},
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
    others = [f" {value}", f"+{value}", f"0{value}", f"{2 * number.numerator}/{2 * number.denominator}"]
    return [each for each in (*others, str(number), f"{float(number)}0", whole) if each != value]


def refused(body: Any) -> bool:
    try:
        sv.Plan.from_json(json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    except sv.InvalidInput:
        return True
    return False


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


@pytest.mark.parametrize("above", ["0.010", "1/100", " 0.01", "+0.01", "0.0_1", "2/200", "1e-2", 0.01, Fraction(1, 100)])
def test_a_frequency_is_written_in_one_way(above: Any) -> None:
    made = plan(WORDS, sv.HeavyHitters("x", above=above))
    assert made.text == MADE["above"]().text
    if isinstance(above, str):
        body = json.loads(made.text)
        body["question"]["above"] = above
        assert refused(body)


@pytest.mark.parametrize("alias", ["de", "k-rr", "ps"])
def test_aliases_of_an_oracle_make_one_plan(alias: str) -> None:
    made = frequencies(alias)()
    assert made == frequencies("grr")()
    body = json.loads(made.text)
    body["question"]["oracle"] = alias
    assert refused(body)


def test_options_that_are_given_as_text_make_one_plan() -> None:
    assert frequencies("olh", hash_bits="2")() == MADE["hash bits"]()
    assert frequencies("the", theta="1/4")() == frequencies("the", theta="0.250")() == MADE["theta"]()


@pytest.mark.parametrize("number", ["1e-1000000000", "1e1000000000", f"0.{'0' * 100_000}1", f"1/{'9' * 100_000}"])
def test_numbers_that_nobody_means_are_no_numbers(number: str) -> None:
    """Exact ones of a billion digits would take all memory."""
    with pytest.raises(sv.InvalidInput, match="must be a number"):
        sv.HeavyHitters("x", above=number)
    body = json.loads(MADE["theta"]().text)
    body["question"]["options"]["theta"] = number
    assert refused(body)
