"""The report of a survey: a page for every kind of plan that says what it can, loading nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.pages import pdf
from tests.browser.machines import HAS_CHROMIUM, browsing
from tests.studio.browsers import CONTRAST, RULES, visitor

PEOPLE = 6000
GOODS = ["milk", "tea", "bread"]
SCHEMA = sv.Schema(
    smoker=sv.Boolean(),
    drinks=sv.Categorical(["never", "weekly", "daily"]),
    age=sv.Ordinal(18, 97, bins=4),
)
VOID = {"meta", "br", "input", "link", "path", "line", "rect"}
TRACES = ("http://", "https://", "<script", "<link", "@import", "url(", "src=")


def crowd(seed: int) -> dict[str, Any]:
    draws = np.random.default_rng(seed)
    age = draws.integers(18, 98, PEOPLE)
    smoker = draws.random(PEOPLE) < np.where(age < 40, 0.8, 0.1)
    drinks = np.where(smoker, "daily", draws.choice(["never", "weekly"], PEOPLE))
    return {"smoker": smoker, "drinks": drinks.astype(object), "age": age}


def words(seed: int) -> dict[str, Any]:
    draws = np.random.default_rng(seed)
    return {"word": draws.choice(["tea", "milk", "<b>"], PEOPLE, p=[0.6, 0.3, 0.1]).astype(object)}


WORD = sv.Schema(word=sv.Text(bytes=4))
BASKET = sv.Schema(basket=sv.Items(GOODS))
BASKETS = {"basket": [["milk", "tea"], ["milk"], []] * (PEOPLE // 3)}
KINDS: dict[str, tuple[sv.Schema, Any, dict[str, Any], dict[str, Any]]] = {
    "frequencies": (SCHEMA, sv.Frequencies("drinks", "smoker"), crowd(1), {}),
    "marginals": (SCHEMA, sv.Marginals(up_to=2, method="inp-ht"), crowd(1), {}),
    "one attribute at a time": (SCHEMA, sv.Marginals(up_to=1), crowd(1), {}),
    "popular values": (WORD, sv.HeavyHitters("word", top=3), words(1), {}),
    "popular items": (BASKET, sv.TopItems("basket", top=2), BASKETS, {}),
    "queries": (
        sv.Schema(age=sv.Ordinal(18, 81), smoker=sv.Boolean()),
        sv.Queries(["age", "smoker"], method="tree"),
        {"age": crowd(1)["age"] % 64 + 18, "smoker": crowd(1)["smoker"]},
        {},
    ),
    "shuffled": (
        SCHEMA,
        sv.Frequencies("drinks"),
        crowd(1),
        {"trust": "shuffled", "delta": "1e-6"},
    ),
}
SAID = {
    "frequencies": "asks about each attribute by itself",
    "marginals": "These go together beyond what noise explains",
    "one attribute at a time": "asks for tables of one attribute",
    "popular values": "asks what is popular of one attribute",
    "popular items": "asks what is popular of one attribute",
    "queries": "answers selections",
    "shuffled": "asks about each attribute by itself",
}


class Balance(HTMLParser):
    """Tags that were opened and not closed, and the text between."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(html: str) -> str:
    """The text of a page that is well formed."""
    page = Balance()
    page.feed(html)
    page.close()
    assert page.open == []
    return " ".join(page.text)


def aggregate(kind: str) -> sv.Aggregate:
    schema, question, people, terms = KINDS[kind]
    plan = sv.plan(schema, question, epsilon=2.0, people=PEOPLE, **terms)
    return sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_plan_has_a_page(kind: str) -> None:
    total = aggregate(kind)
    html = sv.report(total.plan, total).html
    text = parsed(html)
    assert SAID[kind] in text
    assert f"{total.people:,} people answered" in text
    assert total.plan.id[:16] in text
    for trace in TRACES:
        assert trace not in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert html.count("<svg") >= len(total.estimate().singles)
    if kind == "shuffled":
        assert "the analyst with all shufflers" in text


