"""Commands with an engine: the same figures and the same reports as without one."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce import measure
from sottovoce.central.comparison import compare_releases
from sottovoce.central.tables import read_table
from sottovoce.device.simulation import BLOCK_PEOPLE
from sottovoce.engine.comparisons import compare_apart
from sottovoce.protocol.report_files import stream
from sottovoce.sending.people import batches, parquet_rows
from tests.engine import work
from tests.engine.commands import run_command
from tests.engine.plans import plan_of
from tests.engine.sending import Sending


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--engine spark`, without Spark."""
    monkeypatch.setattr("sottovoce.engine.open_engine", lambda name, master=None: Sending(2))


def people(rows: int = 300) -> dict[str, Any]:
    draws = np.random.default_rng(1)
    return {
        "sex": draws.choice(["f", "m"], rows),
        "state": draws.choice(["NY", "WA", "TX"], rows, p=[0.6, 0.3, 0.1]),
        "age": draws.integers(20, 60, rows),
    }


def marginals() -> Callable[..., Any]:
    crowd = measure.Population.of(people())
    return partial(measure.compare_marginals, crowd, 2, 400, queries=3, runs=2, seed=1)


def oracles() -> Callable[..., Any]:
    return partial(measure.compare_oracles, size=4, people=500, runs=2, seed=1)


def queries(folder: Path) -> Callable[..., Any]:
    pq.write_table(pa.table(people()), folder / "people.parquet")
    crowd = measure.read_query_population(folder / "people.parquet", ["age:8"], None)
    asked = {"volumes": ["0.25"], "queries": 3, "runs": 2, "seed": 1}
    return partial(measure.compare_queries, crowd, 400, **asked)


def heavy() -> Callable[..., Any]:
    held = measure.Holdings.of(sv.Integer(bits=8), [7, 100, 5], [5000, 3000, 2000])
    return partial(measure.compare_heavyhitters, held, 2, runs=2, seed=1)


def items() -> Callable[..., Any]:
    held = measure.Baskets.of([[1, 2], [2]] * 2000)
    return partial(measure.compare_itemsets, held, 1, runs=2, seed=1)


def shuffled() -> Callable[..., Any]:
    from sottovoce.measure.shuffled import compare_shuffled

    crowd = measure.Population.of(people())
    return partial(compare_shuffled, crowd, "state", people=10_000, runs=2, seed=1, delta="1e-7")


def releases(folder: Path) -> Callable[..., Any]:
    pq.write_table(pa.table(people()), folder / "people.parquet")
    table = read_table(folder / "people.parquet", columns=["sex", "state"])
    return partial(compare_releases, table, delta="1e-6", up_to=1, runs=2, seed=1)


CASES: dict[str, tuple[Callable[..., Any], list[str], list[str]]] = {
    "marginals": (marginals, ["1", "2"], ["uniform", "inp-ht"]),
    "oracles": (oracles, ["1", "2"], ["grr", "oue"]),
    "queries": (queries, ["1", "2"], ["hio", "tree"]),
    "heavyhitters": (heavy, ["1", "4"], ["genie", "pem"]),
    "itemsets": (items, ["2", "4"], ["psfo:length=1"]),
    "shuffled": (shuffled, ["0.5"], ["sh", "aue"]),
    "releases": (releases, ["0.5", "1"], ["set-union"]),
}


@pytest.mark.parametrize("name", CASES)
def test_methods_are_compared_apart_as_together(name: str, tmp_path: Path) -> None:
    make, epsilons, methods = CASES[name]
    compare = make(tmp_path) if name in ("queries", "releases") else make()
    together = list(compare(epsilons=epsilons, methods=methods))
    done: list[int] = []
    apart = compare_apart(
        Sending(2), compare, epsilons, methods, done.append, methods_together=name == "releases"
    )
    assert [untimed(row) for row in apart] == [untimed(row) for row in together]
    assert len(together) >= len(epsilons) * len(methods)
    assert done == list(range(1, len(done) + 1))
    other = compare(epsilons=epsilons, methods=methods, seed=2)
    assert [untimed(row) for row in other] != [untimed(row) for row in together]


def untimed(row: Any) -> dict[str, Any]:
    return {key: value for key, value in row.to_json().items() if "seconds" not in key}


