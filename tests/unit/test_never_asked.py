"""Intervals of pairs that nobody was asked about hold all that their margins allow, and every
answer names them.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.questions.marginals.methods import METHODS
from tests.known import chain, known

Floats = NDArray[np.float64]

EVEN = (1 / 6,) * 6
SKEWED = (0.94, 0.03, 0.01, 0.01, 0.005, 0.005)
TABLES = (("a", "b"), ("c", "d"))
VIEWS = [[0, 1], [2, 3]]
ROUNDING = 1e-12

# How each method is led to leave the pair of a and c out: tables or views without it, tables of one
# attribute, or so few people that nobody is heard. Methods whose every report tells of all
# attributes never do.
LEFT_OUT: dict[str, dict[str, Any]] = {
    "uniform": {},
    "inp-ht": {"up_to": 1},
    "ft": {"up_to": 1},
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


def tied(
    shares: tuple[float, ...], people: int, names: str = "abcd"
) -> tuple[sv.Schema, dict[str, Any], Floats]:
    """People whose attributes are all the same: their schema,
    columns and the shares of the values.
    """
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
def test_the_interval_holds_what_the_margins_intervals_allow(
    name: str, shares: tuple[float, ...]
) -> None:
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
        # people are whole
        whole_most = np.floor(most * table.people + ROUNDING) / table.people
        whole_least = np.ceil(least * table.people - ROUNDING) / table.people
        assert (high >= whole_most - ROUNDING).all()
        assert (low <= whole_least + ROUNDING).all()
        # so whoever's margins hold the truth holds the truth of a full tie
        cells = diagonal(len(shares), 2)
        margins_hold = [(own_low <= truth) & (truth <= own_high) for own_low, own_high in ends]
        pair_holds = (low[cells] <= truth) & (truth <= high[cells])
        assert (pair_holds | ~margins_hold[0] | ~margins_hold[1]).all()


def test_auto_is_not_sure_of_wider_tables_either() -> None:
    """Asked a x b and c x d: the table of a, c and d holds all that a's own table and that of c x d
    allow.
    """
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


# -- pairs outside the tables


@pytest.mark.parametrize(
    ("question", "pairs"),
    [
        (sv.Marginals(up_to=2, workload=TABLES, method="marg-ps"), ["ac", "ad", "bc", "bd"]),
        (sv.Marginals(up_to=1, method="marg-ps"), ["ab", "ac", "ad", "bc", "bd", "cd"]),
    ],
    ids=["workload", "singles"],
)
def test_pairs_outside_the_tables_are_named(question: sv.Marginals, pairs: list[str]) -> None:
    schema, columns, _ = tied((0.5, 0.5), 2000)
    plan = sv.plan(schema, question, epsilon=4.0, people=2000)
    named = ", ".join(" x ".join(pair) for pair in pairs)
    (line,) = [line for line in str(plan).splitlines() if line.startswith("Outside the tables: ")]
    assert f"{named} ({len(pairs)} attributes and pairs) are never asked" in line
    found = estimate(schema, columns, question, 4.0, 2000)
    assert found.never_asked == ()
    assert found.never_asked_of() == tuple(tuple(pair) for pair in pairs)
    assert found.never_asked_of("c", "a") == (("a", "c"),)
    records = sv.synthesize(found, 50, seed=1)
    assert records.attrs["never_asked"] == [list(pair) for pair in pairs]
    assert sv.synthesize(found, 50, 1, ["c", "a"]).attrs["never_asked"] == [["a", "c"]]


def test_pairs_outside_the_tables_that_reports_tell_of_are_not_named() -> None:
    schema, columns, _ = tied((0.5, 0.5), 2000)
    question = sv.Marginals(up_to=2, workload=TABLES, method="inp-ps")
    assert "Outside the tables" not in str(sv.plan(schema, question, epsilon=4.0, people=2000))
    assert (
        sv.synthesize(estimate(schema, columns, question, 4.0, 2000), 50, seed=1).attrs[
            "never_asked"
        ]
        == []
    )
    complete = sv.plan(schema, sv.Marginals(up_to=2), epsilon=4.0, people=2000)
    assert "Outside the tables" not in str(complete)


@pytest.mark.parametrize("name", [each.name for each in METHODS])
@pytest.mark.parametrize("up_to", [1, 2])
def test_plans_and_answers_agree_on_what_lies_outside_the_tables(name: str, up_to: int) -> None:
    schema, columns, _ = tied((0.5, 0.25, 0.25), 4000)
    question = sv.Marginals(up_to=up_to, workload=TABLES if up_to == 2 else None, method=name)
    plan = sv.plan(schema, question, epsilon=4.0, people=4000)
    settled = plan.question
    assert isinstance(settled, sv.Marginals)
    outside = settled.outside_tables(plan)
    assert outside is not None
    work = settled.work(schema)
    assert ("Outside the tables" in str(plan)) == bool(outside)
    found = estimate(schema, columns, question, 4.0, 4000)
    inside = found.never_asked
    assert set(found.never_asked_of()) - set(inside) == {work.attributes(part) for part in outside}


def test_an_attribute_outside_the_tables_is_named() -> None:
    schema, columns, _ = tied((0.5, 0.5), 2000, "abc")
    question = sv.Marginals(up_to=2, workload=[["a", "b"]], method="marg-ps")
    plan = sv.plan(schema, question, epsilon=4.0, people=2000)
    assert "Outside the tables: c, a x c, b x c (3 attributes and pairs) are never asked" in str(
        plan
    )
    records = sv.synthesize(estimate(schema, columns, question, 4.0, 2000), 50, seed=1)
    assert records.attrs["never_asked"] == [["c"], ["a", "c"], ["b", "c"]]


def test_many_pairs_outside_the_tables_are_counted() -> None:
    schema = sv.Schema(**{f"a{number}": sv.Boolean() for number in range(30)})
    plan = sv.plan(schema, sv.Marginals(up_to=1, method="marg-ps"), epsilon=4.0, people=2000)
    assert "a0 x a8 and 427 more (435 attributes and pairs) are never asked" in str(plan)
    crowd = sv.Schema(**{f"a{number}": sv.Boolean() for number in range(102)})
    plan = sv.plan(crowd, sv.Marginals(up_to=1, method="marg-ps"), epsilon=4.0, people=2000)
    assert (
        "Outside the tables: pairs that no table holds, too many to list, may never be asked"
        in str(plan)
    )


def test_the_table_of_a_tree_holds_what_the_margins_allow() -> None:
    joint = chain((2, 3, 2, 2), seed=5)
    tree = sv.dependency_tree(known(joint, 1e-9, unheard=[(0, 3), (1, 3), (2, 3)]))
    (edge,) = [edge for edge in tree.edges if not edge.is_asked]
    other = edge.parent if edge.child == "d" else edge.child
    cells = joint.sum(
        axis=tuple(place for place in range(4) if place not in ("abcd".index(other), 3))
    )
    most = np.minimum.outer(cells.sum(1), cells.sum(0))
    least = (np.add.outer(cells.sum(1), cells.sum(0)) - 1).clip(0)
    low, high = tree.joint(other, "d").interval()
    assert (high >= most.ravel() - ROUNDING).all()
    assert (low <= least.ravel() + ROUNDING).all()
    asked = next(edge for edge in tree.edges if edge.is_asked)
    wide = tree.joint(asked.parent, asked.child, "d")
    pair = tree.joint(asked.parent, asked.child)
    assert pair.never_asked == ()
    assert pair.std_error.max() < 0.01
    # a cell is at most that of the pair that was asked, so no interval reaches further
    reach = (wide.interval()[1] - wide.values).reshape(-1, 2)
    assert (reach <= pair.interval()[1][:, None] + 0.01).all()
