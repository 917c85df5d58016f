"""What every method gives: a table of all dimensions that answers any weighted selection of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.questions.queries.evidence import Floats
from sottovoce.results.cells import quantile

# By dimension a weight for each code, (size,): the product over dimensions is summed over people.
# A range is ones inside and zeros outside; dimensions that are left out count whole.
Term = Mapping[int, Floats]


@dataclass(frozen=True, eq=False)
class Joint:
    """Some shares together: what is estimated, and how their errors go together.

    A method that shrinks says how far its answers are off on average over crowds, and one crowd
    may be unlike the others. If the same reports have unbiased answers too, ``unbiased`` holds
    them: intervals are theirs, and so hold as often as they say for each crowd. Of two dimensions
    and more they are nearly unbiased ones.
    """

    values: Floats  # (terms,)
    covariance: Floats  # (terms, terms)
    draws: Floats | None = None  # (draws, terms) of a posterior, if the method has one
    unbiased: Joint | None = None

    @property
    def std_errors(self) -> Floats:
        """Standard errors, (terms,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """(low, high), (terms,) each: of the unbiased answers, of the draws, or normal.

        The value itself is always inside.

        >>> answer = Joint(np.array([0.3]), np.array([[0.0001]]))
        >>> [round(float(end[0]), 3) for end in answer.interval()]
        [0.28, 0.32]
        >>> plain = Joint(np.array([0.31]), np.array([[0.0004]]))
        >>> surer = Joint(answer.values, answer.covariance, unbiased=plain)
        >>> [round(float(end[0]), 3) for end in surer.interval()]
        [0.271, 0.349]
        """
        if self.unbiased is not None:
            low, high = self.unbiased.interval(level)
        elif self.draws is not None:
            low, high = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        else:
            reach = quantile(level) * self.std_errors
            low, high = self.values - reach, self.values + reach
        return np.minimum(low, self.values), np.maximum(high, self.values)

    def some(self, places: Sequence[int]) -> Joint:
        """Some of the terms."""
        return Joint(
            self.values[places],
            self.covariance[np.ix_(places, places)],
            None if self.draws is None else self.draws[:, places],
            None if self.unbiased is None else self.unbiased.some(places),
        )

    def summed(self, places: Sequence[int]) -> Joint:
        """The sum of some of the terms, as one."""
        own = self.some(places)
        return Joint(
            own.values.sum(keepdims=True),
            own.covariance.sum(keepdims=True),
            None if own.draws is None else own.draws.sum(axis=1, keepdims=True),
            None if self.unbiased is None else self.unbiased.summed(places),
        )

    def scaled(self, times: float) -> Joint:
        """The same, of shares times a number."""
        return Joint(
            times * self.values,
            times**2 * self.covariance,
            None if self.draws is None else times * self.draws,
            None if self.unbiased is None else self.unbiased.scaled(times),
        )


class FittedTable(ABC):
    """People by all dimensions, as a method sees them. Shares are of all people, or of all weight.

    ``is_unbiased``: whether answers are right on average, whatever the people are.
    ``is_small``: whether it keeps so little, asked or not, that hundreds may be held at once.
    """

    sizes: tuple[int, ...]
    is_unbiased: bool
    is_small: bool = False

    @abstractmethod
    def joint(self, terms: Sequence[Term]) -> Joint:
        """The shares of some weighted selections, with their covariances."""
