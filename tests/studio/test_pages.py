"""The pages, over HTTP: what they show, what they refuse, and how long they take."""

from __future__ import annotations

import csv
import io
import re
import zipfile

import httpx
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.analysis.sums import sum_of
from sottovoce.protocol.plan import Plan
from sottovoce.service import estimate_cache
from sottovoce.service.serialized import kept_in
from sottovoce.studio import background_jobs
from sottovoce.studio.page_context import PAGE_POLICY
from tests.studio.collectors import Collector
from tests.studio.conftest import CHARTS
from tests.waiting import until

LONGEST = 0.3  # seconds that a page may wait for others


def test_the_first_page_lists_surveys_and_the_root_leads_there(
    collector: Collector, browser: httpx.Client
) -> None:
    plan = collector.survey(sv.Frequencies("smoker"), title="<b>Bold & new</b>", epsilon=1.25)
    text = browser.get("/").text
    assert "&lt;b&gt;Bold &amp; new&lt;/b&gt;" in text
    assert f"/studio/watch/{plan.id}" in text
    assert f"/studio/take/{plan.id}" in text
    assert httpx.get(collector.url, follow_redirects=True).url.path == "/studio/"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/new",
        "/login",
        "/take/{id}",
        "/watch/{id}",
        "/watch/{id}/table",
        "/watch/{id}/groups",
        "/nowhere",
    ],
)
def test_every_page_is_well_made(
    collector: Collector, browser: httpx.Client, drawn: Plan, path: str
) -> None:
    answer = browser.get(path.format(id=drawn.id))
    text = answer.text
    own = (
        PAGE_POLICY.replace("form-action 'self'", "form-action 'none'")
        if "take" in path
        else PAGE_POLICY
    )
    assert answer.headers["content-security-policy"] == own
    assert '<html lang="en">' in text
    assert len(re.findall("<h1", text)) == 1
    assert re.search(r"<title>[^<]+ · sottovoce</title>", text)
    assert "<main" in text
    assert 'href="#main"' in text
    assert not re.findall(r"<script(?![^>]*src=)", text)
    assert not re.findall(r"\son\w+=", text)
    assert not re.findall(r"\sstyle=", text)
    assert not re.findall(r'(?:src|href)="(?:https?:)?//(?!127\.0\.0\.1)', text)


def test_before_anybody_was_heard(collector: Collector, browser: httpx.Client) -> None:
    plan = collector.survey(sv.Frequencies("exercise"), epsilon=1.5)
    text = browser.get(f"/watch/{plan.id}").text
    assert "Nobody was heard yet" in text
    assert "Nobody was heard yet" in browser.get(f"/watch/{plan.id}/table?attribute=exercise").text
    refused = browser.get(f"/watch/{plan.id}/table.csv?attribute=exercise")
    assert refused.status_code == 409
    assert browser.get(f"/watch/{plan.id}/report.html").status_code == 409
    assert "Report on one page" not in text


def test_the_report_of_a_survey_is_taken_away(browser: httpx.Client, drawn: Plan) -> None:
    assert f"/watch/{drawn.id}/report.html" in browser.get(f"/watch/{drawn.id}").text
    page = browser.get(f"/watch/{drawn.id}/report.html")
    assert page.status_code == 200
    assert page.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "<h1>Habits in our town</h1>" in page.text
    assert drawn.id[:16] in page.text
    assert page.text.count("<svg") >= 4 + 1


def test_the_page_of_a_survey_shows_all_of_it(
    collector: Collector, browser: httpx.Client, drawn: Plan
) -> None:
    text = browser.get(f"/watch/{drawn.id}").text
    people = collector.service.survey(drawn.id).people
    assert f'<b id="count">{people:,}</b> of 20,000 people expected' in text
    for words in (
        "Dependency tree",
        "Strongest associations",
        "Ask for any table",
        "Trusted with answers: nobody",
    ):
        assert words in text
    assert text.count("<svg") >= CHARTS
    assert text.count('role="img" aria-label="') == text.count("<svg")
    assert re.search(r'class="sure"><th scope="row" class="word"><a [^>]*>smoker, exercise', text)
    assert "98%" in text  # what epsilon 4 means
    assert f"/studio/take/{drawn.id}" in text


