"""The participant's page in the language of the survey or of the browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import httpx
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.studio.languages import LANGUAGES, chosen_language, words
from tests.browser.machines import HAS_CHROMIUM, browsing
from tests.studio.browsers import CONTRAST, RULES, visitor
from tests.studio.collectors import Collector, collecting

in_chromium = pytest.mark.skipif(
    not HAS_CHROMIUM, reason="Chromium is missing: the German page was not tried"
)
STUDIO = Path(sv.__file__).parent / "studio"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


def parts(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_catalogues_hold_the_same_sentences_and_parts(language: str) -> None:
    english, other = words("en"), words(language)
    for plain, translated in (
        (english.page, other.page),
        (english.script, other.script),
        (english.form, other.form),
    ):
        assert list(translated) == list(plain)
        for name, sentence in plain.items():
            assert parts(translated[name]) == parts(sentence), name
            assert translated[name].strip() == translated[name] != ""
    shared = [name for name in english.page if english.page[name] == other.page[name]]
    assert language == "en" or shared in ([], ["no"])


def test_catalogues_hold_what_the_page_says_and_nothing_else() -> None:
    template = (STUDIO / "templates" / "take.html").read_text()
    program = "".join((STUDIO / "static" / f"{name}.js").read_text() for name in ("take", "words"))
    named = set(re.findall(r'"(\w+)"', template))
    assert set(words("en").page) <= named
    assert set(re.findall(r'\bt\("(\w+)"', template)) <= set(words("en").page)
    said = set(re.findall(r'"(\w+)"', program))
    said |= {f"part_{name}" for name in re.findall(r'\["(\w+)", ', program)}
    assert set(words("en").script) <= said
    assert set(re.findall(r'\bsay\("(\w+)"', program)) <= set(words("en").script)
    # no sentence stands in the template itself
    markup = re.sub(r"\{[{%].*?[}%]\}", "", template, flags=re.DOTALL)
    text = re.sub(r"<[^>]*>|[\w-]+=\"[^\"]*\"", "", markup)
    assert set(re.findall(r"[A-Za-z]{2,}", text)) == {"sottovoce"}


def test_a_language_is_chosen_by_address_survey_and_browser() -> None:
    assert chosen_language("fr", "it", "de") == "fr"
    assert chosen_language("xx", "it", "de") == "it"
    assert chosen_language(None, None, "ja;q=1, en;q=0.3, es-MX;q=0.9") == "es"
    assert chosen_language(None, None, "de;q=0, it;q=x, *") == "en"
    with pytest.raises(InvalidInput, match=r"language \(xx\) must be one of en, de, fr, it, es"):
        words("xx")


def test_pages_say_their_language(collector: Collector, tmp_path: Path) -> None:
    plan = collector.survey(sv.Frequencies("smoker"), people=611)
    page = f"{collector.studio}/take/{plan.id}"
    for language in LANGUAGES:
        text = httpx.get(page, params={"lang": language}).text
        assert f'<html lang="{language}">' in text
        assert words(language)("send") in text
    browser = {"Accept-Language": "fr-CH, en;q=0.5"}
    assert '<html lang="fr">' in httpx.get(page, headers=browser).text
    with collecting(tmp_path, language="it") as other:
        plan = other.survey(sv.Frequencies("smoker"), people=612)
        found = httpx.get(f"{other.studio}/take/{plan.id}", headers=browser)
        assert '<html lang="it">' in found.text
        assert found.headers["vary"] == "Accept-Language"


@in_chromium
def test_a_german_page_is_german(chromium: Any, collector: Collector) -> None:
    plan = collector.survey(sv.Frequencies("smoker", "age"), people=613)
    with visitor(chromium, locale="de-DE") as (page, _):
        page.goto(f"{collector.studio}/take/{plan.id}")
        page.locator("#draw:enabled").wait_for()
        assert page.evaluate("document.documentElement.lang") == "de"
        page.get_by_role("button", name="Zufällig verändern und senden").click()
        assert page.locator("#unanswered").text_content() == "Bitte beantworten Sie: smoker, age."
        page.get_by_label("Ja", exact=True).check()
        page.get_by_label("age").fill("41")
        page.get_by_role("button", name="Zufällig verändern und senden").click()
        page.locator("#whisper").wait_for()
        assert page.get_by_role("heading", name="2. Danke").is_visible()
        assert "ausgelost" in page.locator("#asked").text_content()
        assert json.loads(page.locator("#body").text_content())["plan"] == plan.id
        shown = page.locator("main").inner_text() + page.locator("footer").inner_text()
        assert not re.search(r"\b(your|the|answer|undefined)\b", shown)
        assert page.evaluate(RULES) == []
        assert page.evaluate(CONTRAST) == []