def test_compare_takes_an_engine(
    sending: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("compare", "oracles", "--size", "4", "--epsilon", "1,2", "--people", "500")
    options = ("--runs", "1", "--oracles", "grr,oue", "--json")
    code, here, _ = run_command(capsys, *command, *options)
    assert code == 0
    code, there, _ = run_command(capsys, *command, *options, "--engine", "spark")
    assert code == 0
    timed = ("simulate_seconds", "estimate_seconds")
    rows = [
        [{key: row[key] for key in row if key not in timed} for row in json.loads(printed)]
        for printed in (here, there)
    ]
    assert rows[0] == rows[1]


def people_file(folder: Path, rows: int, group: int) -> Path:
    table = pa.table(work.yes_or_no(0, rows))
    pq.write_table(table, folder / "people.parquet", row_group_size=group)
    return folder / "people.parquet"


@pytest.mark.parametrize("group", [7, 40, 1000])
def test_some_rows_of_a_file_are_those_of_the_whole(group: int, tmp_path: Path) -> None:
    plan = plan_of("latent")
    path = people_file(tmp_path, 100, group)
    (whole,) = batches(path, plan, 100)
    for first, rows in ((0, 100), (0, 1), (13, 30), (40, 40), (99, 1)):
        assert parquet_rows(path, plan, first, rows).equals(whole.slice(first, rows))


def test_whispers_of_workers_are_those_of_one_machine(
    sending: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of("latent")
    (tmp_path / "plan.json").write_text(plan.to_json())
    path = people_file(tmp_path, BLOCK_PEOPLE + 1000, 50_000)
    command = ("whisper", tmp_path / "plan.json", path, "--seed", 5)
    one, many = tmp_path / "one.parquet", tmp_path / "many"
    assert run_command(capsys, *command, "-o", one)[0] == 0
    code, out, err = run_command(capsys, *command, "-o", many, "--engine", "spark")
    assert (code, out, err) == (0, f"132,072 reports written to {many}\n", "")
    reports = sv.Reports.concat(stream(many))
    assert reports == sv.Reports.concat(stream(one))
    assert reports == sv.simulate(plan, work.yes_or_no(0, BLOCK_PEOPLE + 1000), seed=5)


def test_workers_whisper_whole_folders_or_none(
    sending: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of("latent")
    (tmp_path / "plan.json").write_text(plan.to_json())
    path = people_file(tmp_path, 100, 100)
    new = tmp_path / "new"

    def refused(words: str, *arguments: object) -> None:
        before = sorted(tmp_path.iterdir())
        command = ("whisper", tmp_path / "plan.json", *arguments, "--engine", "spark")
        code, out, err = run_command(capsys, *command)
        assert (code, out) == (2, "")
        assert words in err
        assert err.count("\n") == 1
        assert sorted(tmp_path.iterdir()) == before

    refused("needs --seed", path, "-o", new)
    refused("must be a new folder", path, "-o", tmp_path, "--seed", 1)
    refused("must be a file that exists", tmp_path / "no.parquet", "-o", new, "--seed", 1)
    (tmp_path / "people.csv").write_text("a0\n1\n")
    refused("must be Parquet", tmp_path / "people.csv", "-o", new, "--seed", 1)
    columns = {**work.yes_or_no(0, 3), "a0": ["yes", "no", "perhaps"]}
    pq.write_table(pa.table(columns), tmp_path / "bad.parquet")
    refused("attribute 'a0'", tmp_path / "bad.parquet", "-o", new, "--seed", 1)
    pq.write_table(pa.table({"a0": [True]}), tmp_path / "few.parquet")
    refused("column 'a1' is missing", tmp_path / "few.parquet", "-o", new, "--seed", 1)


def test_a_missing_seed_is_refused_before_a_cluster_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text(plan_of("latent").to_json())
    path = people_file(tmp_path, 10, 10)
    command = ("whisper", tmp_path / "plan.json", path, "-o", tmp_path / "new", "--engine", "none")
    code, _, err = run_command(capsys, *command)
    assert (code, err.count("\n")) == (2, 1)
    assert "engine (none) simulates, and needs --seed" in err
    code, _, err = run_command(capsys, *command, "--seed", 1, "--series", tmp_path / "rounds")
    assert code == 2
    assert "series is for the engine local" in err
