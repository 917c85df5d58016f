"""One interface for the methods of three questions, and options that an editor can show."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.api.surveys import asked
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import ORACLES, options_of
from sottovoce.protocol.terms import Terms
from sottovoce.questions.heavyhitters import methods as search_methods
from sottovoce.questions.heavyhitters.prefixes import TreeHistogram
from sottovoce.questions.itemsets import methods as item_methods
from sottovoce.questions.itemsets.psfo import PaddedSampling
from sottovoce.questions.marginals import methods as marginal_methods
from sottovoce.questions.method import Method, method_named

SEARCH, ITEMS, MARGINAL = search_methods.METHODS, item_methods.METHODS, marginal_methods.METHODS
EVERY: Sequence[Method[Any]] = (*MARGINAL, *SEARCH, *ITEMS)
# of a question: what it asks, before the options of its methods
OWN = {
    sv.Frequencies: ("attributes", "oracle", "split", "focus", "thesis"),
    sv.Marginals: ("up_to", "attributes", "workload", "method", "options"),
    sv.HeavyHitters: ("attribute", "top", "above", "method"),
    sv.TopItems: ("attribute", "top", "method"),
    sv.TopItemsets: ("attribute", "top", "method"),
}
CARRIED = {"known"}  # what earlier rounds put into a plan; nobody gives it
ORACLE_OPTIONS = set(chain.from_iterable(options_of(kind.names[0]) for kind in ORACLES))


def taken(question: type[Any]) -> set[str]:
    """All options that the methods, or oracles, of a question take."""
    if question is sv.Frequencies:
        return ORACLE_OPTIONS | set(options_of("adaptive"))
    methods: Sequence[Method[Any]] = {
        sv.Marginals: MARGINAL,
        sv.HeavyHitters: SEARCH,
        sv.TopItems: [method for method in ITEMS if method.for_items],
        sv.TopItemsets: [method for method in ITEMS if method.for_sets],
    }[question]
    return set(chain.from_iterable(method.options for method in methods)) - CARRIED


def documented(text: str | None) -> list[str]:
    """The parameters that a docstring has a line for."""
    body = (text or "").split("Args:\n")[1].split("\n\n")[0]
    return re.findall(r"^ {8}(\w+): ", body, re.MULTILINE)


# -- the interface


@pytest.mark.parametrize("method", EVERY, ids=lambda method: method.name)
def test_a_method_is_described_and_holds_nothing(method: Method[Any]) -> None:
    assert method.name
    assert method.about
    assert method.source
    assert vars(method) == {}  # all that it needs is handed to it
    assert len(set(method.options)) == len(method.options)
    for name in ("refuse", "settle", "rounds", "predict", "estimate"):
        order = list(inspect.signature(getattr(Method, name)).parameters)[2:]
        assert list(inspect.signature(getattr(type(method), name)).parameters)[2:][
            : len(order)
        ] == (order)


@pytest.mark.parametrize("methods", [MARGINAL, SEARCH, ITEMS])
def test_names_are_told_apart(methods: Sequence[Method[Any]]) -> None:
    names = [method.name for method in methods]
    assert len(set(names)) == len(names)
    assert all(method_named(methods, name).name == name for name in names)
    with pytest.raises(InvalidInput, match=rf"method \(magic\) must be one of auto, {names[0]}, "):
        method_named(methods, "magic")


@pytest.mark.parametrize("method", EVERY, ids=lambda method: method.name)
def test_an_option_of_another_method_is_refused(method: Method[Any]) -> None:
    with pytest.raises(
        InvalidInput, match=f"option 'magic' is not one of {re.escape(method.name)}'s"
    ):
        method.check_options({"magic": 1})
    method.check_options(dict.fromkeys(method.options))


def test_what_is_settled_settles_to_itself() -> None:
    """A plan's options are read by the code that reads a person's."""
    words = sv.Schema(x=sv.Text(bytes=5), basket=sv.Items(range(40)))
    terms = Terms(Decimal(2), 100_000)
    for method in SEARCH:
        target = sv.HeavyHitters("x", top=4, method=method.name).target(words)
        settled = method.settle(target, terms)
        again = {key: option for key, option in settled.items() if key in method.options}
        assert method.settle(target, terms, again) == settled
    for method in ITEMS:
        question = sv.TopItems if method.for_items else sv.TopItemsets
        item_target = question("basket", top=4, method=method.name).target(words)
        needed = {"length": 2} if method.name == "psfo" else {}
        item_settled = method.settle(item_target, terms, needed)
        assert method.settle(item_target, terms, item_settled) == item_settled


class OneCharacterLess(TreeHistogram):
    """A method in a file of its own would look like this."""

    name = "tree-hist-2"

    def lengths(self, target: Any, terms: Terms, options: Any) -> list[int]:
        return [*range(16, target.bits, 16), target.bits]


class TwoItems(PaddedSampling):
    name = "psfo-2"

    def settle(self, target: Any, terms: Terms, options: Any = None) -> dict[str, Any]:
        return super().settle(target, terms, {"length": 2})


def test_a_new_method_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_methods, "METHODS", (*SEARCH, OneCharacterLess()))
    monkeypatch.setattr(item_methods, "METHODS", (*ITEMS, TwoItems()))
    schema = sv.Schema(x=sv.Integer(bits=32), basket=sv.Items(range(8)))
    plan = sv.plan(
        schema, sv.HeavyHitters("x", top=2, method="tree-hist-2"), epsilon=4, people=4000
    )
    assert len(sv.Plan.from_json(plan.text).question.cohorts(schema, plan.terms)) == 2
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [7] * 3000 + [9] * 1000}, seed=1))
    assert heard.estimate().table.labels == [7, 9]
    plan = sv.plan(schema, sv.TopItems("basket", top=2, method="psfo-2"), epsilon=4, people=4000)
    again = sv.Plan.from_json(plan.text)
    heard = sv.Aggregate(again).add(sv.simulate(again, {"basket": [[1, 5]] * 4000}, seed=1))
    assert set(heard.estimate().table.labels) == {1, 5}


# -- options


@pytest.mark.parametrize("question", OWN)
def test_options_are_keywords_with_a_line_each(question: type[Any]) -> None:
    parameters = inspect.signature(question).parameters
    options = [name for name in parameters if name not in OWN[question]]
    assert set(options) == taken(question)
    for name in options:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is None  # chosen by the method
        assert parameters[name].annotation != "Any" or name in (
            "theta",
            "seconds",
            "factor",
            "delta",
            "tolerance",
        )
    assert documented(question.__doc__) == list(parameters)


def test_the_options_of_oracles_are_keywords_with_a_line_each() -> None:
    parameters = inspect.signature(sv.oracle).parameters
    assert set(parameters) - {"name", "size", "epsilon"} == taken(sv.Frequencies)
    assert documented(sv.oracle.__doc__) == list(parameters)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("frequencies", {"attributes": ["x"]}),
        ("marginals", {"up_to": 1}),
        ("heavy-hitters", {"attribute": "x", "top": 2}),
        ("top-items", {"attribute": "x", "top": 2}),
        ("top-itemsets", {"attribute": "x", "top": 2}),
    ],
)
def test_an_unknown_option_of_a_survey_is_named(kind: str, options: dict[str, Any]) -> None:
    assert asked(kind, **options).kind == kind
    with pytest.raises(InvalidInput, match=f"question: 'thetta' is not one of {kind}'s options"):
        asked(kind, **options, thetta=1)


@pytest.mark.parametrize("question", OWN)
def test_an_unknown_keyword_is_an_error_of_type(question: Any) -> None:
    with pytest.raises(TypeError, match="thetta"):
        question("x", thetta=1)


@pytest.mark.parametrize(
    ("plain", "with_none"),
    [
        (lambda: sv.Frequencies("a"), lambda: sv.Frequencies("a", hash_bits=None)),
        (lambda: sv.Marginals(1), lambda: sv.Marginals(1, theta=None, views=None)),
        (lambda: sv.HeavyHitters("x", top=2), lambda: sv.HeavyHitters("x", top=2, fresh=None)),
        (lambda: sv.TopItems("s", 2), lambda: sv.TopItems("s", 2, delta=None, shares=None)),
    ],
)
def test_none_is_chosen_by_the_method(plain: Callable[[], Any], with_none: Any) -> None:
    schema = sv.Schema(a=sv.Boolean(), x=sv.Integer(bits=20), s=sv.Items(range(9)))
    assert plain() == with_none()
    ids = [sv.plan(schema, make(), epsilon=1, people=9000).id for make in (plain, with_none)]
    assert ids[0] == ids[1]


@pytest.mark.parametrize("name", ["candidates", "decoder", "complete"])
@pytest.mark.parametrize("question", [sv.Marginals(1, ["a"]), sv.TopItems("s", 2)])
def test_what_an_estimate_does_not_take_is_refused(question: Any, name: str) -> None:
    schema = sv.Schema(a=sv.Boolean(), s=sv.Items(range(9)))
    plan = sv.plan(schema, question, epsilon=1, people=1000)
    table = {"a": [True], "s": [[1]]}
    heard = sv.Aggregate(plan).add(sv.simulate(plan, table, seed=1))
    with pytest.raises(
        InvalidInput, match=f"{name} is no option of the estimate of {question.kind}"
    ):
        heard.estimate(**{name: ["nnls"]})
