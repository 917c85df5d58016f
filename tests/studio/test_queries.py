"""The page on which SQL is asked: the table, the chart, the explanation, and refusals as text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.questions.queries.sql.examples import example_query
from sottovoce.service.tokens import new_token
from sottovoce.studio.access import COOKIE
from sottovoce.studio.page_context import PAGE_POLICY
from sottovoce.studio.query_page import query_columns
from sottovoce.studio.take_page import fields_of
from tests.sql import plans
from tests.studio.collectors import Collector, collecting
from tests.waiting import HANG

EPSILON = 2.0
PLAN = plans.plan("hdg", EPSILON)


@pytest.fixture(scope="module")
def browser(collector: Collector) -> Iterator[httpx.Client]:
    collector.service.create(PLAN, sv.Texts("The <b>shop</b>"))
    fresh = b"".join(new_id() for _ in range(plans.PEOPLE))
    ids = np.frombuffer(fresh, np.uint8).reshape(-1, 16)
    collector.service.store.append(PLAN, ids, plans.reports("hdg", EPSILON))
    with httpx.Client(
        base_url=collector.studio, headers={"Origin": collector.url}, timeout=HANG
    ) as client:
        yield client


def ask(browser: httpx.Client, sql: str) -> httpx.Response:
    return browser.post(f"/watch/{PLAN.id}/query", data={"sql": sql})


def test_the_page_begins_with_an_example_that_can_be_answered(browser: httpx.Client) -> None:
    answer = browser.get(f"/watch/{PLAN.id}/query")
    text = answer.text
    assert answer.headers["content-security-policy"] == PAGE_POLICY
    box = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.S)
    assert box
    example = html.unescape(box[1])
    assert example == example_query(PLAN)
    assert "The &lt;b&gt;shop&lt;/b&gt;" in text
    assert '<code>age</code> <span class="soft">whispered</span>: 18 to 81' in text
    assert '<code>amount</code> <span class="soft">in clear</span>: 0.00 to 500.00' in text
    found = ask(browser, example)
    assert found.status_code == 200
    for pattern in (r"<script(?![^>]*src=)", r"\son\w+=", r"\sstyle="):
        assert not re.findall(pattern, found.text)
    assert len(re.findall("<h1", found.text)) == 1


def test_the_survey_page_has_the_box_and_other_surveys_have_none(
    collector: Collector, browser: httpx.Client
) -> None:
    text = browser.get(f"/watch/{PLAN.id}").text
    assert f'action="/studio/watch/{PLAN.id}/query"' in text
    assert "<textarea" in text
    other = collector.survey(sv.Frequencies("drinks"), epsilon=1.75)
    assert "<textarea" not in browser.get(f"/watch/{other.id}").text
    for refused in (
        browser.get(f"/watch/{other.id}/query"),
        browser.post(f"/watch/{other.id}/query", data={"sql": "SELECT 1"}),
    ):
        assert refused.status_code == 422
        assert "whose question is queries" in refused.text


def test_an_answer_is_a_table_a_chart_and_an_explanation(browser: httpx.Client) -> None:
    sql = (
        'SELECT channel AS "<i>way</i>", SUM(amount) FROM people '
        "WHERE age > 90 OR age < 30 GROUP BY channel"
    )
    text = ask(browser, sql).text
    answer = sv.query(PLAN, plans.reports("hdg", EPSILON), sql)
    heads, rows = answer.as_text()
    table = re.search(r'<table id="rows">(.*?)</table>', text, re.S)
    assert table
    cells = [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", table[1])]
    assert cells == [*heads, *(cell for row in rows for cell in row)]
    assert "<i>" not in text  # neither in the table nor in the chart
    assert text.count("<svg") == 1
    assert 'role="img"' in text
    assert html.escape(answer.explain(), quote=False) in text.replace("&#39;", "'").replace(
        "&#34;", '"'
    )
    for note in answer.notes:
        assert html.escape(note) in text.replace("&#39;", "&#x27;")
    assert f"Of {plans.PEOPLE:,} people" in text
    box = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.S)
    assert box
    assert html.unescape(box[1]) == sql  # what was asked stays to be changed


def test_a_refusal_underlines_the_clause_and_nothing_typed_is_lost(browser: httpx.Client) -> None:
    sql = "SELECT COUNT(*)\r\nFROM people\r\nWHERE agee > '<script>'"
    found = ask(browser, sql)
    assert found.status_code == 422
    shown = re.search(r'<pre class="alert clause"[^>]*>(.*?)</pre>', found.text, re.S)
    assert shown
    assert "<script>" not in found.text
    lines = html.unescape(shown[1]).split("\n")
    line = next(place for place, text in enumerate(lines) if "WHERE agee" in text)
    assert lines[line + 1].index("^^^^") == lines[line].index("agee")
    assert "WHERE agee &gt; &#39;&lt;script&gt;&#39;</textarea>" in found.text
    long = ask(browser, "SELECT COUNT(*) FROM people WHERE age > 30" + " AND age > 30" * 400)
    assert long.status_code == 422
    assert "must have at most 4,096 bytes" in long.text
    assert ask(browser, "").status_code == 422


def test_no_rows_are_no_mistake(browser: httpx.Client) -> None:
    found = ask(browser, "SELECT state, COUNT(*) FROM people GROUP BY state HAVING COUNT(*) < -1e9")
    assert found.status_code == 200
    assert "No rows." in found.text
    assert "<svg" not in found.text


def test_before_anybody_was_heard_the_page_says_so(
    collector: Collector, browser: httpx.Client
) -> None:
    empty = collector.survey(
        sv.Queries(["age"], method="tree"), schema=sv.Schema(age=sv.Ordinal(18, 81))
    )
    found = browser.post(f"/watch/{empty.id}/query", data={"sql": "SELECT COUNT(*) FROM people"})
    assert found.status_code == 409
    assert "nobody was heard yet" in found.text


def test_forms_of_other_sites_and_strangers_are_refused(collector: Collector) -> None:
    path = f"{collector.studio}/watch/{PLAN.id}/query"
    foreign = httpx.post(path, data={"sql": "x"}, headers={"Origin": "http://elsewhere.example"})
    assert foreign.status_code == 403


def test_a_token_to_read_may_ask(tmp_path: Path) -> None:
    with collecting(tmp_path, logged_in=False) as closed:
        plan = closed.survey(
            sv.Queries(["age"], method="tree"), schema=sv.Schema(age=sv.Ordinal(18, 81))
        )
        reader = new_token(closed.service.store, "reader", "read")
        page = f"{closed.studio}/watch/{plan.id}"
        own = {"Origin": closed.url}
        cookie = {f"{COOKIE}_{httpx.URL(closed.url).port}": reader}
        asked = {"sql": "SELECT COUNT(*) FROM people"}
        with httpx.Client(headers=own, timeout=HANG) as stranger:
            assert stranger.post(f"{page}/query", data=asked).status_code == 401
        with httpx.Client(headers=own, cookies=cookie, timeout=HANG) as browser:
            assert browser.get(f"{page}/query").status_code == 200
            assert browser.post(f"{page}/query", data=asked).status_code == 409  # nobody was heard
            assert browser.post(f"{page}/close").status_code == 403


def test_columns_are_told_in_a_few_words() -> None:
    schema = sv.Schema(
        many=sv.Categorical([f"v{number}" for number in range(20)]),
        note=sv.Text(bytes=4, sensitive=False),
    )
    question = sv.Queries(["many"], method="tree")
    plan = sv.plan(schema, question, epsilon=4.0, people=1000, public=["note"])
    many, note = query_columns(plan)
    assert many.values == ", ".join(f"v{number}" for number in range(12)) + " and 8 more"
    assert (note.values, note.in_clear) == ("text", True)


def test_participants_see_what_goes_in_clear_apart_from_the_whisper(browser: httpx.Client) -> None:
    assert {field.name: field.in_clear for field in fields_of(PLAN)} == {
        "age": False,
        "state": False,
        "amount": True,
        "channel": True,
    }
    text = browser.get(f"/take/{PLAN.id}").text
    assert "Sent as they are, beside the randomised answer: amount, channel." in text
    assert text.count(">sent as it is<") == 2
