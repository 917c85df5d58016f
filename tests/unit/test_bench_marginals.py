"""The grid of marginals goes on where it was, shares nothing it should not, and reports what its
lines say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import marginal_repairs, marginal_report, marginal_sources, marginals
from bench.marginal_report import points_of, ratio_of, sentences
from bench.marginals import COARSE_EPSILONS, Grid, Task, key_of, prepared, read_lines, work
from bench.page import marks
from sottovoce.measure import Population, compare_marginals
from tests.sentences import faults


def small(seed: int = 1) -> Population:
    draws = np.random.default_rng(seed)
    base = draws.random((2000, 1))
    return Population.of({f"x{place}": base[:, 0] + draws.random(2000) < 0.9 for place in range(6)})


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, marginal_sources.Source]]:
    sources = {
        "one": marginal_sources.Source(lambda data: small(1), is_binary=True),
        "two": marginal_sources.Source(lambda data: small(2), is_binary=False, held_out=True),
    }
    for module in (marginals, marginal_report, marginal_sources):
        monkeypatch.setattr(module, "SOURCES", sources)
    marginals.population.cache_clear()
    marginals.crowd.cache_clear()
    yield sources
    marginals.population.cache_clear()
    marginals.crowd.cache_clear()


def line(**changes: Any) -> dict[str, Any]:
    fields = {
        "source": "one", "n": 1 << 16, "d": 6, "k": 3, "epsilon": 0.2, "method": "auto", "run": 0,
        "sse": 1.0, "tvd": 0.1, "seconds": 1.0, "chosen": "latent", "coverage": 0.95,
    }  # fmt: skip
    return fields | changes


GRID = Grid(("one", "two"), ("uniform", "marg-ps"), people=(256, 512), orders=(3, 6))


def test_the_coarse_grid_comes_first(tiny: Any) -> None:
    tasks = list(GRID.tasks(set(), "", coverage=False, limit=60))
    coarse = 2 * 2 * 2 * len(COARSE_EPSILONS)  # sources, people, runs
    assert all(task.epsilon in COARSE_EPSILONS and task.run < 2 for task in tasks[:coarse])
    assert not any(task.epsilon in COARSE_EPSILONS and task.run < 2 for task in tasks[coarse:])
    keys = {(t.source, t.people, k, t.epsilon, m, t.run) for t in tasks for k, m in t.points}
    # k = 6 needs 15 attributes
    assert len(keys) == 2 * 2 * 10 * 5 * 2 == sum(len(task.points) for task in tasks)
    done = set(list(keys)[::3])
    left = {
        (task.source, task.people, k, task.epsilon, method, task.run)
        for task in GRID.tasks(done, "", coverage=False, limit=60)
        for k, method in task.points
    }
    assert left == keys - done


def test_a_task_measures_what_compare_measures(tiny: Any) -> None:
    task = Task(
        "one",
        512,
        0,
        "1.0",
        ((3, "marg-ps"), (3, "auto"), (3, "inp-em"), (2, "fc"), (3, "fc")),
        "",
        True,
        60,
    )
    lines = work(task)
    assert json.loads(json.dumps(lines)) == lines
    for found, (k, method) in zip(lines, task.points, strict=True):
        (row,) = compare_marginals(
            small(1), k, 512, ["1.0"], [method], 50, 1, marginals.SEED, coverage=True
        )
        assert (found["sse"], found["tvd"], found.get("coverage")) == (
            row.sse,
            row.tvd,
            row.coverage,
        )
        assert (found["method"], found["k"], found.get("chosen")) == (method, k, row.chosen)
    assert "does not fit" in lines[2]["reason"]


def test_equal_cohorts_are_simulated_once(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from sottovoce.measure import marginals as comparing

    calls = []
    heard = comparing.heard
    monkeypatch.setattr(
        comparing, "heard", lambda *arguments: calls.append(arguments) or heard(*arguments)
    )
    work(Task("one", 512, 0, "1.0", ((2, "fc"), (3, "fc"), (3, "marg-ps")), "", False, 60))
    assert len(calls) == 2


def test_a_point_that_fails_or_takes_too_long_is_marked(
    tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sottovoce.measure import marginals as comparing

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("oh")

    (found,) = work(Task("one", 512, 0, "1.0", ((3, "marg-ps"),), "", False, 1e-6))
    assert found["error"].startswith("TimeoutError")
    monkeypatch.setattr(comparing, "heard", broken)
    (found,) = work(Task("one", 512, 0, "1.0", ((3, "marg-ps"),), "", False, 60))
    assert found["error"] == "ZeroDivisionError: oh"
    assert found["sse"] is None


def test_a_file_of_results_survives_interruptions(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    lines = [
        line(),
        line(run=1, sse=2.0),
        line(run=2, error="oh", sse=None),
        line(method="calm"),
        line(run=1, sse=3.0),
    ]
    out.write_text("".join(json.dumps(each) + "\n" for each in lines) + '{"source": "one", "n"')
    assert prepared(out, ["calm"]) == {key_of(lines[0]), key_of(lines[1])}
    kept = read_lines(out)
    assert [each["sse"] for each in kept] == [1.0, 3.0]
    assert out.read_text().count("\n") == 2
    assert prepared(tmp_path / "none.jsonl", []) == set()


def test_the_ratio_and_its_standard_error() -> None:
    """Against the delta method by simulation, and exact for figures in proportion."""
    assert ratio_of(np.array([1.0, 2.0]), np.array([4.0, 8.0])) == (0.25, 0.0)
    assert ratio_of(np.array([1.0]), np.array([4.0])) == (0.25, inf)
    draws = np.random.default_rng(1)
    shared = draws.gamma(50, size=(4000, 5))
    ours, base = (
        shared * draws.gamma(80, 1 / 160, (4000, 5)),
        shared * draws.gamma(60, 1 / 60, (4000, 5)),
    )
    pairs = [ratio_of(one, other) for one, other in zip(ours, base, strict=True)]
    ratios, spreads = np.array(pairs).T
    assert np.sqrt((spreads**2).mean()) == pytest.approx(ratios.std(), rel=0.06)


def test_points_pair_the_runs_that_both_have() -> None:
    lines = [
        *(line(run=run, sse=1.0 + run) for run in range(3)),
        *(line(run=run, sse=2.0 + 2 * run, method="calm") for run in range(1, 4)),
        line(method="uniform"),
        line(method="calm", epsilon=0.6),
        line(method="auto", epsilon=0.6, sse=None, reason="no"),
    ]
    (point,) = points_of(lines, "auto", "calm")
    assert (point.runs, point.ratio, point.spread) == (2, 0.5, 0.0)
    assert not point.falls_short


def test_points_that_fall_short_are_named() -> None:
    lines = []
    for epsilon, factor in ((0.2, 0.5), (0.6, 1.3), (1.0, 1.04)):
        for run in range(5):
            lines.append(line(epsilon=epsilon, run=run, sse=factor * (1 + run / 100)))
            lines.append(line(epsilon=epsilon, run=run, sse=1 + run / 90, method="calm"))
    points = points_of(lines, "auto", "calm")
    assert [point.epsilon for point in points if point.falls_short] == [0.6]
    wide = [line(run=run, sse=sse) for run, sse in enumerate([0.2, 3.0, 1.0])]
    wide += [line(run=run, sse=1.0, method="calm") for run in range(3)]
    assert not points_of(wide, "auto", "calm")[0].falls_short


def test_the_report_says_what_the_lines_say(
    tiny: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = []
    for source in ("one", "two"):
        for epsilon in (0.2, 1.0):
            for run in range(2):
                for method, sse in (("auto", 0.25), ("calm", 1.0), ("uniform", 2.0)):
                    lines.append(
                        line(
                            source=source,
                            epsilon=epsilon,
                            run=run,
                            sse=sse * (1 + run / 10),
                            method=method,
                        )
                    )
    lines.append(line(epsilon=2.0, coverage=0.80))
    out, page = tmp_path / "r.jsonl", tmp_path / "docs" / "marginals.md"
    out.write_text("".join(json.dumps(each) + "\n" for each in lines))
    page.parent.mkdir()
    page.write_text("# Marginals\n\nbefore\n")
    for _ in range(2):
        assert marginals.main(["--report", str(out), "--docs", str(page)]) == 0
    printed = capsys.readouterr().out
    text = page.read_text()
    for words in (
        "**0.250 ± 0.000** over 4 points",
        "| 2^16, 6, 3 | 0.25 [0.25] |",
        "No point lies above",
        "held out",
    ):
        assert words in printed
        assert words in text
    assert "1 points lie outside 92% to 98%" in text
    assert faults(text) == []
    assert text.startswith("# Marginals\n\nbefore\n")
    assert [text.count(mark) for mark in marks("bench.marginals")] == [1, 1]
    for name in (
        "marginals-binary-65536.svg",
        "marginals-held-out-65536.svg",
    ):
        assert f"(pictures/{name})" in text
        assert (page.parent / "pictures" / name).read_text().startswith("<svg")


def test_a_report_without_points_says_so() -> None:
    assert "No point" in sentences([line()], "auto", "calm")[0]


def test_bad_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        ([], "--out"),
        (["--out", "x", "--sources", "wish"], "source (wish)"),
        (["--out", "x", "--methods", "wish"], "method (wish)"),
    ):
        with pytest.raises(SystemExit):
            marginals.main(arguments)
        assert words in capsys.readouterr().err


def test_large_tables_are_not_asked_for() -> None:
    wide = Population.of({f"x{place}": np.arange(64) for place in range(16)})
    assert marginal_sources.orders(wide, (2, 3, 6)) == [2]
    few = Population.of(
        {f"x{place}": np.arange(64) % (50 if place < 3 else 3) for place in range(16)}
    )
    # one set of three has 125,000 cells; k = 8 needs 32
    assert marginal_sources.orders(few, (3, 6, 8)) == [3]


def test_other_methods_stand_beside_the_base(tiny: Any) -> None:
    lines = [line(), line(method="calm", sse=2.0), line(method="am", sse=8.0)]
    assert "| `am` | 1 | 4 |  | 4 (one, n = 2^16, k = 3, eps 0.2) |" in sentences(
        lines, "auto", "calm"
    )
    assert not any("`auto` |" in each for each in sentences(lines[:2], "auto", "calm"))


def test_unbiased_methods_stand_there_as_they_come_and_repaired(
    tiny: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        line(method="calm", sse=2.0, sse_repaired=None),
        line(method="am", sse=8.0, sse_repaired=3.0),
        line(method="am", run=1, sse=1000.0, sse_repaired=5.0),
        line(method="fc", sse=None, reason="too many cells"),
    ]
    text = sentences([line(), *lines], "auto", "calm")
    assert "| `am` | 1 | 4 | 1.5 (1 points) | 4 (one, n = 2^16, k = 3, eps 0.2) |" in text
    out, page = tmp_path / "r.jsonl", tmp_path / "page.md"
    out.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert marginal_repairs.main([str(out), "--docs", str(page)]) == 0
    row = "| one, 65,536, 3, 0.2 | 2 | 500 (250) | 4 (2) |"
    assert row in capsys.readouterr().out
    assert row in page.read_text()
    assert faults(page.read_text()) == []
    assert "repaired" in marginal_repairs.both_columns(lines[:1], "calm")[0]


def test_a_task_judges_unbiased_tables_a_second_time(tiny: Any) -> None:
    task = Task("one", 512, 0, "1.0", ((3, "marg-ps"), (3, "calm")), "", False, 60)
    unbiased, calm = work(task)
    (row,) = compare_marginals(
        small(1), 3, 512, ["1.0"], ["marg-ps"], 50, 1, marginals.SEED, repair=marginals.REPAIR
    )
    assert unbiased["sse_repaired"] == row.sse
    assert row.sse is not None
    assert unbiased["sse"] > row.sse
    assert calm["sse_repaired"] is None
