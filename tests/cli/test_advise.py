"""Which epsilon, how many people: the answers are enough, and a little less is not."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.measure import advise
from sottovoce.measure.advice import LEAST_EPSILON, MIN_ADVISED_PEOPLE, Answer, predicted
from sottovoce.questions.base import predicted as promised
from sottovoce.questions.prediction import PREDICTED_KINDS, points
from tests.cli.helpers import Command, refused

SCHEMA = sv.Schema(x=sv.Boolean(), y=sv.Categorical(range(20)), z=sv.Boolean())
QUESTIONS = (
    sv.Frequencies("x"),
    sv.Frequencies("x", "y", oracle="oue"),
    sv.Frequencies("x", "y", split="budget"),
    sv.Marginals(up_to=2, method="marg-ps"),
    sv.Marginals(up_to=2),
)
SURVEY = """\
epsilon = 1.0
people = 50_000
[schema.x]
kind = "boolean"
[schema.y]
kind = "boolean"
[schema.z]
kind = "boolean"
[question]
kind = "marginals"
up_to = 2
"""


def test_the_error_of_frequencies_is_that_of_the_worst_oracle() -> None:
    found = predicted(SCHEMA, sv.Frequencies("x", "y"), "1", 10_000)
    worst = sv.oracle("adaptive", size=20, epsilon=1)
    assert found.error == pytest.approx(sqrt(worst.variance(5000)))
    assert found.method == worst.names[0]


def test_the_error_of_marginals_is_what_the_plan_says() -> None:
    question = sv.Marginals(up_to=3)
    plan = sv.plan(SCHEMA, question, epsilon="1", people=10_000)
    settled = plan.question
    assert isinstance(settled, sv.Marginals)
    shares, pairs, tables = promised(plan).figures
    found = {of: predicted(SCHEMA, question, "1", 10_000, of) for of in PREDICTED_KINDS}
    assert found == {
        "shares": (shares.largest, settled.method),
        "pairs": (pairs.largest, settled.method),
        "tables": (tables.largest, settled.method),
    }
    both = predicted(SCHEMA, question, "1", 10_000)
    assert both.error == max(found["shares"].error, found["pairs"].error)
    for figure in (shares, pairs, tables):
        assert f"{figure.what} +- {points(figure.error)} points" in str(plan)


def test_where_tables_are_pairs_and_where_there_are_none() -> None:
    two, one = sv.Marginals(up_to=2), sv.Marginals(up_to=1)
    of_tables = predicted(SCHEMA, two, "1", 10_000, "tables")
    assert of_tables == predicted(SCHEMA, two, "1", 10_000, "pairs")
    for question in (one, sv.Frequencies("x")):
        for of in ("pairs", "tables"):
            with pytest.raises(InvalidInput, match=r"has no such error \(it has: shares\)"):
                predicted(SCHEMA, question, "1", 10_000, of)


@pytest.mark.parametrize("of", ["cells", ""])
def test_an_error_of_nothing_known_is_refused(of: str) -> None:
    with pytest.raises(InvalidInput, match="must be one of shares, pairs, tables"):
        advise(SCHEMA, sv.Marginals(up_to=2), epsilon="1", people=1000, error=0.1, of=of)


def test_advice_says_of_what_the_error_is() -> None:
    question = sv.Marginals(up_to=2)
    words = {
        None: "a share of one attribute and for a cell of a pair, the worst, needs",
        "shares": "a share of one attribute, the worst, needs",
        "tables": "a cell of a table, the worst, needs",
    }
    for of, expected in words.items():
        advice = advise(SCHEMA, question, epsilon="1", people=20_000, error=0.05, of=of)
        assert f"A standard error of 0.05 for {expected}" in str(advice)
        assert advice.to_json()["of"] == of


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
@pytest.mark.parametrize("error", [0.05, 0.004])
def test_what_is_needed_is_enough_and_hardly_more(
    question: sv.Marginals | sv.Frequencies, error: float
) -> None:
    advice = advise(SCHEMA, question, epsilon="1", people=20_000, error=error)
    for answer, at in (
        (
            advice.epsilon_needed,
            lambda amount: predicted(SCHEMA, question, f"{amount:.6g}", 20_000),
        ),
        (advice.people_needed, lambda amount: predicted(SCHEMA, question, "1", int(amount))),
    ):
        assert answer.needed is not None
        assert at(answer.needed).error <= error
        assert at(answer.needed) == (answer.error, answer.method)
        assert answer.is_least or at(0.97 * answer.needed).error > error


@pytest.mark.parametrize(("epsilon", "people"), [("0.001", 1), ("30", 10**9), ("1", 10**5)])
def test_the_answer_does_not_depend_on_where_the_search_begins(epsilon: str, people: int) -> None:
    question = sv.Frequencies("y", oracle="grr")
    at_people = advise(SCHEMA, question, epsilon=epsilon, people=10_000, error=0.02).epsilon_needed
    at_epsilon = advise(SCHEMA, question, epsilon="1", people=people, error=0.02).people_needed
    same = advise(SCHEMA, question, epsilon="2", people=10_000, error=0.02).epsilon_needed
    assert at_people.needed == pytest.approx(same.needed, rel=0.02)
    variance = sv.oracle("grr", size=20, epsilon=1).variance(1)
    assert at_epsilon.needed == pytest.approx(variance / 0.02**2, rel=0.02)


def test_a_goal_that_any_survey_meets() -> None:
    advice = advise(SCHEMA, sv.Frequencies("x"), epsilon="3", people=10**8, error=0.4)
    assert (advice.epsilon_needed.needed, advice.people_needed.needed) == (
        float(LEAST_EPSILON),
        MIN_ADVISED_PEOPLE,
    )
    assert "or even less" in str(advice)


def test_a_goal_that_nothing_meets() -> None:
    advice = advise(
        SCHEMA, sv.Frequencies("x", oracle="grr"), epsilon="0.01", people=10, error=1e-7
    )
    assert advice.epsilon_needed.needed is advice.people_needed.needed is None
    assert advice.people_needed.error == pytest.approx(
        sqrt(sv.oracle("grr", size=2, epsilon="0.01").variance(10**9))
    )
    assert "more than epsilon 10" in str(advice)
    assert "more than 1,000,000,000 people" in str(advice)


@pytest.mark.parametrize(
    ("power", "floor"), [(2.0, 0.0), (2.0, 0.00999), (0.02, 0.0), (40.0, 0.0), (2.0, 0.0101)]
)
def test_a_search_finds_the_end_of_any_falling_error(power: float, floor: float) -> None:
    """Errors that hardly fall, fall at once, or come to rest just under or just above the goal."""
    from decimal import Decimal

    from sottovoce.measure.advice import PredictedError, _Search, _whole_number

    def falling(at: Decimal) -> PredictedError:
        return PredictedError(floor + 0.01 * (float(at) / 5e5) ** (-1 / power), "m")

    search = _Search(falling, 0.01, Decimal(10), Decimal(10**9), 2, _whole_number)
    for start in (1, 10, 70_000, 10**9, 10**12):
        found = search.run(Decimal(start), falling(Decimal(start)))
        if floor > 0.01:
            assert (found.needed, found.error) == (None, falling(Decimal(10**9)).error)
        elif floor > 0:
            assert found.needed is None or falling(Decimal(found.needed)).error <= 0.01
            assert (falling(Decimal(10**9)).error <= 0.01) == (found.needed is not None)
        else:
            assert found.needed == pytest.approx(5e5, rel=0.025)


def test_a_survey_beyond_the_range_is_not_the_answer() -> None:
    advice = advise(SCHEMA, sv.Frequencies("x"), epsilon="0.001", people=10**9, error=0.4)
    assert advice.epsilon_needed.needed == float(LEAST_EPSILON)
    advice = advise(SCHEMA, sv.Frequencies("x"), epsilon="30", people=1, error=0.001)
    assert advice.epsilon_needed.needed is None
    assert advice.epsilon_needed.error == predicted(SCHEMA, sv.Frequencies("x"), 10, 1).error


def test_a_method_that_never_fits_is_a_clear_answer() -> None:
    wide = sv.Schema(**{f"x{place}": sv.Boolean() for place in range(40)})
    advice = advise(wide, sv.Marginals(up_to=3, method="fc"), epsilon=1, people=1000, error=0.01)
    assert advice.epsilon_needed.needed is None
    assert "fc does not fit" in str(advice)
    assert advice.to_json()["planned"]["error"] is None


def test_bad_goals_are_refused() -> None:
    for error in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(InvalidInput, match=r"error .* must lie between 0 and 1"):
            advise(SCHEMA, sv.Frequencies("x"), epsilon=1, people=10, error=error)
    words = sv.Schema(w=sv.Text(bytes=20))
    with pytest.raises(InvalidInput, match="depends on the candidates"):
        advise(words, sv.Frequencies("w", oracle="o-rr"), epsilon=1, people=1000, error=0.01)


def test_on_the_command_line(sottovoce: Command, tmp_path: Path) -> None:
    survey = tmp_path / "survey.toml"
    survey.write_text(SURVEY)
    outcome = sottovoce("advise", survey, "--error", "0.01", "--json")
    assert outcome.err == ""
    body = json.loads(outcome.out)
    assert body["planned"]["people"] == body["epsilon"]["people"] == 50_000
    assert body["people"]["epsilon"] == 1.0
    for part in ("epsilon", "people"):
        assert body[part]["error"] <= 0.01
        assert body[part]["method"]
    text = sottovoce("advise", survey, "--error", "0.01").out
    assert f"with 50,000 people:  epsilon {body['epsilon']['needed']:g}" in text
    assert f"at epsilon 1:  {body['people']['needed']:,} people" in text
    other = json.loads(
        sottovoce(
            "advise", survey, "--error", "0.01", "--people", 1000, "--epsilon", 2, "--json"
        ).out
    )
    assert (other["planned"]["people"], other["planned"]["epsilon"]) == (1000, 2)
    assert other["epsilon"]["needed"] > body["epsilon"]["needed"]
    assert other["people"]["needed"] < body["people"]["needed"]
    shares = sottovoce("advise", survey, "--error", "0.01", "--of", "shares", "--json")
    assert json.loads(shares.out)["what"] == "a share of one attribute"
    assert json.loads(shares.out)["people"]["needed"] <= body["people"]["needed"]
    figures = json.loads(sottovoce("plan", survey, "--json").out)["predicted"]
    assert [figure["kind"] for figure in figures] == ["shares", "pairs"]
    largest = max(figure["worst_error"] for figure in figures)
    assert body["planned"]["error"] == pytest.approx(largest)


def test_bad_options_on_the_command_line(sottovoce: Command, tmp_path: Path) -> None:
    survey = tmp_path / "survey.toml"
    survey.write_text(SURVEY)
    refused(sottovoce("advise", survey), "--error")
    refused(sottovoce("advise", survey, "--error", 0), "error (0.0)")
    refused(sottovoce("advise", survey, "--error", 0.1, "--of", "cells"), "of (cells)")
    refused(sottovoce("advise", survey, "--error", 0.1, "--people", 0), "people (0)")
    refused(sottovoce("advise", survey, "--error", 0.1, "--epsilon", 0), "epsilon (0)")
    refused(sottovoce("advise", tmp_path / "none.toml", "--error", 0.1), "none.toml")


def test_an_answer_knows_that_it_is_the_least() -> None:
    assert Answer(0.01, 10, 0.01, 0.1, "grr").is_least
    assert not Answer(None, 10, 0.01, 0.1, "grr").is_least
