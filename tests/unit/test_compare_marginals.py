"""Populations are read as they are, and methods for marginals are measured against the people that
were sampled.
"""

from __future__ import annotations

from collections import Counter
from math import comb, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.measure import (
    Population,
    ratio_spread,
    read_population,
)
from sottovoce.measure.marginals import (
    coded,
    heard,
    measured,
    planned,
    random_queries,
    sampled,
    true_table,
    view_size,
    whispers_seed,
)
from sottovoce.measure.populations import Column, found, merged, quantile_bins
from sottovoce.results.estimate import Table
from tests.comparisons import people, rows_of
from tests.statistics import z_limit

# -- domains


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([True, False, True], (False, True)),
        ([1, 0, 1], (False, True)),
        (["yes", "no"], (False, True)),
        ([7, 3, 7], (3, 7)),
        ([1, 2, 1], (1, 2)),
        (["b", "a", "b"], ("a", "b")),
        ([2.0, 1.0], (1, 2)),
        ([0.5, 2.0, 0.25], ("0.25", "0.5", 2)),
        (["1", "0"], ("0", "1")),
    ],
)
def test_domains_are_those_found(values: list[Any], labels: tuple[Any, ...]) -> None:
    column = found("x", np.array(values))
    assert tuple(column.attribute.labels()) == labels
    expected = sorted(set(values))
    assert column.codes.tolist() == [expected.index(value) for value in values]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.arange(65), "65 different numbers.*--bins"),
        (np.ones(5), "single value"),
        (np.array(["a"] * 4), "single value"),
        (np.array([1.0, np.nan]), "missing"),
        (np.array(["a", None], dtype=object), "missing"),
        (np.array([str(number) for number in range(5000)]), "5,000 different texts"),
        (np.zeros((2, 2)), "one value per person"),
    ],
)
def test_domains_that_cannot_be_found(values: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=f"'x'.*{words}"):
        found("x", values)


def test_quantile_bins_are_even_ordered_and_whole() -> None:
    draws = np.random.default_rng(3)
    values = draws.normal(size=10_000)
    column = quantile_bins("x", values, 8)
    assert column.attribute.size == 8
    assert column.counts.tolist() == [1250] * 8
    order = np.argsort(values)
    assert (np.diff(column.codes[order]) >= 0).all()


@pytest.mark.parametrize(
    "values", [[0] * 95 + [1, 2, 3, 4, 5], [9] * 95 + [1, 2, 3, 4, 5], [0] * 50 + [1] * 50]
)
def test_quantile_bins_of_one_frequent_value(values: list[int]) -> None:
    column = quantile_bins("x", np.array(values), 8)
    assert column.attribute.size >= 2
    assert column.counts.min() > 0
    assert len(set(zip(values, column.codes.tolist(), strict=True))) == len(set(values))


def test_merging_keeps_the_most_frequent_and_everybody() -> None:
    column = found("x", np.array([0] * 5 + [1] * 50 + [2] * 20 + [3] * 30 + [4] * 2))
    narrow = merged(column, 3)
    assert tuple(narrow.attribute.labels()) == (1, 3, "other")
    assert narrow.counts.tolist() == [50, 30, 27]
    assert merged(column, 5) is column
    taken = merged(found("x", np.array(["other"] * 9 + list("abcde"))), 3)
    assert tuple(taken.attribute.labels()) == ("a", "other", "others")


def test_merging_numbers_keeps_their_order() -> None:
    values = np.random.default_rng(5).integers(0, 1000, 4000)
    narrow = merged(quantile_bins("x", values, 16), 3)
    assert narrow.attribute.size == 3
    assert narrow.counts.min() > 1000
    assert (np.diff(narrow.codes[np.argsort(values, kind="stable")]) >= 0).all()
    ages = Column(sv.Ordinal(0, 99), np.arange(99))
    assert tuple(merged(ages, 3).attribute.labels()) == ("0 to 32", "33 to 65", "66 to 98")


def test_the_richest_attributes_have_the_most_entropy() -> None:
    crowd = Population.of({"a": [0, 0, 0, 1], "b": [0, 1, 2, 3], "c": [0, 0, 1, 1]})
    assert list(crowd.richest(2).columns) == ["b", "c"]
    assert crowd.columns["b"].entropy == pytest.approx(2)


