"""Conditions become few disjoint products, and inclusion and exclusion adds up to the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sottovoce.questions.queries.sql.errors import SqlError
from sottovoce.questions.queries.sql.masks import MAX_TERMS, Factors, classes, products
from sottovoce.questions.queries.sql.normal_form import inclusion_exclusion
from sottovoce.questions.queries.sql.predicates import And, Atom, Formula, Not, Or, evaluate


def multiplied(factors: Factors, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The array of a product of vectors."""
    out = np.ones(shape)
    for axis, factor in enumerate(factors):
        out = out * factor.reshape([-1 if each == axis else 1 for each in range(len(shape))])
    return out


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_products_add_up_and_do_not_overlap(seed: int, shape: list[int]) -> None:
    draws = np.random.default_rng(seed)
    mask = draws.random(shape) < draws.random()
    arrays = [multiplied(factors, mask.shape) for factors in products(mask)]
    assert np.array_equal(sum(arrays, np.zeros(shape)), mask)
    assert all(set(np.unique(array)) <= {0.0, 1.0} for array in arrays)
    weights = draws.integers(-2, 3, shape)
    total = sum((multiplied(each, weights.shape) for each in products(weights)), np.zeros(shape))
    assert np.array_equal(total, weights)


def test_boxes_are_one_product_and_unions_of_two_axes_are_two() -> None:
    one, two, three = np.ix_([0, 1, 1, 0], [1, 0, 1], [0, 1])
    assert len(products(one * two * three)) == 1
    assert len(products(np.maximum(one, two) * np.ones_like(three))) == 2
    assert len(products(np.maximum(np.maximum(one, two), three))) == 3
    assert products(np.zeros((3, 4))) == []


def test_more_products_than_stated_are_refused() -> None:
    size = MAX_TERMS + 10
    with pytest.raises(SqlError, match=f"at most {MAX_TERMS:,}"):
        products(np.eye(size, dtype=np.int8))


def test_values_that_nothing_tells_apart_are_one_class() -> None:
    first = np.array([0, 0, 1, 1, 0])
    second = np.array([[1, 1, 0, 0, 1], [0, 2, 0, 0, 0]])
    found = classes(5, [(first, 0), (second, 1)])
    assert found.count == 3
    same = found.of_value[:, None] == found.of_value[None]
    assert same.tolist() == [
        [a == b and (c == d).all() for b, d in zip(first, second.T, strict=True)]
        for a, c in zip(first, second.T, strict=True)
    ]


FORMULAS: st.SearchStrategy[Formula] = st.recursive(
    st.builds(Atom, st.integers(0, 5)),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=0, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=0, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(FORMULAS, st.integers(0, 2**32 - 1))
def test_inclusion_and_exclusion_adds_up_to_the_condition(formula: Formula, seed: int) -> None:
    shape = (4, 3, 2)
    draws = np.random.default_rng(seed)
    atoms = []
    for number in range(6):  # two of each axis, with values that are neither true nor false
        own = [1, 1, 1]
        own[number % 3] = shape[number % 3]
        truth = draws.integers(0, 3, own)
        atoms.append((truth == 1, truth == 0))
    true, _ = evaluate(formula, lambda number: atoms[number])
    found = inclusion_exclusion(formula, lambda number: atoms[number], shape)
    total = sum((sign * multiplied(each, shape) for sign, each in found), np.zeros(shape))
    assert np.array_equal(total, np.broadcast_to(true, shape))


@pytest.mark.parametrize("values", [(a, b) for a in (0, 1, 2) for b in (0, 1, 2)])
def test_the_logic_has_three_values(values: tuple[int, int]) -> None:
    def look(number: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return np.array(values[number] == 1), np.array(values[number] == 0)

    # false < NULL < true: AND is the least, OR the largest, NOT turns it round
    order = {0: 0, 2: 1, 1: 2}
    one, other = (order[each] for each in values)
    wanted = {And: min(one, other), Or: max(one, other)}
    for kind, expected in wanted.items():
        true, false = evaluate(kind((Atom(0), Atom(1))), look)
        assert (bool(true), bool(false)) == (expected == 2, expected == 0)
    true, false = evaluate(Not(Atom(0)), look)
    assert (bool(true), bool(false)) == (one == 0, one == 2)
