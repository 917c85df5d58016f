"""``make docs``: every page is there, every link leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import doctest
import importlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.site import search
from docs.site.addresses import ROOT, target_of
from docs.site.builder import Builder
from docs.site.contents import entries
from docs.site.markdown import render

MODULES = sorted(path.stem for path in (ROOT / "docs" / "site").glob("*.py"))


class Links(HTMLParser):
    """What a page names: addresses it leads to or loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.loads: list[str] = []
        self.anchors: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if named.get("id"):
            self.anchors.append(str(named["id"]))
        if tag == "a":
            self.leads.append(str(named["href"]))
        elif named.get("src") or (tag == "link" and named.get("href")):
            self.loads.append(str(named.get("src") or named.get("href")))


@pytest.mark.parametrize("name", [name for name in MODULES if name != "__main__"])
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"docs.site.{name}")).failed == 0


def test_every_page_is_there_once() -> None:
    sources = [entry.source for entry in entries()]
    assert len(set(sources)) == len(sources)
    assert len({target_of(source) for source in sources}) == len(sources)


def test_every_address_on_the_site_is_there(site: Path) -> None:
    """Read from the finished pages, not from what the builder noted."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) == len(entries())
    for path, links in pages.items():
        assert len(set(links.anchors)) == len(links.anchors), f"{path.name}: an id twice"
        for address in [*links.leads, *links.loads]:
            if address.startswith("https://"):
                assert address not in links.loads, f"{path.name} loads {address}"
                continue
            file, _, anchor = address.partition("#")
            lead = (path.parent / file).resolve() if file else path
            assert lead.is_file(), f"{path.name}: {address}"
            if anchor and lead in pages:
                assert anchor in pages[lead].anchors, f"{path.name}: {address}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[one](nowhere.md)", "docs/a.md: no such file: nowhere.md"),
        ("[one](b.md#three)", "docs/a.md: no such heading: docs/b.md#three"),
        ("[one](#three)", "docs/a.md: no such heading: docs/a.md#three"),
        ("![one](nowhere.svg)", "docs/a.md: no such picture: nowhere.svg"),
        ("[one](b.md#two), [two](../LICENSE), [three](b.md)", None),
    ],
)
def test_a_link_that_leads_nowhere_is_found(text: str, fault: str | None) -> None:
    builder = Builder({"docs/a.md": f"# A\n\n{text}", "docs/b.md": "# B\n\n## Two"})
    builder.check({source: builder.page(source) for source in builder.texts})
    assert builder.faults == ([] if fault is None else [fault])


def test_html_in_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match="HTML in Markdown"):
        render("# One\n\n<b>two</b>")
    assert "comment" not in render("# One\n\n<!-- a comment -->").body


def test_the_search_knows_every_section(site: Path) -> None:
    text = (site / "search.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("window.SEARCH = ").removesuffix(";\n"))
    assert len(index["pages"]) == len(entries())
    assert {section[0] for section in index["sections"]} == set(range(len(entries())))
    for number, (_, _, heading, words) in enumerate(index["sections"]):
        for word in set(search.words_of(f"{heading} {words}")):
            assert number in index["words"][word][::2]


def test_files_of_the_generator_stay_short() -> None:
    for path in (ROOT / "docs" / "site").iterdir():
        if path.is_file():
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path


def test_make_says_it() -> None:
    assert re.search(r"^docs: .*\n\t@.*python -m docs.site", (ROOT / "Makefile").read_text(), re.M)
