"""What ``bench.coverage`` says of a file of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import coverage


def line(source: str, run: int, shares: tuple[float, float, float], width: float) -> dict[str, Any]:
    levels = dict(zip(("0.8", "0.95", "0.99"), shares, strict=True))
    place = {"source": source, "n": 65536, "d": 16, "k": 3, "epsilon": 1.0}
    return {**place, "method": "auto", "run": run, "sse": 0.1, "coverages": levels, "width": width}


LINES = [
    line("kosarak-16", 0, (0.80, 0.94, 0.99), 0.02),
    line("kosarak-16", 1, (0.82, 0.98, 1.00), 0.02),
    line("chess-16", 0, (0.70, 0.85, 0.92), 0.03),
]


def test_a_point_is_the_mean_of_its_runs() -> None:
    points = {point.place[0]: point for point in coverage.points_of(LINES)}
    assert points["kosarak-16"].runs == 2
    assert points["kosarak-16"].shares[0.95] == pytest.approx(0.96)
    assert not points["kosarak-16"].is_held_out
    assert points["chess-16"].is_held_out


def test_points_are_judged_level_by_level() -> None:
    text = "\n".join(coverage.sentences(coverage.points_of(LINES)))
    assert "| looked at | 1 | 95% | 96.0% | 100% | 0% | 0% | 0% | 96.0% | 96.0% |" in text
    assert "| held out | 1 | 95% | 85.0% | 0% | 100% | 0% | 100% | 85.0% | 85.0% |" in text
    assert "- chess-16, n = 65,536, k = 3, eps 1: 70.0% / 85.0% / 92.0% (1 runs)" in text


def test_widths_are_compared_run_by_run() -> None:
    older = [line("kosarak-16", 0, (0.8, 0.95, 0.99), 0.04)]
    (sentence, _) = coverage.width_sentences(LINES, older)
    assert "0.50 of it (geometric mean of 1 runs), wider in 0%" in sentence
    assert coverage.width_sentences(LINES, []) == []


def test_a_report_is_printed_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = tmp_path / "results.jsonl", tmp_path / "intervals.md"
    results.write_text("".join(json.dumps(each) + "\n" for each in LINES))
    page.write_text("# Intervals\n")
    assert coverage.main(["--report", str(results), "--docs", str(page)]) == 0
    assert "held out" in capsys.readouterr().out
    assert "intervals-reliability.svg" in page.read_text()
    assert (tmp_path / "pictures" / "intervals-reliability.svg").exists()
    results.write_text("")
    assert coverage.main(["--report", str(results)]) == 1


def test_unknown_sources_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        coverage.main(["--sources", "nowhere"])
    assert "source (nowhere) must be one of" in capsys.readouterr().err
