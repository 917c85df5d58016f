"""What every method gives: a table of all dimensions that answers any weighted selection of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.questions.queries.evidence import Floats

# By dimension a weight for each code, (size,): the product over dimensions is summed over people.
# A range is ones inside and zeros outside; dimensions that are left out count whole.
Term = Mapping[int, Floats]


@dataclass(frozen=True, eq=False)
class Joint:
    """Some shares together: what is estimated, and how their errors go together."""

    values: Floats  # (terms,)
    covariance: Floats  # (terms, terms)
    draws: Floats | None = None  # (draws, terms) of a posterior, if the method has one

    @property
    def std_errors(self) -> Floats:
        """Standard errors, (terms,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


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
