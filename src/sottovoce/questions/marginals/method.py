"""What every method for marginals is: who is asked what, what the answers say, and how well it can
be known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import Family
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.coverage import Coverage
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

Floats = NDArray[np.float64]

BOOTSTRAP = "parametric bootstrap"
POSTERIOR = "posterior"


class Fit(ABC):
    """What a method makes of an aggregate: a table for any set of attributes, and how far it may be
    off.

    Tables are flat, the last attribute varying fastest; sets are increasing places of the workload.
    """

    errors: ClassVar[str]  # where the variances come from

    @abstractmethod
    def tables(self, sets: Sequence[Places]) -> list[Floats]:
        """The estimated frequencies of each set's cells."""

    @abstractmethod
    def variances(self, sets: Sequence[Places]) -> list[Floats]:
        """The variances of those estimates' errors, given the people asked."""

    def is_unbiased(self, places: Places) -> bool:
        """Whether this table's estimate is unbiased."""
        return False

    def is_reconstructed(self, places: Places) -> bool:
        """Whether some of this table was never asked for, and comes from an assumption such as
        maximum entropy.
        """
        return False

    @abstractmethod
    def is_heard(self, part: Places) -> bool:
        """Whether anybody's report tells of this attribute, or of these two together."""

    def heard_share(self, part: Places) -> float:
        """Of what is asked of this attribute, or of these two together, the share that reports tell
        of.
        """
        return float(self.is_heard(part))


class Method(ABC):
    """A way to collect and estimate marginals."""

    name: ClassVar[str]
    about: ClassVar[str]  # one line for tables
    source: ClassVar[str]
    is_baseline: ClassVar[bool] = False  # whether it is here to be compared with, and never chosen

    @abstractmethod
    def refuse(self, work: Workload, terms: Terms) -> str | None:
        """Why this method cannot answer; None if it can."""

    def settle(self, work: Workload, terms: Terms, **options: Any) -> dict[str, Any]:
        """Every choice the plan must hold, as JSON without floats; by default there are none."""
        if options:
            raise InvalidInput(
                f"option {next(iter(options))!r} is not one of {self.name}'s (it has none)"
            )
        return {}

    @abstractmethod
    def cohorts(
        self, schema: Schema, work: Workload, epsilon: Decimal, options: Mapping[str, Any]
    ) -> Family:
        """Who is asked what, from the settled options alone."""

    @abstractmethod
    def fit(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> Fit:
        """What the aggregate says."""

    @abstractmethod
    def predict(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
        """The expected sum of squared errors of one of the workload's tables."""

    @abstractmethod
    def shares(
        self, work: Workload, options: Mapping[str, Any], parts: Sequence[Places]
    ) -> list[float]:
        """For each attribute, or two together, the share of the people whose reports tell of it."""

    def coefficients(self, work: Workload, part: Places) -> int:
        """How many coefficients an attribute, or two together, are asked by, one in a report; 1 if
        as a whole.
        """
        return 1

    def is_whole(self, work: Workload, options: Mapping[str, Any], places: Places) -> bool:
        """Whether reports tell of this table as a whole, so that it need not be reconstructed from
        smaller ones.
        """
        return True

    def coverage(self, work: Workload, options: Mapping[str, Any]) -> Coverage:
        """Which attributes and pairs of the workload's tables people are asked about, from the
        options alone.
        """
        counts = tuple(self.coefficients(work, part) for part in work.parts)
        return Coverage(work.parts, tuple(self.shares(work, options, work.parts)), counts)

    def reason(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> str:
        """A few words that say what the predicted error is made of."""
        return self.about
