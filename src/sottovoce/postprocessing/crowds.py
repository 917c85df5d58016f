"""Synthetic crowds like the one behind a table, and what their reports would say, many at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sottovoce.postprocessing.likelihood import counts_people
from sottovoce.postprocessing.simplex import norm, norm_sub
from sottovoce.results.cells import PureLaw, sums_to_one
from sottovoce.results.estimate import Table

Integers = NDArray[np.int64]


def plausible_crowd(table: Table) -> Integers:
    """How many people hold each value, as far as the table tells, (values,).

    Norm-sub's shares, largest remainders first; of a table that does not list every value, the
    estimates that are possible.

    >>> from sottovoce.oracles import Noise
    >>> values, variances = np.array([0.9, 0.3, -0.2]), np.full(3, 0.01)
    >>> plausible_crowd(Table(("x",), "abc", values, variances, 101, Noise(0.01, 0.0))).tolist()
    [81, 20, 0]
    """
    if not table.is_complete:
        return np.rint(np.clip(table.values, 0, 1) * table.people).astype(np.int64)
    people = norm_sub(table.values) * table.people  # with fractions of people
    whole = np.floor(people).astype(np.int64)
    left = table.people - int(whole.sum())
    largest_remainders = np.argsort(whole - people, kind="stable")[:left]
    whole[largest_remainders] += 1
    return whole


def collected(table: Table, crowd: Integers, rows: int, random: np.random.Generator) -> Table:
    """What ``rows`` collections from the same people would say.

    Support counts are drawn by the reports' own law; where there is none, or counts are not those
    of people, errors are normal and independent, with the table's variances.

    Args:
        table: Whose law, or variances, to draw by.
        crowd: How many people hold each value, (values,).
        rows: How many collections.
        random: Where the draws come from.

    Returns:
        The table with its values, and the counts of its law, of shape (rows, values).
    """
    law = table.law
    is_whole = sums_to_one(table.values)
    if law is None or not counts_people(table, law):
        law = None
        truth = crowd / table.people
        variances = table.variances
        if is_whole and crowd.size > 1:
            # norm leaves (1 - 1/k) of the variance of k values that err apart and alike
            variances = variances * crowd.size / (crowd.size - 1)
        values = random.normal(truth, np.sqrt(variances), (rows, crowd.size))
        values = np.minimum(values, _largest_possible(table))
    else:
        law = replace(law, support=_support(law, crowd, table.people, rows, random))
        # f~_v = (T_v/n - q) / (p - q)   wang2021thesis, eq. (3.1)
        values = (law.support / table.people - law.q) / (law.p - law.q)
    if is_whole:
        # estimates that sum to one by construction (grr, subset selection) do so again
        values = norm(values)
    return replace(table, values=values, law=law, spread=None)


def _largest_possible(table: Table) -> float:
    """The largest estimate at which the noise's law still has a variance, which counts keep to."""
    if table.noise is None or table.noise.slope >= 0:
        return float("inf")
    # floor + slope f > 0
    return 0.999 * table.noise.floor / -table.noise.slope


def _support(
    law: PureLaw, crowd: Integers, people: int, rows: int, random: np.random.Generator
) -> Integers:
    """Support counts of a synthetic crowd, (rows, values)."""
    size = crowd.size
    if law.encoding == "direct" and np.isclose(law.p + (size - 1) * law.q, 1):
        # an answer is the truth with chance p - q and uniform over all values otherwise
        truthful = random.binomial(crowd, law.p - law.q, (rows, size))
        others = people - truthful.sum(axis=1)  # (rows,)
        return truthful + random.multinomial(others, np.full(size, 1 / size))
    # the holders of v support it with chance p, all others with chance q
    #     wang2021thesis, definition 3.2.1
    holders = random.binomial(crowd, law.p, (rows, size))
    return holders + random.binomial(people - crowd, law.q, (rows, size))
