"""Methods and questions of other packages: found, named by plans, and told apart when broken."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.surveys import Survey
from sottovoce.audit import check_method, check_question
from sottovoce.audit.laws import LawBroken
from sottovoce.audit.method_laws import (
    method_case,
    unbiased_tables_are_right_on_average,
    unbiased_tables_err_as_they_say,
)
from sottovoce.questions.marginals.methods import METHODS, every_method, method
from sottovoce.questions.marginals.methods.outside import BROUGHT_METHODS
from sottovoce.questions.outside import BROUGHT_QUESTIONS
from sottovoce.service import estimate_cache
from sottovoce.service.survey_service import SurveyStatus
from sottovoce.store import open_store
from tests.packages import Site
from tests.trials.pages import steps_of

PAGE = Path(__file__).parents[2] / "docs" / "trials" / "method.md"
CODES = {step.file.rsplit("/")[-1]: step.text for step in steps_of(PAGE) if step.file}
STAR, ANY_OF = CODES["method.py"], CODES["question.py"]
SCHEMA = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]), c=sv.Boolean())
SURVEY: dict[str, Any] = {
    "epsilon": "1",
    "people": 3000,
    "schema": {"o": {"kind": "categorical", "values": ["yes", "rather", "no"]}},
    "question": {"kind": "any-of", "attribute": "o", "values": ["yes", "rather"]},
}


@pytest.fixture
def methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(BROUGHT_METHODS, "_loaded", {})
    return Site(tmp_path, BROUGHT_METHODS.group)


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(BROUGHT_QUESTIONS, "_loaded", {})
    return Site(tmp_path, BROUGHT_QUESTIONS.group)


def asked(name: str, **options: Any) -> sv.Plan:
    question = sv.Marginals(2, method=name, options=options)
    return sv.plan(SCHEMA, question, epsilon=2, people=4000)


# -- methods


def test_a_method_is_found_and_its_plans_name_the_package(methods: Site) -> None:
    methods.install("Star_Found", STAR.replace('"star"', '"star-found"'), **{"star-found": "Star"})
    assert [each.name for each in every_method()] == [*(m.name for m in METHODS), "star-found"]
    plan = asked("star-found", centre=2)
    assert plan.asked["options"] == {"centre": 2, "package": "star-found"}
    assert "an example, of the package star-found" in str(plan)
    wave = sv.plan(SCHEMA, plan.question, epsilon=2, people=5000)  # the same question again
    assert wave.asked == plan.asked
    with pytest.raises(sv.InvalidInput, match="option 'package' is not one of star-found's"):
        asked("star-found", package="another")
    again = sv.Plan.from_json(plan.text)
    people = {"a": [True, False] * 1000, "b": ["x", "z"] * 1000, "c": [True, False] * 1000}
    estimate = sv.Aggregate(again).add(sv.simulate(again, people, seed=1)).estimate()
    table = estimate.marginal("a", "c")
    assert table.is_unbiased
    assert abs(table.values[3] - 0.5) < 5 * table.std_error[3]
    assert estimate.marginal("a", "b").is_reconstructed
    assert [rank.method for rank in plan.question.rank(plan) if rank.chosen] == ["star-found"]


def test_auto_is_one_of_ours_whatever_is_installed(methods: Site) -> None:
    best = STAR.replace('"star"', '"star-best"').replace(
        "return cells * float(", "return 1e-9 * float("
    )
    methods.install("star-best", best, **{"star-best": "Star"})
    plan = sv.plan(SCHEMA, sv.Marginals(2), epsilon=2, people=4000)
    assert plan.asked["method"] in {each.name for each in METHODS}
    ranked = {rank.method for rank in plan.question.rank(plan, baselines=True)}
    assert ranked == {each.name for each in METHODS}


def test_a_plan_of_a_method_that_is_not_installed_names_the_package(methods: Site) -> None:
    methods.install("star-gone", STAR.replace('"star"', '"star-gone"'), **{"star-gone": "Star"})
    text = asked("star-gone").text
    for path in methods.folder.glob("*.dist-info/*"):
        path.unlink()
    plan = sv.Plan.from_json(text)  # which a device can answer
    assert sv.Client(plan).report({"a": True, "b": "x", "c": False}).to_bytes()
    with pytest.raises(sv.InvalidInput, match="method 'star-gone' needs the package 'star-gone'"):
        _ = plan.question
    nameless = text.replace(',\n   "package": "star-gone"', "")
    assert nameless != text
    with pytest.raises(sv.InvalidInput, match="is none of sottovoce's, and names no package"):
        _ = sv.Plan.from_json(nameless).question
    ours = sv.plan(SCHEMA, sv.Marginals(2, method="marg-ps"), epsilon=2, people=4000).text
    body = json.loads(ours)
    body["question"]["options"] = {"package": "star-gone"}
    with pytest.raises(sv.InvalidInput, match="method 'marg-ps' needs the package 'star-gone'"):
        _ = sv.Plan.from_json(json.dumps(body, indent=1, ensure_ascii=False) + "\n").question


@pytest.mark.parametrize(
    ("names", "code", "words"),
    [
        ({"calm": "Star"}, STAR, "has the name of one of sottovoce's own"),
        ({"auto": "Star"}, STAR, "has the name of one of sottovoce's own"),
        ({"bad": "Star"}, STAR, "name 'star' of the class must be the entry point's name"),
        ({"bad": "Star"}, "1 / 0", "cannot be imported (ZeroDivisionError"),
        ({"bad": "X"}, "X = 7", "must be a subclass of MarginalMethod"),
        (
            {"bad": "X"},
            "from sottovoce.questions.marginals.method import MarginalMethod\n"
            "class X(MarginalMethod): name = 'bad'",
            "is not whole: it lacks cohorts, fit, predict, shares",
        ),
        (
            {"star": "Star"},
            STAR.replace('= "an example"', "= 7"),
            "source must be one line of text",
        ),
        (
            {"star": "Star"},
            STAR.replace('("centre",)', '("package",)'),
            "options must be a tuple of names such as ('depth',), none of them 'package'",
        ),
    ],
)
def test_what_is_wrong_with_a_method_is_said(
    methods: Site, names: dict[str, str], code: str, words: str
) -> None:
    package = f"wrong-{abs(hash(code)) % 10**8}-{next(iter(names))}"  # a module is imported once
    methods.install(package, code, **names)
    for call in (every_method, lambda: method("no-such-method")):
        if call is not every_method and "of the class" not in words and "own" not in words:
            continue
        with pytest.raises(sv.InvalidInput) as refused:
            call()
        assert words in str(refused.value) or "no-such-method" in str(refused.value)
    assert method("calm").name == "calm"  # whatever others bring


# what each change to the trial's method breaks
METHOD_MUTANTS = {
    "floats in a plan": (
        '"centre": whole("centre", options.get("centre", 0), 0, len(work.names) - 1)',
        '"centre": 0, "weight": 0.5',
        "options stand in a plan",
    ),
    "an option that is not refused": (
        "        self.check_options(options)\n",
        "",
        "options stand in a plan",
    ),
    "shares of nobody": (
        "return [sum(set(part) <= set(pair) for pair in asked) / len(asked) for part in parts]",
        "return [1.0 for part in parts]",
        "shares are those of who is heard",
    ),
    "biased": (
        "self._tables[pair] = table",
        "self._tables[pair] = table + 0.08",
        "unbiased tables are right on average",
    ),
    "errors that are too small": (
        "self._variances[pair] = noise + drawn",
        "self._variances[pair] = (noise + drawn) / 9",
        "unbiased tables err as they say",
    ),
    "a table of chance": (
        "self._tables[pair] = table",
        "self._tables[pair] = table + np.random.default_rng().normal(0, 0.01, table.size)",
        "the same reports give the same tables",
    ),
    "a table of another shape": (
        "return self._tables[places].copy()",
        "return self._tables[places][:-1]",
        "tables are whole",
    ),
    "a prediction that grows": (
        "people = max(1, terms.people // len(asked))",
        "people = 1e6 / terms.people",
        "more people are predicted to err less",
    ),
}


def test_the_trials_method_is_whole(methods: Site) -> None:
    methods.install("star-whole", STAR.replace('"star"', '"star-whole"'), **{"star-whole": "Star"})
    found = check_method("star-whole", options={"centre": 1})
    assert found.passed, str(found)
    for options, words in (({"center": 1}, "option 'center' is not one of"), ({"centre": 9}, "9")):
        with pytest.raises(sv.InvalidInput, match=words):
            check_method("star-whole", options=options)


@pytest.mark.parametrize("mutant", METHOD_MUTANTS)
def test_a_broken_method_is_told_apart(methods: Site, mutant: str) -> None:
    before, after, law = METHOD_MUTANTS[mutant]
    assert before in STAR
    name = f"star-{mutant.replace(' ', '-')}"
    methods.install(
        name, STAR.replace(before, after).replace('"star"', f'"{name}"'), **{name: "Star"}
    )
    found = check_method(name)
    broken = {check.law for check in found.laws if not check.passed}
    assert law in broken, str(found)


def test_a_table_that_is_unbiased_by_chance_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = method_case("marg-ps")
    fit = case.fit
    monkeypatch.setattr(type(fit), "is_unbiased", lambda own, places: own is fit)
    for law in (unbiased_tables_are_right_on_average, unbiased_tables_err_as_they_say):
        with pytest.raises(LawBroken, match="unbiased of 0 of 48 crowds' reports"):
            law(case)


# -- questions


def survey(kind: str) -> Survey:
    return Survey.parse(SURVEY | {"question": SURVEY["question"] | {"kind": kind}})


def test_a_question_is_found_and_its_plans_name_the_package(
    questions: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "any-of-found"
    questions.install("Any_Found", ANY_OF.replace('"any-of"', f'"{name}"'), **{name: "AnyOf"})
    plan = survey(name).plan()
    assert plan.asked == {
        "kind": name,
        "package": "any-found",
        "options": {"attribute": "o", "values": ["yes", "rather"]},
    }
    again = sv.Plan.from_json(plan.text)
    people = {"o": ["yes"] * 500 + ["rather"] * 1000 + ["no"] * 1500}
    table = sv.Aggregate(again).add(sv.simulate(again, people, seed=1)).estimate().table
    assert abs(table.values[0] - 0.5) < 5 * table.std_error[0]
    for path in questions.folder.glob("*.dist-info/*"):
        path.unlink()
    alone = sv.Plan.from_json(plan.text)
    assert sv.Client(alone).report({"o": "no"}).to_bytes()
    with pytest.raises(sv.InvalidInput, match=f"question '{name}' needs the package 'any-found'"):
        _ = alone.question
    with open_store(f"sqlite:///{questions.folder}/survey.db") as store:
        store.add_plan(alone)  # it is listed all the same, and so are all other surveys
        assert SurveyStatus.of(store, store.entry(alone.id)).to_json()["question"] == name
        monkeypatch.setitem(estimate_cache._stores, "here", store)
        made = estimate_cache._estimated("here", alone.text, 0, questions.folder / "estimate")
        assert "needs the package 'any-found'" in str(made.problem)


def test_an_unknown_question_lists_those_of_others(questions: Site) -> None:
    questions.install("any-listed", "1 / 0", **{"any-listed": "AnyOf"})
    with pytest.raises(sv.InvalidInput, match=r"kind \(magic\) must be one of .*, any-listed"):
        survey("magic")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "frequencies"}, "has the name of ours"),
        ({"package": ""}, "the package of a question must be the name of one"),
        ({"package": 7}, "the package of a question must be the name of one"),
        ({"more": 1}, "the keys of its question must be kind, package, options"),
        ({"options": {"b": 1, "a": 2}}, "is not written as plans write it"),
    ],
)
def test_a_question_that_no_plan_holds_is_refused(
    questions: Site, changes: dict[str, Any], words: str
) -> None:
    name = "any-changed"
    if not list(questions.folder.glob("*.dist-info")):
        questions.install(name, ANY_OF.replace('"any-of"', f'"{name}"'), **{name: "AnyOf"})
    body = json.loads(survey(name).plan().text)
    body["question"] |= changes
    with pytest.raises(sv.InvalidInput, match=words):
        sv.Plan.from_json(json.dumps(body, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("frequencies", ANY_OF, "has the name of one of sottovoce's own"),
        ("bad-kind", ANY_OF, "kind 'any-of' of the class must be the entry point's name"),
        ("any-of", ANY_OF.replace("frozen=True", "frozen=False"), "must be a frozen dataclass"),
        ("any-of", ANY_OF.replace("    def cohorts(", "    def other("), "it lacks cohorts"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(
    questions: Site, name: str, code: str, words: str
) -> None:
    questions.install(f"wrong-{abs(hash(code + name)) % 10**8}", code, **{name: "AnyOf"})
    with pytest.raises(sv.InvalidInput) as refused:
        survey(name if name != "frequencies" else "any-of")
    assert words in str(refused.value)


QUESTION_MUTANTS = {
    "attributes that it does not name": (
        "return (self.attribute,)\n",
        "return ()\n",
        "it asks about what it says",
    ),
    "biased": ("values[codes].sum())", "values[codes].sum()) * source.p", "depend on epsilon"),
    "errors that are too small": (
        "noise.variance(min(max(share, 0.0), 1.0)))",
        "noise.variance(0.5)) / 9",
        "unbiased tables err as they say",
    ),
    "an answer for nobody": (
        "        aggregate.require_people()\n",
        "        if not aggregate.people:\n            return Estimate({}, 0)\n",
        "nobody is refused",
    ),
    "no words": (
        'return [f"Question: the share of people whose {self.attribute} is any of {named}"]',
        "return []",
        "it is told in words",
    ),
}


def test_the_trials_question_is_whole(questions: Site) -> None:
    questions.install(
        "any-whole", ANY_OF.replace('"any-of"', '"any-whole"'), **{"any-whole": "AnyOf"}
    )
    found = check_question(survey("any-whole"))
    assert found.passed, str(found)


@pytest.mark.parametrize("mutant", QUESTION_MUTANTS)
def test_a_broken_question_is_told_apart(questions: Site, mutant: str) -> None:
    before, after, law = QUESTION_MUTANTS[mutant]
    assert before in ANY_OF
    name = f"any-{mutant.replace(' ', '-')}"[:40]
    code = ANY_OF.replace(before, after).replace('"any-of"', f'"{name}"')
    questions.install(name, code, **{name: "AnyOf"})
    found = check_question(survey(name))
    broken = [check.law for check in found.laws if not check.passed]
    assert any(law in each for each in broken), str(found)


@pytest.mark.parametrize("mutant", ["the next value's share", "no report is looked at"])
def test_answers_that_are_wrong_at_every_epsilon_are_told_apart(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"kind": "frequencies", "attributes": ["o"]}
    right = check_question(Survey.parse(SURVEY | {"question": asked}))
    assert right.passed, str(right)
    estimate = sv.Frequencies.estimate

    def wrong(question: sv.Frequencies, aggregate: sv.Aggregate, **how: Any) -> sv.Estimate:
        found = estimate(question, aggregate, **how)
        table = found.table
        if mutant == "no report is looked at":
            values, variances = np.full(len(table.values), 0.25), np.zeros(len(table.values))
        else:
            values, variances = np.roll(table.values, 1), np.roll(table.variances, 1)
        changed = replace(table, values=values, variances=variances)
        return replace(found, tables={table.attributes: changed})

    monkeypatch.setattr(sv.Frequencies, "estimate", wrong)
    found = check_question(Survey.parse(SURVEY | {"question": asked}))
    broken = [check.law for check in found.laws if not check.passed]
    assert broken == ["unbiased tables of attributes are right on average"]