# -- files


def test_csv_and_parquet_are_the_same_people(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": [1, 2, 1],
            "t": pa.array(["u", "v", "u"]).dictionary_encode(),
            "f": [True, False, True],
        }
    )
    pq.write_table(table, tmp_path / "p.parquet")
    (tmp_path / "p.csv").write_text("n,t,f\n1,u,true\n2,v,false\n1,u,true\n")
    one, other = (read_population(tmp_path / name) for name in ("p.parquet", "p.csv"))
    assert one.schema.to_json() == other.schema.to_json()
    for name in one.columns:
        assert one.columns[name].codes.tolist() == other.columns[name].codes.tolist()
    assert list(read_population(tmp_path / "p.csv", attributes=["f", "n"]).columns) == ["f", "n"]


def test_a_schema_says_what_a_table_means(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("age,code,more\n20,1,a\n90,2,b\n")
    schema = sv.Schema(age=sv.Ordinal(18, 97, bins=4), code=sv.Categorical(["2", "1"]))
    crowd = read_population(tmp_path / "p.csv", schema)
    assert {name: column.codes.tolist() for name, column in crowd.columns.items()} == {
        "age": [0, 3],
        "code": [1, 0],
    }
    with pytest.raises(InvalidInput, match=r"'age'.*range"):
        read_population(tmp_path / "p.csv", sv.Schema(age=sv.Ordinal(18, 50)))


def test_the_top_items_are_those_of_the_most_rows(tmp_path: Path) -> None:
    baskets = [[5, 5, 5, 9], [9, 2], [2, 9, 7], [7], [], [3]]
    pq.write_table(pa.table({"items": baskets, "split": list(range(6))}), tmp_path / "p.parquet")
    crowd = read_population(tmp_path / "p.parquet", top=3)
    # 3, 2 and 2 rows; five is in one row only
    assert list(crowd.columns) == [
        "items_9",
        "items_2",
        "items_7",
    ]
    assert crowd.columns["items_9"].codes.tolist() == [1, 1, 1, 0, 0, 0]
    assert isinstance(crowd.schema["items_2"], sv.Boolean)


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"items": [[1], [2]], "n": [1, None]}), tmp_path / "p.parquet")
    (tmp_path / "p.csv").write_text("a,b\n1\n")
    for arguments, words in (
        (("p.parquet",), "'items' holds lists; --top"),
        (("p.parquet", None, ["n"]), "'n'.*missing values"),
        (("p.parquet", None, ["z"]), "'z' is not in the table .it has: items, n"),
        (("p.parquet", None, None, None, 3), "top .3. must be at most.*2"),
        (("p.parquet", None, ["z"], None, 2), "'z' is not in the table .it has: items_1, items_2"),
        (("p.csv", None, None, None, 2), "CSV"),
        (("no.csv",), "exists"),
    ):
        path, *rest = arguments
        with pytest.raises(InvalidInput, match=words):
            read_population(tmp_path / str(path), *rest)  # type: ignore[arg-type]


# -- truth and queries


def test_true_tables_are_counted_right() -> None:
    crowd = sampled(people(), 500, seed=3, run=0)
    sizes = {name: attribute.size for name, attribute in people().schema.items()}
    names = ("b", "c", "a")
    by_hand = Counter(zip(*(crowd.columns[name].tolist() for name in names), strict=True))
    expected = [by_hand[b, c, a] / 500 for b in range(4) for c in range(3) for a in range(2)]
    assert true_table(crowd.columns, names, sizes).tolist() == expected


def test_people_are_drawn_with_replacement_and_by_the_seed() -> None:
    one, again, other = (
        sampled(people(50), 5000, seed=4, run=run).columns["b"] for run in (0, 0, 1)
    )
    assert one.tolist() == again.tolist() != other.tolist()
    assert len(one) == 5000


