"""Nobody outside the questions names one: whoever plans, serves or shows a question asks it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.questions.base import predicted

SOURCE = Path(sv.__file__).parent
FOLDERS = ("cli", "console", "service", "studio", "measure", "api", "analysis", "demo")
NAMES = {
    "Frequencies",
    "Marginals",
    "HeavyHitters",
    "TopItems",
    "TopItemsets",
    "Popular",
    "MarginalEstimate",
    "Findings",
    "SetFindings",
}


def _named(tree: ast.AST) -> set[str]:
    """The names that code uses or imports; words of docstrings are none."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_question_and_no_estimate_of_one_is_named(folder: str) -> None:
    for path in sorted((SOURCE / folder).rglob("*.py")):
        named = _named(ast.parse(path.read_text(encoding="utf-8"))) & NAMES
        assert not named, f"{path.relative_to(SOURCE)} names {named}"


def test_a_ranking_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from sottovoce.questions.marginals.methods import METHODS

    calls: list[str] = []
    for method in METHODS:

        def counted(work: object, terms: object, options: object, method: object = method) -> float:
            calls.append(method.name)  # type: ignore[attr-defined]
            return type(method).predict(method, work, terms, options)  # type: ignore[attr-defined, no-any-return]

        monkeypatch.setattr(method, "predict", counted)
    schema = sv.Schema(a=sv.Boolean(), b=sv.Boolean(), c=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2), epsilon=1.0, people=10_000)
    str(plan)
    choices = plan.question.rank(plan)
    assert len(calls) == len(set(calls))  # planned, printed and ranked: each method once
    baselines = {method.name for method in METHODS if method.is_baseline}
    assert not baselines & set(calls)
    assert predicted(plan).error == next(rank.per_cell for rank in choices if rank.chosen)
    every = plan.question.rank(plan, baselines=True)
    assert len(calls) == len(set(calls))
    assert {rank.method for rank in every} == {method.name for method in METHODS}


def test_a_question_asked_again_of_other_attributes_is_ranked_again() -> None:
    question = sv.Marginals(up_to=1)
    small = sv.plan(sv.Schema(a=sv.Boolean()), question, epsilon=1.0, people=1000)
    large = sv.plan(sv.Schema(a=sv.Categorical(range(50))), question, epsilon=1.0, people=1000)
    assert predicted(small).error != predicted(large).error


def test_what_an_estimate_cannot_do_is_refused_in_words() -> None:
    plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    estimate = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [True] * 100}, seed=1)).estimate()
    with pytest.raises(sv.InvalidInput, match="Marginals question"):
        _ = estimate.joint
    with pytest.raises(sv.InvalidInput, match=r"k \(2\) is for a plan"):
        estimate.marginals(2)
    with pytest.raises(sv.InvalidInput, match="popular values"):
        estimate.prefixes()
    assert estimate.marks is None
    assert estimate.to_json()["tables"][0]["attributes"] == ["x"]
