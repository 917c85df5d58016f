"""The measurement of intervals of items, on the crowd that needs no table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.item_coverage import CROWD, Truth, main
from sottovoce.schema import Sets


def test_a_point_is_printed_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "points.jsonl"
    asked = ["--sources", CROWD, "--methods", "items:auto", "--epsilons", "4", "--runs", "2"]
    assert main([*asked, "--people", "4000", "--json", str(file)]) == 0
    assert main([*asked, "--people", "4000", "--before", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "before" in printed
    (point,) = map(json.loads, file.read_text().splitlines())
    assert point["printed"]["intervals"] == 12
    assert point["found"] == 6
    assert f"{point['printed']['share']:.1%}" in printed


def test_the_truth_of_items_and_sets() -> None:
    sets = Sets(np.array([0, 2, 5, 6, 6]), np.array([0, 1, 0, 1, 2, 1], np.uint64))
    truth = Truth(sets)
    assert truth.frequency(1) == 0.75
    assert truth.frequency((0, 1)) == 0.5
    assert truth.frequency((0, 1, 2)) == 0.25
