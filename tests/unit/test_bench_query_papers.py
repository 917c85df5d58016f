"""Measuring methods for queries at their papers' settings: metrics, crowds and the table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, wasserstein_distance

from bench import query_papers
from bench.query_papers import (
    GRID_COVARIANCE,
    GRID_PARTS,
    GRID_SIZE,
    Scale,
    correlated_codes,
    distances,
    half_boxes,
    main,
    range_error,
    tree_codes,
    true_shares,
)
from tests.statistics import ALPHA


def test_distances_are_brute_force() -> None:
    draws = np.random.default_rng(1)
    one, two = draws.dirichlet(np.ones(16)), draws.dirichlet(np.ones(16))
    places = np.arange(16) / 16
    first, second = np.cumsum(one)[:-1], np.cumsum(two)[:-1]
    wasserstein, largest = distances(first, second)
    assert wasserstein == pytest.approx(wasserstein_distance(places, places, one, two))
    assert largest == pytest.approx(max(abs(one[:k].sum() - two[:k].sum()) for k in range(16)))
    brute = [abs(one[k : k + 4].sum() - two[k : k + 4].sum()) for k in range(13)]
    assert range_error(first, second, 0.25) == pytest.approx(np.mean(brute))


def test_dimensions_go_together_as_the_paper_says() -> None:
    """Fisher's z of a correlation has the standard error 1/sqrt(n - 3); another one is rejected."""
    people = 20_000
    codes = correlated_codes("Normal", people, 1)
    found = np.corrcoef(codes["x0"], codes["x5"])[0, 1]
    # bins of an eighth of a standard deviation add a variance of width^2/12
    binned = 1 + (2 * query_papers.GRID_SPAN / GRID_SIZE) ** 2 / 12
    limit = norm.isf(ALPHA / 2) / np.sqrt(people - 3)
    assert abs(np.arctanh(found) - np.arctanh(GRID_COVARIANCE / binned)) < limit
    assert abs(np.arctanh(found) - np.arctanh(0.7 / binned)) > limit
    heavy = correlated_codes("Laplace", people, 1)
    outer = [np.mean(np.abs(own["x0"] - GRID_SIZE / 2 + 0.5) > 24) for own in (codes, heavy)]
    assert outer[1] > 3 * outer[0]  # beyond three standard deviations: .0027 and .014


def test_boxes_take_half_of_each_dimension_at_the_authors_ends() -> None:
    for term in half_boxes(4, 1):
        assert len(term) == 4
        for weights in term.values():
            inside = np.flatnonzero(np.asarray(weights))
            assert len(inside) == GRID_SIZE // 2
            assert np.ptp(inside) == len(inside) - 1
            assert inside[0] % (GRID_SIZE // GRID_PARTS) == 0


def test_true_shares_are_counted() -> None:
    codes = {"x0": np.array([0, 1, 2, 3]), "x1": np.array([0, 0, 1, 1])}
    terms = [{0: np.array([0.0, 1, 1, 1]), 1: np.array([1.0, 0, 0, 0])}, {1: np.ones(4)}]
    assert true_shares(codes, terms).tolist() == [0.25, 1.0]


@pytest.mark.parametrize("kind", ["Normal", "Laplace", "Zipf"])
def test_people_of_a_tree_lie_in_their_range(kind: str) -> None:
    codes = tree_codes(kind, 5_000, 64, 1)
    assert codes.min() >= 0
    assert codes.max() <= 63
    middle = np.median(codes)
    assert (middle < 8) if kind == "Zipf" else (25 < middle < 36)


def test_scales_have_the_papers_people_unless_it_is_quick() -> None:
    assert Scale().people(100_000) == 100_000
    assert Scale(1, 100).people(1_000_000) == 10_000
    assert Scale(1, 100).people(100) == 1_000


def test_the_table_has_a_row_for_each_metric_and_epsilon(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_papers, "BETA_EPSILONS", (2.0,))
    monkeypatch.setattr(query_papers, "BETA_SIZE", 16)
    assert main(["--only", "square-wave", "--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 4
    assert all(line.count("|") == 6 for line in lines)
    assert "EMS 0" in lines[2]


@pytest.mark.parametrize("arguments", [["--only", "olap"], ["--runs", "0"]])
def test_what_is_not_there_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert arguments[1] in capsys.readouterr().err
