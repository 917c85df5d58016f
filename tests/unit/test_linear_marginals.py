"""The linear methods for marginals piece by piece: sums against brute force, refusals, empty
cohorts, larger sets.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import chain, combinations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.oracles import find
from sottovoce.oracles.rules import CALM_RULE, oracle_by
from sottovoce.postprocessing.maximum_entropy import proportional_fit
from sottovoce.protocol.families import Subsets
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import MarginalMethod
from sottovoce.questions.marginals.methods import method
from sottovoce.questions.marginals.methods.full import FULL, margins
from sottovoce.questions.marginals.methods.subsets import PER_TABLE, Views
from sottovoce.questions.marginals.workload import Workload

ONE = Decimal(1)
SCHEMA = sv.Schema(
    a=sv.Boolean(), b=sv.Categorical(["x", "y", "z"]), c=sv.Boolean(), d=sv.Boolean()
)
SIZES = (2, 3, 2, 2)


def bits(count: int, order: int) -> Workload:
    return Workload(tuple(f"a{place}" for place in range(count)), (2,) * count, order)


def crowd(people: int, seed: int = 1) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """People drawn from a joint without interactions of three attributes, and their whole table."""
    draws = np.random.default_rng(seed)
    a = draws.random(people) < 0.3
    b = np.where(a, draws.integers(0, 3, people), draws.integers(0, 2, people))
    c = a ^ (draws.random(people) < 0.2)
    d = draws.random(people) < np.array([0.2, 0.5, 0.7])[b]
    joint = np.zeros(SIZES)
    np.add.at(joint, (a.astype(int), b, c.astype(int), d.astype(int)), 1 / people)
    return {"a": a, "b": np.array(["x", "y", "z"])[b], "c": c, "d": d}, joint


def estimated(
    name: str, people: int, epsilon: float, order: int = 2, **question: object
) -> sv.MarginalEstimate:
    plan = sv.plan(
        SCHEMA,
        sv.Marginals(order, method=name, **question),
        epsilon=epsilon,
        people=max(people, 100),
    )  # type: ignore[arg-type]
    plan = sv.Plan.from_json(plan.to_json(), id=plan.id)
    made = sv.Aggregate(plan).add(sv.simulate(plan, crowd(people)[0], seed=3)).estimate()
    assert isinstance(made, sv.MarginalEstimate)
    return made


def test_margins_are_sums() -> None:
    sizes = (2, 3, 1, 4)
    table = np.random.default_rng(1).normal(size=24)
    sets = list(chain.from_iterable(combinations(range(4), count) for count in range(5)))
    for each, found in zip([*sets, sets[3]], margins(table, sizes, [*sets, sets[3]]), strict=True):
        expected = table.reshape(sizes).sum(axis=tuple(set(range(4)) - set(each)))
        assert np.allclose(found, expected.ravel())


def test_the_rule_of_the_papers() -> None:
    """3E + 2 is 10.15 at epsilon 1."""
    names = [oracle_by(CALM_RULE, size, ONE).names[0] for size in (2, 10, 11, 512, 513)]
    assert names == ["grr", "grr", "oue", "oue", "olh"]
    assert oracle_by("hrr", 5, ONE).names[0] == "hrr"
    family = Subsets(SCHEMA, ("a", "b", "c", "d"), 3, CALM_RULE, ONE, oracle_by)
    assert {each.names[0]: size for size, each in family._oracles.items()} == {"grr": 8, "oue": 12}
    assert Subsets.from_json(family.to_json(), SCHEMA) == family
    assert (
        method("fc")
        .cohorts(SCHEMA, Workload(tuple("abcd"), SIZES, 2), ONE, {})[0]
        .oracles[0]
        .names[0]
        == "oue"
    )


@pytest.mark.parametrize(
    ("name", "work", "people", "words"),
    [
        ("inp-rr", bits(17, 2), 10_000, "131,072 cells, more than 65,536"),
        ("inp-ps", bits(25, 2), 10_000, "33,554,432 cells, more than 16,777,216"),
        ("inp-olh", bits(60, 2), 10_000, "about 10^18 cells"),
        ("inp-htcms", bits(21, 2), 10_000, "2,097,152 cells, more than 1,048,576"),
        ("fc", bits(32, 2), 10_000, "4,294,967,296 cells"),
        ("marg-ps", bits(32, 3), 4_000, "4,960 tables and 4,000 people"),
        ("am", bits(32, 8), 1 << 40, "10,518,300 tables, more than 65,536"),
        ("marg-rr", Workload(("x", "y"), (1000, 1000), 2), 10_000, "at most 65,536"),
        (
            "marg-ht",
            Workload(("x", "y", "z"), (1000, 1000, 1000), 3),
            10_000,
            "1,000,000,000 cells",
        ),
    ],
)
def test_what_does_not_fit_is_said(name: str, work: Workload, people: int, words: str) -> None:
    reason = method(name).refuse(work, Terms(ONE, people))
    assert reason is not None
    assert words in reason


@pytest.mark.parametrize("chosen", [*FULL, *PER_TABLE], ids=lambda each: each.name)
def test_an_epsilon_that_says_nothing_is_refused(chosen: MarginalMethod) -> None:
    reason = chosen.refuse(bits(4, 2), Terms(Decimal("1e-40"), 1000))
    assert reason is not None
    assert "epsilon" in reason
    assert chosen.refuse(bits(4, 2), Terms(ONE, 1000)) is None
    assert chosen.reason(bits(4, 2), Terms(ONE, 1000), {})


def test_options_of_a_sketch() -> None:
    chosen = method("inp-htcms")
    settled = chosen.settle(bits(16, 2), Terms(ONE, 1000))
    assert (settled["width"], settled["hashes"]) == (1 << 16, 16)
    assert settled == chosen.settle(bits(16, 2), Terms(ONE, 1000))
    assert chosen.settle(bits(4, 2), Terms(ONE, 1000))["width"] == 1024
    assert chosen.settle(bits(4, 2), Terms(ONE, 1000), {"width": 8, "hashes": 2, "salt": 7}) == {
        "hashes": 2,
        "width": 8,
        "salt": "7",
    }
    with pytest.raises(sv.InvalidInput, match="option 'rows'"):
        chosen.settle(bits(4, 2), Terms(ONE, 1000), {"rows": 3})
    with pytest.raises(sv.InvalidInput, match="width"):
        chosen.settle(bits(4, 2), Terms(ONE, 1000), {"width": 3})
    with pytest.raises(sv.InvalidInput, match="it has none"):
        method("inp-ps").settle(bits(4, 2), Terms(ONE, 1000), {"width": 3})


def test_wide_rows_are_the_better_choice_for_sums() -> None:
    chosen, work = method("inp-htcms"), bits(12, 2)
    errors = [
        chosen.predict(work, Terms(ONE, 1 << 16), chosen.settle(work, Terms(ONE, 1 << 16), shape))
        for shape in ({}, {"hashes": 8, "width": 256}, {"hashes": 4, "width": 1 << 12})
    ]
    assert errors[0] < min(errors[1:])


@pytest.mark.parametrize("chosen", FULL, ids=lambda each: each.name)
def test_every_set_is_unbiased_from_the_whole_table(chosen: MarginalMethod) -> None:
    estimate = estimated(chosen.name, 2000, 2.0)
    whole = estimate.marginal("a", "b", "c", "d")
    assert estimate.fit.is_unbiased((0, 1, 2, 3))
    assert not estimate.fit.is_reconstructed((0, 1, 2, 3))
    turned = estimate.marginal("c", "a")
    sums = whole.values.reshape(SIZES).sum(axis=(1, 3))
    assert np.allclose(turned.values, sums.T.ravel())
    assert (turned.variances > 0).all()
    assert (turned.variances > whole.variances.max()).all()


def test_views_that_contain_a_set() -> None:
    work = Workload(tuple("abcd"), SIZES, 2)
    views = Views(work)
    assert [views.listed[number] for number in views.containing((1,))] == [(0, 1), (1, 2), (1, 3)]
    assert views.containing((0, 1, 2)) == ()
    listed = Views(Workload(tuple("abcd"), SIZES, 3, ((1,), (0, 1, 2), (3,))))
    assert listed.containing((1,)) == (0, 1)
    assert listed.containing((0, 2)) == (1,)
    assert listed.containing((2, 3)) == ()


@pytest.mark.parametrize("chosen", PER_TABLE, ids=lambda each: each.name)
def test_larger_sets_are_the_maximum_entropy_of_the_tables(chosen: MarginalMethod) -> None:
    """With hardly any noise, the reconstruction is that of the true pairs."""
    _, joint = crowd(60_000)
    estimate = estimated(chosen.name, 60_000, 12.0)
    table = estimate.marginal("a", "b", "c")
    assert table.is_reconstructed
    assert not table.is_unbiased
    assert "bootstrap" in table.errors
    triple = joint.sum(axis=3)
    pairs = [
        ((0, 1), triple.sum(2).ravel()),
        ((0, 2), triple.sum(1).ravel()),
        ((1, 2), triple.sum(0).ravel()),
    ]
    expected = proportional_fit((2, 3, 2), pairs).ravel()
    assert (np.abs(table.values - expected) < 6 * table.std_error + 1e-4).all()
    assert table.values.min() >= 0
    assert table.values.sum() == pytest.approx(1)
    assert 0 < table.std_error.max() < 0.02
    # drawn once, or alike
    assert np.array_equal(table.variances, estimate.marginal("a", "b", "c").variances)


def test_a_workload_that_is_listed_asks_for_nothing_else() -> None:
    sets = [["a", "b"], ["b"], ["c", "d"]]
    estimate = estimated("marg-ps", 9000, 3.0, workload=sets)
    assert len(estimate.schema) == 4
    assert not estimate.marginal("a", "b").is_reconstructed
    both = estimate.marginal("b")  # its own cohort, and that of a and b
    assert both.std_error.max() < 1.05 / np.sqrt(6000) * 2
    apart = estimate.marginal("a", "c")  # nobody was asked: independent, and far from sure
    assert apart.is_reconstructed
    assert np.allclose(
        apart.values,
        np.outer(*(np.clip(estimate.marginal(n).values, 0, 1) for n in "ac")).ravel(),
        atol=0.02,
    )
    assert apart.std_error.min() > 0.2


@pytest.mark.parametrize("chosen", PER_TABLE, ids=lambda each: each.name)
def test_empty_cohorts_are_answered_with_large_errors(chosen: MarginalMethod) -> None:
    """Two people, six tables."""
    estimate = estimated(chosen.name, 2, 1.0)
    tables = estimate.marginals(2)
    unheard = [table for table in tables.values() if table.is_reconstructed]
    assert len(unheard) in (4, 5)
    for table in tables.values():
        assert np.isfinite(table.values).all()
        assert np.isfinite(table.variances).all()
    for table in unheard:
        assert not table.is_unbiased
        assert (table.std_error > 0.3).all()
    assert estimate.marginal("a", "b", "c", "d").values.sum() == pytest.approx(1)


def test_predictions_are_quick_and_of_the_listed_sets() -> None:
    listed = Workload(tuple("abcd"), SIZES, 2, ((0, 1), (1,)))
    alone = Workload(tuple("abcd"), SIZES, 2, ((0, 1), (2,)))
    for chosen in PER_TABLE:
        predicted = chosen.predict(listed, Terms(ONE, 10_000), {})
        assert 0 < predicted < chosen.predict(alone, Terms(ONE, 10_000), {}) * 2
        assert chosen.predict(bits(32, 3), Terms(ONE, 1 << 18), {}) > 0
    assert find("hrr").names == ("hrr",)
