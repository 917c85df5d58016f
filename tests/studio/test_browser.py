"""The studio in Chromium: a survey is made, answered and watched; only the whisper leaves."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Tape
from sottovoce.protocol.plan import Plan
from tests.browser.machines import HAS_CHROMIUM, browsing
from tests.studio.browsers import CONTRAST, RULES, Request, visitor
from tests.studio.collectors import SCHEMA, Collector, collecting
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    not HAS_CHROMIUM, reason="Chromium is missing: the studio was not tried in a browser"
)

ONE = {"smoker": True, "drinks": "daily", "age": 25, "exercise": False}
OTHER = {"smoker": False, "drinks": "never", "age": 80, "exercise": True}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("second")) as made:
        yield made


def tape(plan: Plan, number: int) -> bytes:
    """Coins, the same for the browser and for Python; of each survey others, since an id is made of
    them too.
    """
    return b"".join(
        hashlib.sha256(f"{plan.id} {number} {block}".encode()).digest() for block in range(16)
    )


def answer(page: Any, record: dict[str, Any], schema: sv.Schema = SCHEMA) -> None:
    """Answer all questions that the page asks."""
    for question in page.locator(".question").all():
        name = question.get_attribute("data-name")
        value = record[name]
        if isinstance(schema[name], sv.Ordinal):
            question.locator("input").fill(str(value))
        else:
            words = (
                {True: "Yes", False: "No"}.get(value, value) if isinstance(value, bool) else value
            )
            question.get_by_label(words, exact=True).check()


def draw(page: Any, record: dict[str, Any]) -> dict[str, Any]:
    """Answer, draw and send; the message as it is shown then."""
    answer(page, record)
    press_draw(page)
    page.locator("#whisper").wait_for()
    return shown(page)


def press_draw(page: Any) -> None:
    page.get_by_role("button", name="Randomise and send my answer").click()


def shown(page: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(page.locator("#body").text_content())
    return body


def open_take(page: Any, collector: Collector, plan: Plan) -> None:
    page.goto(f"{collector.studio}/take/{plan.id}")
    page.locator("#draw:enabled").wait_for()


def test_a_survey_is_made_answered_and_watched(chromium: Any, collector: Collector) -> None:
    with visitor(chromium) as (page, _):
        page.goto(f"{collector.studio}/new")
        page.get_by_label("Title").fill("Smoking")
        page.get_by_label("Name, in a word or two").fill("smoker")
        page.get_by_label("The question that people read").fill("Fumez-vous ?")
        page.get_by_label("What they agree to").fill("Nous ne gardons rien d'autre.")
        page.get_by_label("Language of their page").select_option(label="Français")
        page.get_by_role("button", name="Add an attribute").click()
        row = page.get_by_role("group", name="Attribute 2")
        row.get_by_label("Name, in a word or two").fill("drinks")
        row.get_by_label("Kind").select_option(label="one of a list")
        row.get_by_label("Values").fill("never, weekly, daily")
        page.get_by_role("button", name="Add an attribute").click()
        row = page.get_by_role("group", name="Attribute 3")
        row.get_by_label("Name, in a word or two").fill("age")
        row.get_by_label("Kind").select_option(label="a whole number")
        for label, number in (("Lowest", "18"), ("Highest", "97"), ("Groups", "4")):
            row.get_by_label(label).fill(number)
        page.get_by_label("Epsilon").fill("2")
        assert page.locator("#guess").text_content() == "88.1%"
        page.locator("#prediction").wait_for()
        until(lambda: "2-LDP per report" in page.locator("#words").text_content())
        assert re.fullmatch(r"± \d+\.\d+ points", page.locator("#reach").text_content())
        page.get_by_role("button", name="Make this survey").click()
        page.locator("#count").wait_for()
        assert page.locator("#count").text_content() == "0"
        link = page.locator(".link a").get_attribute("href")
        plan = collector.service.survey(page.url.rsplit("/", 1)[-1]).plan
        assert list(plan.schema) == ["smoker", "drinks", "age"]
        none = "ne se prononce pas"  # offered unless somebody wants otherwise
        assert list(plan.schema["smoker"].labels()) == [True, False, none]
        assert plan.schema["drinks"].other == none
        assert plan.schema["age"].other == 17
        with visitor(chromium) as (person, _):
            person.goto(link)
            assert person.evaluate("document.documentElement.lang") == "fr"
            assert person.get_by_text("Nous ne gardons rien d'autre.").is_visible()
            assert not person.locator("#answers").is_visible()
            person.get_by_role("button", name="Je suis d'accord").click()
            assert person.evaluate("document.activeElement.id") == "answers-title"
            person.get_by_role("group", name="Fumez-vous ?").get_by_label("Oui").check()
            person.locator("#draw").click()  # with questions left out
            assert "laissé de côté : drinks, age." in person.locator("#unanswered").text_content()
            assert not person.locator("#whisper").is_visible()
            person.locator("#draw").click()
            person.locator("#thanks").wait_for()
            assert person.locator("#questions").text_content() in ("", "smoker: Fumez-vous ?")
            assert person.evaluate("document.activeElement.id") == "thanks-title"
            assert len(person.locator("#sent-id").text_content()) == 32
        page.locator("#count", has_text="1").wait_for()


def test_a_printed_link_logs_in_this_browser_alone(chromium: Any, tmp_path: Path) -> None:
    with collecting(tmp_path, logged_in=False) as locked, visitor(chromium) as (page, _):
        link = f"{locked.studio}/login?code={locked.access.new_code()}"
        page.goto(link)
        assert page.url == f"{locked.studio}/"
        assert page.evaluate("document.cookie") == ""  # no script can read it
        plan = locked.survey(sv.Frequencies("smoker"))
        page.goto(f"{locked.studio}/watch/{plan.id}")
        page.get_by_text("Close the survey").click()
        page.get_by_role("button", name="Close it now").click()
        page.get_by_text("closed", exact=True).first.wait_for()
        assert locked.service.survey(plan.id).entry.closed
        with visitor(chromium) as (other, log):
            other.goto(link)
            assert "was used before" in other.get_by_role("alert").text_content()
            (refused,) = log.wrong
            assert "401" in refused
            log.wrong.clear()
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", name="Log in").wait_for()
        page.goto(f"{locked.studio}/")
        assert page.url.startswith(f"{locked.studio}/login")


class Visit(NamedTuple):
    """What was seen of a person who answered and sent."""

    traffic: list[Request]
    kept: dict[str, Any]
    message: dict[str, Any]


def visit(
    chromium: Any, collector: Collector, plan: Plan, number: int, record: dict[str, Any]
) -> Visit:
    """A person who answers and sends, with coins from a tape."""
    with visitor(chromium, tape(plan, number)) as (page, log):
        open_take(page, collector, plan)
        before = len(log.requests)
        answer(page, record)
        assert len(log.requests) == before  # answering sends nothing
        message = draw(page, record)
        assert len(log.requests) == before + 1
        assert page.url == f"{collector.studio}/take/{plan.id}"
        page.locator("#thanks").wait_for()
        kept = page.evaluate(
            "({local: {...localStorage}, session: {...sessionStorage}, cookies: document.cookie})"
        )
        assert page.evaluate("indexedDB.databases()") == []
        return Visit(log.traffic(collector.url.removeprefix("http://")), kept, message)


QUESTIONS = {
    "one attribute": sv.Frequencies("smoker"),
    "four attributes": sv.Frequencies("smoker", "drinks", "age", "exercise"),
    "tables": sv.Marginals(up_to=2, method="inp-ht"),
}


@pytest.mark.parametrize(
    ("question", "is_told"),
    [
        ("one attribute", True),
        ("one attribute", False),
        ("four attributes", True),
        ("tables", True),
    ],
)
def test_nothing_leaves_but_what_the_oracle_says(
    chromium: Any, collector: Collector, second: Collector, question: str, is_told: bool
) -> None:
    """Two people with opposite answers and the same coins: their traffic differs in the payload, as
    in Python.

    With the same coins they have the same id, so each has a collector of her own.
    """
    plan = collector.survey(QUESTIONS[question], epsilon=1.0, people=500 + is_told)
    second.service.create(plan)

    def reports(number: int) -> list[sv.Report]:
        return [
            sv.Client(plan, entropy=Tape(tape(plan, number))).report(record)
            for record in (ONE, OTHER)
        ]

    number = next(each for each in range(100) if (reports(each)[0] != reports(each)[1]) == is_told)
    one, other = (
        visit(chromium, collector, plan, number, ONE),
        visit(chromium, second, plan, number, OTHER),
    )
    bodies = []
    for seen, report in zip((one, other), reports(number), strict=True):
        (posted,) = (each for each in seen.traffic if each.method == "POST")
        assert posted.url == "http://HOST/v1/reports"
        body = json.loads(posted.body)
        assert {**body, "id": None} == {"id": None, **json.loads(report.to_json())}
        assert body == seen.message  # what was shown is what was sent
        assert all(
            each.url.startswith("http://HOST/") and not each.body
            for each in seen.traffic
            if each != posted
        )
        assert seen.kept["local"].pop(f"sottovoce/sent/{plan.id}") == body["id"]
        assert json.loads(seen.kept["local"].pop(f"sottovoce/{plan.id}")) == body
        account = json.loads(seen.kept["local"].pop("sottovoce/account"))
        assert account == {
            name: {"epsilon": 1_000_000_000, "delta": 0} for name in plan.cohorts.attributes
        }
        assert seen.kept == {"local": {}, "session": {}, "cookies": ""}
        bodies.append(body)
    assert (bodies[0].pop("payload") != bodies[1].pop("payload")) == is_told
    assert bodies[0] == bodies[1]
    without = [[each._replace(body="") for each in seen.traffic] for seen in (one, other)]
    assert without[0] == without[1]  # addresses, headers and their number: all the same


def test_the_whisper_cannot_be_drawn_again(chromium: Any, collector: Collector) -> None:
    plan = collector.survey(sv.Frequencies("smoker", "drinks"), epsilon=0.5, people=321)
    with visitor(chromium) as (page, _):
        open_take(page, collector, plan)
        first = draw(page, ONE)
        assert draw(page, OTHER) == first
        assert "stays as it is" in page.locator("#kept").text_content()
        for _ in range(2):
            page.reload()
            page.locator("#whisper").wait_for()
            assert shown(page) == first
            assert "drew before" in page.locator("#kept").text_content()
            assert page.locator("input:checked").count() == 0  # the answers are gone
            assert page.locator("#sent-id").text_content() == first["id"]
            assert page.locator("#unsent").is_hidden()
        assert draw(page, OTHER) == first
    assert collector.service.survey(plan.id).people == 1


def test_a_whisper_is_not_seen_before_it_is_sent(chromium: Any, collector: Collector) -> None:
    """Who could see it first, and keep it back, would tell by her silence. What did not arrive is
    sent again unseen.
    """
    plan = collector.survey(sv.Frequencies("smoker"), people=322)
    with visitor(chromium) as (page, _):
        open_take(page, collector, plan)
        holds = True

        def under_way(route: Any) -> None:
            """The first message is under way for ever; a route that is taken away would let it go
            on.
            """
            if not holds:
                route.continue_()

        page.route("**/v1/reports", under_way)
        answer(page, ONE)
        with page.expect_request("**/v1/reports") as posted:
            press_draw(page)
        message = json.loads(posted.value.post_data)
        assert page.locator("#whisper").is_hidden()
        assert page.locator("#body").text_content() == ""
        page.reload()
        page.locator("#unsent").wait_for()
        holds = False
        assert page.locator("#whisper").is_hidden()
        assert page.locator("#body").text_content() == ""
        page.get_by_role("button", name="Send it again").click()
        page.locator("#thanks").wait_for()
        assert shown(page) == message
        assert page.locator("#unsent").is_hidden()
    assert collector.service.survey(plan.id).people == 1


def test_a_limit_that_is_reached_is_said(chromium: Any, collector: Collector) -> None:
    """What other surveys asked about the same attribute counts; one that would pass the limit is
    not answered.
    """
    plan = collector.survey(sv.Frequencies("smoker", "drinks"), epsilon=1.0, people=387)
    with visitor(chromium) as (page, log):
        open_take(page, collector, plan)
        spent = json.dumps({"drinks": {"epsilon": 9_000_000_001, "delta": 0}})
        page.evaluate("(spent) => localStorage.setItem('sottovoce/account', spent)", spent)
        answer(page, ONE)
        press_draw(page)
        page.locator("#problem").wait_for()
        assert (
            page.locator("#problem")
            .text_content()
            .startswith("Your browser has already told as much about this")
        )
        assert page.locator("#whisper").is_hidden()
        assert page.evaluate("localStorage.getItem('sottovoce/account')") == spent
        assert not [each for each in log.requests if each.method == "POST"]
        page.evaluate("localStorage.removeItem('sottovoce/account')")
        draw(page, ONE)
    assert collector.service.survey(plan.id).people == 1


def test_assigned_coins_are_fetched_and_hold(chromium: Any, collector: Collector) -> None:
    plan = collector.survey(sv.Frequencies("smoker", "drinks", "age"), people=432, coin="assigned")
    with visitor(chromium) as (page, log):
        open_take(page, collector, plan)
        message = draw(page, ONE)
        assert [each.url for each in log.requests if each.url.endswith("/assignment")]
        assert set(message) == {
            "id",
            "sottovoce",
            "plan",
            "cohort",
            "payload",
            "expires",
            "signature",
        }
    assert collector.service.survey(plan.id).people == 1


def test_what_is_unanswered_and_what_went_wrong_is_said(
    chromium: Any, collector: Collector
) -> None:
    plan = collector.survey(sv.Frequencies("smoker", "age"), people=543)
    with visitor(chromium) as (page, log):
        open_take(page, collector, plan)
        page.get_by_label("age").fill("12")
        press_draw(page)
        assert page.locator("#unanswered").text_content() == "Please answer: smoker, age."
        assert page.locator("#whisper").is_hidden()
        answer(page, ONE)
        collector.service.close(plan.id)
        press_draw(page)
        page.locator("#problem").wait_for()
        said = "This survey was closed meanwhile. It was sent, but not counted."
        assert page.locator("#problem").text_content() == said
        assert page.locator("#whisper").is_hidden()
        assert page.locator("#unsent").is_hidden()  # to send it again would change nothing
        page.reload()
        page.locator("#closed").wait_for()
        # the refusal, which Chromium notes
        log.wrong[:] = [wrong for wrong in log.wrong if "410" not in wrong]
    assert collector.service.survey(plan.id).people == 0


def test_all_of_it_works_by_keyboard(chromium: Any, collector: Collector) -> None:
    plan = collector.survey(sv.Frequencies("smoker", "drinks"), people=654)
    with visitor(chromium) as (page, _):
        open_take(page, collector, plan)
        press = page.keyboard.press
        press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        press("Enter")
        press("Tab")
        press("Space")
        press("Tab")
        press("ArrowDown")  # the second of the list
        assert (
            page.evaluate("getComputedStyle(document.activeElement.closest('label')).outlineStyle")
            == "solid"
        )
        press("Tab")
        press("Enter")
        page.locator("#thanks").wait_for()
        until(lambda: page.evaluate("document.activeElement.id") == "thanks-title")
        page.goto(f"{collector.studio}/new")
        page.get_by_label("Name, in a word or two").focus()
        page.keyboard.type("pet")
        while page.evaluate("document.activeElement.id") != "add":
            press("Tab")
        press("Enter")
        assert page.evaluate("document.activeElement.name") == "name"
        page.keyboard.type("size")
        press("Tab")
        page.keyboard.type("a whole")
        assert page.get_by_role("group", name="Attribute 2").get_by_label("Lowest").is_visible()
        press("Tab")
        press("Enter")  # remove it again
        assert page.locator("fieldset.attribute").count() == 1
        assert page.evaluate("document.activeElement.value") == "pet"


@pytest.mark.usefixtures("drawn")  # whatever draws is awake
def test_the_page_of_a_survey_keeps_itself_fresh(chromium: Any, collector: Collector) -> None:
    plan = collector.survey(sv.Frequencies("smoker", "exercise"), people=2000, epsilon=3.0)
    collector.hear(plan, 500)
    with visitor(chromium) as (page, _):
        page.goto(f"{collector.studio}/watch/{plan.id}")
        page.locator(".chart.bars svg").first.wait_for()
        page.locator("#single-1 summary").click()
        before = page.locator("#single-1 tbody").text_content()
        collector.hear(plan, 700, seed=2)
        page.locator("#count", has_text="1,200").wait_for()
        until(lambda: page.locator("#single-1 tbody").text_content() != before)
        assert page.locator("#single-1").get_attribute("open") == ""  # what was open stays open
        assert page.evaluate("document.activeElement.id") == "single-1-title"
        page.get_by_label("exercise", exact=True).check()
        page.get_by_role("button", name="Show the table").click()
        page.locator("#table svg").wait_for()
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        assert download.value.suggested_filename == "exercise.csv"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read_by_everybody(
    chromium: Any, collector: Collector, drawn: Plan, scheme: str, tmp_path: Any
) -> None:
    texts = sv.Texts(
        "Habits", "For the town.", "I take part of my own will.", "a@example.org", "en"
    )
    asked = collector.survey(sv.Frequencies(*SCHEMA), people=323, texts=texts)
    paths = [
        "/",
        "/new",
        "/login",
        f"/take/{asked.id}",
        f"/watch/{drawn.id}",
        f"/watch/{drawn.id}/table?attribute=age",
        f"/watch/{drawn.id}/groups?attribute=age&group=smoker:yes&group=smoker:no",
    ]
    with visitor(chromium, color_scheme=scheme) as (page, log):
        for path in paths:
            page.goto(collector.studio + path)
            if path.startswith("/take"):
                assert page.evaluate(RULES) == page.evaluate(CONTRAST) == [], "consent"
                page.locator("#agree:enabled").press("Enter")
                page.locator("#draw:enabled").wait_for()
                draw(page, ONE)
            if "/table" in path:
                page.locator("#table svg").wait_for()
            if "/groups" in path:
                page.locator("#table td").first.wait_for()
            assert page.evaluate(RULES) == [], path
            assert page.evaluate(CONTRAST) == [], path
            assert page.screenshot(full_page=True).startswith(b"\x89PNG")
        # works without a network
        assert all(each.url.startswith(collector.url) for each in log.requests)
        page.set_viewport_size({"width": 380, "height": 700})
        for path in paths:
            page.goto(collector.studio + path)
            assert page.evaluate(RULES) == [], f"{path} on a telephone"


def test_light_and_dark_can_be_chosen(chromium: Any, collector: Collector) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with visitor(chromium, color_scheme="dark") as (page, _):
        page.goto(f"{collector.studio}/")
        dark = page.evaluate(ground)
        page.get_by_role("button", name="Light colours").click()
        light = page.evaluate(ground)
        assert light != dark
        page.goto(f"{collector.studio}/new")
        assert page.evaluate(ground) == light
        page.get_by_role("button", name="Dark colours").click()
        assert page.evaluate(ground) == dark
