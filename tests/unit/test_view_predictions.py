"""Predictions by arrays are those of a plain sum over sets; bounds lie below all of them."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations
from math import comb, inf, prod

import numpy as np
import pytest

from sottovoce.postprocessing.consistency import Overlap
from sottovoce.postprocessing.simplex import norm_sub
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.methods.calm import Calm
from sottovoce.questions.marginals.methods.view_bounds import AlikeViews
from sottovoce.questions.marginals.methods.view_predictions import (
    MOST_SHAPES,
    SATURATION,
    SEED,
    TRIALS,
    TypicalTables,
    expected,
    projected,
)
from sottovoce.questions.marginals.methods.views import parts_in
from sottovoce.questions.marginals.models.designs import cover, drawn
from sottovoce.questions.marginals.models.structure import EVENNESS
from sottovoce.questions.marginals.models.ties import tie_square
from sottovoce.questions.marginals.workload import Places, Workload

Views = tuple[Places, ...]


def workload(sizes: tuple[int, ...], order: int) -> Workload:
    return Workload(tuple(f"a{place}" for place in range(len(sizes))), sizes, order)


# -- plainly


def plain_projected(shape: tuple[int, ...], noise: float) -> float:
    draws = np.random.Generator(np.random.PCG64(SEED))
    truth = np.ones((TRIALS, 1))
    for size in shape:
        law = draws.dirichlet(np.full(size, EVENNESS), TRIALS)
        truth = (truth[:, :, None] * law[:, None, :]).reshape(TRIALS, -1)
    errors = draws.normal(0, np.sqrt(noise / max(truth.shape[1] - 1, 1)), truth.shape)
    errors -= errors.mean(1, keepdims=True)
    return float(((norm_sub(truth + errors) - truth) ** 2).sum(1).mean())


def plain_expected(
    sample: list[Places], sizes: tuple[int, ...], views: Views, weights: list[float]
) -> tuple[float, float]:
    """(noise, reconstruction), one set of one table after the other."""
    overlap = Overlap(sizes, views)
    totals = overlap.weights(np.array(weights))
    work = workload(sizes, 1)
    masses = [(EVENNESS + 1) / (size * EVENNESS + 1) for size in sizes]
    longest = max(3, *(len(view) for view in views))
    terms = sum(comb(len(sample[0]), count) for count in range(1, longest + 1))
    tables = sample[:: max(1, -(-len(sample) * terms // 15_000))]
    noise = reconstruction = 0.0
    for places in tables:
        for count in range(1, min(longest, len(places)) + 1):
            for own in combinations(places, count):
                share = 1.0
                for place in set(places) - set(own):
                    is_known = overlap.knows(tuple(sorted((*own, place))))
                    share *= 1 / sizes[place] if is_known else masses[place]
                if overlap.knows(own):
                    contrasts = prod(1 - 1 / sizes[place] for place in own)
                    noise += contrasts / float(totals[overlap.starts[own]]) * share
                else:
                    missed = tie_square(work, own) * prod(1 - masses[place] for place in own)
                    others = prod(masses[place] for place in places if place not in own)
                    reconstruction += missed * others
    masks = [sum(1 << place for place in view) for view in views]
    by_shape: dict[tuple[int, ...], list[float]] = {}
    for places in tables[:: max(1, len(tables) // MOST_SHAPES)]:
        for part in parts_in(masks, places)[:1]:
            shape = tuple(sizes[place] for place in part)
            amount = float((1 / totals[overlap.numbers_of(part)[1:]]).sum()) / prod(shape)
            by_shape.setdefault(shape, []).append(amount)
    means = {shape: float(np.mean(amounts)) for shape, amounts in by_shape.items()}
    kept = sum(plain_projected(shape, mean) for shape, mean in means.items()) / sum(means.values())
    left = noise / len(tables) * kept
    return left * SATURATION / (left + SATURATION), reconstruction / len(tables)


SAMPLES = {
    "pairs": ((2,) * 7, 2, drawn(7, 3, 9)),
    "triples of pairs": ((2,) * 7, 3, tuple(combinations(range(7), 2))),
    "some pairs alone": ((3, 2, 4, 2, 5), 3, ((0, 1), (1, 2), (3, 4))),
    "views of several widths": ((2, 3, 2, 4, 2, 3), 4, ((0, 1, 2, 3), (1, 4), (2, 3, 5), (0,))),
    "many tables": ((2,) * 14, 5, cover(14, 4, 2) or ()),
    "one view": ((2, 3, 4), 2, ((0, 1, 2),)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_predictions_are_those_of_a_plain_sum(name: str) -> None:
    sizes, order, views = SAMPLES[name]
    work = workload(sizes, order)
    weights = [1000.0 * (1 + number % 3) for number in range(len(views))]
    cells = [prod(sizes[place] for place in view) for view in views]
    shares = tuple(weight / count for weight, count in zip(weights, cells, strict=True))
    longest = max(3, *(len(view) for view in views))
    tables = TypicalTables.of(work.sample, sizes, longest)
    found = expected(tables, views, shares)
    assert found is not None
    noise, reconstruction = plain_expected(list(work.sample), sizes, views, weights)
    assert found.noise == pytest.approx(noise, rel=1e-9)
    assert found.reconstruction == pytest.approx(reconstruction, rel=1e-9, abs=1e-15)


def test_tables_of_different_lengths_are_added_up_alike() -> None:
    sizes, views = (2, 3, 4, 2), ((0, 1), (2, 3), (1, 2))
    sample: list[Places] = [(0, 1, 2), (3,), (1, 3), (0, 1, 2, 3)]
    weights = [500.0, 700.0, 900.0]
    shares = tuple(w / prod(sizes[p] for p in v) for w, v in zip(weights, views, strict=True))
    found = expected(TypicalTables.of(sample, sizes, 3), views, shares)
    assert found is not None
    noise, reconstruction = plain_expected(sample, sizes, views, weights)
    assert found.noise == pytest.approx(noise, rel=1e-9)
    assert found.reconstruction == pytest.approx(reconstruction, rel=1e-9)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_prediction_that_is_cut_short_is_above_the_limit(name: str) -> None:
    sizes, order, views = SAMPLES[name]
    tables = TypicalTables.of(workload(sizes, order).sample, sizes, max(3, *map(len, views)))
    shares = (50.0,) * len(views)
    whole = expected(tables, views, shares)
    assert whole is not None
    for most in (0.1, 0.5, 0.99, 1.01, 3.0):
        limit = most * whole.error
        assert expected(tables, views, shares, limit) == (None if most < 1 else whole)


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (2, 2, 2, 2), (40, 40)])
def test_what_repair_leaves_grows_less_than_the_noise(shape: tuple[int, ...]) -> None:
    noises = np.geomspace(1e-6, 30, 25)
    left = np.array([projected(shape, float(noise)) for noise in noises])
    assert left[8] == pytest.approx(plain_projected(shape, float(noises[8])), rel=1e-9)
    assert (np.diff(left) >= 0).all()
    assert (np.diff(left / noises) <= 0).all()


# -- bounds


def err_more_than(
    chosen: Calm, work: Workload, terms: Terms, widths: list[int], views: Views
) -> float:
    """The largest share of their predicted error that these views are told to err more than."""
    parts = chosen.expected(work, terms, views)
    assert parts is not None
    alike = AlikeViews(work, terms.people, lambda cells: chosen.oracle(cells, terms.epsilon))
    tables = chosen.tables(work, max(3, *widths))
    shares = np.linspace(0.02, 1.2, 60)
    told = [alike.err_more(tables, widths, len(views), share * parts.error) for share in shares]
    assert told == sorted(told, reverse=True)
    return float(shares[sum(told) - 1]) if any(told) else 0.0


@pytest.mark.parametrize("name", ["calm", "joint"])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "2.5"])
@pytest.mark.parametrize(
    ("size", "points", "order"), [(2, 8, 2), (2, 12, 3), (3, 7, 2), (4, 6, 3), (2, 5, 4)]
)
def test_no_views_err_less_than_the_bound(
    name: str, epsilon: str, size: int, points: int, order: int
) -> None:
    chosen = method(name)
    assert isinstance(chosen, Calm)
    work = workload((size,) * points, order)
    for people in (5_000, 500_000):
        terms = Terms.of(epsilon, people)
        for width in range(2, min(points, 6) + 1):
            for views in {cover(points, width, 2), drawn(points, width, 60)} - {None}:
                assert views is not None
                pairs = {pair for view in views for pair in combinations(view, 2)}
                if len(pairs) < comb(points, 2):
                    continue
                exact = err_more_than(chosen, work, terms, [width], views)
                assert exact <= 1
                if width < points:
                    any_width = list(range(2, width + 1))
                    assert err_more_than(chosen, work, terms, any_width, views) <= exact


def test_views_of_several_widths_do_not_err_less_than_the_bound() -> None:
    chosen = method("joint")
    assert isinstance(chosen, Calm)
    work, terms = workload((2,) * 8, 2), Terms.of("1", 100_000)
    views = tuple(sorted({*combinations(range(8), 2), *combinations(range(8), 3)}))
    assert 0.8 < err_more_than(chosen, work, terms, [2, 3], views) <= 1


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_the_bound_of_even_views_of_pairs_is_close(epsilon: str) -> None:
    chosen = method("joint")
    assert isinstance(chosen, Calm)
    work, terms = workload((2,) * 8, 2), Terms.of(epsilon, 100_000)
    views = tuple(combinations(range(8), 3))
    assert err_more_than(chosen, work, terms, [3], views) > 0.9


def test_nothing_is_told_of_views_that_nobody_may_report() -> None:
    work = workload((2,) * 6, 2)
    chosen = method("joint")
    assert isinstance(chosen, Calm)
    alike = AlikeViews(work, 100, lambda cells: chosen.oracle(cells, Decimal(1)))
    tables = chosen.tables(work, 3)
    assert alike.err_more(tables, [2], 50, 0.0)
    assert not alike.err_more(tables, [2], 101, 0.0)
    assert not alike.err_more(tables, [2], 0, 0.0)
    assert not alike.err_more(tables, [2], 50, inf)
    assert AlikeViews.fits(work)
    assert not AlikeViews.fits(workload((2, 3), 2))
    assert not AlikeViews.fits(workload((2, 2), 1))
