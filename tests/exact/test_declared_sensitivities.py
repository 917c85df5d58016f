"""What releases declare to the ledger is what one person can move, under both relations.

A ledger cannot see the data: a step that declares half of its sensitivity would be believed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from sottovoce.accounting import NEIGHBOUR_RELATIONS, GaussianStep, Neighbours
from sottovoce.central import limited_counts
from sottovoce.central.counting import equal_weights
from sottovoce.central.method import ReleaseMethod
from sottovoce.central.tuple_settings import TUPLE_STEPS
from sottovoce.central.tuples import DpMarginals
from sottovoce.central.union import SetUnion
from sottovoce.ground.entropy import Seeded
from tests.central_tables import ledger_of, sets_table, terms_of

LARGEST = 6  # items of a person
SETS = sets_table([list(range(LARGEST))] * 2000 + [[0]] * 500, LARGEST)


def gaussian_steps(
    method: ReleaseMethod, up_to: int, neighbours: Neighbours
) -> dict[tuple[str, str], GaussianStep]:
    """The Gaussian steps of a simulated release, by name and purpose."""
    terms = terms_of("2", up_to, neighbours=neighbours)
    ledger = ledger_of(terms)
    released = method.release(SETS, terms, ledger, Seeded(3))
    assert all(len(counts.counts) for counts in released.tuples.values())
    steps = [step for step in ledger.steps if isinstance(step, GaussianStep)]
    return {(step.name, step.purpose): step for step in steps}


def recorded(summed: Callable[..., Any], limits: list[int]) -> Callable[..., Any]:
    """Sums that keep the limit of those that count: where a tuple weighs 1."""

    def summing(*given: Any) -> Any:
        limit, weights = given[3], given[4]
        if (weights == 1).all():
            limits.append(limit)
        return summed(*given)

    return summing


@pytest.mark.parametrize("neighbours", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize(("method", "up_to"), [(DpMarginals(), 2), (SetUnion(), 1)])
def test_histograms_and_counts_declare_what_a_person_moves(
    method: ReleaseMethod,
    up_to: int,
    neighbours: Neighbours,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = (
        1 if neighbours == "add-remove" else 2
    )  # of disjoint holdings: |a - b|^2 = |a|^2 + |b|^2
    sampled: list[int] = []
    monkeypatch.setattr(limited_counts, "summed", recorded(limited_counts.summed, sampled))
    steps = gaussian_steps(method, up_to, neighbours)
    histograms = [step for (name, _), step in steps.items() if name.endswith(": limit")]
    assert [step.squared_sensitivity for step in histograms] == [people] * up_to  # one bin each
    counted = [step for (_, purpose), step in steps.items() if "found" in purpose]
    # a person moves as many counts by 1 as the sampler lets through
    assert [step.squared_sensitivity for step in counted] == [people * each for each in sampled]
    assert len(counted) == up_to


@pytest.mark.parametrize("neighbours", NEIGHBOUR_RELATIONS)
def test_weights_declare_what_a_person_moves(neighbours: Neighbours) -> None:
    people = 1 if neighbours == "add-remove" else 2
    step = gaussian_steps(DpMarginals(), 2, neighbours)["2-tuples: weights", "which exist"]
    most = Fraction(0)
    for kept, weight in enumerate(equal_weights(1000, TUPLE_STEPS).tolist()):
        most = max(most, kept * Fraction(weight, TUPLE_STEPS) ** 2)
    assert most == 1
    assert step.squared_sensitivity == people * most