def test_only_the_parts_that_changed_are_sent_again(
    collector: Collector, browser: httpx.Client, drawn: Plan
) -> None:
    def parts(have: list[str]) -> list[str]:
        answer = browser.get(f"/watch/{drawn.id}/live", params={"have": have})
        return re.findall(r'data-part="(\w+)" data-version="([^"]+)"', answer.text)

    first = parts([])
    assert [name for name, _ in first] == ["people", "singles", "relations"]
    have = [version for _, version in first]
    assert parts(have) == []
    collector.hear(drawn, 10, seed=2)
    assert [name for name, _ in parts(have)] == ["people"]  # at once; the rest when it is drawn


def test_all_tables_are_taken_away_at_once(browser: httpx.Client, drawn: Plan) -> None:
    answer = browser.get(f"/watch/{drawn.id}/tables.xlsx")
    assert answer.status_code == 200
    assert 'filename="tables.xlsx"' in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as book:
        sheets = book.read("xl/workbook.xml").decode()
    assert sheets.count("<sheet ") == 1 + 4 + 6  # what they are, each attribute, each pair


@pytest.mark.parametrize(
    "names",
    [
        ["age"],
        ["drinks", "smoker"],
        ["smoker", "drinks", "age"],
        ["smoker", "drinks", "age", "exercise"],
    ],
)
def test_any_table_can_be_asked_for(
    collector: Collector, browser: httpx.Client, drawn: Plan, names: list[str]
) -> None:
    path, asked = f"/watch/{drawn.id}/table", {"attribute": names}
    text = until(lambda: (page := browser.get(path, params=asked).text).count("<svg") and page)
    file = collector.service.last(collector.service.survey(drawn.id)).file
    assert file is not None
    table = kept_in(file).estimate.marginal(*names)
    assert text.count("<tr>") == 1 + len(table.values)
    sheet = browser.get(f"{path}.csv", params=asked)
    assert sheet.headers["content-disposition"] == f'attachment; filename="{"-".join(names)}.csv"'
    assert next(csv.reader(sheet.text.splitlines())) == [
        *names,
        "frequency",
        "std_error",
        "low",
        "high",
    ]
    columns = pq.read_table(io.BytesIO(browser.get(f"{path}.parquet", params=asked).content))
    assert columns.column_names == [*names, "frequency", "std_error", "low", "high"]
    assert columns.num_rows == len(table.values)
    assert len(sheet.text.splitlines()) == 1 + len(table.values)
    assert browser.get(f"{path}.png", params=asked).content.startswith(b"\x89PNG")


def test_tables_that_cannot_be_are_refused_in_words(
    collector: Collector, browser: httpx.Client, drawn: Plan
) -> None:
    for asked, rule in (
        ([], "hoose at least one"),
        (["height"], "height"),
        (["age", "age"], "different"),
    ):
        path, params = f"/watch/{drawn.id}/table", {"attribute": asked}
        answer = until(
            lambda path=path, params=params: (
                (page := browser.get(path, params=params)).is_error and page
            )
        )
        assert answer.status_code == 422
        assert rule in re.findall(r'role="alert">(.*?)</p>', answer.text, re.S)[0]
    assert browser.get(f"/watch/{drawn.id}/table.exe?attribute=age").status_code == 422


@pytest.mark.parametrize(
    ("summed", "names", "count"),
    [("age:18..57", ["age"], 2), ("drinks:never,daily;smoker:true", ["drinks", "smoker"], 2)],
)
def test_any_sum_of_values_can_be_asked_for(
    collector: Collector,
    browser: httpx.Client,
    drawn: Plan,
    summed: str,
    names: list[str],
    count: int,
) -> None:
    assert 'name="sum"' in browser.get(f"/watch/{drawn.id}").text
    path, asked = f"/watch/{drawn.id}/table", {"sum": summed}
    text = until(lambda: (page := browser.get(path, params=asked).text).count("<svg") and page)
    file = collector.service.last(collector.service.survey(drawn.id)).file
    assert file is not None
    table = kept_in(file).estimate.marginal(*names)
    total = sum_of(drawn.schema, table, summed).total
    (shown,) = re.findall(r'id="total"><b>(.*?)</b>', text)
    low, high = total.interval(0.95)
    assert shown == (
        f"{summed} ({count} values): {float(total):.2%}, std. error {total.std_error:.2%}, "
        f"95% interval {low:.2%} to {high:.2%}"
    )
    assert text.count("<tr>") == 1 + len(table.values)
    assert f'value="{summed}"' in text


