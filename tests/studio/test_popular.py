"""Popular values on the pages: made, answered, watched with marks, taken away."""

from __future__ import annotations

import io
import json
import re
import shutil
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.device.client import ClientState
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import NotInThisRound
from sottovoce.pages import figures
from sottovoce.protocol.plan import Plan
from sottovoce.results.findings import Findings
from sottovoce.results.spreadsheets import table_csv
from sottovoce.service.tokens import new_token
from sottovoce.studio.kept_estimates import download
from tests.studio.collectors import Collector
from tests.studio.test_words import told
from tests.waiting import HANG, until

WORDS = sv.Schema(word=sv.Text(bytes=4, alphabet="teamilk\x1b["))
GOODS = ["milk", "tea", "bread"]
BASKET = sv.Schema(basket=sv.Items(GOODS))
FORM = {
    "name": "word",
    "kind": "text",
    "values": "",
    "low": "",
    "high": "",
    "bins": "",
    "longest": "4",
    "alphabet": "teamilk",
    "title": "Drinks",
    "learn": "popular",
    "top": "3",
    "up_to": "2",
    "epsilon": "4.0",
    "people": "4000",
}


def hear(collector: Collector, plan: Plan, table: dict[str, Any]) -> None:
    reports = sv.simulate(plan, table, 1)
    ids = np.frombuffer(b"".join(new_id() for _ in range(len(reports))), np.uint8).reshape(-1, 16)
    collector.service.store.append(plan, ids, reports)


@pytest.fixture(scope="module")
def words(collector: Collector) -> Plan:
    """A survey about words, heard."""
    plan = collector.survey(
        sv.HeavyHitters("word", top=4), people=4000, epsilon=4.0, schema=WORDS, title="Words"
    )
    hear(collector, plan, {"word": ["tea"] * 2000 + ["milk"] * 1500 + ["k\x1b[m"] * 500})
    return plan


def test_a_form_asks_what_is_popular(collector: Collector, browser: httpx.Client) -> None:
    found = browser.post("/new/preview", data=FORM).json()
    assert found["wrong"] is None
    assert found["method"] == "windows"
    assert "found with about an even chance" in found["words"]
    assert found["errors"][0]["what"] == "a popular value"
    answer = browser.post("/new", data=FORM)
    assert answer.status_code == 303
    made = collector.service.survey(answer.headers["location"].rsplit("/", 1)[-1]).plan
    schema = sv.Schema(word=sv.Text(bytes=4, alphabet="teamilk", longer="cut"))
    assert made == sv.plan(schema, sv.HeavyHitters("word", top=3), epsilon="4.0", people=4000)
    page = browser.get(f"/take/{made.id}").text
    assert '<input type="text" autocomplete="off"' in page  # what is too long is cut, by the plan


def test_wrong_numbers_come_back(browser: httpx.Client) -> None:
    for change, rule in (({"top": "few"}, "most popular values"), ({"longest": "x"}, "longest")):
        answer = browser.post("/new", data=FORM | change)
        assert answer.status_code == 422
        assert rule in answer.text.lower()
        assert 'value="teamilk"' in answer.text


def test_the_page_shows_values_with_marks(browser: httpx.Client, words: Plan) -> None:
    text = until(lambda: (page := browser.get(f"/watch/{words.id}").text).count("<svg") and page)
    assert re.search(r'class="word">tea \*</th>', text)
    assert "k\\x1b[m *" in text
    assert "\x1b" not in text
    assert "noise alone does not explain it" in text
    assert "nothing to set beside it" in until(
        lambda: (
            (page := browser.get(f"/watch/{words.id}").text).count("nothing to set beside it")
            and page
        )
    )
    table = until(
        lambda: (
            (page := browser.get(f"/watch/{words.id}/table?attribute=word").text).count("<svg")
            and page
        )
    )
    assert "tea *" in table
    for kind in ("csv", "parquet", "png"):
        assert browser.get(f"/watch/{words.id}/table.{kind}?attribute=word").status_code == 200


def test_analysts_get_the_marks_as_json(collector: Collector, words: Plan) -> None:
    token = new_token(collector.service.store, "popular")
    address = f"{collector.url}/v1/surveys/{words.id}/estimates"
    body = httpx.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=HANG).json()
    (table,) = body["tables"]
    assert [row["value"] for row in table["rows"][:3]] == ["tea", "milk", "k\x1b[m"]
    assert all(row["significant"] and row["expected_false"] < 0.05 for row in table["rows"][:3])
    assert (body["notes"], body["steps"], body["has_next"]) == ([], [], False)


def found_sets() -> Findings:
    plan = sv.plan(
        BASKET, sv.TopItems("basket", top=2, method="psfo", length=1), epsilon=4.0, people=1000
    )
    plain = (
        sv.Aggregate(plan).add(sv.simulate(plan, {"basket": [["milk"]] * 1000}, seed=1)).estimate()
    )
    assert isinstance(plain, Findings)
    table = plain.table
    labels = [("milk", "tea"), ("bread",)]
    sets = sv.Table(
        ("basket",),
        labels,
        table.values[:2],
        table.variances[:2],
        1000,
        table.noise,
        is_complete=False,
    )
    question = sv.TopItems("basket", top=2)
    return Findings({("basket",): sets}, 1000, plain.chance[:2], (), ("a note\x1b",), next=question)


