"""Measuring methods for queries: what is left to do, what is written, and what a report says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import queries, query_moments
from bench.queries import GROUPS, key_of, prepared, read_lines, tasks, work
from bench.query_report import errors_of, geometric, pictures, report, sentences
from bench.query_sources import NUMBERS, SOURCES
from sottovoce.questions.queries.fitted import Joint

SMALL = replace(
    GROUPS["one"],
    sizes=(16,),
    people=(1000,),
    epsilons=("1", "2"),
    methods=("hio", "haar", "hdg"),
    volumes=("0.25", "random"),
    queries=5,
    runs=2,
    sources=("ADULT",),
)


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A folder with the one table that is needed."""
    counts = np.random.default_rng(1).integers(0, 50, 4096).astype(np.uint32)
    pq.write_table(pa.table({"ADULT": counts}), tmp_path / "dpbench_1d.parquet")
    return str(tmp_path)


def line(method: str, source: str, error: float, run: int = 0, **changes: Any) -> dict[str, Any]:
    """A line of results."""
    own = {
        "group": "one",
        "source": source,
        "size": 64,
        "n": 1000,
        "epsilon": "1",
        "predicates": 0,
        "method": method,
        "run": run,
        "mse": {"0.1": error, "random": 2 * error},
        "coverage": {"0.1": 0.95, "random": 0.9},
        "seconds": 0.5,
        "chosen": method,
    }
    return own | changes


def test_every_source_belongs_to_a_group() -> None:
    assert set(SOURCES) == set(GROUPS)
    for names in NUMBERS.values():
        assert names[2] < names[3]
    held_out = [name for name, source in SOURCES["one"].items() if source.is_held_out]
    assert len(held_out) == 10
    assert len(SOURCES["two"]) == 12


def test_a_task_is_measured_and_a_method_that_does_not_fit_says_why(data: str) -> None:
    (first, *others) = tasks([SMALL], set(), data, True)
    assert len(others) == 3  # two epsilons, two runs
    lines = work(first)
    assert [each["method"] for each in lines] == ["hio", "haar", "hdg"]
    assert set(lines[0]["mse"]) == {"0.25", "random"}
    assert all(0 <= share <= 1 for share in lines[1]["coverage"].values())
    assert 0 <= lines[0]["deciles"] <= 1
    assert lines[2]["mse"] is None
    assert "two dimensions" in lines[2]["reason"]
    assert json.loads(json.dumps(lines)) == lines
    again = work(first)
    assert [each["mse"] for each in again] == [each["mse"] for each in lines]