@pytest.mark.parametrize(
    ("summed", "rule"),
    [
        ("age", "must be"),
        ("height:1", "height"),
        ("age:18..30", "none ends with 30"),
        ("age:1;age:2", "named twice"),
        ("age:" + "18,<b>" * 200, "at most 1,000 characters"),
        ("drinks:<b>", "drinks"),
    ],
)
def test_sums_that_cannot_be_are_refused_in_words(
    browser: httpx.Client, drawn: Plan, summed: str, rule: str
) -> None:
    path, asked = f"/watch/{drawn.id}/table", {"sum": summed}
    answer = until(lambda: (page := browser.get(path, params=asked)).is_error and page)
    assert answer.status_code == 422
    assert rule in re.findall(r'role="alert">(.*?)</p>', answer.text, re.S)[0]
    assert "<b>" not in answer.text


def test_attributes_by_themselves_have_no_ties(collector: Collector, browser: httpx.Client) -> None:
    plan = collector.survey(sv.Frequencies("smoker", "age"), people=2000, epsilon=3.0)
    collector.hear(plan, 2000)
    text = until(
        lambda: (page := browser.get(f"/watch/{plan.id}").text).count("<svg") == 2 and page
    )
    assert "cannot say how they go together" in until(
        lambda: (page := browser.get(f"/watch/{plan.id}").text).count("cannot say") and page
    )
    assert 'type="radio" name="attribute"' in text


def test_a_closed_survey_says_so(collector: Collector, browser: httpx.Client) -> None:
    plan = collector.survey(sv.Frequencies("drinks"), epsilon=1.75, title="Short")
    assert "Randomise and send my answer" in browser.get(f"/take/{plan.id}").text
    assert browser.post(f"/watch/{plan.id}/close").status_code == 303
    text = browser.get(f"/take/{plan.id}").text
    assert "This survey is closed" in text
    assert "<form id" not in text
    assert "take.js" not in text
    assert "Close the survey" not in browser.get(f"/watch/{plan.id}").text


def test_every_kind_of_attribute_can_be_answered(
    collector: Collector, browser: httpx.Client
) -> None:
    schema = sv.Schema(
        **{
            "yes?": sv.Boolean(),
            "few": sv.Categorical(["<i>a</i>", "b"]),
            "many": sv.Categorical([f"value {place}" for place in range(20)]),
            "scale": sv.Ordinal(1, 5),
            "year": sv.Ordinal(1900, 2020, bins=12),
            "number": sv.Categorical(range(10, 100_010, 10)),
            "public": sv.Boolean(sensitive=False),
        }
    )
    asked = ["yes?", "few", "many", "scale", "year", "number"]
    plan = collector.survey(sv.Frequencies(*asked), schema=schema)
    text = browser.get(f"/take/{plan.id}").text
    assert re.findall(r'data-name="([^"]+)"', text) == asked
    assert "&lt;i&gt;a&lt;/i&gt;" in text
    assert text.count("<option") == 21
    assert len(re.findall('type="radio"', text)) == 2 + 2 + 5
    assert 'min="1900" max="2020" step="1"' in text
    assert 'min="10" max="100000" step="10"' in text
    word = collector.survey(
        sv.Frequencies("word", oracle="cms"), schema=sv.Schema(word=sv.Text(bytes=20))
    )
    assert 'type="text" maxlength="20"' in browser.get(f"/take/{word.id}").text


def test_unknown_surveys_and_pages_are_refused_as_pages(browser: httpx.Client, drawn: Plan) -> None:
    for path in (
        "/watch/" + "0" * 64,
        "/take/" + "0" * 64,
        "/take/xyz",
        f"/take/{drawn.id[:32]}",
        "/nowhere",
        "/static/nothing.js",
        "/client/../app.py",
    ):
        answer = browser.get(path)
        assert answer.status_code == 404
        assert "<h1>" in answer.text
    assert browser.post("/take/" + "0" * 64).status_code == 405


def test_no_page_waits_long_for_estimates_or_drawings(
    collector: Collector, browser: httpx.Client, drawn: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what a page is ready to wait for others; how long it takes by itself is measured by ``make
    bench``.
    """
    waits: list[float] = []

    def waiting(_: object, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(background_jobs, "wait_for", waiting)
    monkeypatch.setattr(estimate_cache, "wait_for", waiting)
    collector.hear(drawn, 20_000, seed=3)  # there is something new to estimate and to draw
    paths = ["/", "/new", f"/take/{drawn.id}", f"/watch/{drawn.id}", f"/watch/{drawn.id}/live"]
    paths += [f"/watch/{drawn.id}/table?attribute=age&attribute=exercise"]
    waited = {}
    for path in paths:
        waits.clear()
        assert browser.get(path).status_code == 200
        waited[path] = sum(waits)
    assert max(waited.values()) <= LONGEST, waited
