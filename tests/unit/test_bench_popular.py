"""The report on what is popular says what its points say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import popular
from bench.page import marks
from tests.sentences import faults


def line(
    kind: str, source: str, top: int, method: str, epsilon: float, found: float, error: float
) -> dict[str, Any]:
    told = {
        "kind": kind,
        "source": source,
        "top": top,
        "method": method,
        "epsilon": epsilon,
        "found": found,
    }
    return told | {
        "f1": found / top,
        "f1_std": 0.1,
        "ncr": found / top,
        "ncr_std": 0.1,
        "found_std": 1.0,
        "variance": error,
        "seconds": 1.5,
        "runs": 4,
    }


def test_a_report_counts_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"windows": (9.0, 100.0), "pem": (6.0, 400.0), "genie": (10.0, 90.0)}
    lines = [
        line("values", "words-6", top, method, epsilon, found, error)
        for method, (found, error) in figures.items()
        for epsilon in (1.0, 2.0)
        for top in (16, 32)
    ]
    lines += [line("values", "words-6", 16, method, 1.0, 2.0, 900.0) for method in popular.OLDER]
    lines += [
        line(kind, source, 64, method, 2.0, found, 1e6)
        for kind, third in (("items", "svim"), ("sets", "svsm"))
        for source in ("retail", "msweb")
        for method, found in (("auto", 30.0), (third, 20.0), ("ldpminer", 5.0))
    ]
    out, page = tmp_path / "points.jsonl", tmp_path / "popular.md"
    out.write_text("".join(json.dumps(each) + "\n" for each in lines))
    page.write_text("# Popular\n\nbefore\n")
    for _ in range(2):
        assert popular.main(["--report", str(out), "--docs", str(page)]) == 0
    printed, text = capsys.readouterr().out, page.read_text()
    assert faults(text) == []
    for words in (
        "90% of what the genie finds, 1.50 times `pem`'s, the error of the found 4.0 times lower",
        "| words, 48 bits | `windows` | 9.0 / 9.0 [1.0e+02] | 9.0 / 9.0 [1.0e+02] |",
        "| words, 48 bits | `priv-trie` | 0.12 (1.5 s) |",
        "| msweb (untouched) | 30.0 [1e+06] | 20.0 [1e+06] | 5.0 [1e+06] |",
    ):
        assert words in printed
        assert words in text
    assert text.startswith("# Popular\n\nbefore\n")
    assert [text.count(mark) for mark in marks("bench.popular")] == [1, 1]
    for name in ("popular-values.svg", "popular-methods.svg", "popular-sets.svg"):
        assert (tmp_path / "pictures" / name).read_text().startswith("<svg")


def test_the_grid_has_every_source_and_method_that_is_named() -> None:
    assert {task.kind for task in popular.TASKS} == {"values", "items", "sets"}
    methods = {method.partition(":")[0] for task in popular.TASKS for method in task.methods}
    assert methods >= {*popular.BEST, *popular.OLDER, *popular.ITEMS, *popular.SETS}
    counts = sorted(popular.exponential().counts.tolist(), reverse=True)
    assert counts[20] / counts[0] == pytest.approx(2.718281828**-1)  # a scale of 0.05
