"""What a sum or an average can be at all, by what is public: intervals do not leave it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from sottovoce.questions.queries.sql.expressions import Product, Products
from sottovoce.questions.queries.sql.fits import summed
from sottovoce.questions.queries.sql.measures import UNDEFINED, EstimatedNumber
from sottovoce.questions.queries.sql.rows import RowGroup


@dataclass(frozen=True)
class Possible:
    """The least and the most that some people add up to, whoever of them is selected.

    ``each_low``, ``each_high``: of one person, and so of an average.
    """

    low: float = 0.0
    high: float = 0.0
    each_low: float = inf
    each_high: float = -inf

    def sum_within(self, found: EstimatedNumber) -> EstimatedNumber:
        """A sum whose interval is cut to what can be; its value stays inside."""
        return _within(found, self.low, self.high)

    def average_within(self, found: EstimatedNumber) -> EstimatedNumber:
        """The same of an average."""
        return found if found.mark == UNDEFINED else _within(found, self.each_low, self.each_high)


def _within(found: EstimatedNumber, low: float, high: float) -> EstimatedNumber:
    return replace(
        found,
        low=max(found.low, min(low, found.value)),
        high=min(found.high, max(high, found.value)),
    )


def possible(products: Products, groups: Iterable[RowGroup]) -> Possible:
    """What a sum of products can be for people of some groups of reports."""
    found = Possible()
    key = ("possible", tuple(_name(product) for product in products))
    for group in groups:
        if key not in group.known:
            group.known[key] = _of_group(products, group)
        own: Possible = group.known[key]
        found = Possible(
            found.low + own.low,
            found.high + own.high,
            min(found.each_low, own.each_low),
            max(found.each_high, own.each_high),
        )
    return found


def _factor_range(product: Product) -> tuple[float, float]:
    """The least and the most of a product without its weight."""
    low = high = product.number
    for _, table in product.whispered:
        ends = [each * float(end) for each in (low, high) for end in (table.min(), table.max())]
        low, high = min(ends), max(ends)
    return low, high


def _name(product: Product) -> tuple[float, float, str | None]:
    """The same for products that can be the same."""
    return (*_factor_range(product), None if product.weight is None else product.weight.key)


def _of_group(products: Products, group: RowGroup) -> Possible:
    low, high = np.zeros(1), np.zeros(1)  # of each report, or of all alike
    for product in products:
        ends = np.array(_factor_range(product))
        if product.weight is not None:
            values = product.weight.values
            rows = values if group.rows is None else values[group.rows]
            ends = ends[:, None] * rows
        low = low + ends.min(axis=0)
        high = high + ends.max(axis=0)
    # how many reports a number stands for: all of them, those of its row, or one
    times = np.array([group.people]) if low.size == 1 else group.times
    return Possible(
        summed(np.minimum(low, 0.0), times),
        summed(np.maximum(high, 0.0), times),
        float(low.min()) if low.size else inf,
        float(high.max()) if high.size else -inf,
    )
