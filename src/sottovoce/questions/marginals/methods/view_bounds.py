"""An error that no views of some widths fall below, found without choosing any.

It is known for attributes that all have the same number K of values, where views of l attributes
are alike: they have L = K^l cells, and a contrast of them has variance a_l for one person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb, sqrt

import numpy as np

from sottovoce.oracles import Oracle
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.methods.view_predictions import (
    BOUND_ROUNDING,
    MOST_SHAPES,
    TypicalTables,
    noise_within,
    projected,
)
from sottovoce.questions.marginals.methods.views import contrast_variance
from sottovoce.questions.marginals.models.designs import least_blocks
from sottovoce.questions.marginals.models.structure import EVENNESS
from sottovoce.questions.marginals.workload import Workload


class AlikeViews:
    """Views of attributes that have the same number of values, for all tables of k of them.

    Args:
        work: The tables; k is 2 or more.
        people: n, all of them.
        oracle: The oracle of a view of so many cells.
    """

    def __init__(self, work: Workload, people: int, oracle: Callable[[int], Oracle]) -> None:
        self.size = work.sizes[0]  # K
        self.points = len(work.sizes)  # d
        self.order = work.order  # k
        self.people = people
        self._oracle = oracle
        self._known: dict[int, float] = {}

    @staticmethod
    def fits(work: Workload) -> bool:
        """Whether a workload is of that kind."""
        return len(set(work.sizes)) == 1 and work.sets is None and work.order > 1

    def noise(self, width: int) -> float:
        """L a_l for views of l attributes."""
        if width not in self._known:
            cells = self.size**width
            self._known[width] = cells * contrast_variance(self._oracle(cells), 1)
        return self._known[width]

    def err_more(
        self, tables: TypicalTables, widths: Sequence[int], most_views: int, most: float
    ) -> bool:
        """Whether views that hold every pair of attributes are sure to err more than ``most``.

        Args:
            tables: Those of the workload, for views of these widths.
            widths: How many attributes views may have: fewer than there are, or all of them, in one
                view alone.
            most_views: How many views there may be; 0 if nobody knows.
            most: A squared error of a table.
        """
        respondents = self.people // max(most_views, 1)  # of a view, at least
        if not most_views or not respondents:
            return False
        noise = self._least_noise(tables, widths)
        kept = self._least_kept(tables, widths, respondents, noise)
        return noise * kept * (1 - BOUND_ROUNDING) > noise_within(most)

    def _least_noise(self, tables: TypicalTables, widths: Sequence[int]) -> float:
        """The noise of a table before repair, at least.

        With W_S the weight of a set S of one or two attributes in all views, c_S what its inverse
        counts in the noise, and any b_S > 0, by Cauchy and Schwarz

            sum of c_S / W_S  >=  (sum of sqrt(c_S b_S))^2 / (sum of b_S W_S)

        Each of m views adds n/m / (L a_l + 1 - 1/m) at most to the W_S of all S in it. So the last
        sum is n times a mean over views, and not above the largest that a view of some width adds.
        """
        ones, twos = self._uses(tables)
        widest = max(widths)
        views = 1 if widest == self.points else least_blocks(self.points, widest, 2)  # m, at least
        best = 0.0
        for typical in widths:
            # b_S of an attribute, if that of a pair is 1: the best, if all views had this width
            ratio = float(ones.mean()) / float(twos.mean())
            ratio *= ((typical - 1) / (self.points - 1)) ** 2
            total = sqrt(ratio) * float(np.sqrt(ones).sum()) + float(np.sqrt(twos).sum())
            heard = 0.0
            for width in widths:
                parts = width * ratio + comb(width, 2)  # the sum of b_S over S in the view
                heard = max(heard, parts / (self.noise(width) + 1 - 1 / views))
            best = max(best, total**2 / (self.people * heard))
        return best

    def _uses(self, tables: TypicalTables) -> tuple[Floats, Floats]:
        """c_S of each attribute, (attributes,), and of each pair that is in a table, (pairs,)."""
        size, order, points = self.size, self.order, self.points
        number = tables.members.shape[1]
        contrast = 1 - 1 / size
        # an attribute: its pairs are known, so that others enter by 1/K
        ones = np.bincount(tables.members.ravel(), minlength=points) / number
        ones *= contrast * size ** -(order - 1.0)
        # A pair: another attribute enters by the sum of f^2, which is x/K with x > 1, unless a view
        # holds it with the pair. Then it enters by 1/K; but the triple has noise too, which counts
        # K - 1 times the pair's or more, and a third of it is given to each of its pairs.
        counts = np.zeros(points**2)
        for one, two in combinations(range(order), 2):
            codes = tables.members[one] * points + tables.members[two]
            counts += np.bincount(codes, minlength=points**2)
        filled = size * (EVENNESS + 1) / (size * EVENNESS + 1) - 1  # x - 1
        wider = 1 + (order - 2) * min(filled, (size - 1) / 3)
        twos = counts[counts > 0] / number
        twos *= contrast**2 * size ** -(order - 2.0) * wider
        return ones, twos

    def _least_kept(
        self, tables: TypicalTables, widths: Sequence[int], respondents: int, noise: float
    ) -> float:
        """The share of the noise that repair leaves, at least.

        It falls as the noise grows of what a view holds of a table. That is no more than the view
        has by itself, and no more than all tables have together.
        """
        number = tables.members.shape[1]
        projections = len(range(0, number, max(1, number // MOST_SHAPES)))
        kept = 1.0
        for held in range(2, min(self.order, max(widths)) + 1):
            noisiest = max(self.noise(width) for width in widths if width >= held)
            alone = (1 - self.size**-held) * (noisiest + 1) / respondents
            of_this_shape = projections if self.order == 2 else 1  # at least
            shared = noise * number / of_this_shape * self.size ** (self.order - held)
            most = min(alone, shared)
            kept = min(kept, projected((self.size,) * held, most) / most)
        return kept
