"""A release answers tables of attributes, and analysis takes it, in memory and read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv

PEOPLE = 20_000
SCHEMA = sv.Schema(
    smoker=sv.Boolean(), drinks=sv.Categorical(["never", "weekly", "daily"]), age=sv.Ordinal(0, 3)
)


def people(with_empty: bool = False) -> dict[str, list[Any]]:
    """Smokers drink, and age goes with nothing; some say nothing of their drinks."""
    draws = np.random.default_rng(5)
    smoker = draws.random(PEOPLE) < 0.4
    drinks = np.where(smoker, draws.integers(1, 3, PEOPLE), draws.integers(0, 2, PEOPLE))
    words: list[Any] = [("never", "weekly", "daily")[code] for code in drinks]
    if with_empty:
        words = [None if number % 5 == 0 else word for number, word in enumerate(words)]
    return {
        "smoker": smoker.tolist(),
        "drinks": words,
        "age": draws.integers(0, 4, PEOPLE).tolist(),
    }


def released(folder: Path, with_empty: bool, **options: Any) -> sv.Release:
    return sv.release(
        people(with_empty),
        epsilon=2,
        delta=1e-6,
        up_to=2,
        schema=SCHEMA,
        may_be_empty=["drinks"] if with_empty else [],
        output=folder / "out",
        **options,
    )


@pytest.mark.parametrize("repair", ["none", "simplex"])
@pytest.mark.parametrize("with_empty", [False, True])
def test_tables_are_the_same_when_read_back(tmp_path: Path, with_empty: bool, repair: str) -> None:
    told = released(tmp_path, with_empty, method="residual", repair=repair)
    again = sv.load_release(tmp_path / "out")
    for names in [("smoker",), ("drinks",), ("drinks", "smoker"), ("age", "drinks")]:
        one, two = told.marginal(*names), again.marginal(*names)
        assert list(one.labels) == list(two.labels)
        assert np.allclose(one.values, two.values, atol=1e-9)
        assert one.values.sum() == pytest.approx(1)
        if repair == "none":
            assert np.allclose(one.std_error, two.std_error, rtol=1e-6)
            assert one.is_unbiased
            assert two.is_unbiased
        else:
            assert not two.is_unbiased
    beyond = again.marginal("smoker", "drinks", "age")  # more attributes than were released
    assert beyond.is_reconstructed
    assert beyond.values.sum() == pytest.approx(1, abs=1e-6)


def test_marginals_are_near_the_truth(tmp_path: Path) -> None:
    table = released(tmp_path, with_empty=True).marginal("drinks")
    truth = people(with_empty=True)["drinks"]
    for label in table:
        wanted = None if label == "(empty)" else label
        share = truth.count(wanted) / PEOPLE
        cell = table[label]
        assert abs(cell.value - share) < 5 * cell.std_error
        assert abs(cell.value - share) < 0.01


def test_analysis_takes_a_release(tmp_path: Path) -> None:
    for source in (released(tmp_path, with_empty=False), sv.load_release(tmp_path / "out")):
        tests = {test.attributes: test for test in sv.associate(source)}
        assert tests["smoker", "drinks"].p_value < 1e-6
        assert tests["smoker", "age"].p_value > tests["smoker", "drinks"].p_value
        tree = sv.dependency_tree(source)
        assert ("smoker", "drinks") in {
            tuple(sorted((edge.parent, edge.child), reverse=True)) for edge in tree.edges
        }
        drawn = sv.synthesize(source, people=50, seed=1)
        assert len(drawn) == 50


def test_what_was_found_is_a_table_too(tmp_path: Path) -> None:
    told = sv.release(people(), epsilon=2, delta=1e-6, up_to=2, output=tmp_path / "out")
    assert told.method == "dp-marginals"
    for release in (told, sv.load_release(tmp_path / "out")):
        table = release.marginal("drinks", "smoker")
        assert not table.is_complete
        assert not table.is_unbiased
        assert table["daily", True].value == pytest.approx(0.2, abs=0.03)
        with pytest.raises(sv.InvalidInput, match="lists tuples that were found"):
            sv.dependency_tree(release)
        with pytest.raises(sv.InvalidInput, match="attribute 'tea' is not in the release"):
            release.marginal("tea")
        with pytest.raises(sv.InvalidInput, match="must be at most 2"):
            release.marginal("drinks", "smoker", "age")
        with pytest.raises(sv.InvalidInput, match="must be different ones"):
            release.marginal("age", "age")


def test_sets_have_no_table_of_attributes() -> None:
    told = sv.release({"items": [["a", "b"]] * 500}, 1, 1e-6, 1, items="items")
    with pytest.raises(sv.InvalidInput, match="a release of sets has no table"):
        told.marginal("items")
