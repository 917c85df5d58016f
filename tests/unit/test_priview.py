"""PriView: what covering views know without noise, what they cost, what they refuse."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

import sottovoce as sv
from sottovoce.accounting import GaussianStep, LaplaceStep
from sottovoce.central.domains import TableDomain, exact_counts
from sottovoce.central.estimate import workload_of
from sottovoce.central.priview import PriView, gaussian_noise, laplace_noise, view_noise
from sottovoce.central.priview_views import candidates, covering_views
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import InvalidInput
from sottovoce.postprocessing.maximum_entropy import proportional_fit
from tests.central_tables import known_table, ledger_of, terms_of, tied_codes, true_table
from tests.statistics import ALPHA

SIZES = (2, 3, 2, 2, 3)
VIEWS = ((0, 1, 2), (2, 3, 4), (0, 3), (0, 4), (1, 3), (1, 4))


def test_without_noise_views_are_exact_and_the_rest_has_maximum_entropy() -> None:
    people = 4000
    codes = tied_codes(SIZES, people, seed=1)
    terms = terms_of(150, 3, delta=0, noise="laplace", views=VIEWS)
    estimate = (
        PriView().release(known_table(SIZES, codes), terms, ledger_of(terms), Seeded(1)).estimate
    )
    assert estimate is not None
    for places in combinations(range(len(SIZES)), 3):
        (told,) = estimate.fit.tables([places])
        shape = tuple(SIZES[place] for place in places)
        if places in VIEWS:
            expected = true_table(codes, SIZES, places) / people
        else:
            parts = list(combinations(places, 2))
            axes = [tuple(places.index(place) for place in part) for part in parts]
            sums = [true_table(codes, SIZES, part).ravel() / people for part in parts]
            expected = proportional_fit(shape, list(zip(axes, sums, strict=True)))
        assert told == pytest.approx(expected.ravel(), abs=1e-3)
        names = estimate.work.attributes(places)
        assert estimate.marginal(*names).is_reconstructed == (places not in VIEWS)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_person_moves_the_views_by_what_the_step_says(neighbours: str) -> None:
    terms = terms_of("0.7", 2, neighbours=neighbours, views=VIEWS)
    table = known_table(SIZES, tied_codes(SIZES, 50, seed=2))
    domain = TableDomain.of(table)
    codes = table.codes

    def cells(rows: np.ndarray) -> np.ndarray:
        counts = exact_counts(known_table(SIZES, rows), domain, VIEWS, Seeded(1))
        return np.concatenate([counts[view].ravel() for view in VIEWS])

    if neighbours == "add-remove":
        moved = np.abs(cells(codes) - cells(codes[1:]))
    else:
        other = codes.copy()
        other[0] = (codes[0] + 1) % np.array(SIZES)
        moved = np.abs(cells(codes) - cells(other))
    laplace = laplace_noise(terms, len(VIEWS))
    gaussian = gaussian_noise(terms, len(VIEWS))
    assert isinstance(laplace.step, LaplaceStep)
    assert isinstance(gaussian.step, GaussianStep)
    assert moved.sum() == laplace.step.sensitivity
    assert (moved**2).sum() == gaussian.step.squared_sensitivity
    assert laplace.step.epsilon == Fraction(7, 10)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_ledger_has_all_of_the_budget(noise: str, neighbours: str) -> None:
    terms = terms_of(1, 2, noise=noise, neighbours=neighbours)
    ledger = ledger_of(terms)
    codes = tied_codes(SIZES, 100, seed=2)
    released = PriView().release(known_table(SIZES, codes), terms, ledger, Seeded(3))
    (step,) = ledger.steps
    assert step.mechanism == noise
    assert 0.999 < ledger.epsilon_at(1e-6) <= 1
    assert noise.capitalize() in released.notes[0]


def test_pure_privacy_needs_no_delta() -> None:
    terms = terms_of(1, 2, delta=0)
    ledger = ledger_of(terms)
    codes = tied_codes(SIZES, 100, seed=2)
    PriView().release(known_table(SIZES, codes), terms, ledger, Seeded(3))
    assert ledger.steps[0].mechanism == "laplace"
    assert ledger.delta_at(1.0) == 0
    with pytest.raises(InvalidInput, match=r"noise \(gaussian\) needs a delta greater than 0"):
        view_noise(terms_of(1, 2, delta=0, noise="gaussian"), 3)


def test_auto_takes_the_noise_that_varies_less() -> None:
    few, many = view_noise(terms_of(1, 2), 3), view_noise(terms_of(1, 2), 100)
    assert (few.kind, many.kind) == ("laplace", "gaussian")
    for views in (3, 100):
        both = laplace_noise(terms_of(1, 2), views), gaussian_noise(terms_of(1, 2), views)
        assert view_noise(terms_of(1, 2), views).variance == min(each.variance for each in both)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_of_views_has_the_variance_of_its_law(noise: str) -> None:
    terms = terms_of(1, 2, noise=noise, views=[[0, 1, 2, 3]])
    sizes = (8, 8, 8, 8)
    table = known_table(sizes, np.zeros((1000, 4), np.int64))
    fit = PriView().fit(table, terms, ledger_of(terms), Seeded(5))
    noisy = fit.heard.cells * fit.heard.total
    noisy[0] -= 1000
    statistic = float((noisy**2).sum() / fit.heard.law.variance)
    # the fourth moment of Laplace noise is 24 b^4 against 12 b^4 of Gaussian noise of its variance
    wider = 2.5 if noise == "laplace" else 1.0
    degrees = noisy.size / wider
    low, high = chi2.ppf(ALPHA / 2, degrees), chi2.isf(ALPHA / 2, degrees)
    assert low < statistic / wider < high
    assert statistic * 1.4 / wider > high  # a mutant with 40% more variance
    assert statistic / 1.4 / wider < low


def test_every_pair_lies_in_a_view() -> None:
    for sizes in ((2,) * 10, (2, 5, 3, 9, 2, 7), (100, 90, 2, 2, 3)):
        work = workload_of(
            TableDomain.of(known_table(sizes, np.zeros((1, len(sizes)), np.int64))), 3
        )
        designs = candidates(work)
        assert designs
        for views in designs:
            for pair in combinations(range(len(sizes)), 2):
                assert any(set(pair) <= set(view) for view in views)
    for limit in (40, 200):
        for view in covering_views((2, 3, 4, 10), 2, limit):
            assert np.prod([(2, 3, 4, 10)[place] for place in view]) <= limit


def test_views_do_not_depend_on_the_data() -> None:
    for neighbours in ("add-remove", "replace-one"):
        terms = terms_of(1, 2, neighbours=neighbours)
        fits = []
        for seed in (1, 2):
            codes = tied_codes(SIZES, 500, seed=seed)
            fits.append(
                PriView().fit(known_table(SIZES, codes), terms, ledger_of(terms), Seeded(1))
            )
        assert fits[0].heard.overlap.views == fits[1].heard.overlap.views
    # how many people there are is public only where neighbours share it
    small, large = (known_table(SIZES, tied_codes(SIZES, people, 1)) for people in (100, 10_000))
    assert PriView().predict(small, terms_of(1, 2)) is None
    guess = terms_of(1, 2, expected_people=500)
    assert PriView().predict(small, guess) == PriView().predict(large, guess)
    assert PriView().predict(small, terms_of(1, 2, neighbours="replace-one")) is not None


def test_what_does_not_fit_is_refused_with_the_reason() -> None:
    method = PriView()
    table = known_table(SIZES, np.zeros((3, 5), np.int64))
    huge = known_table((300, 300), np.zeros((3, 2), np.int64))
    many = known_table((200, 200, 200), np.zeros((3, 3), np.int64))
    assert method.refuse(table, terms_of(1, 3)) is None
    assert "no views of up to 65,536 cells" in str(method.refuse(huge, terms_of(1, 2)))
    assert "8,120,600 cells in all, more than 4,194,304" in str(method.refuse(many, terms_of(1, 3)))
    assert "a view has 90,000 cells" in str(method.refuse(huge, terms_of(1, 2, views=[[0, 1]])))
    for wrong, why in (
        ({"noise": "pink"}, r"noise \(pink\) must be one of auto, laplace, gaussian"),
        ({"views": [[1, 0]]}, r"priview: view \[1, 0\] must be increasing places below 5"),
        ({"theta": 1}, r"option \(theta\) is not one of priview's"),
    ):
        with pytest.raises(InvalidInput, match=why):
            method.refuse(table, terms_of(1, 2, **wrong))


def test_analysis_serves_a_release() -> None:
    codes = tied_codes(SIZES, 20_000, seed=6)
    terms = terms_of(1, 2)
    released = PriView().release(known_table(SIZES, codes), terms, ledger_of(terms), Seeded(2))
    estimate = released.estimate
    assert estimate is not None
    assert abs(estimate.people - 20_000) < 300
    by_pair = {test.attributes: test for test in sv.associate(estimate)}
    assert by_pair["a0", "a1"].p_value < 1e-6
    assert len(sv.synthesize(estimate, people=50, seed=1)) == 50
    table = estimate.marginal("a0", "a1")
    true = true_table(codes, SIZES, (0, 1)).ravel() / 20_000
    assert (np.abs(table.values - true) < 6 * table.std_error).all()
    assert (released.tuples[2].counts >= 0).all()
    assert (released.tuples[2].std_errors > 0).all()