def test_queries_are_different_sets_in_order() -> None:
    schema = sv.Schema(**{f"x{place:02d}": sv.Boolean() for place in range(40)})
    for k in (2, 8):
        drawn = random_queries(schema, k, 50, seed=1, run=0)
        assert len(set(drawn)) == 50
        assert all(list(each) == sorted(set(each)) and len(each) == k for each in drawn)
        assert (
            drawn
            == random_queries(schema, k, 50, seed=1, run=0)
            != random_queries(schema, k, 50, seed=1, run=1)
        )
    assert len(random_queries(people().schema, 2, 50, seed=1, run=0)) == comb(5, 2)
    small = random_queries(people().schema, 2, 50, seed=1, run=0, most_cells=6)
    # b has four values, so that its tables have eight cells or more
    assert len(small) == comb(4, 2)
    assert not any("b" in each for each in small)


# -- comparing


def test_the_uniform_method_errs_as_computed_by_hand() -> None:
    population = people()
    (row,) = rows_of(population, ["uniform"], queries=3, runs=2)
    schema = population.schema
    sizes = {name: attribute.size for name, attribute in schema.items()}
    squared, distances = [], []
    for run in range(2):
        crowd = sampled(population, 2000, 1, run)
        tables = [
            true_table(crowd.columns, names, sizes)
            for names in random_queries(schema, 2, 3, 1, run)
        ]
        squared.append(np.mean([((table - 1 / len(table)) ** 2).sum() for table in tables]))
        distances.append(np.mean([abs(table - 1 / len(table)).sum() / 2 for table in tables]))
    assert row.sse == pytest.approx(np.mean(squared))
    assert row.sse_std == pytest.approx(abs(squared[0] - squared[1]) / sqrt(2))
    assert row.tvd == pytest.approx(np.mean(distances))
    assert (row.queries, row.runs, row.people, row.views, row.view_size) == (3, 2, 2000, 1, 1)


def test_rows_share_people_and_tables_and_do_not_depend_on_each_other() -> None:
    population = people()
    alone = rows_of(population, ["marg-ps"])
    rows = rows_of(population, ["uniform", "marg-ps"], epsilons=["0.5", "1"])
    assert [(row.epsilon, row.method) for row in rows] == [
        (0.5, "uniform"), (0.5, "marg-ps"), (1.0, "uniform"), (1.0, "marg-ps"),
    ]  # fmt: skip
    assert rows[0].sse == rows[2].sse
    assert rows[3].sse == alone[0].sse
    assert rows_of(population, ["marg-ps"], seed=2)[0].sse != alone[0].sse


def test_auto_is_the_method_it_chooses() -> None:
    (auto,) = rows_of(people(), ["auto"])
    assert auto.chosen not in (None, "auto")
    schema = coded(people().schema)
    plans = [planned(schema, 2, 2000, "1", name)[0] for name in ("auto", str(auto.chosen))]
    assert plans[0].cohorts.to_json() == plans[1].cohorts.to_json()
    assert whispers_seed(plans[0], 1, 0) == whispers_seed(plans[1], 1, 0)
    (chosen,) = rows_of(people(), [str(auto.chosen)])
    assert auto.views == chosen.views
    # of the same reports the same optimizer makes the same tables up to where it stops, which may
    # hang on a last digit; other coins move these errors further
    assert (auto.sse, auto.tvd) == pytest.approx((chosen.sse, chosen.tvd), rel=0.1)


def test_one_run_has_no_deviation() -> None:
    (row,) = rows_of(people(), ["uniform"], runs=1)
    assert row.sse is not None
    assert row.sse_std is row.tvd_std is None


def test_a_method_that_does_not_fit_gives_its_reason() -> None:
    refused, fine = rows_of(people(), ["inp-em", "uniform"], k=3)
    assert refused.sse is refused.seconds is refused.views is None
    assert "does not fit" in str(refused.reason)
    assert fine.sse is not None


