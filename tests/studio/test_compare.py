"""Groups, waves and weights on the pages, beside what Python says of the same reports."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import httpx
import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.pages.parts import percent, span
from sottovoce.protocol.plan import Plan
from tests.studio.collectors import Collector
from tests.waiting import until

PEOPLE = 4000
REGIONS = sv.Schema(
    smoker=sv.Boolean(), state=sv.Categorical(["NY", "New Jersey"], sensitive=False)
)


def cell(table: sv.Table, place: int, *, population: bool = False) -> str:
    low, high = table.interval(0.95, population=population)
    return f"{percent(table.values[place])} ({span(low[place], high[place])})"


def answered(browser: httpx.Client, path: str, **asked: Any) -> str:
    """The page, once its answer is there."""
    pages: list[str] = []

    def is_there() -> bool:
        found = browser.get(path, params=asked)
        assert found.status_code == 200, found.text
        pages.append(unescape(found.text))
        return "Being computed" not in pages[-1]

    until(is_there)
    return pages[-1]


@pytest.fixture(scope="module")
def heard(collector: Collector, drawn: Plan) -> sv.Estimate:
    return collector.service.store.aggregate(drawn).estimate()


def test_two_groups_stand_side_by_side(
    browser: httpx.Client, drawn: Plan, heard: sv.Estimate
) -> None:
    asked = {"attribute": "drinks", "group": ["smoker:yes", "smoker:no; age:18..57"]}
    text = answered(browser, f"/watch/{drawn.id}/groups", **asked)
    groups = [{"smoker": [True]}, {"smoker": [False], "age": ["18 to 37", "38 to 57"]}]
    tables = [heard.within("drinks", group) for group in groups]
    for told in (*(cell(table, 1) for table in tables), cell(heard.compare("drinks", *groups), 1)):
        assert told in text
    assert 'value="smoker:yes"' in text  # the form keeps what was typed


def test_every_value_of_an_attribute_makes_a_group(
    browser: httpx.Client, drawn: Plan, heard: sv.Estimate
) -> None:
    asked = {"attribute": "age", "group": ["", ""], "by": "drinks"}
    text = answered(browser, f"/watch/{drawn.id}/groups", **asked)
    for value in drawn.schema["drinks"].labels():
        assert cell(heard.within("age", {"drinks": value}), 0) in text
    (mean, _) = heard.averages("age", {"drinks": "daily"})
    assert f"<td>{mean.value:.4g}</td>" in text
    assert "mean among" in text


@pytest.mark.parametrize(
    ("path", "asked", "rule"),
    [
        ("groups", {"attribute": "tea", "group": "smoker:yes"}, "Attribute 'tea' is not one"),
        ("groups", {"attribute": "age"}, "Name one or two groups"),
        ("groups", {"attribute": "age", "group": "smoker"}, "Group (smoker) must be"),
        ("groups", {"attribute": "age", "group": "smoker:yes", "by": "drinks"}, "Name one or two"),
        ("groups", {"attribute": "age", "group": "age:18..37"}, "age"),
        ("change", {"attribute": "age", "before": "{id}"}, "Both surveys are of one plan"),
        ("change", {"before": "{id}"}, "Choose at least one attribute"),
        ("weights", {}, "Give the population's shares"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(
    browser: httpx.Client, drawn: Plan, path: str, asked: dict[str, str], rule: str
) -> None:
    asked = {name: value.format(id=drawn.id) for name, value in asked.items()}

    def refusal() -> str:
        found = browser.get(f"/watch/{drawn.id}/{path}", params=asked)
        return unescape(found.text) if found.status_code == 422 else ""

    until(lambda: refusal() != "")
    alert = re.search(r'role="alert">(.*?)</p>', refusal(), re.S)
    assert alert
    assert rule in alert[1]


def test_a_wave_is_compared_with_an_earlier_one(
    collector: Collector, browser: httpx.Client, drawn: Plan, heard: sv.Estimate
) -> None:
    before = collector.survey(sv.Frequencies("drinks"), people=3001, epsilon=4.0, title="Spring")
    collector.hear(before, 3001, seed=9)
    assert f'<option value="{before.id}">Spring' in browser.get(f"/watch/{drawn.id}").text
    path = f"/watch/{drawn.id}/change"

    def is_heard() -> bool:
        asked = {"attribute": "drinks", "before": before.id}
        return browser.get(path, params=asked).status_code == 200

    until(is_heard)
    text = answered(browser, path, attribute="drinks", before=before.id)
    earlier = collector.service.store.aggregate(before).estimate()
    change = heard.change_since(earlier, "drinks")
    assert "What changed since Spring" in text
    assert cell(change, 2, population=True) in text
    assert cell(earlier.marginal("drinks"), 0, population=True) in text


def test_answers_are_weighted_by_what_travels_in_clear(
    collector: Collector, browser: httpx.Client
) -> None:
    plan = collector.survey(sv.Frequencies("smoker"), PEOPLE, 4.0, schema=REGIONS, public=["state"])
    draw = np.random.default_rng(1)
    state = np.where(draw.random(PEOPLE) < 0.8, "NY", "New Jersey").astype(object)
    people = {"smoker": draw.random(PEOPLE) < np.where(state == "NY", 0.5, 0.1), "state": state}
    reports = sv.simulate(plan, people, seed=3)
    ids = np.frombuffer(b"".join(new_id() for _ in range(PEOPLE)), np.uint8).reshape(-1, 16)
    collector.service.store.append(plan, ids, reports)
    page = f"/watch/{plan.id}"
    assert 'name="share state"' in browser.get(page).text
    asked = {"share state": "NY: 0.5, New Jersey: 50%"}
    text = answered(browser, f"{page}/weights", **asked)
    raked = sv.rake(plan, reports, {"state": {"NY": 0.5, "New Jersey": 0.5}})
    assert f"err as {raked.effective_people:,.0f} without" in text
    assert cell(raked.estimate().marginal("smoker"), 1) in text
    for typed, rule in (
        ("NY", "must be written value: share"),
        ("NY: 0.5, New Jersey: 0.1", "add up to 0.6"),
        ("NY: 0.5, New Jersey: 0.5, NY: 0.5", "name 'NY' once"),
        ("NY: 0.5, Ohio: 0.5", "Ohio"),
    ):

        def refusal(typed: str = typed) -> str:
            found = browser.get(f"{page}/weights", params={"share state": typed})
            return unescape(found.text) if found.status_code == 422 else ""

        until(lambda: refusal() != "")
        assert rule in refusal()
