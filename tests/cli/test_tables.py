"""Thesis tables, measured errors and audits on the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.measure import compare_oracles, figures, ratio_spread, thesis_variance, zipf_counts
from tests.cli.helpers import Command, Files

# wang2021thesis, table 3.2: epsilon, then DE at d = 2, 32, 1024, SHE, THE, SUE, OUE, BLH, OLH
COLUMNS = (
    ("de", 2),
    ("de", 32),
    ("de", 1024),
    *((name, 64) for name in ("she", "the", "sue", "oue", "blh", "olh")),
)
TABLE_3_2 = {
    0.5: (3.92, 75.20, 2432.40, 32.00, 19.44, 15.92, 15.67, 16.67, 15.67),
    1.0: (0.92, 11.08, 347.07, 8.00, 5.46, 3.92, 3.68, 4.68, 3.68),
    2.0: (0.18, 0.92, 25.22, 2.00, 1.50, 0.92, 0.72, 1.72, 0.72),
    4.0: (0.02, 0.03, 0.37, 0.50, 0.34, 0.18, 0.08, 1.08, 0.08),
}


@pytest.mark.parametrize("epsilon", TABLE_3_2)
def test_table_3_2_to_two_decimals(epsilon: float) -> None:
    found = tuple(round(thesis_variance(name, size, epsilon) or 0, 2) for name, size in COLUMNS)
    assert found == TABLE_3_2[epsilon]


def test_the_thesis_is_silent_about_newer_oracles() -> None:
    assert thesis_variance("ss", 64, 1.0) is None


@pytest.mark.parametrize(("size", "best"), [(2, "grr"), (64, "ss"), (1 << 20, "olh")])
def test_recommendation_is_that_of_adaptive(size: int, best: str) -> None:
    recommended = [row.oracle for row in figures(size, 1.0) if row.recommended]
    assert recommended == [best] == [sv.oracle("adaptive", size=size, epsilon=1.0).names[0]]


def test_oracles_prints_both_kinds_of_figures(sottovoce: Command) -> None:
    outcome = sottovoce("oracles", "--size", 32, "--epsilon", "0.5")
    above_caption = outcome.out.partition("* recommended")[0]
    lines = {line.split()[0]: line for line in above_caption.splitlines() if line.strip()}
    columns = ("grr", "she", "the", "sue", "oue", "blh", "olh")
    printed = dict(zip(columns, TABLE_3_2[0.5][1:2] + TABLE_3_2[0.5][3:], strict=True))
    for name, variance in printed.items():
        assert f" {variance:.2f} " in lines[name]
    assert lines["ss"].split()[1] == "*"
    rows = {
        row["oracle"]: row
        for row in json.loads(sottovoce("oracles", "--size", 32, "--epsilon", "0.5", "--json").out)
    }
    for name, row in rows.items():
        realised = sv.oracle(name, size=32, epsilon="0.5")
        assert row["bits"] == realised.bits
        assert row["epsilon"] == realised.epsilon <= 0.5
        assert row["variance"] == pytest.approx(realised.variance(1))
        assert row["half_sum_variance"] == pytest.approx(realised.sum_variance(1, 16))


def test_oracles_of_an_open_alphabet(sottovoce: Command) -> None:
    rows = json.loads(sottovoce("oracles", "--size", 1 << 40, "--epsilon", 1, "--json").out)
    by_name = {row["oracle"]: row for row in rows}
    assert by_name["olh-seeded"]["recommended"]
    assert by_name["o-rr"]["variance"] is None


def test_zipf_counts_are_everybody() -> None:
    counts = zipf_counts(1000, 12_345)
    assert counts.sum() == 12_345
    assert counts[0] / counts[9] == pytest.approx(10**1.1, rel=0.02)


def test_ratio_spread_is_that_of_normal_errors() -> None:
    """Simulated directly: errors of unequal variance, shifted to sum to zero."""
    variances = np.linspace(1, 3, 12)
    draws = np.random.default_rng(5).normal(0, np.sqrt(variances), (20_000, 12))
    draws -= draws.mean(axis=1, keepdims=True)
    ratios = (draws**2).mean(axis=1) / (draws**2).mean()
    assert ratios.std() == pytest.approx(ratio_spread(variances, runs=1), rel=0.03)


@pytest.mark.parametrize(
    "name",
    [
        "grr",
        "she",
        "the",
        "sue",
        "oue",
        "ss",
        "blh",
        "olh",
        "olh-seeded",
        "hr",
        "hrr",
        "hcms",
        "o-rr",
    ],
)
def test_measured_error_is_the_predicted_one(name: str) -> None:
    (row,) = compare_oracles([name], size=32, epsilons=["1"], people=20_000, runs=6, seed=1)
    assert abs(row.ratio - 1) < 4 * row.ratio_spread


def test_compare_would_notice_an_error_half_as_large_again() -> None:
    """The mutant: 24 runs of 32 values put a variance 1.5 times the claimed one far outside the
    bounds above.
    """
    (row,) = compare_oracles(["oue"], size=32, epsilons=["1"], people=5_000, runs=24, seed=1)
    assert abs(1.5 * row.ratio - 1) > 4 * row.ratio_spread


def test_every_run_has_its_own_seed_and_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    simulate = type(sv.oracle("hcms", size=4, epsilon=1)).simulate

    def spying(self: Any, values: Any, seed: int) -> Any:
        seen.append((seed, self.salt))
        return simulate(self, values, seed)

    monkeypatch.setattr(type(sv.oracle("hcms", size=4, epsilon=1)), "simulate", spying)
    list(compare_oracles(["hcms"], size=4, epsilons=["1"], people=100, runs=5, seed=1))
    assert len(seen) == len({seed for seed, _ in seen}) == len({salt for _, salt in seen}) == 6


def test_compare_on_the_command_line(sottovoce: Command) -> None:
    arguments = (
        "compare",
        "oracles",
        "--size",
        8,
        "--epsilon",
        "0.5,2",
        "--people",
        2000,
        "--runs",
        3,
    )
    outcome = sottovoce(*arguments, "--oracles", "k-rr,olh", "--json")
    rows = json.loads(outcome.out)
    assert outcome.err == ""
    assert [(row["epsilon"], row["oracle"]) for row in rows] == [
        (0.5, "grr"),
        (0.5, "olh"),
        (2.0, "grr"),
        (2.0, "olh"),
    ]
    assert all(row["bytes"] >= 1 and row["simulate_seconds"] > 0 for row in rows)
    again = json.loads(sottovoce(*arguments, "--oracles", "k-rr,olh", "--json").out)
    assert [row["measured"] for row in again] == [row["measured"] for row in rows]
    assert "±" in sottovoce(*arguments, "--oracles", "grr").out
    assert len(json.loads(sottovoce(*arguments, "--json").out)) == 2 * len(figures(8, 1))


def test_audit_of_a_plan_and_of_an_oracle(sottovoce: Command, files: Files) -> None:
    outcome = sottovoce("audit", files.plan)
    assert outcome.code == 0
    assert outcome.out.startswith("PASS plan")
    assert "all records" in outcome.out
    found = json.loads(sottovoce("audit", files.plan, "--json").out)
    assert found["passed"]
    assert found["plan"]["kind"] == "exact"
    assert found["plan"]["epsilon_found"] == pytest.approx(
        found["plan"]["epsilon_claimed"], rel=1e-12
    )
    assert found["audits"] == []  # its reports were all enumerated
    body = json.loads(
        sottovoce("audit", "--oracle", "oue", "--size", 4, "--epsilon", 1, "--json").out
    )
    assert body["passed"]
    assert body["audits"][0]["kind"] == "exact"
    sampled = json.loads(
        sottovoce(
            "audit", "--oracle", "oue", "--size", 100, "--epsilon", 1, "--draws", 2000, "--json"
        ).out
    )
    assert sampled["audits"][0]["draws"] == 2000


def test_a_failed_audit_is_exit_code_one(
    sottovoce: Command, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass
    class Verdict:
        passed: bool

        def to_json(self) -> dict[str, Any]:
            return {"passed": self.passed}

    stub = SimpleNamespace(AUDIT_DRAWS=10, audit=lambda oracle, draws, progress: Verdict(False))
    monkeypatch.setattr("sottovoce.audit", stub, raising=False)
    outcome = sottovoce("audit", "--oracle", "grr", "--size", 4, "--epsilon", 1, "--json")
    assert outcome.code == 1
    assert json.loads(outcome.out) == {
        "passed": False,
        "audits": [{"attributes": [], "size": 4, "asks": 1, "passed": False}],
    }
