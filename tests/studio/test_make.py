"""The form for a survey, over HTTP: what becomes of it, what it predicts, what it refuses."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

import sottovoce as sv
from sottovoce.device.sealing import PrivateKey
from sottovoce.questions.prediction import points
from tests.studio.collectors import HOPS, Collector

ROWS = {
    "name": ["smoker", "drinks", "age"],
    "kind": ["boolean", "categorical", "ordinal"],
    "values": ["", "never, weekly, daily", ""],
    "low": ["", "", "18"],
    "high": ["", "", "97"],
    "bins": ["", "", "4"],
}
FORM = {
    **ROWS,
    "title": "Habits",
    "learn": "tables",
    "up_to": "2",
    "epsilon": "1.0",
    "people": "10,000",
}


TEXTS = {
    "question": ["Fumez-vous ?", "", ""],
    "missing": ["ne se prononce pas", "", "ne se prononce pas"],
    "introduction": "Deux questions.\n\n<b>Merci</b> !",
    "consent": "Rien d'autre ne sera gardé.",
    "contact": "enquete@example.org",
    "language": "fr",
}


def test_a_form_becomes_the_survey_that_it_describes(
    collector: Collector, browser: httpx.Client
) -> None:
    answer = browser.post("/new", data=FORM)
    assert answer.status_code == 303
    made = collector.service.survey(answer.headers["location"].rsplit("/", 1)[-1])
    schema = sv.Schema(
        smoker=sv.Boolean(),
        drinks=sv.Categorical(["never", "weekly", "daily"]),
        age=sv.Ordinal(18, 97, bins=4),
    )
    assert made.entry.title == "Habits"
    assert made.plan == sv.plan(
        schema,
        sv.Marginals(up_to=2, attributes=["smoker", "drinks", "age"]),
        epsilon="1.0",
        people=10_000,
    )
    again = browser.post("/new", data=FORM)
    assert again.status_code == 409
    # texts are beside the plan: another wording is no other survey
    reworded = browser.post("/new", data={**FORM, **TEXTS, "missing": ["", "", ""]})
    assert reworded.status_code == 409
    assert "Fumez-vous ?" in reworded.text
    assert f"/watch/{made.plan.id}" in again.text


def test_a_column_may_travel_in_clear(collector: Collector, browser: httpx.Client) -> None:
    sent = {"sent": ["", "clear", ""], "missing": ["", "none", ""], "people": "10,002"}
    answer = browser.post("/new", data={**FORM, **sent})
    plan = collector.service.survey(answer.headers["location"].rsplit("/", 1)[-1]).plan
    assert plan.columns == ("drinks",)
    assert plan.schema["drinks"] == sv.Categorical(["never", "weekly", "daily"], sensitive=False)
    assert plan.cohorts.attributes == ("smoker", "age")
    assert 'name="share drinks"' in browser.get(f"/watch/{plan.id}").text


def test_a_participant_reads_the_texts_of_the_survey(
    collector: Collector, browser: httpx.Client
) -> None:
    answer = browser.post("/new", data={**FORM, **TEXTS, "people": "10,001"})
    id = answer.headers["location"].rsplit("/", 1)[-1]
    found = browser.get(f"/take/{id}", headers={"Accept-Language": "de"}).text
    assert '<html lang="fr">' in found
    assert "<p>Deux questions.</p><p>&lt;b&gt;Merci&lt;/b&gt; !</p>" in found
    assert found.index("autre ne sera gardé.") < found.index('id="answers"')
    assert re.search(r"<legend>Fumez-vous \? <[^>]*>facultatif</span></legend>", found)
    assert "<span>ne se prononce pas</span>" in found
    # a number is left out by leaving its field empty
    assert 'data-name="age" data-asked="age" data-missing="17"' in found
    assert '<input type="number" class="short" min="18" max="97"' in found
    assert "<legend>drinks</legend>" in found
    assert "enquete@example.org" in found
    assert '<html lang="de">' in browser.get(f"/take/{id}?lang=de").text
    assert collector.service.survey(id).to_json()["texts"]["questions"] == {
        "smoker": "Fumez-vous ?"
    }


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"people": "many"}, "People must be a whole number"),
        ({"epsilon": "0"}, "psilon"),
        ({"up_to": "4"}, "Attributes together (4) must be 1 to the number of attributes (3)"),
        (
            {
                "name": ["", "", ""],
                "values": [""] * 3,
                "low": [""] * 3,
                "high": [""] * 3,
                "bins": [""] * 3,
            },
            "at least one",
        ),
        ({"name": ["a", "a", "b"]}, "names must be different"),
        ({"values": ["", "only", ""]}, "at least 2"),
        ({"low": ["", "", "old"]}, "lowest must be a whole number"),
        (
            {
                "kind": ["ordinal", "boolean", "ordinal"],
                "low": ["1"] * 3,
                "high": ["2000"] * 3,
                "bins": [""] * 3,
            },
            "Values (4,000,000) must be at most 1,048,576 in a survey that is made over HTTP",
        ),
        ({"kind": ["boolean", "categorical", "song"]}, "must be one of"),
        ({"kind": ["boolean", "categorical", "text"]}, "learn what is popular"),
        ({"learn": "popular"}, "asked of one attribute"),
        ({"learn": "fortunes"}, "must be frequencies, tables or popular"),
        ({"coin": "thrown"}, "must be one of"),
        ({"sent": ["clear"] * 3}, "at least one must be randomised"),
        ({"title": "x" * 201}, "at most 200"),
        ({"language": "la"}, "must be one of en, de"),
        ({"question": ["x" * 501, "", ""]}, "at most 500"),
    ],
)
def test_a_wrong_form_comes_back_with_what_is_wrong(
    browser: httpx.Client, change: dict[str, Any], rule: str
) -> None:
    answer = browser.post("/new", data={**FORM, **change})
    assert answer.status_code == 422
    alert = re.search(r'role="alert">(.*?)</p>', answer.text, re.S)
    assert alert
    assert rule in alert[1].replace("&#39;", "'")
    # nothing typed is lost
    assert 'value="never, weekly, daily"' in answer.text or "values" in change


def test_the_preview_predicts_what_the_plan_says(browser: httpx.Client) -> None:
    found = browser.post("/new/preview", data=FORM).json()
    assert found["wrong"] is None
    shares, pairs = found["errors"]
    assert (shares["kind"], pairs["kind"]) == ("shares", "pairs")
    assert found["error"] == shares["worst_error"]  # what is called the error of a share is one
    for figure in (shares, pairs):
        assert f"{figure['what']} +- {points(figure['error'])} points" in found["words"]
    assert found["reach"] == pytest.approx(1.96 * found["error"])
    (promise,) = found["promises"]
    assert promise["guess"] == pytest.approx(0.731, abs=1e-3)
    assert f"Method: {found['method']} " in found["words"]
    assert found["method"] not in [each["what"] for each in found["others"]]
    wrong = browser.post("/new/preview", data={**FORM, "people": "0"}).json()
    assert "people" in wrong["wrong"]


def test_a_shuffled_survey_says_three_things_at_once(browser: httpx.Client) -> None:
    hops = "\n".join([digits * 32 for digits in ("1b", "2D")])
    shuffled = {**FORM, "trust": "shuffled", "delta": "1e-6", "hops": hops}
    found = browser.post("/new/preview", data=shuffled).json()
    assert found["wrong"] is None
    local = browser.post("/new/preview", data=FORM).json()
    assert found["error"] < local["error"] / 3
    guesses = [promise["guess"] for promise in found["promises"]]
    assert guesses[0] == pytest.approx(0.731, abs=1e-3)
    assert guesses[0] < guesses[1] == guesses[2]  # there are no fakes
    assert "Shuffled by 1" in found["words"]
    for change, rule in (({"delta": "1"}, "delta (1"), ({"hops": "ab"}, "hops")):
        assert rule in browser.post("/new/preview", data={**shuffled, **change}).json()["wrong"]
    page = browser.post("/new", data={**shuffled, "hops": "ab"})
    assert page.status_code == 422
    assert 'value="shuffled" checked' in page.text


@pytest.mark.parametrize(
    ("hops", "rule"),
    [
        ([], "needs the public keys of its shufflers"),
        ([HOPS[0], HOPS[1]], "the last key must be this collector&#39;s"),
    ],
)
def test_a_shuffled_survey_that_would_hear_nobody_is_not_made(
    browser: httpx.Client, hops: list[PrivateKey], rule: str
) -> None:
    keys = " ".join(key.public for key in hops)
    shuffled = {**FORM, "people": "18000", "trust": "shuffled", "delta": "1e-6", "hops": keys}
    found = browser.post("/new/preview", data=shuffled).json()
    assert found["wrong"] is None  # it is planned while the keys are not there yet
    assert rule.replace("&#39;", "'") in found["unheard"]
    page = browser.post("/new", data=shuffled)
    assert page.status_code == 422
    assert rule in page.text
    assert browser.post("/new/preview", data=FORM).json()["unheard"] is None


def test_the_page_of_a_shuffled_survey_says_who_is_trusted(browser: httpx.Client) -> None:
    hops = " ".join(key.public for key in HOPS)
    shuffled = {**FORM, "people": "19000", "trust": "shuffled", "delta": "1e-6", "hops": hops}
    page = browser.post("/new", data=shuffled, follow_redirects=True).text
    promised = page[page.index('id="promises"') :]
    for words in (
        "for the analyst (epsilon 1,",
        "for the analyst with everybody else",
        "for the analyst with all shufflers",
        "people's reports are never opened",
    ):
        assert words in promised
    assert "epsilon 1 shuffled" in page
    assert "Trusted with answers: nobody" not in page
    assert "Nobody can take part with this link yet" in page
    assert "Shuffled reports all come at once" in page
