"""Popular values, method against method: judged as the thesis judges, against a truth that is
exact.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import kstwobign, norm

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.measure import (
    Baskets,
    Holdings,
    compare_heavyhitters,
    compare_itemsets,
    read_baskets,
    read_holdings,
)
from sottovoce.measure import top_itemsets as mined
from sottovoce.measure.choices import MethodChoice
from sottovoce.measure.heavyhitters import GENIE, ValueCrowd, genie, largest
from sottovoce.measure.popular import score
from sottovoce.schema import Sets
from tests.statistics import ALPHA, z_limit

# -- judging


def test_scores_by_hand() -> None:
    truth = {"a": 100, "b": 50, "c": 20, "d": 10}
    found = score(truth, {"b": 53.0, "a": 96.0, "x": 30.0})
    assert found.hits == 2
    assert found.f1 == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert found.ncr == pytest.approx((4 + 3) / 10)
    assert found.variance == pytest.approx((4**2 + 3**2) / 2)


def test_nothing_found_has_no_variance() -> None:
    assert score({"a": 1}, {}).variance is None
    assert score({"a": 1}, {}).f1 == score({"a": 1}, {"b": 1.0}).ncr == 0.0


def test_a_whole_answer_is_perfect() -> None:
    truth = {value: 9 - value for value in range(5)}
    perfect = score(truth, {value: float(count) for value, count in truth.items()})
    assert (perfect.f1, perfect.ncr, perfect.variance) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("text", ["", "pem:queries", ":a=1"])
def test_a_method_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidInput, match="must be names"):
        MethodChoice.parse(text)


def test_options_of_a_method() -> None:
    choice = MethodChoice.parse("psfo:length=3:oracle=olh:flag=false")
    assert (choice.method, choice.options) == (
        "psfo",
        {"length": 3, "oracle": "olh", "flag": False},
    )


# -- values


def test_values_are_cut_between_characters_and_added_up(tmp_path: Path) -> None:
    path = tmp_path / "words.parquet"
    pq.write_table(
        pa.table(
            {"word": ["naïve", "naïf", "na", "tea"], "n": pa.array([5, 2, 4, 1], pa.uint64())}
        ),
        path,
    )
    held = read_holdings(path, "word", "n", bytes=3)
    assert dict(zip(held.values, held.counts.tolist(), strict=True)) == {"na": 11, "tea": 1}


def test_a_csv_of_values_and_one_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text("x,n\n7,2\n300,1\n7,1\n")
    held = read_holdings(path, "x", "n", bits=16)
    assert (held.values, held.counts.tolist()) == ([300, 7], [1, 3])
    assert read_holdings(path, "x", bytes=2).people == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"value": "x"}, "bytes for text or bits"),
        ({"value": "x", "bytes": 2, "bits": 8}, "not both"),
        ({"value": "x", "bits": 8, "alphabet": "ab"}, "alphabet is for text"),
        ({"value": "y", "bits": 16}, "column 'y' is missing"),
        ({"value": "x", "bits": 8}, "at most 8 bits"),
        ({"value": "x", "bytes": 4, "alphabet": "ab"}, "the schema's alphabet"),
        ({"value": "x", "count": "w", "bytes": 4}, "column 'w'"),
    ],
)
def test_a_table_of_values_that_does_not_fit(
    tmp_path: Path, options: dict[str, object], words: str
) -> None:
    path = tmp_path / "values.csv"
    path.write_text("x,n,w\n7,2,a\n300,1,b\n")
    with pytest.raises(InvalidInput, match=words) as wrong:
        read_holdings(path, **options)  # type: ignore[arg-type]
    assert "300" not in str(wrong.value)


def test_sampled_people_follow_the_counts() -> None:
    held = Holdings.of(sv.Integer(8), [1, 2, 3], [6, 3, 1])
    crowd = held.sampled(50_000, 2, seed=1, run=0)
    assert crowd.people == 50_000
    shares = held.counts / 10
    scores = (crowd.counts - 50_000 * shares) / np.sqrt(50_000 * shares * (1 - shares))
    assert np.abs(scores).max() < z_limit(3)
    assert not np.array_equal(crowd.counts, held.sampled(50_000, 2, seed=1, run=1).counts)
    column = crowd.table()["value"]
    assert Counter(column.tolist()) == dict(zip(held.values, crowd.counts.tolist(), strict=True))
    assert list(crowd.truth) == [1, 2]
    few = crowd.few(1000)
    assert few.people == 1000
    assert few.counts == pytest.approx(1000 * shares, abs=10)


# -- the genie


def test_the_largest_of_many_normal_draws() -> None:
    """P(largest <= x) = Phi(x)^M: its transform is uniform; with a wrong M it is not, by the same
    measure.
    """
    many, runs = 1 << 40, 4000
    drawn = np.array([largest(np.random.default_rng(seed), many, 3) for seed in range(runs)])
    assert (np.diff(drawn, axis=1) < 0).all()
    limit = float(kstwobign.isf(ALPHA)) / np.sqrt(runs)

    def distance(assumed: float) -> float:
        chances = np.sort(np.exp(-assumed * norm.sf(drawn[:, 0])))
        return float(np.abs(chances - (np.arange(runs) + 0.5) / runs).max())

    assert distance(many) < limit < distance(1.5 * many)
    # the expected number of draws beyond the third largest's tail is 3
    above = many * norm.sf(drawn[:, 2])
    assert abs(above.mean() - 3) / np.sqrt(3 / runs) < z_limit(1)


def test_of_few_draws_all_are_drawn() -> None:
    assert len(largest(np.random.default_rng(1), 2, 5)) == 2


def test_the_genie_hears_through_the_best_oracle() -> None:
    """Its squared error is that of everybody's reports; half of it would be rejected."""
    held = Holdings.of(sv.Integer(48), range(400), [10_000] * 400)
    crowd = ValueCrowd(held, held.counts, 400)
    found = genie(held, 400)(crowd, 4.0, 7)
    source = sv.oracle("olh", size=1 << 24, epsilon=4.0)
    variance = 4_000_000**2 * source.noise(4_000_000).floor  # type: ignore[attr-defined]
    errors = np.array([found[value] - 10_000 for value in held.values])
    ratio = float((errors**2).mean() / variance)
    assert abs(ratio - 1) / np.sqrt(2 / 400) < z_limit(1) < abs(ratio / 2 - 1) / np.sqrt(2 / 400)


