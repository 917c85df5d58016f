"""Oracles of other packages are found by entry points, never in the place of sottovoce's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.audit import check_oracle, oracle_class
from sottovoce.measure import compare_oracles, fitting
from sottovoce.measure.pictures import oracle_errors
from sottovoce.oracles import built_of, every_oracle, find
from sottovoce.oracles.direct import GeneralizedRandomizedResponse
from sottovoce.oracles.outside import BROUGHT_ORACLES
from tests.packages import Site
from tests.trials.pages import steps_of

TRIAL = Path(__file__).parents[2] / "docs" / "trials" / "oracle.md"
CODE = next(step.text for step in steps_of(TRIAL) if step.file and step.file.endswith(".py"))
SCHEMA = sv.Schema(x=sv.Categorical(list("abcd")))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(BROUGHT_ORACLES, "_loaded", {})
    return Site(tmp_path, BROUGHT_ORACLES.group)


def test_it_is_found_and_does_what_any_oracle_does(site: Site) -> None:
    site.install("Shy_Found", CODE.replace('"shy"', '"shy-found"'), **{"shy-found": "ShyResponse"})
    kind = find("shy-found")
    assert kind.package == "shy-found"
    assert every_oracle()[-1] is kind
    assert fitting(4)[-1] == "shy-found"
    question = sv.Frequencies("x", oracle="shy-found")
    plan = sv.plan(SCHEMA, question, epsilon=2, people=4000)
    assert "oracle shy-found (randomized response, some say nothing; of the package" in str(plan)
    again = sv.Plan.from_json(plan.text)
    assert again.cohorts[0].asks[0].oracle.package == "shy-found"
    reports = sv.simulate(again, {"x": ["a"] * 3000 + ["b"] * 1000}, seed=1)
    found = sv.Aggregate(again).add(reports).estimate().table
    assert abs(found.values[0] - 0.75) < 5 * found.std_error[0]
    (row,) = compare_oracles(["shy-found"], size=4, epsilons=[1], people=500, runs=2, seed=1)
    assert oracle_errors([row]).to_dict()["layer"]


def test_a_plan_names_the_package_that_is_needed(site: Site) -> None:
    site.install("shy-needed", CODE.replace('"shy"', '"needed"'), needed="ShyResponse")
    question = sv.Frequencies("x", oracle="needed")
    text = sv.plan(SCHEMA, question, epsilon=2, people=4000).text
    for path in site.folder.glob("*.dist-info/*"):
        path.unlink()
    with pytest.raises(sv.InvalidInput, match="oracle 'needed' needs the package 'shy-needed', "):
        sv.Plan.from_json(text)
    site.install("shy-other", CODE.replace('"shy"', '"needed"'), needed="ShyResponse")
    with pytest.raises(sv.InvalidInput, match="needs the package 'shy-needed', which is not"):
        sv.Plan.from_json(text)
    wrong = text.replace('"shy-needed"', json.dumps("rm -rf"))
    with pytest.raises(sv.InvalidInput, match="the package of an oracle must be the name of one"):
        sv.Plan.from_json(wrong)


def test_a_plan_does_not_give_a_package_to_an_oracle_of_ours(site: Site) -> None:
    text = sv.plan(SCHEMA, sv.Frequencies("x", oracle="grr"), epsilon=2, people=4000).text
    body = json.loads(text)
    body["cohorts"]["cohorts"][0]["asks"][0]["oracle"]["package"] = "shy-oracles"
    with pytest.raises(sv.InvalidInput, match="needs the package 'shy-oracles'"):
        sv.Plan.from_json(json.dumps(body))


@pytest.mark.parametrize(
    ("oracles", "code", "words"),
    [
        ({"oue": "X"}, "", "'oue' of the package 'bad' has the name of one of sottovoce's own"),
        ({"k-rr": "X"}, "", "'k-rr' of the package 'bad' has the name of one of sottovoce's own"),
        ({"adaptive": "X"}, "", "has the name of one of sottovoce's own"),
        ({"bad": "X"}, "import no_such_thing", "cannot be imported (ModuleNotFoundError: No mod"),
        ({"bad": "X"}, "", "cannot be imported (AttributeError"),
        ({"bad": "X"}, "1 / 0", "cannot be imported (ZeroDivisionError"),
        ({"bad": "X"}, "X = 7", "(bad:X) is not an oracle: a subclass of"),
        ({"bad": "Path"}, "from pathlib import Path", "(bad:Path) is not an oracle"),
        (
            {"bad": "X"},
            "from sottovoce.oracles import PureOracle\nclass X(PureOracle): names = ('bad',)",
            "is not a whole oracle: it lacks build, exact_p, exact_q, layout",
        ),
        ({"bad": "ShyResponse"}, CODE, "names ('shy',) of the class must be the entry point's"),
        (
            {"bad": "ShyResponse"},
            CODE.replace('("shy",)', '"shy"'),
            "names must be a tuple of names such as ('my-oracle',)",
        ),
    ],
)
def test_what_is_wrong_with_a_package_is_said(
    site: Site, oracles: dict[str, str], code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "bad", raising=False)
    site.install("bad", code, **oracles)
    for call in (every_oracle, lambda: find("bad")):
        with pytest.raises(sv.InvalidInput) as refused:
            call()
        assert words in str(refused.value)
        assert "'bad'" in str(refused.value)
    assert find("grr") is GeneralizedRandomizedResponse  # whatever others bring
    assert find("k-rr") is GeneralizedRandomizedResponse


def test_two_packages_with_one_name_are_refused(site: Site) -> None:
    for package in ("one-shy", "two-shy"):
        site.install(package, CODE.replace('"shy"', '"twice"'), twice="ShyResponse")
    with pytest.raises(
        sv.InvalidInput, match=r"has the name of one of the package '(one|two)-shy'"
    ):
        find("twice")


def test_an_unknown_name_lists_those_of_others(site: Site) -> None:
    site.install("shy-listed", "1 / 0", listed="ShyResponse")
    with pytest.raises(sv.InvalidInput, match=r"must be one of rr, grr, .*, listed, adaptive"):
        sv.oracle("magic", size=4, epsilon=1)


# what each change to the trial's oracle breaks
MUTANTS = {
    "louder": (
        "return cls(size, epsilon, truth_threshold(size, epsilon))",
        "return cls(size, epsilon, truth_threshold(size, epsilon * 2))",
        "no report tells two values apart by more than epsilon",
    ),
    "another p": (
        "chance(self.truth) + self.exact_q",
        "chance(self.truth) * Fraction(99, 100) + self.exact_q",
        "p and q are those of the channel",
    ),
    "silent only with the first value": (
        "if entropy.coin(self.silence):",
        "if value == 0 and entropy.coin(self.silence):",
        "no report tells two values apart by more than epsilon",
    ),
    "biased": (
        "return output == value",
        "return output in (value, self.size)",
        "estimates are unbiased",
    ),
    "a report that does not fit": (
        "return self.size\n",
        "return self.size + 1\n",
        "reports survive packing",
    ),
    "its own mistake": (
        "return output == value",
        "return output.value == value",
        "estimates are unbiased",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_oracle_is_told_apart(mutant: str) -> None:
    before, after, law = MUTANTS[mutant]
    assert before in CODE
    space: dict[str, object] = {"__name__": "mutant"}
    exec(compile(CODE.replace(before, after), mutant, "exec", dont_inherit=True), space)
    found = check_oracle(built_of(space["ShyResponse"], 4, 1))  # type: ignore[arg-type]
    assert not found.passed
    broken = {check.law for check in found.laws if not check.passed}
    assert law in broken, str(found)


def test_one_that_passes_is_whole(site: Site) -> None:
    site.install("shy_good", CODE)
    assert check_oracle(built_of(oracle_class("shy_good:ShyResponse"), 4, 1)).passed


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("checked", "", "must be module:Class, such as mypackage:MyOracle"),
        ("checked:", "", "must be module:Class"),
        ("checked:X.y", "", "must be module:Class"),
        ("no_such_module:X", "", "no_such_module cannot be imported (ModuleNotFoundError"),
        ("checked:X", "1 / 0", "checked cannot be imported (ZeroDivisionError"),
        ("checked:X", "", "checked has no X"),
        ("checked:X", "X = int", "is not an oracle"),
        ("checked:ShyResponse", CODE.replace('("shy",)', '("de",)'), "de is the name of one"),
        ("checked:ShyResponse", CODE.replace("Source: ", "From: "), "must state Source:"),
    ],
)
def test_what_cannot_be_checked_is_refused(
    site: Site, target: str, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "checked", raising=False)
    site.install("checked", code)
    with pytest.raises(sv.InvalidInput) as refused:
        oracle_class(target)
    assert words in str(refused.value)
