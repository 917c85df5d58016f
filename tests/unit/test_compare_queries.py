"""Queries, method against method: the truth, the seeds and the errors are what they are said to
be.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.measure import (
    QueriesComparison,
    QueryPopulation,
    compare_queries,
    query_crowds,
    read_query_population,
)
from sottovoce.measure.queries import asked_crowd, judged, measured, planned, whispers_seed
from sottovoce.measure.query_crowds import dimension_column, equal_width
from sottovoce.questions.base import predicted
from sottovoce.questions.queries.fitted import Joint
from sottovoce.questions.queries.target import Target
from tests.statistics import ALPHA


def people(source: str = "small", with_measure: bool = False) -> QueryPopulation:
    draws = np.random.default_rng(1)
    ages = np.minimum(draws.geometric(0.15, 2000), 20)
    states = np.array(["a", "b", "c"])[draws.integers(0, 3, 2000)]
    columns = {
        "age": dimension_column("age", ages, "16"),
        "state": dimension_column("state", states, None),
    }
    pay = draws.normal(1.0, 2.0, 2000) if with_measure else None
    return QueryPopulation(source, columns, pay)


def rows_of(population: QueryPopulation, methods: list[str], **changes: Any) -> list[Any]:
    arguments: dict[str, Any] = {
        "people": 3000,
        "epsilons": ["1"],
        "volumes": ["0.25"],
        "queries": 6,
        "runs": 2,
        "seed": 1,
    }
    return list(compare_queries(population, methods=methods, **arguments | changes))


# -- tables and people


def test_bins_are_equally_wide() -> None:
    ages = np.array([17, 18, 53, 54, 90])
    assert equal_width(ages, 2).tolist() == [0, 0, 0, 1, 1]
    assert equal_width(np.array([0.0, 0.25, 0.5, 1.0]), 4).tolist() == [0, 1, 2, 3]
    assert equal_width(np.array([2.0, 2.0]), 4).tolist() == [0, 0]
    assert equal_width(np.arange(200, dtype=np.uint8), 64).max() == 63


def test_a_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(
        pa.table({"age": [18, 20, 30], "state": ["a", "b", "a"], "pay": [1.5, -2.0, 3.0]}), path
    )
    crowd = read_query_population(path, ["age:4", "state"], "pay")
    assert crowd.source == "people"
    assert crowd.names == ("age", "state")
    assert crowd.columns["age"].codes.tolist() == [0, 0, 3]
    assert crowd.schema["state"].size == 2
    assert crowd.measure is not None
    assert crowd.people == 3
    assert read_query_population(path, ["age"]).schema["age"].size == 13


@pytest.mark.parametrize(
    ("dimensions", "measure", "message"),
    [
        (["age:x"], None, r"dimensions \(age:x\)"),
        (["age:1"], None, "bins"),
        (["wide"], None, "give a number of bins"),
        (["pay"], None, "give a number of bins"),
        (["state:4"], None, "must hold finite numbers"),
        (["salary"], None, "not in the table"),
        (["age", "age:4"], None, "named once"),
        (["age"], "age", "is a dimension"),
        (["age"], "state", "finite numbers"),
        (["age"], "missing", "no missing values"),
    ],
)
def test_bad_tables_have_one_clear_error(
    tmp_path: Path, dimensions: Sequence[str], measure: str | None, message: str
) -> None:
    path = tmp_path / "people.parquet"
    columns = {
        "age": [18, 20],
        "wide": [0, 10**6],
        "pay": [0.5, 1.5],
        "state": ["a", "b"],
        "missing": [1, None],
    }
    pq.write_table(pa.table(columns), path)
    with pytest.raises(sv.InvalidInput, match=message):
        read_query_population(path, dimensions, measure)


def test_rows_that_stand_for_many_are_sampled_by_their_counts() -> None:
    column = dimension_column("x", np.arange(4), None)
    crowd = QueryPopulation("counts", {"x": column}, counts=np.array([0, 30, 70, 0]))
    assert crowd.people == 100
    drawn = np.bincount(crowd.sampled(10_000, 1, 0).columns["x"], minlength=4)
    assert drawn[0] == drawn[3] == 0
    assert (drawn[1] - 3000) ** 2 / (10_000 * 0.3 * 0.7) < chi2.isf(ALPHA, 1)


@pytest.mark.parametrize("most", [1 << 22, 1])
def test_truth_is_brute_force(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read from a table of all cells, or person by person."""
    monkeypatch.setattr(query_crowds, "MAX_TRUTH_CELLS", most)
    population = people(with_measure=True)
    target = Target.of(population.schema, population.names, None)
    crowd = asked_crowd(population, target, 500, 2, ["0.3", "random"], 4, 1, 0)
    assert crowd.crowd.measure is not None
    weights = crowd.crowd.measure
    ages, states = crowd.crowd.columns["age"], crowd.crowd.columns["state"]
    for volume in ("0.3", "random"):
        for term, truth in zip(crowd.terms[volume], crowd.truth[volume], strict=True):
            inside = [
                weight
                for age, state, weight in zip(ages, states, weights, strict=True)
                if term[0][age] and term[1][state]
            ]
            assert truth == pytest.approx(sum(inside) / np.abs(weights).sum())


