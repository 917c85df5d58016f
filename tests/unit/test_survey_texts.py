"""What a survey says to people: in its file, beside its plan, on its report."""

from __future__ import annotations

from typing import Any

import pytest

import sottovoce as sv
from sottovoce.api.surveys import Survey, parse_schema
from sottovoce.ground.errors import InvalidInput
from sottovoce.pages import figures
from sottovoce.schema.missing import with_missing
from sottovoce.studio.take_page import missing_of

BODY: dict[str, Any] = {
    "epsilon": "2",
    "people": 1000,
    "schema": {"smoker": {"kind": "boolean"}},
    "question": {"kind": "frequencies", "attributes": ["smoker"]},
}
TEXTS = sv.Texts(
    "Gewohnheiten",
    introduction="Zwei Fragen.\n\n<b>Danke</b>!",
    consent="Sonst wird nichts behalten.",
    contact="umfrage@example.org",
    language="de",
    questions={"smoker": "Rauchen Sie?\u202e"},
)


def with_texts() -> dict[str, Any]:
    own = {"introduction": TEXTS.introduction, "consent": TEXTS.consent}
    own |= {"contact": TEXTS.contact, "language": TEXTS.language}
    question = {"kind": "boolean", "question": TEXTS.questions["smoker"]}
    return {**BODY, "title": TEXTS.title, "texts": own, "schema": {"smoker": question}}


def test_texts_are_no_part_of_the_plan() -> None:
    found = Survey.parse(with_texts())
    assert found.texts == TEXTS
    assert found.plan() == Survey.parse(BODY).plan()
    assert not Survey.parse(BODY).texts
    assert parse_schema(with_texts()["schema"], "schema") == parse_schema(BODY["schema"], "schema")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"texts": "Hello"}, "texts must be a table"),
        ({"texts": {"greeting": "Hello"}}, "greeting is not one of title, introduction"),
        ({"texts": {"questions": {}}}, "questions stand beside their attributes"),
        ({"texts": {"consent": 7}}, "consent must be text"),
        ({"texts": {"contact": "x" * 201}}, "contact must have at most 200 characters"),
        ({"texts": {"language": "la"}}, r"language \(la\) must be one of en, de, fr, it, es"),
        ({"title": 0}, "title must be text"),
        ({"title": "a", "texts": {"title": "b"}}, "title is given twice"),
        (
            {"schema": {"smoker": {"kind": "boolean", "question": ["a"]}}},
            "question of 'smoker' must be text",
        ),
    ],
)
def test_a_wrong_text_is_named(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        Survey.parse({**BODY, **change}, "survey")


def test_a_question_that_may_be_left_out_has_an_answer_for_it() -> None:
    schema = {
        "smoker": {"kind": "boolean", "missing": "prefer not to say"},
        "tea": {"kind": "categorical", "values": ["green", "none"], "missing": "none"},
        "age": {"kind": "ordinal", "low": 18, "high": 97, "bins": 2, "missing": 17},
        "rooms": {"kind": "ordinal", "low": 1, "high": 5, "missing": 6},
    }
    made = parse_schema(schema, "schema")
    assert made == sv.Schema(
        smoker=sv.Categorical([True, False, "prefer not to say"], other="prefer not to say"),
        tea=sv.Categorical(["green", "none"], other="none"),
        age=sv.Ordinal(17, 97, bins=[17, 18, 58], other=17),
        rooms=sv.Ordinal(1, 6, other=6),
    )
    assert (made.code("smoker", True), made.code("smoker", False)) == (0, 1)


@pytest.mark.parametrize(
    ("attribute", "rule"),
    [
        ({"kind": "boolean", "missing": ""}, r"missing \(\) must be a text"),
        (
            {"kind": "boolean", "missing": "Yes"},
            r"missing \(Yes\) must not be a word for yes or no",
        ),
        ({"kind": "boolean", "missing": "none", "other": True}, "missing and other say the same"),
        ({"kind": "ordinal", "low": 1, "high": 5, "missing": 9}, r"missing \(9\) must be 0 or 6"),
        ({"kind": "text", "bytes": 4, "missing": "none"}, "missing: an attribute of kind text"),
    ],
)
def test_a_wrong_missing_answer_is_named(attribute: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=f"attribute 'x': {rule}"):
        parse_schema({"x": attribute}, "schema")


def test_a_later_round_says_its_number() -> None:
    plan = Survey.parse(BODY).plan()
    assert sv.Texts("Tea").following(plan) == sv.Texts("Tea (next round)")
    assert sv.Texts("Tea (round 2)").following(plan).title == "Tea (next round)"


def test_a_report_holds_what_people_read() -> None:
    plan = Survey.parse(BODY).plan()
    heard = sv.Aggregate(plan).add(sv.simulate(plan, {"smoker": [True, False] * 500}, seed=1))
    page = sv.report(plan, heard, texts=TEXTS)
    assert page.title == "Gewohnheiten"
    for told in (
        '<p lang="de">Zwei Fragen.</p><p lang="de">&lt;b&gt;Danke&lt;/b&gt;!</p>',
        '<p class="asked" lang="de">Rauchen Sie?\\u202e</p>',
        '<p lang="de">Sonst wird nichts behalten.</p>',
        'Contact: <span lang="de">umfrage@example.org</span>',
    ):
        assert told in page.html
    assert sv.report(plan, heard, title="Habits", texts=TEXTS).title == "Habits"
    with pytest.raises(InvalidInput, match="attribute 'tea' is not in the schema"):
        sv.report(plan, heard, texts=sv.Texts(questions={"tea": "Tea?"}))


def test_pages_say_no_answer_in_place_of_the_number_that_stands_for_it() -> None:
    schema = sv.Schema(age=sv.Ordinal(17, 49, bins=[17, 18, 30], other=17), tea=sv.Boolean())
    question = sv.Marginals(up_to=2, method="inp-ht")
    plan = sv.plan(schema, question, epsilon=4.0, people=2000)
    people = {"age": [17, 20, 20, 40] * 500, "tea": [True, True, False, False] * 500}
    found = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    single, _ = figures.singles(found)
    assert [row["value"] for row in single.rows] == ["no answer", "18 to 29", "30 to 49"]
    pair = figures.table_of(found, ["age", "tea"])
    assert isinstance(pair, figures.Picture)
    assert pair.rows[0]["value"] == "no answer, no"
    assert found.marginal("age").labels[0] == "17"  # the data stay what they are


def test_a_number_may_be_left_out_if_its_answer_has_a_bin_of_its_own() -> None:
    own, shared = with_missing(sv.Ordinal(18, 97, bins=4), 17), sv.Ordinal(0, 99, bins=4, other=0)
    assert (missing_of(own, "number"), missing_of(shared, "number")) == (17, None)
