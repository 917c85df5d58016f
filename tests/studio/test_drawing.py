"""What is drawn and planned elsewhere: charts, designs,
and the background jobs that remember them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any
from xml.etree import ElementTree

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.pages import figures
from sottovoce.pages.charts import MAX_CHART_BARS
from sottovoce.questions.base import predicted
from sottovoce.service.problems import Problem
from sottovoce.studio.background_jobs import DRAWING_TOO_LONG, LONGEST_DRAWING, BackgroundJobs
from sottovoce.studio.designs import design
from sottovoce.studio.kept_estimates import download
from tests.known import chain, known
from tests.studio.collectors import SCHEMA, crowd

BODY = {
    "epsilon": "1.0",
    "people": 10_000,
    "schema": {"a": {"kind": "boolean"}, "b": {"kind": "categorical", "values": ["x", "y", "z"]}},
    "question": {"kind": "marginals", "attributes": ["a", "b"], "up_to": 2},
    "coin": "device",
}


class Here:
    """Runs work at once, in place of processes."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, work: Any, *args: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args))
        except Exception as wrong:
            future.set_exception(wrong)
        return future

    def stop(self) -> None: ...


@pytest.fixture
def here() -> Iterator[tuple[BackgroundJobs, Here]]:
    jobs, pool = BackgroundJobs(), Here()
    jobs._pool = pool  # type: ignore[assignment]
    yield jobs, pool
    jobs.close()


def test_what_was_made_is_kept_and_what_failed_is_not(here: tuple[BackgroundJobs, Here]) -> None:
    jobs, pool = here
    assert jobs.ask("sum", sum, [1, 2]).result() == 3
    assert jobs.ask("sum", sum, [5, 5]).result() == 3
    assert pool.calls == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            jobs.ask("wrong", int, "x").result()
    assert pool.calls == 3