def test_the_genie_finds_what_is_frequent_and_noise_where_nothing_is() -> None:
    held = Holdings.of(sv.Integer(64), [3, 10**15, *range(100, 2100)], [4000, 3000, *[1] * 2000])
    (row,) = compare_heavyhitters(held, 4, ["2"], [GENIE], runs=2, seed=1)
    assert row.found == 2.0
    assert row.f1 == pytest.approx(0.5)


# -- a whole comparison


def test_rows_of_heavy_hitters() -> None:
    held = Holdings.of(sv.Text(bytes=2), ["ab", "cd", "ef", "gh"], [5, 3, 1, 1])
    done: list[int] = []
    methods = ["windows", "auto", GENIE]
    rows = list(
        compare_heavyhitters(held, 2, ["2", "4"], methods, 2, 1, people=4000, progress=done.append)
    )
    assert [(row.epsilon, row.method) for row in rows] == [
        (e, m) for e in (2.0, 4.0) for m in methods
    ]
    assert done[-1] == 12
    for row in rows:
        assert (row.found, row.f1, row.ncr, row.runs, row.people) == (2.0, 1.0, 1.0, 2, 4000)
        assert row.variance is not None
        assert row.f1_std == 0.0
    assert rows[0].variance == rows[1].variance  # the same people and coins for every row
    again = list(compare_heavyhitters(held, 2, ["2"], ["windows"], 2, 1, people=4000))
    assert again[0].variance == rows[0].variance


