"""The bench of shuffled plans: points, small crowds, and what it writes."""

from __future__ import annotations

import json
from math import exp
from pathlib import Path
from typing import Any

import pytest

from bench import shuffled_plans, shuffled_sources, shuffled_tables
from bench.shuffled_plans import frequencies, points, read_lines, run_all
from bench.shuffled_report import report, write_page
from sottovoce.accounting.shuffling import thesis


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = {"ipums": (20_000, 32)}
    monkeypatch.setattr(shuffled_sources, "SHAPES", shapes)
    monkeypatch.setattr(shuffled_plans, "SHAPES", shapes)
    shuffled_plans._plan.cache_clear()
    shuffled_plans._values.cache_clear()


@pytest.mark.usefixtures("small")
def test_auto_errs_less_than_the_thesis_and_says_both_epsilons() -> None:
    lines = {
        method: frequencies("ipums", "0.5", method, 0, Path())
        for method in shuffled_plans.FREQUENCIES
    }
    assert lines["auto"]["mse"] < lines["solh, thesis"]["mse"] / 5
    for line in lines.values():
        assert 0.5 < line["local"] <= shuffled_plans.CAP
        assert line["least"] <= 20_000
    shuffled_plans._plan.cache_clear()
    shuffled_plans._values.cache_clear()


@pytest.mark.parametrize("epsilon", [0.2, 0.8])
def test_the_variance_of_hashing_is_that_of_its_own_coins(epsilon: float) -> None:
    people = shuffled_tables.PEOPLE
    size = int(thesis.best_hash_size(epsilon, people, shuffled_tables.DELTA))
    odds = exp(thesis.local_for(epsilon, size, people, shuffled_tables.DELTA))
    p, q = odds / (odds + size - 1), 1 / size
    # Var = q (1 - q)/(n (p - q)^2)       wang2021thesis, eq. (3.3)
    expected = q * (1 - q) / (p - q) ** 2 / people
    assert shuffled_tables.hashed_variance(epsilon, size) == pytest.approx(expected, rel=1e-4)
    # other sizes err more
    for other in (size // 2, 2 * size):
        assert shuffled_tables.hashed_variance(epsilon, other) > expected


def test_a_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def measure(*point: Any) -> dict[str, Any]:
        asked.append(point)
        return {"mse": 1e-9}

    monkeypatch.setattr(shuffled_plans, "MEASURES", {"ipums": measure})
    path = tmp_path / "lines.jsonl"
    todo = list(points(["ipums"], 1))
    run_all(path, todo[:2], tmp_path)
    run_all(path, todo, tmp_path)
    assert len(asked) == len(todo) == len(read_lines(path)) == 20


def test_the_section_has_a_row_for_each_method(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for method, error in (("auto", 1e-9), ("solh, thesis", 4e-8)):
        point = {"group": "kosarak", "source": "kosarak", "epsilon": "0.1", "method": method}
        asked = {"local": 8.0, "oracle": "grr", "options": {}}
        lines.append({**point, **asked, "run": 0, "mse": error, "head_mse": 1e-8})
    for method, hits in (("windows", 32), ("thesis", 0)):
        point = {"group": "words", "source": "words", "epsilon": "0.2", "method": method}
        lines.append({**point, "run": 0, "found": hits, "local": 6.7})
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"cut')
    assert read_lines(path) == lines
    text = report(lines)
    assert "| 0.1 | auto | 8 | grr | 1e-09 | 40.0 | 0.0001 | 1 |" in text
    assert "| 0.2 | windows | 6.7 | 32 | 32.0 |" in text
    page = tmp_path / "page.md"
    write_page(lines, page)
    write_page(lines, page)
    assert page.read_text().count("Squared errors of whole") == 1
    assert (tmp_path / "pictures" / "shuffle-errors.svg").exists()