def test_what_is_done_is_not_done_again(data: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    (first, *_) = tasks([SMALL], set(), data, False)
    lines = work(first)
    broken = line("haar", "ADULT", 1.0) | {"error": "ZeroDivisionError: x"}
    texts = [json.dumps(each) for each in [*lines, broken]]
    path.write_text("\n".join([*texts, '{"group": "one", "sou']), encoding="utf-8")
    done = prepared(path, [])
    assert done == {key_of(each) for each in lines}
    assert len(read_lines(path)) == 3
    assert len(list(tasks([SMALL], done, data, False))) == 3
    redone = prepared(path, ["hio"])
    (left, *_) = tasks([SMALL], redone, data, False)
    assert left.methods == ("hio",)


def test_ratios_are_of_means_over_runs() -> None:
    lines = [
        line("hio", "ADULT", 4.0),
        line("hio", "ADULT", 2.0, run=1),
        line("auto", "ADULT", 1.0),
        line("auto", "ADULT", 2.0, run=1),
        line("tree", "ADULT", 1.0),
        line("hio", "INCOME", 1.0),
        line("auto", "INCOME", 2.0),
    ]
    errors = errors_of(lines, "one")
    assert errors.runs == 2
    assert sorted(errors.ratios("auto", "hio").values()) == [0.5, 0.5, 2.0, 2.0]
    assert geometric(errors.ratios("auto", "hio").values()) == pytest.approx(1.0)
    assert sorted(errors.hindsight("auto").values()) == [1.5, 1.5, 2.0, 2.0]
    unseen = errors_of(lines, "one", held_out=True)
    assert {where[0] for where in unseen.points} == {"ADULT"}


def test_luck_of_one_run_is_told_from_what_holds() -> None:
    lines = []
    for run, (tree, haar) in enumerate([(1.0, 4.0), (4.0, 1.0), (2.0, 2.0)]):
        lines += [line("tree", "ADULT", tree, run), line("haar", "ADULT", haar, run)]
        lines += [line("auto", "ADULT", 1.0, run), line("hio", "ADULT", 9.0, run)]
    errors = errors_of(lines, "one")
    # the best of the others in hindsight has 7 / 3; chosen by the other runs it has 4 + 4 + 2
    (one, other) = errors.foresight("auto").values()
    assert one == other == pytest.approx(3 / 10)
    assert errors_of([each for each in lines if each["run"] == 0], "one").foresight("auto") == {}
    text = "\n".join(sentences(lines, "auto"))
    assert "not lucky in hindsight: 0.3; 0.0% of points above 1.5." in text
    # runs that agree stray by nothing, and points of 95% and 90% by what they differ
    assert "strays by 0.0% because its runs are few, and by 3.5% beyond that; 50% of" in text


def test_the_report_says_what_the_lines_say(tmp_path: Path) -> None:
    lines = [line("hio", "ADULT", 4.0), line("auto", "ADULT", 1.0), line("tree", "ADULT", 2.0)]
    text = "\n".join(sentences(lines, "auto"))
    assert "| `auto` | **0.25** |" in text
    assert "| 64, 1,000 | 0.25 [0.25] |" in text
    assert "Against the best of all others of one round in hindsight, point by point: 0.5;" in text
    by_rounds = "\n".join(sentences([*lines, line("ahead", "ADULT", 0.5)], "auto"))
    assert "Against the best of all others in hindsight, point by point: 2;" in by_rounds
    assert "hold 92.5% on average over 2 points" in text
    assert "because its runs are few" not in text
    assert sentences([], "auto") == ["Nothing was measured yet.", ""]
    results, page = tmp_path / "r.jsonl", tmp_path / "sql.md"
    results.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    page.write_text("# Queries\n", encoding="utf-8")
    assert report(results, page, "auto") == 0
    assert report(results, page, "auto") == 0
    written = page.read_text(encoding="utf-8")
    assert written.count("<!-- bench.queries: start -->") == 1
    assert (tmp_path / "pictures" / "queries-one.svg").is_file()
    assert set(pictures(lines)) == {"queries-one.svg"}


def test_figures_of_the_thesis_are_told_by_volume_and_epsilon() -> None:
    changes = {"group": "thesis", "size": 0, "epsilon": "2", "mnae": {"0.25": 0.01, "0.5": 0.02}}
    lines = [line("hio", "census 1024", 1.0) | changes, line("mg", "census 1024", 2.0) | changes]
    text = "\n".join(sentences(lines, "auto"))
    assert "| epsilon, volume | `mg` | `hio` |" in text
    assert "| 2, 0.5 | 0.02 | 0.02 |" in text


def test_means_and_deciles_of_the_truth_are_without_error() -> None:
    draws = np.random.default_rng(3)
    codes = draws.integers(0, 16, 1000)
    truth = np.bincount(codes, minlength=20) / 1000

    class Table:
        """Answers with the truth, moved by one code if asked to."""

        def __init__(self, moved: int) -> None:
            self.shares = np.roll(truth, moved)

        def joint(self, terms: list[dict[int, np.ndarray]]) -> Joint:
            values = np.array([term[0] @ self.shares for term in terms])
            return Joint(values, np.zeros((len(terms), len(terms))))

    exact = query_moments.errors(Table(0), codes, 20, 1.0)
    assert exact == {"deciles": 0.0, "mean": pytest.approx(0.0, abs=1e-20)}
    moved = query_moments.errors(Table(1), codes, 20, 1.0)
    assert moved["deciles"] == pytest.approx(1 / 20)
    assert moved["mean"] > 0


def test_the_hybrid_mechanism_has_its_stated_variance() -> None:
    """Simulated: one of two values with chance 1 - a, else the piecewise mechanism; within five
    standard errors, and without the mixture not.
    """
    epsilon, value, people = 1.0, 0.4, 400_000
    draws = np.random.default_rng(4)
    odds, half = np.exp(epsilon), np.exp(epsilon / 2)
    share = 1 - np.exp(-epsilon / 2)
    bound = (half + 1) / (half - 1)
    low = (bound + 1) / 2 * value - (bound - 1) / 2
    near = draws.random(people) < half / (half + 1)
    inside = low + (bound - 1) * draws.random(people)
    outside = draws.random(people) * (bound + 1) - bound
    outside = np.where(outside > low, outside + bound - 1, outside)
    piecewise = np.where(near, inside, outside)
    reach = (odds + 1) / (odds - 1)
    two = np.where(draws.random(people) < 0.5 + value / (2 * reach), reach, -reach)
    told = np.where(draws.random(people) < share, piecewise, two)
    squares = (told - value) ** 2
    error = squares.std() / np.sqrt(people)
    stated = query_moments.hybrid_variance(np.array([value]), epsilon)[0]
    assert abs(squares.mean() - stated) < 5 * error
    assert abs(((two - value) ** 2).mean() - stated) > 5 * error


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--out", "x", "--groups", "nine"],
        ["--out", "x", "--sources", "nowhere"],
        ["--out", "x", "--data", "/no/such/folder"],
        ["--out", "x", "--groups", "two", "--sources", "ADULT"],
    ],
)
def test_bad_arguments_have_one_clear_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        queries.main(arguments)
    assert "error:" in capsys.readouterr().err