def test_every_share_is_there_with_its_interval() -> None:
    total = aggregate("marginals")
    estimate = total.estimate()
    text = parsed(sv.report(total.plan, estimate).html)
    for names in estimate.singles:
        for row in estimate.tables[names].rows():
            assert f"{row['frequency']:z.2%}".replace("-", "−") in text
            low, high = (f"{row[end]:z.2%}".replace("-", "−") for end in ("low", "high"))
            assert f"{low} to {high}" in text


def test_labels_and_titles_are_text_and_nothing_else() -> None:
    odd = ["<script>alert(1)</script>", "</svg></div>", "&amp;", "tea\x1b[2J"]
    schema = sv.Schema(**{"<i>": sv.Categorical(odd), "b": sv.Boolean()})
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=4.0, people=PEOPLE)
    people = {"<i>": odd * (PEOPLE // 4), "b": [True, False] * (PEOPLE // 2)}
    html = sv.report(plan, sv.simulate(plan, people, seed=1), title="<b>Us</b>").html
    assert "<b>Us</b>" in parsed(html)
    assert not re.search(r"<(script|i)>|\x1b", html)


def test_a_page_of_another_survey_or_of_nobody_is_refused() -> None:
    total = aggregate("frequencies")
    other = sv.plan(SCHEMA, sv.Frequencies("age"), epsilon=1.0, people=PEOPLE)
    with pytest.raises(PlanMismatch):
        sv.report(other, total)
    with pytest.raises(InvalidInput, match="no reports yet"):
        sv.report(other, sv.Aggregate(other))
    with pytest.raises(InvalidInput, match="title"):
        sv.report(total.plan, total, title=" ")
    with pytest.raises(InvalidInput, match=r"level \(1\)"):
        sv.report(total.plan, total, level=1)


def test_a_number_that_nobody_was_asked_about_leaves_the_page_whole() -> None:
    schema = sv.Schema(age=sv.Ordinal(0, 99, bins=5), tea=sv.Boolean())
    plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=2.0, people=1000)
    for seed in range(64):
        total = sv.Aggregate(plan).add(sv.simulate(plan, {"age": [7], "tea": [True]}, seed=seed))
        if total.estimate().marginal("age").unasked:
            break
    page = sv.report(plan, total)
    assert "never asked: age" in page.html
    assert "Mean <b>" not in page.html


def test_in_a_notebook_it_stands_in_a_frame(tmp_path: Any) -> None:
    total = aggregate("frequencies")
    page = sv.report(total.plan, total)
    frame = page._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert frame.count("<") == 2
    page.write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == str(page)


def test_without_a_browser_a_pdf_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(pdf.BROWSER_VARIABLE, "/nowhere/chromium")
    with pytest.raises(InvalidInput, match="there is no Chromium at /nowhere/chromium"):
        pdf.find_browser()
    monkeypatch.delenv(pdf.BROWSER_VARIABLE)
    monkeypatch.setattr(pdf, "BROWSERS", ("no-such-browser",))
    with pytest.raises(InvalidInput, match="there is no Chromium on this machine"):
        pdf.find_browser()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if not HAS_CHROMIUM:
        pytest.skip("Chromium is missing: the report was not looked at in a browser")
    with browsing() as browser:
        yield browser


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(chromium: Any, tmp_path: Any, width: int, scheme: str) -> None:
    total = aggregate("marginals")
    path = tmp_path / "report.html"
    sv.report(total.plan, total).write(path)
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with visitor(chromium, **options) as (page, log):
        page.goto(path.as_uri())
        assert page.evaluate(RULES) == []
        assert page.evaluate(CONTRAST) == []
        assert [each.url for each in log.requests] == [path.as_uri()]  # it loads nothing
        page.emulate_media(media="print")
        assert page.locator("details table").first.is_visible()  # on paper all figures are open
