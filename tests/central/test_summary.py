"""The page of a release says nothing that was not computed."""

from __future__ import annotations

from pathlib import Path

import sottovoce as sv


def test_counts_that_were_not_paid_for_are_unknown(tmp_path: Path) -> None:
    people = {"tea": ["green", "black"] * 1000}
    folder = tmp_path / "out"
    sv.release(people, 1, "1e-6", 1, "set-union", counts=0, output=folder)
    page = (folder / "summary.html").read_text(encoding="utf-8")
    assert page.count("unknown</td>") == 2
    assert "nan" not in page


def test_the_page_does_not_promise_more_than_the_noise(tmp_path: Path) -> None:
    people = {"tea": ["green", "black"] * 1000}
    folder = tmp_path / "out"
    sv.release(people, 1, "1e-6", 1, "dp-marginals", output=folder)
    page = (folder / "summary.html").read_text(encoding="utf-8")
    assert "as far as noise goes the interval holds the true count in 95% of cases" in page
