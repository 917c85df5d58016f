"""`sottovoce report`: the page in a file, and on paper; what it refuses."""

from __future__ import annotations

import json

import pytest

import sottovoce as sv
from sottovoce.pages.pdf import BROWSER_VARIABLE
from tests.browser.machines import HAS_CHROMIUM
from tests.cli.helpers import Command, Files, refused


def test_a_page_is_written(sottovoce: Command, files: Files) -> None:
    page = files.folder / "report.html"
    done = sottovoce("report", files.plan, files.reports, "-o", page, "--title", "Colours", "-q")
    assert (done.code, done.out) == (0, f"Report written to {page}\n")
    assert "<h1>Colours</h1>" in page.read_text(encoding="utf-8")
    told = sottovoce("report", files.plan, files.reports, "-o", page, "--json", "-q")
    assert json.loads(told.out)["title"] == "A survey about colour"


def test_a_saved_aggregate_serves_as_well(sottovoce: Command, files: Files) -> None:
    plan = sv.Plan.from_json(files.plan.read_bytes())
    total = sv.Aggregate(plan).add(sv.Reports.read(files.reports))
    saved, page = files.folder / "total.sva", files.folder / "report.html"
    saved.write_bytes(total.to_bytes())
    assert sottovoce("report", files.plan, files.reports, "-o", page, "-q").code == 0
    once = page.read_bytes()
    assert sottovoce("report", files.plan, saved, "-o", page, "-q").code == 0
    assert page.read_bytes() == once
    saved.write_bytes(total.to_bytes()[:-9])
    refused(sottovoce("report", files.plan, saved, "-o", page, "-q"), "checksum")


@pytest.mark.skipif(not HAS_CHROMIUM, reason="Chromium is missing: nothing was printed")
def test_it_is_printed(sottovoce: Command, files: Files) -> None:
    page, paper = files.folder / "report.html", files.folder / "report.pdf"
    done = sottovoce("report", files.plan, files.reports, "-o", page, "--pdf", paper, "-q")
    assert done.code == 0
    assert paper.read_bytes().startswith(b"%PDF-")


def test_what_cannot_be_written_is_refused_before_anything(
    sottovoce: Command, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = files.folder / "report.html"
    arguments = ("report", files.plan, files.reports, "-o")
    refused(sottovoce(*arguments, files.folder / "report.doc"), "must end in .html")
    refused(sottovoce(*arguments, page, "--level", "1"), "level (1.0)")
    monkeypatch.setenv(BROWSER_VARIABLE, "/nowhere/chromium")
    refused(
        sottovoce(*arguments, page, "--pdf", files.folder / "report.pdf"),
        "there is no Chromium at /nowhere/chromium",
    )
    assert not page.exists()