# -- seeds


def test_the_source_the_run_and_epsilon_are_in_the_seeds() -> None:
    one, other = people("one"), people("other")
    assert not np.array_equal(
        one.sampled(50, 1, 0).columns["age"], other.sampled(50, 1, 0).columns["age"]
    )
    assert not np.array_equal(
        one.sampled(50, 1, 0).columns["age"], one.sampled(50, 1, 1).columns["age"]
    )
    plans = [planned(one, 1000, epsilon, "hio", ["0.5"], 1) for epsilon in ("1", "2")]
    seeds = {
        whispers_seed(made, crowd, 1, run)
        for made in plans
        for crowd in (one, other)
        for run in (0, 1)
    }
    assert len(seeds) == 8
    again = planned(one, 1000, "1", "hio", ["0.25", "random"], 2)
    assert whispers_seed(again, one, 1, 0) == whispers_seed(plans[0], one, 1, 0)  # same cohorts


# -- judging


def test_scores_by_hand() -> None:
    joint = Joint(np.array([0.5, 0.1, 0.3]), np.diag([0.01, 0.0001, 0.01]))
    found = judged(joint, np.array([0.4, 0.2, 0.0]), 1.0, True)
    assert found.mse == pytest.approx((0.01 + 0.01 + 0.09) / 3)
    assert found.mnae == pytest.approx(0.5 / 3)
    assert found.mre == pytest.approx((0.25 + 0.5) / 2)  # where the truth is not 0
    assert found.coverage == pytest.approx(1 / 3)
    drawn = Joint(np.zeros(1), np.eye(1), np.linspace(0, 1, 101)[:, None])
    assert judged(drawn, np.array([0.97]), 0.0, True).coverage == 1.0
    assert judged(drawn, np.array([0.99]), 0.0, True).coverage == 0.0
    assert judged(drawn, np.zeros(1), 0.0, False).mre is None


def test_rows_hold_what_they_should() -> None:
    rows = rows_of(people(), ["hio", "haar"], volumes=["0.25", "random"], coverage=True)
    assert [(row.method, row.volume) for row in rows] == [
        ("hio", 0.25),
        ("hio", "random"),
        ("haar", 0.25),
        ("haar", "random"),
    ]
    first = list(rows[0].to_json())[:8]
    assert first == ["method", "epsilon", "volume", "mse", "mnae", "mre", "coverage", "seconds"]
    assert rows[0].mse > 0
    assert 0 <= rows[0].coverage <= 1
    assert rows[0].predicates == 2
    assert rows[2].mse is None
    assert "one dimension" in rows[2].reason
    again = rows_of(people(), ["hio"], volumes=["0.25", "random"], coverage=True)
    assert [row.mse for row in again] == [row.mse for row in rows[:2]]
    done: list[int] = []
    list(compare_queries(people(), 500, ["1"], ["hio", "haar"], ["0.5"], 2, 2, 1, done.append))
    assert done[-1] == 4


def test_measured_errors_are_the_predicted_ones() -> None:
    """Of an even crowd: the mean over runs lies within what its spread over runs allows; the
    mutant, half of it, does not.
    """
    column = dimension_column("x", np.arange(25), None)
    population = QueryPopulation("even", {"x": column})
    made = planned(population, 5000, "1", "hio", ["0.4"], 1)
    expected = predicted(made).error ** 2
    target = Target.of(population.schema, population.names, None)
    found = []
    for run in range(40):
        crowd = asked_crowd(population, target, 5000, 1, ["0.4"], 40, 1, run)
        found.append(measured(made, crowd, population, 1, run)["0.4"].mse)
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    reach = 4.5 * error  # of a mean of 40: beyond ALPHA for the tails of Student's t
    assert abs(np.mean(found) - expected) < reach
    assert abs(np.mean(found) / 2 - expected) > reach


def test_sums_of_a_measure_with_both_signs() -> None:
    """At a large epsilon the answers are the truth, which a measure of one sign would miss."""
    population = people(with_measure=True)
    (row,) = rows_of(population, ["hio"], epsilons=["30"], people=20_000, queries=20)
    (noisy,) = rows_of(population, ["hio"], epsilons=["0.5"], people=20_000, queries=20)
    assert row.mse < noisy.mse / 100
    assert isinstance(row, QueriesComparison)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"volumes": ["0"]}, "volume"),
        ({"volumes": ["2"]}, "volume"),
        ({"volumes": []}, "at least one"),
        ({"epsilons": ["-1"]}, "epsilon"),
        ({"runs": 0}, "runs"),
        ({"predicates": 3}, "predicates"),
    ],
)
def test_bad_input_is_met_before_the_first_run(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(sv.InvalidInput, match=message):
        rows_of(people(), ["hio"], **changes)


@pytest.mark.parametrize("name", ["magic", "hio:width=3", "auto:fanout=3", "hio:fanout"])
def test_bad_methods_are_met_before_the_first_run(name: str) -> None:
    with pytest.raises(sv.InvalidInput):
        rows_of(people(), [name])
