"""The site in Chromium, from the disk: search, day and night, a phone, a reader with a keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.machines import HAS_CHROMIUM, browsing
from tests.studio.browsers import CONTRAST, RULES, visitor

pytestmark = pytest.mark.skipif(
    not HAS_CHROMIUM, reason="Chromium is missing: the site was not tried in a browser"
)

PAGES = ("index.html", "shuffle.html", "trials/oracle.html")
PHONE = {"viewport": {"width": 390, "height": 844}}
# what a query must lead to, first of all
QUERIES = {
    "threat model": "threat-model.html",
    "dependency_tree": "api/analysis.html#dependency_tree",
    "backup": "commands.html#backup",
    "errata": "errata.html",
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_by_day_and_by_night(chromium: Any, site: Path, scheme: str) -> None:
    with visitor(chromium, color_scheme=scheme, **PHONE) as (page, _):
        for name in PAGES:
            page.goto((site / name).as_uri())
            assert page.evaluate(RULES) == []
            assert page.evaluate(CONTRAST) == []


def test_the_search_works_from_the_disk(chromium: Any, site: Path) -> None:
    with visitor(chromium) as (page, log):
        page.goto((site / "trials" / "oracle.html").as_uri())
        page.keyboard.press("/")
        for query, address in QUERIES.items():
            page.locator("#site-query").fill(query)
            page.locator(f'#site-found[data-query="{query}"]').wait_for()
            hrefs = page.locator("#site-found a").evaluate_all(
                "all => all.map((each) => each.href)"
            )
            assert any(address in href for href in hrefs[:3]), f"{query}: {hrefs[:3]}"
        page.keyboard.press("Enter")
        page.wait_for_url("**/errata.html")
        assert all(request.url.startswith("file://") for request in log.requests)


def test_nothing_found_is_said(chromium: Any, site: Path) -> None:
    with visitor(chromium) as (page, _):
        page.goto((site / "index.html").as_uri())
        page.locator("#site-query").fill("xyzzyx <b>")
        page.get_by_text("Nothing was found.").wait_for()
        page.keyboard.press("Escape")
        assert not page.locator("#site-found").is_visible()


def test_the_menu_and_the_night_of_a_phone(chromium: Any, site: Path) -> None:
    with visitor(chromium, **PHONE) as (page, _):
        page.goto((site / "index.html").as_uri())
        assert not page.locator("#site-parts").is_visible()
        page.get_by_role("button", name="Menu").click()
        page.locator("#site-parts").get_by_role("link", name="Threat model").click()
        page.wait_for_url("**/threat-model.html")
        page.get_by_role("button", name="Dark or light").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
