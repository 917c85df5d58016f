"""What candidates had to exceed: to get their star, and to be looked at in a later round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.extras import imported
from sottovoce.questions.itemsets.known import ItemsHeard
from sottovoce.questions.selection import least_passing
from sottovoce.results.findings import SIGNIFICANT

Floats = NDArray[np.float64]
MOST_STAR_ERRORS = 40.0  # standard errors within which every star is given


@dataclass(frozen=True, eq=False)
class ChosenBy:
    """By what candidates were chosen, each array (candidates,).

    ``star``: the value above which noise alone does not explain one. ``floor``: the variance of one
    that nobody holds. ``doubt``: the part of its variance that grows with its squared frequency.
    ``earlier``: what the part of its evidence that an earlier round gave had to exceed;
    ``earlier_error``: how far that part strays, given the value; 0 if there was none.
    """

    star: Floats
    floor: Floats
    doubt: Floats
    earlier: Floats
    earlier_error: Floats

    @classmethod
    def once(cls, star: Floats, floor: Floats, doubt: Floats) -> ChosenBy:
        """Without an earlier round."""
        return cls(star, floor, doubt, np.zeros(len(star)), np.zeros(len(star)))

    @classmethod
    def heard(cls, items: Sequence[ItemsHeard]) -> ChosenBy:
        """As an earlier plan holds it."""
        rows = [
            (item.star, item.floor, item.doubt, item.earlier, item.earlier_error) for item in items
        ]
        star, floor, doubt, earlier, error = np.array(rows, dtype=float).reshape(-1, 5).T
        return cls(star, floor, doubt, earlier, error)

    def at(self, rows: NDArray[np.int64]) -> ChosenBy:
        """Of some of them."""
        return ChosenBy(*(part[rows] for part in self.parts))

    def beside(self, other: ChosenBy) -> ChosenBy:
        """Of these candidates, and then of others."""
        pairs = zip(self.parts, other.parts, strict=True)
        return ChosenBy(*(np.concatenate(pair) for pair in pairs))

    @property
    def parts(self) -> tuple[Floats, ...]:
        """All of it, in order."""
        return self.star, self.floor, self.doubt, self.earlier, self.earlier_error


def expected_false(
    values: Floats, floor: float | Floats, tested: int, people: float | Floats, q: float
) -> Floats:
    """For each estimate, how many candidates that nobody holds are expected to look as frequent.

    The support of such a candidate is binomial, and far from normal where it is rare.

    Args:
        values: the estimates, (candidates,).
        floor: the variance of the estimate of a candidate that nobody holds.
        tested: how many candidates were looked at.
        people: who each support such a candidate
        q: with this chance.

    Returns:
        Expected numbers, (candidates,).
    """
    # the support that such an estimate comes from: n q + z sqrt(n q (1 - q)), z = value / error
    deviation = np.sqrt(people * q * (1 - q))
    errors = values / np.sqrt(floor)
    support = people * q + errors * deviation
    # P[at least so many] = I_q(least, people - least + 1)
    least = np.clip(np.round(support), 1, people)
    tail = imported("scipy.special").betainc(least, people - least + 1, q)
    return np.asarray(tested * tail)


def star_values(floor: Floats, tested: int, people: float | Floats, q: float) -> Floats:
    """The values above which fewer false ones are expected than count as significant.

    Arguments as of :func:`expected_false`, whose inverse this is, (candidates,).
    """
    most = MOST_STAR_ERRORS * np.sqrt(floor)

    def is_starred(values: Floats) -> NDArray[np.bool_]:
        return expected_false(values, floor, tested, people, q) <= SIGNIFICANT

    return least_passing(is_starred, np.zeros(len(floor)), most)
