"""An error that no choice of views falls below, found without choosing any.

It is known for attributes that all have the same number K of values, where views of l attributes
are alike: they have L = K^l cells, and a contrast of them has variance a_l for one person.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb, sqrt

import numpy as np

from sottovoce.oracles import Oracle
from sottovoce.questions.marginals.methods.view_predictions import (
    MOST_SHAPES,
    ROUNDING,
    Tables,
    noise_within,
    projected,
)
from sottovoce.questions.marginals.methods.views import contrast_variance
from sottovoce.questions.marginals.models.designs import least_blocks
from sottovoce.questions.marginals.models.structure import EVENNESS
from sottovoce.questions.marginals.workload import Workload


class AlikeViews:
    """Views of attributes that have the same number of values.

    Args:
        work: Every table of two or more attributes; attributes are alike.
        people: n, all of them.
        oracle: The oracle of a view of so many cells.
        widest: How many attributes a view may have.
        most_views: How many views there may be.
    """

    def __init__(
        self,
        work: Workload,
        people: int,
        oracle: Callable[[int], Oracle],
        widest: int,
        most_views: int,
    ) -> None:
        self.size = work.sizes[0]  # K
        self.points = len(work.sizes)  # d
        self.order = work.order  # k
        self.people = people
        self.respondents = people // most_views  # of a view, at least
        # L a_l for l = 2, 3, ...
        self.noise = {}
        for width in range(2, widest + 1):
            cells = self.size**width
            self.noise[width] = cells * contrast_variance(oracle(cells), 1)

    def err_more(self, tables: Callable[[int], Tables], most: float) -> bool:
        """Whether any views that hold every pair of attributes are sure to err more than ``most``.

        Args:
            tables: The workload's tables, for views of up to so many attributes.
            most: A squared error of a table.
        """
        if not self.respondents:
            return False
        limit = noise_within(most)
        # by the widest view; one that holds all attributes is alone
        for longest in self.noise:
            noise = self._least_noise(tables(max(3, longest)), longest)
            kept = self._least_kept(tables(max(3, longest)), longest, noise)
            if noise * kept * (1 - ROUNDING) <= limit:
                return False
        return True

    def _least_noise(self, tables: Tables, longest: int) -> float:
        """The noise of a table before repair, at least, if the widest view has so many attributes.

        With W_S the weight of a set S of one or two attributes in all views, and any b_S > 0,

            sum of c_S / W_S  >=  (sum of sqrt(c_S b_S))^2 / (sum of b_S W_S)

        by Cauchy and Schwarz. Each of m views adds n/m / (L a_l + 1 - 1/m), at most, to the W_S of
        all S in it. So the last sum is n times a mean over views, and no more than its largest term.
        """
        ones, twos = self._uses(tables)
        is_whole = longest == self.points
        views = 1 if is_whole else least_blocks(self.points, longest, 2)  # m, at least
        widths = [longest] if is_whole else range(2, longest + 1)
        best = 0.0
        for width in range(2, longest + 1):
            # b_S of one attribute, for 1 of two: the best one if all views had this width
            ratio = (float(ones.mean()) / float(twos.mean())) * ((width - 1) / (self.points - 1)) ** 2
            total = sqrt(ratio) * float(np.sqrt(ones).sum()) + float(np.sqrt(twos).sum())
            heard = max(
                (own * ratio + comb(own, 2)) / (self.noise[own] + 1 - 1 / views) for own in widths
            )
            best = max(best, total**2 / (self.people * heard))
        return best

    def _uses(self, tables: Tables) -> tuple[np.ndarray, np.ndarray]:
        """c_S: what the inverse weight of each attribute, and each pair, counts in a table's noise."""
        size, order = self.size, self.order
        number = tables.members.shape[1]
        contrast = 1 - 1 / size
        # an attribute: its pairs are known, so that others enter by 1/K
        ones = np.bincount(tables.members.ravel(), minlength=self.points) / number
        pairs = np.zeros(self.points**2)
        for one, two in combinations(range(order), 2):
            codes = tables.members[one] * self.points + tables.members[two]
            pairs += np.bincount(codes, minlength=self.points**2)
        # A pair: another attribute enters by the sum of f^2, x/K with x > 1, unless a view holds it
        # with the pair. Then it enters by 1/K; but the triple has noise as well, (K - 1) times that
        # of the pair or more, of which each of its pairs is given a third.
        filled = size * (EVENNESS + 1) / (size * EVENNESS + 1) - 1  # x - 1
        wider = 1 + (order - 2) * min(filled, (size - 1) / 3)
        twos = pairs[pairs > 0] / number
        return (
            ones * contrast * size ** -(order - 1.0),
            twos * contrast**2 * size ** -(order - 2.0) * wider,
        )

    def _least_kept(self, tables: Tables, longest: int, noise: float) -> float:
        """The share of the noise that repair leaves, at least.

        The share falls as the noise of what views hold of a table grows; that is no more than the
        noise of a view by itself, and than what all tables have of noise together.
        """
        number = tables.members.shape[1]
        projections = len(range(0, number, max(1, number // MOST_SHAPES)))
        kept = 1.0
        for width in range(2, min(self.order, longest) + 1):
            views = [self.noise[own] for own in range(width, longest + 1)]
            alone = (1 - self.size**-width) * (max(views) + 1) / self.respondents
            alike = projections if self.order == 2 else 1  # of this shape, at least
            shared = noise * number / alike * self.size ** (self.order - width)
            most = min(alone, shared)
            kept = min(kept, projected((self.size,) * width, most) / most)
        return kept
