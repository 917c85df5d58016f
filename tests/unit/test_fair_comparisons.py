"""Methods for marginals compared with their options, on plans for other tables, and repaired."""

from __future__ import annotations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.measure.marginals import coded, heard, planned, random_queries, sampled
from sottovoce.postprocessing.simplex import norm_sub
from tests.comparisons import people, rows_of


def test_options_of_a_method_reach_its_plan() -> None:
    few, more, sketch = rows_of(
        people(), ["calm:theta=0.001", "calm:theta=0.01", "inp-htcms:width=256"], people=5000
    )
    assert [row.method for row in (few, more)] == ["calm:theta=0.001", "calm:theta=0.01"]
    assert few.views is not None
    assert more.views is not None
    assert few.views < more.views  # the sampling error, views / people, stays below theta
    made, _ = planned(coded(people().schema), 2, 5000, "1", "inp-htcms:width=256")
    assert isinstance(made.question, sv.Marginals)
    assert made.question.options["width"] == 256
    assert sketch.sse is not None
    (bad,) = rows_of(people(), ["calm:theta=2"])
    assert "theta (2)" in str(bad.reason)


def test_views_may_be_drawn_of_a_size_and_a_number() -> None:
    (row,) = rows_of(people(), ["calm:size=3:count=7"])
    assert (row.views, row.view_size) == (7, 3)
    assert row.sse is not None
    made, _ = planned(coded(people().schema), 2, 5000, "1", "calm:size=3:count=7")
    assert isinstance(made.question, sv.Marginals)
    assert set(made.question.options) == {"theta", "views"}  # what was drawn, as plans hold it
    alone, wide, none = rows_of(
        people(), ["calm:size=3", "calm:size=9:count=2", "calm:size=2:count=0"]
    )
    assert "size and count together" in str(alone.reason)
    assert "size (9)" in str(wide.reason)
    assert "count (0)" in str(none.reason)


def test_a_row_is_called_as_it_was_typed() -> None:
    (row,) = rows_of(people(), ["calm: theta=0.01"])
    assert row.method == "calm: theta=0.01"
    assert row.chosen == "calm"


def test_plans_may_be_for_other_tables_than_those_asked_for() -> None:
    population = people()
    (pairs,) = rows_of(population, ["inp-em"], k=3, planned_for=2)  # which refuses triples
    assert (pairs.k, pairs.planned_for) == (3, 2)
    assert pairs.sse is not None
    usual, larger = (
        rows_of(population, ["marg-ps"], k=2, planned_for=order)[0] for order in (None, 3)
    )
    assert (usual.planned_for, usual.view_size) == (2, 2)
    assert (larger.planned_for, larger.view_size) == (3, 3)
    (refused,) = rows_of(population, ["inp-em"], k=2, planned_for=3)
    assert (refused.planned_for, refused.sse) == (3, None)


def test_tables_of_unbiased_methods_are_repaired_and_rows_say_so() -> None:
    """By hand: the same reports, each table to the simplex before its errors are squared."""
    population, crowd_size = people(), 300
    raw, repaired = (
        rows_of(population, ["marg-ps"], people=crowd_size, runs=1, repair=repair)[0]
        for repair in (None, "norm-sub")
    )
    assert (raw.postprocess, repaired.postprocess) == (None, "norm-sub")
    schema = coded(population.schema)
    sizes = {name: attribute.size for name, attribute in schema.items()}
    crowd = sampled(population, crowd_size, 1, 0)
    crowd = crowd.asked(random_queries(schema, 2, 4, 1, 0), sizes)
    made, _ = planned(schema, 2, crowd_size, "1", "marg-ps")
    answers = heard(made, crowd, 1, 0).estimate().joint.values_of(crowd.queries)
    plain = np.mean([((a - t) ** 2).sum() for a, t in zip(answers, crowd.truth, strict=True)])
    ours = np.mean(
        [((norm_sub(a) - t) ** 2).sum() for a, t in zip(answers, crowd.truth, strict=True)]
    )
    assert raw.sse == pytest.approx(plain)
    assert repaired.sse == pytest.approx(ours)
    assert ours < 0.7 * plain  # which a repair that does nothing fails


@pytest.mark.parametrize("name", ["calm", "uniform", "em"])
def test_methods_that_repair_their_own_tables_are_not_repaired_again(name: str) -> None:
    raw, repaired = (
        rows_of(people(), [name], people=300, runs=1, repair=repair)[0]
        for repair in (None, "projected")
    )
    assert repaired.postprocess is None
    assert raw.sse == repaired.sse


def test_an_alias_of_a_repair_has_the_name_of_its_method() -> None:
    (row,) = rows_of(people(), ["marg-ps"], repair="projected")
    assert row.postprocess == "norm-sub"


def test_a_repair_that_needs_counts_says_so() -> None:
    (row,) = rows_of(people(), ["marg-ps"], repair="maximum-likelihood")
    assert row.sse is None
    assert row.reason
