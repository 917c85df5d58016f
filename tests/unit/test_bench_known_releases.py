"""The bench of known domains: what it measures on a small crowd, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import known_releases
from bench.known_releases import People, central_line, local_line, read_lines, report, single_counts
from tests.central_tables import tied_codes

SIZES = (2, 2, 2, 2)


@pytest.fixture
def people() -> People:
    return People(tied_codes(SIZES, 3000, seed=1), SIZES)


@pytest.mark.parametrize("method", list(known_releases.CENTRAL))
def test_more_privacy_costs_more_error(people: People, method: str) -> None:
    strict = central_line(people, method, "0.1", 0)
    loose = central_line(people, method, "2.0", 0)
    assert strict["tables"] == loose["tables"] == 4
    assert 0 < loose["sse"] < strict["sse"] < 1


def test_whispering_errs_more_than_a_trusted_curator(people: People) -> None:
    local = local_line(people, "calm", "1.0", 0)
    central = central_line(people, "residual", "1.0", 0)
    assert local["sse"] > 10 * central["sse"]


def test_single_counts_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_releases, "DRAWS", 1 << 14)
    algebra, measured = single_counts(16)
    assert algebra > 8
    # the mean of 2^14 squares is known to sqrt(2 / 2^14) of itself; six of them
    assert measured == pytest.approx(algebra, rel=6 * np.sqrt(2 / (1 << 14)))


def test_the_section_has_a_row_for_each_method(tmp_path: Path) -> None:
    lines = []
    for run in (0, 1):
        for method, error in (("residual", 1e-6), ("calm", 1e-3)):
            line = {"source": "kosarak-16", "method": method, "epsilon": "1.0", "k": 3, "run": run}
            lines.append({**line, "sse": error * (1 + run), "tables": 560, "seconds": 1.0})
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"cut')
    assert read_lines(path) == lines
    text = report(read_lines(path), {16: (8.02, 8.03)})
    assert "| residual | 560 | 2 | 1.5e-06 |" in text
    assert "| calm | 560 | 2 | 0.0015 |" in text
    assert "16 attributes: 8.02 times less by the algebra, 8.03 times less measured" in text