def test_the_variance_is_that_of_everybodys_reports() -> None:
    """Windows hear everybody about every value: the measured squared error is the oracle's; a third
    is rejected.
    """
    held = Holdings.of(sv.Integer(16), range(40), [2000] * 40)
    (row,) = compare_heavyhitters(held, 40, ["4"], ["windows"], runs=5, seed=1)
    source = sv.oracle("olh", size=1 << 16, epsilon=4.0)
    variance = 80_000**2 * source.variance(80_000, 1 / 40)  # type: ignore[call-arg]
    assert row.found == 40.0
    assert row.variance is not None
    ratio = row.variance / variance
    assert abs(ratio - 1) / np.sqrt(2 / 200) < z_limit(1) < abs(ratio / 3 - 1) / np.sqrt(2 / 200)


def test_what_does_not_fit_has_a_reason() -> None:
    held = Holdings.of(sv.Integer(16), range(10))
    with pytest.raises(InvalidInput, match="method"):
        list(compare_heavyhitters(held, 2, ["1"], ["magic"], 1, 1))
    with pytest.raises(InvalidInput, match="runs"):
        list(compare_heavyhitters(held, 2, ["1"], ["windows"], 0, 1))
    with pytest.raises(InvalidInput, match="at least one"):
        list(compare_heavyhitters(held, 2, [], ["windows"], 1, 1))
    rich = Holdings.of(sv.Integer(16), [1], [10**12])
    with pytest.raises(InvalidInput, match="--people"):
        list(compare_heavyhitters(rich, 2, ["1"], ["windows"], 1, 1))
    (row,) = compare_heavyhitters(held, 2, ["1"], ["windows"], 1, 1, candidates=["no number"])
    assert row.f1 is None
    assert "candidates" in (row.reason or "")


# -- sets


def by_brute_force(rows: list[set[int]], top: int) -> list[int]:
    counts = Counter(
        part
        for row in rows
        for size in range(1, len(row) + 1)
        for part in combinations(sorted(row), size)
    )
    return sorted(counts.values(), reverse=True)[:top]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("top", [1, 5, 40, 5000])
def test_itemsets_are_mined_exactly(seed: int, top: int) -> None:
    draws = np.random.default_rng(seed)
    chances = draws.random(9) ** 2
    rows = [set(np.flatnonzero(draws.random(9) < chances).tolist()) for _ in range(150)]
    held = Baskets.of([sorted(row) for row in rows])
    found = mined(held.sets, top)
    assert [count for _, count in found] == by_brute_force(rows, top)
    assert len({items for items, _ in found}) == len(found)
    for items, count in found[:50]:
        assert count == sum({held.items[item] for item in items} <= row for row in rows)


def test_nobody_holds_anything() -> None:
    assert mined(Sets(np.zeros(4, np.int64), np.zeros(0, np.uint64)), 3) == []


def test_baskets_of_a_csv_and_of_lists_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "sets.csv"
    path.write_text('id,basket\n1,tea; milk;tea\n2,""\n3,milk\n')
    listed = tmp_path / "sets.parquet"
    pq.write_table(pa.table({"basket": [["tea", "milk", "tea"], [], ["milk"]]}), listed)
    for source in (path, listed):
        held = read_baskets(source, "basket")
        assert held.items == ("milk", "tea")
        assert held.sets.codes.tolist() == [0, 1, 0]
        assert held.sets.starts.tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"items": [[1, 2], None]}, "missing values"),
        ({"items": [[1, None], [2]]}, "missing values"),
        ({"items": [[0.5], [1.5]]}, "whole numbers or text"),
        ({"items": [1, 2]}, "lists of items"),
        ({"items": [[1], [1]]}, "two different items"),
        ({"other": [[1], [1]]}, "is missing"),
    ],
)
def test_a_table_of_sets_that_does_not_fit(
    tmp_path: Path, table: dict[str, list[object]], words: str
) -> None:
    path = tmp_path / "sets.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(InvalidInput, match=words):
        read_baskets(path, "items")


def test_rows_of_items_and_of_sets() -> None:
    held = Baskets.of([[10, 20], [20], [20, 30], [40]] * 3000)
    (row,) = compare_itemsets(held, 2, ["4"], ["svim"], runs=2, seed=1)
    assert row.reason is None
    assert row.found is not None
    assert row.found >= 1
    (of_sets,) = compare_itemsets(
        held, 3, ["4"], ["svsm"], runs=1, seed=1, people=6000, of_sets=True
    )
    assert of_sets.reason is None
    assert of_sets.people == 6000
