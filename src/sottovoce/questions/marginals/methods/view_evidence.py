"""What views say of a pair of attributes by themselves: unbiased averages, nothing repaired."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.pair_law import (
    MARGIN_ROUNDING,
    conditioned,
    margins_of,
)
from sottovoce.questions.marginals.workload import Places

if TYPE_CHECKING:
    from sottovoce.questions.marginals.methods.views import ViewsHeard


@dataclass(frozen=True)
class SummedErrors:
    """The normal law of a weighted sum of views' errors, over the attributes of a table.

    Attributes:
        tied: variances of independent errors that then are made to sum to zero, of the table's
            shape.
        free: variances of independent errors beside those.
    """

    tied: Floats
    free: Floats

    def draw(self, count: int, draws: np.random.Generator) -> Floats:
        """Errors as they might have been, (count, *shape)."""
        shape = (count, *self.tied.shape)
        tied = draws.standard_normal(shape) * np.sqrt(self.tied)
        total = float(self.tied.sum())
        if total > 0:
            axes = tuple(range(1, len(shape)))
            tied -= tied.sum(axis=axes, keepdims=True) * (self.tied / total)
        return np.asarray(tied + draws.standard_normal(shape) * np.sqrt(self.free))


@dataclass(frozen=True, eq=False)
class ViewPair:
    """A pair's unbiased table from views, and the law of its errors if the two are independent.

    Views count by u = weight / cells. Those that hold both attributes tell all, others the one that
    they hold.

    Attributes:
        table: unbiased, (values of one, values of two).
        both: sum of u times the errors of the views that hold both.
        alone: the same of those that hold the one, or the other, and not both.
        totals: sums of u over the views that hold the one, the other, and both.
    """

    table: Floats
    both: SummedErrors
    alone: tuple[SummedErrors, SummedErrors]
    totals: tuple[float, float, float]

    @classmethod
    def of(cls, heard: ViewsHeard, coefficients: Floats, pair: Places) -> ViewPair:
        """What was heard of two attributes.

        Args:
            heard: The views.
            coefficients: Their averages, unrepaired.
            pair: Two attributes that some view holds.
        """
        overlap = heard.overlap
        shape = tuple(overlap.sizes[place] for place in pair)
        table = overlap.table(coefficients, pair).reshape(shape)
        rows, columns = margins_of(table)
        expected = {pair[:1]: rows, pair[1:]: columns, pair: np.outer(rows, columns)}
        shares = heard.weights / overlap.lengths  # u, (views,)
        laws = {}
        totals = dict.fromkeys(expected, 0.0)
        for own, frequencies in expected.items():
            tied, free = np.zeros(frequencies.shape), np.zeros(frequencies.shape)
            for number, view in enumerate(overlap.views):
                if tuple(place for place in pair if place in view) != own:
                    continue
                share = float(shares[number])
                totals[own] += share
                # the last attributes of a view's errors:  u^2 (noise + f (1 - f) / n)
                more_tied, more_free = _view_errors(heard, number, frequencies)
                tied += share**2 * more_tied
                free += share**2 * more_free
            laws[own] = SummedErrors(tied, free)
        together = totals[pair]
        return cls(
            table,
            laws[pair],
            (laws[pair[:1]], laws[pair[1:]]),
            (totals[pair[:1]] + together, totals[pair[1:]] + together, together),
        )

    def errors(self, count: int, draws: np.random.Generator) -> Floats:
        """Errors as they might have been, (count, values of one, values of two)."""
        values, others = self.table.shape
        both = self.both.draw(count, draws)  # (count, values, others)
        rows = both.sum(2)
        columns = both.sum(1)
        inner = both - rows[:, :, None] / others - columns[:, None, :] / values
        inner += rows.sum(1)[:, None, None] / (values * others)
        first = (rows + self.alone[0].draw(count, draws)) / self.totals[0]
        second = (columns + self.alone[1].draw(count, draws)) / self.totals[1]
        # the total is known: what single tables say is how values differ
        first -= first.mean(1, keepdims=True)
        second -= second.mean(1, keepdims=True)
        table = inner / self.totals[2] + first[:, :, None] / others + second[:, None, :] / values
        return np.asarray(table)


def _view_errors(heard: ViewsHeard, number: int, frequencies: Floats) -> tuple[Floats, Floats]:
    """Variances of the errors of a view's sums, ``tied`` and ``free``.

    Args:
        heard: The views.
        number: That of the view.
        frequencies: Of the sums, if the attributes are independent.
    """
    overlap = heard.overlap
    people = int(heard.people[number])
    summed = prod(overlap.shapes[number]) // frequencies.size  # cells of a sum
    noise = heard.oracles[number].sum_noise(people, summed).variance(frequencies)
    # people are a sample of a population:  f (1 - f) / n,  and those of two values -f g / n
    is_total_known = abs(float(heard.cells[overlap.slices[number]].sum()) - 1) < MARGIN_ROUNDING
    if is_total_known:
        sampled = frequencies * (1 - frequencies) / people
        return conditioned(np.asarray(noise + sampled)), np.zeros(frequencies.shape)
    return frequencies / people, np.broadcast_to(noise, frequencies.shape)