def test_progress_counts_every_run() -> None:
    seen: list[int] = []
    rows_of(people(), ["inp-em", "uniform"], k=3, epsilons=["1", "2"], progress=seen.append)
    assert seen[-1] == 8
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": 6}, "k .6."),
        ({"k": 0}, "k .0."),
        ({"people": 0}, "people .0."),
        ({"runs": 0}, "runs .0."),
        ({"queries": 0}, "queries .0."),
        ({"epsilons": ["1", "0"]}, "epsilon .0."),
        ({"epsilons": []}, "at least one"),
        ({"methods": ["uniform", "wish"]}, "method .wish."),
        ({"methods": ["calm:wish=1"]}, "'wish' is not one of calm's"),
        ({"methods": ["calm:theta"]}, "methods .calm:theta. must be names"),
        ({"methods": ["calm:up_to=3"]}, "'up_to' is not one of calm's"),
        ({"methods": ["auto:theta=0.1"]}, "'theta' needs a method by name"),
        ({"methods": ["inp-olh:width=4"]}, "'width' is not one of inp-olh's"),
        ({"planned_for": 0}, "planned_for .0."),
        ({"planned_for": 6}, "planned_for .6."),
        ({"repair": "wish"}, "method .wish."),
    ],
)
def test_bad_arguments_are_met_before_the_first_run(changes: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"methods": ["uniform"], **changes}
    with pytest.raises(InvalidInput, match=words):
        rows_of(people(), **arguments)


def test_tables_too_large_to_hold_are_refused() -> None:
    wide = Population.of({name: np.arange(64) for name in "abcd"})
    with pytest.raises(InvalidInput, match="16,777,216 cells"):
        rows_of(wide, ["uniform"], k=4)


def _measured_over_theory(claimed_people: int) -> tuple[float, float]:
    """(measured/claimed mean squared error, its spread) of one table that everybody reports by
    randomized response.
    """
    population = people().richest(2)
    runs, crowd = 60, 3000
    (row,) = rows_of(population, ["marg-ps"], people=crowd, runs=runs, queries=1)
    made, _ = planned(coded(population.schema), 2, crowd, "1", "marg-ps")
    oracle = made.cohorts[0].asks[0].oracle
    truth = (
        sampled(population, crowd, 1, 0)
        .asked([tuple(population.schema)], {"b": 4, "c": 3})
        .truth[0]
    )
    variances = oracle.all_variances(claimed_people, truth)
    assert row.sse is not None
    return row.sse / variances.sum(), ratio_spread(variances, runs)


def test_measured_error_is_that_of_the_oracle() -> None:
    ratio, spread = _measured_over_theory(3000)
    assert abs(ratio - 1) < z_limit(1) * spread
    mutant, spread = _measured_over_theory(6000)  # a theory that has twice the people
    assert abs(mutant - 1) > z_limit(1) * spread


def test_coverage_is_that_of_the_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """One yes or no: its two cells lie inside their intervals together, so that runs are coins of
    chance 0.95.
    """
    population = Population.of({"a": np.arange(1000) % 3 == 0})
    runs = 300
    limit = z_limit(1) * sqrt(0.95 * 0.05 / runs)

    def inside() -> float:
        (row,) = rows_of(
            population, ["marg-ps"], k=1, people=400, runs=runs, queries=1, coverage=True
        )
        assert row.coverage is not None
        return row.coverage

    assert abs(inside() - 0.95) < limit
    honest = Table.interval
    # the mutant: too narrow
    monkeypatch.setattr(Table, "interval", lambda table, level: honest(table, 0.8))
    assert abs(inside() - 0.95) > limit


def test_plans_with_the_same_cohorts_hear_the_same_crowd() -> None:
    population = people()
    schema = coded(population.schema)
    crowd = sampled(population, 1000, 1, 0)
    one, two = (planned(schema, k, 1000, "1", "fc")[0] for k in (2, 3))
    assert one.id != two.id
    assert whispers_seed(one, 1, 0) == whispers_seed(two, 1, 0) != whispers_seed(one, 1, 1)
    assert heard(one, crowd, 1, 0).state(0).tolist() == heard(two, crowd, 1, 0).state(0).tolist()


def test_view_sizes_come_from_the_plan() -> None:
    schema = coded(people().schema)
    assert view_size(planned(schema, 3, 1000, "1", "marg-ps")[0].cohorts) == 3
    assert view_size(planned(schema, 3, 1000, "1", "fc")[0].cohorts) == 5


def test_seconds_are_measured() -> None:
    population = people()
    crowd = sampled(population, 500, 1, 0).asked([("a", "d")], {"a": 2, "d": 2})
    assert (
        0
        < measured(
            planned(coded(population.schema), 2, 500, "1", "uniform")[0], crowd, 1, 0
        ).seconds
        < 5
    )