def test_the_latest_is_shown_until_a_newer_one_is_due(
    here: tuple[BackgroundJobs, Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, pool = here
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert jobs.latest("key", 1.0, sum, [1]) == (1.0, 1)
    assert jobs.latest("key", 2.0, sum, [2]) == (1.0, 1)  # too soon
    now[0] += 10
    assert jobs.latest("key", 1.0, sum, [9]) == (1.0, 1)  # nothing new
    assert pool.calls == 1
    assert jobs.latest("key", 2.0, sum, [2]) == (2.0, 2)
    now[0] += 10
    assert jobs.latest("key", 3.0, int, "x") == (2.0, 2)  # it went wrong: the old one stays
    assert jobs.latest("key", 3.0, sum, [3]) == (2.0, 2)  # and is not tried again at once
    now[0] += 10
    assert jobs.latest("key", 3.0, sum, [3]) == (3.0, 3)


def test_a_drawing_that_takes_too_long_says_so(
    here: tuple[BackgroundJobs, Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, pool = here
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert BackgroundJobs()._pool._seconds == LONGEST_DRAWING

    def too_long(*_: Any) -> Any:
        raise Problem("busy", DRAWING_TOO_LONG)

    version, result = jobs.latest("key", 1.0, too_long, late=DRAWING_TOO_LONG)
    assert (version != 0.0, result) == (True, DRAWING_TOO_LONG)
    now[0] += 10
    # not tried again at once
    assert jobs.latest("key", 1.0, sum, [1], late=DRAWING_TOO_LONG) == (
        version,
        DRAWING_TOO_LONG,
    )
    assert pool.calls == 1
    now[0] += 5 * LONGEST_DRAWING
    assert jobs.latest("key", 1.0, sum, [1], late=DRAWING_TOO_LONG) == (1.0, 1)
    now[0] += 10
    assert jobs.latest("key", 2.0, too_long, late=DRAWING_TOO_LONG)[1] == 1  # the old one stays


def test_a_design_is_the_plan_that_auto_gives() -> None:
    made = design(BODY)
    schema = sv.Schema(a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]))
    plan = sv.plan(
        schema, sv.Marginals(up_to=2, attributes=["a", "b"]), epsilon="1.0", people=10_000
    )
    assert made.plan == plan.to_json()
    assert made.id == plan.id
    assert made.words == str(plan)
    assert [each.kind for each in made.errors] == ["shares", "pairs"]
    planned = predicted(plan).error
    assert all(planned <= other.error or other.what == "inp-rr" for other in made.others)


def test_a_design_of_single_attributes_predicts_each() -> None:
    made = design(
        {**BODY, "question": {"kind": "frequencies", "attributes": ["a", "b"]}, "coin": "assigned"}
    )
    assert {each.what for each in made.errors} == {"a", "b"}
    assert made.errors[0].error >= made.errors[1].error
    assert f"{made.errors[0].error:.2g} for a rare value" in made.words
    assert '"coin": "assigned"' in made.plan


@pytest.mark.parametrize(
    "change", [{"epsilon": "-1"}, {"epsilon": "nan"}, {"people": 0}, {"people": 1 << 70}]
)
def test_a_design_that_cannot_be_is_refused_in_words(change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(InvalidInput, match=rf"^{name} \("):
        design({**BODY, **change})


def estimate(question: Any, schema: sv.Schema = SCHEMA, people: Any = None) -> Any:
    plan = sv.plan(schema, question, epsilon=4.0, people=4000)
    return sv.Aggregate(plan).add(sv.simulate(plan, people or crowd(4000, 1), seed=1)).estimate()


def test_charts_show_every_value_with_its_interval() -> None:
    found = {
        picture.attributes: picture
        for picture in figures.singles(estimate(sv.Frequencies("drinks", "smoker")))
    }
    drinks = found[("drinks",)]
    text = "".join(ElementTree.fromstring(drinks.svg).itertext())
    for row in drinks.rows:
        assert row["value"] in text
        assert f"{100 * row['frequency']:.1f} ± {50 * (row['high'] - row['low']):.1f}%" in text
    assert [row["value"] for row in found[("smoker",)].rows] == ["no", "yes"]
    assert "background" not in drinks.svg or 'fill="white"' not in drinks.svg


@pytest.mark.parametrize(("label", "is_slanted"), [("weekly", False), ("once in a while", True)])
def test_labels_of_a_heat_map_do_not_meet(label: str, is_slanted: bool) -> None:
    """Labels that are wider than their column are slanted."""
    schema = sv.Schema(tea=sv.Boolean(), often=sv.Categorical([label, "no"]))
    found = estimate(
        sv.Marginals(up_to=2, method="inp-ht"),
        schema,
        {"often": [label, "no"] * 500, "tea": [True, False] * 500},
    )
    picture = figures.table_of(found, ["tea", "often"])
    assert isinstance(picture, figures.Picture)
    assert ("rotate(320)" in picture.svg) is is_slanted


def test_labels_are_shown_as_they_are_whatever_they_are() -> None:
    """Labels that look like code, like each other or like nothing are text and nothing else."""
    odd = ["<script>alert(1)</script>", '"], datum["', "\\", "a", "a ", "1", "ünïcødé ✓", "x" * 80]
    schema = sv.Schema(**{"<b>": sv.Categorical(odd), "&": sv.Boolean()})
    people = {"<b>": odd * 500, "&": [True, False] * 2000}
    found = estimate(sv.Marginals(up_to=2, method="inp-ht"), schema, people)
    for picture in (*figures.singles(found), figures.table_of(found, ["<b>", "&"])):
        assert isinstance(picture, figures.Picture)
        root = ElementTree.fromstring(picture.svg)
        assert not [each for each in root.iter() if each.tag.endswith("script")]
    text = "".join(ElementTree.fromstring(figures.singles(found)[0].svg).itertext())
    assert "<script>alert(1)</scr" in text
    assert "x" * 21 + "…" in text
    assert '"], datum["' in text


def test_of_many_values_the_largest_are_drawn_and_all_can_be_taken_away() -> None:
    schema = sv.Schema(number=sv.Ordinal(0, 599))
    found = estimate(
        sv.Frequencies("number"), schema, {"number": [place % 600 for place in range(4000)]}
    )
    (picture,) = figures.singles(found)
    assert len(re.findall("±", picture.svg)) == MAX_CHART_BARS
    assert picture.note.startswith("the 24 largest of 600, ")
    assert (len(picture.rows), picture.more) == (500, 100)
    assert download(found, ["number"], "csv").count(b"\n") == 601


def test_ties_are_found_and_the_clear_ones_come_first() -> None:
    found = figures.relations(estimate(sv.Marginals(up_to=2, method="inp-ht")))
    assert isinstance(found, figures.Relations)
    assert found.is_exact
    clear = [each.adjusted < 0.05 for each in found.strongest]
    assert clear == sorted(clear, reverse=True)
    assert {"smoker", "exercise"} in [
        set(each.attributes) for each in found.strongest if each.adjusted < 0.05
    ]
    assert len(found.branches) == len(SCHEMA) - 1
    assert [picture.attributes for picture in found.pairs] == [
        each.attributes for each in found.strongest[:6]
    ]


@pytest.mark.parametrize(
    "question", [sv.Frequencies("smoker"), sv.Marginals(up_to=1, method="inp-ht")]
)
def test_where_no_ties_were_asked_for_it_says_so(question: Any) -> None:
    assert "cannot say how they go together" in str(figures.relations(estimate(question)))


def test_what_was_never_asked_is_not_drawn_as_independent() -> None:
    found = figures.relations(known(chain((2, 2, 3), seed=2), 1e-4, unheard=[(0, 2), (1, 2)]))
    assert isinstance(found, figures.Relations)
    assert found.never_asked == ["a x c", "b x c"]
    assert [each.attributes for each in found.strongest] == [("a", "b")]
    assert [picture.attributes for picture in found.pairs] == [("a", "b")]
    assert [branch.figure for branch in found.branches if not branch.is_asked] == [
        "never asked together"
    ]
    table = figures.table_of(known(chain((2, 2, 3), seed=2), 1e-4, unheard=[(0, 2)]), ["a", "c"])
    assert isinstance(table, figures.Picture)
    assert "never asked: a x c" in table.note
