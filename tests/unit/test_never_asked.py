"""Intervals of pairs that nobody was asked about hold all that their margins allow, and every answer names them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.marginals.methods import METHODS

Floats = NDArray[np.float64]

EVEN = (1 / 6,) * 6
SKEWED = (0.94, 0.03, 0.01, 0.01, 0.005, 0.005)
TABLES = (("a", "b"), ("c", "d"))
VIEWS = [[0, 1], [2, 3]]
ROUNDING = 1e-12

# How each method is led to leave the pair of a and c out: tables or views without it, tables of one attribute, or so
# few people that nobody is heard. Methods whose every report tells of all attributes never do.
LEFT_OUT: dict[str, dict[str, Any]] = {
    "uniform": {},
    "inp-ht": {"up_to": 1},
    "efron-stein": {"up_to": 1},
    "marg-rr": {"workload": TABLES},
    "marg-ps": {"workload": TABLES},
    "marg-ht": {"workload": TABLES},
    "am": {"workload": TABLES},
    "latent": {"people": 4},
    "fourier": {"people": 4},
    "calm": {"views": VIEWS},
    "calm+": {"views": VIEWS},
    "calm-binary": {"views": [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]},
    "joint": {"views": VIEWS},
}
ALWAYS_ASKED = ("inp-em", "em", "inp-rr", "inp-ps", "inp-olh", "inp-htcms", "fc")


def tied(shares: tuple[float, ...], people: int, names: str = "abcd") -> tuple[sv.Schema, dict[str, Any], Floats]:
    """People whose attributes are all the same: their schema, columns and the shares of the values."""
    schema = sv.Schema(**{name: sv.Ordinal(0, len(shares) - 1) for name in names})
    same = np.random.default_rng(3).choice(len(shares), people, p=shares)
    truth = np.bincount(same, minlength=len(shares)) / people
    return schema, dict.fromkeys(names, same), truth


def estimate(
    schema: sv.Schema, columns: dict[str, Any], question: sv.Marginals, epsilon: float, planned: int
) -> sv.MarginalEstimate:
    plan = sv.plan(schema, question, epsilon=epsilon, people=planned)
    found = sv.Aggregate(plan).add(sv.simulate(plan, columns, seed=2)).estimate()
    assert isinstance(found, sv.MarginalEstimate)
    return found


def diagonal(size: int, count: int) -> NDArray[np.int64]:
    """The cells of a table of ``count`` attributes in which all have the same value."""
    return np.ravel_multi_index((np.arange(size),) * count, (size,) * count)


def test_every_method_is_looked_at() -> None:
    assert {each.name for each in METHODS} == {*LEFT_OUT, *ALWAYS_ASKED}


@pytest.mark.parametrize("shares", [EVEN, SKEWED], ids=["even", "skewed"])
@pytest.mark.parametrize("name", LEFT_OUT)
def test_the_interval_holds_what_the_margins_intervals_allow(name: str, shares: tuple[float, ...]) -> None:
    options = {"up_to": 2, **LEFT_OUT[name]}
    people = options.pop("people", 3000)
    schema, columns, truth = tied(shares, people)
    found = estimate(schema, columns, sv.Marginals(method=name, **options), 1.0, 3000)
    unheard = [pair for pair in combinations("abcd", 2) if not found.is_asked(*pair)]
    assert unheard
    for pair in unheard:
        table = found.marginal(*pair)
        low, high = table.interval()
        ends = [found.marginal(each).interval() for each in pair]
        most = np.minimum.outer(ends[0][1], ends[1][1]).clip(0, 1).ravel()
        least = (np.add.outer(ends[0][0].clip(0), ends[1][0].clip(0)) - 1).clip(0).ravel()
        assert (high >= most - ROUNDING).all()
        assert (low <= least + ROUNDING).all()
        # so whoever's margins hold the truth holds the truth of a full tie
        cells = diagonal(len(shares), 2)
        margins_hold = [(own_low <= truth) & (truth <= own_high) for own_low, own_high in ends]
        pair_holds = (low[cells] <= truth) & (truth <= high[cells])
        assert (pair_holds | ~margins_hold[0] | ~margins_hold[1]).all()


def test_auto_is_not_sure_of_wider_tables_either() -> None:
    """Asked a x b and c x d: the table of a, c and d holds all that a's own table and that of c x d allow."""
    schema, columns, truth = tied((0.4, 0.25, 0.15, 0.1, 0.06, 0.04), 5000)
    found = estimate(schema, columns, sv.Marginals(up_to=2, workload=TABLES), 4.0, 5000)
    assert found.method == "marg-ps"
    for names in (("a", "c"), ("a", "c", "d"), ("a", "b", "c", "d")):
        table = found.marginal(*names)
        low, high = table.interval()
        cells = diagonal(6, len(names))
        holds = (low[cells] <= truth) & (truth <= high[cells])
        assert holds.mean() >= 5 / 6, names
    # a cell that c x d rules out stays ruled out
    low, high = found.marginal("a", "c", "d").interval()
    ruled_out = found.marginal("c", "d").interval()[1].reshape(6, 6)
    assert (high.reshape(6, 6, 6)[0, 0, 1:] < ruled_out[0, 1:] + 0.02).all()


def test_auto_is_not_sure_of_a_pair_whose_margins_seem_empty() -> None:
    schema, columns, truth = tied((1 / 12,) * 12, 5000, "abcdef")
    question = sv.Marginals(up_to=2, workload=[["a", "b"], ["c", "d"], ["e", "f"]])
    found = estimate(schema, columns, question, 1.0, 5000)
    assert found.method == "joint"
    low, high = (bound[diagonal(12, 2)] for bound in found.marginal("a", "c").interval())
    assert ((low <= truth) & (truth <= high)).all()


def test_what_was_asked_is_not_widened() -> None:
    schema, columns, _ = tied(EVEN, 3000)
    found = estimate(schema, columns, sv.Marginals(up_to=2, method="joint", views=VIEWS), 1.0, 3000)
    for names in (("a",), ("a", "b"), ("c", "d")):
        (own,) = found.fit.variances([found.work.places(names)])
        assert (found.marginal(*names).variances == own).all()


def test_an_attribute_never_asked_may_hold_anything() -> None:
    schema, columns, _ = tied(EVEN, 2000, "abc")
    question = sv.Marginals(up_to=2, workload=[["a", "b"]], method="marg-ps")
    table = estimate(schema, columns, question, 2.0, 2000).marginal("c")
    assert table.never_asked == (("c",),)
    low, high = table.interval()
    assert (low <= ROUNDING).all()
    assert (high >= 1 - ROUNDING).all()