def test_every_page_says_its_delta(collector: Collector, browser: httpx.Client) -> None:
    question = sv.TopItems("basket", top=2, method="psfo", length=2, delta="1/5000")
    plan = collector.survey(
        question, people=1000, epsilon=1.0, schema=BASKET, title="Baskets by chance"
    )
    cost = "epsilon 1, delta 0.0002"
    assert cost in browser.get("/").text
    watched = " ".join(browser.get(f"/watch/{plan.id}").text.split())
    assert cost in watched
    assert "delta 0.0002, the chance that a report tells more, is counted in" in watched
    taken = " ".join(browser.get(f"/take/{plan.id}").text.split())
    assert f"E{cost[1:]}: someone who sees your report" in taken
    assert "at most 73.2%, with the chance of 0.0002 that it tells more counted in." in taken
    plain = sv.TopItems("basket", top=2, method="psfo", length=2)
    pure = collector.survey(plain, people=1000, epsilon=1.0, schema=BASKET)
    shown = re.sub(r'data-sentences="[^"]*"', "", browser.get(f"/take/{pure.id}").text)
    assert "delta" not in shown


def test_sets_of_items_are_drawn_and_taken_away() -> None:
    found = found_sets()
    (picture,) = figures.singles(found)
    assert picture.rows[0]["value"].startswith("milk, tea")
    assert "a note\\x1b" in picture.note
    assert "another round follows" in picture.note
    assert table_csv(found.table, 0.95).splitlines()[1].startswith('"milk;tea",')
    sheet = pq.read_table(io.BytesIO(download(found, ["basket"], "parquet")))
    assert sheet["basket"].to_pylist() == ["milk;tea", "bread"]
    assert download(found, ["basket"], "png").startswith(b"\x89PNG")


def test_a_round_of_a_series_is_watched_and_answered(
    collector: Collector, browser: httpx.Client
) -> None:
    plan = collector.survey(
        sv.TopItems("basket", top=2, method="svim"),
        people=2000,
        epsilon=4.0,
        schema=BASKET,
        title="Baskets",
    )
    hear(collector, plan, {"basket": [["milk", "tea"], ["milk"]] * 1000})
    text = until(lambda: (page := browser.get(f"/watch/{plan.id}").text).count("<svg") and page)
    assert "another round follows" in text
    assert "Closes this round, which cannot be undone" in text
    followed = browser.post(f"/watch/{plan.id}/next")
    while followed.status_code == 503:  # somebody else's estimate comes first
        followed = browser.post(f"/watch/{plan.id}/next")
    assert followed.status_code == 303
    after = collector.service.survey(followed.headers["location"].rsplit("/", 1)[-1])
    assert (after.plan.series.number, after.plan.series.parent) == (1, plan.id)
    assert after.entry.title == "Baskets (round 2)"
    assert collector.service.survey(plan.id).entry.closed
    assert (
        browser.post(f"/watch/{plan.id}/next").headers["location"] == followed.headers["location"]
    )
    assert browser.post(f"/watch/{after.plan.id}/next").status_code == 409  # nobody was heard there
    page = browser.get(f"/take/{after.plan.id}").text
    assert page.count('type="checkbox"') == 3
    assert f"asks in {len(plan.series.shares)} rounds" in page


def test_numbers_and_long_lists_have_their_fields(
    collector: Collector, browser: httpx.Client
) -> None:
    numbers = collector.survey(
        sv.HeavyHitters("x", top=2), schema=sv.Schema(x=sv.Integer(bits=100))
    )
    assert 'pattern="[0-9]+"' in browser.get(f"/take/{numbers.id}").text
    many = sv.TopItems("basket", top=2, method="psfo", length=1)
    plan = collector.survey(many, schema=sv.Schema(basket=sv.Items(range(5000))))
    assert "cannot show all values" in browser.get(f"/take/{plan.id}").text


@pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is missing: reports in words were not tried"
)
@pytest.mark.parametrize(
    ("question", "schema", "record", "asked"),
    [
        (sv.HeavyHitters("word", top=2), WORDS, {"word": "tea"}, "a part of word"),
        (
            sv.TopItems("basket", top=2, method="psfo", length=2),
            BASKET,
            {"basket": ["tea"]},
            "drawn by lot",
        ),
        (sv.TopItems("basket", top=2, method="svim"), BASKET, {"basket": ["tea"]}, "basket"),
        (sv.TopItems("basket", top=2), BASKET, {"basket": ["tea"]}, "basket"),
    ],
)
def test_whispers_about_what_is_popular_in_words(
    question: Any, schema: sv.Schema, record: Any, asked: str
) -> None:
    plan = sv.plan(schema, question, epsilon=2.0, people=1000)
    reports = []
    for seed in range(40):
        try:
            reports.append(sv.Client(plan, ClientState(), Seeded(seed)).report(record))
        except NotInThisRound:
            continue
    for each in told(plan, reports):
        assert asked in each["asked"]
        assert "undefined" not in json.dumps(each)
        assert "NaN" not in json.dumps(each)
