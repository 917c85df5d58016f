"""What every method for marginals is: who is asked what, what the answers say, and how well it can
be known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.coverage import Coverage
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Method, Options, RoundResult

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

Floats = NDArray[np.float64]

BOOTSTRAP = "parametric bootstrap"
POSTERIOR = "posterior"


class PairEvidence(Protocol):
    """What reports say of two attributes by themselves: unbiased, and nothing shrunk or repaired.

    Attributes:
        table: of the two attributes, (values of one, values of two).
    """

    @property
    def table(self) -> Floats: ...

    def errors(self, count: int, draws: np.random.Generator) -> Floats:
        """Errors of the table as they might have been, were the two independent.

        The people asked are a sample of a population: (count, values of one, values of two).
        """


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

    def sum_variance(self, places: Places, cells: NDArray[np.int64]) -> float | None:
        """The variance of the error of the sum of some cells of a set's table.

        Args:
            places: The set.
            cells: Different places in its flat table.

        Returns:
            None where it is not known how cells err together.
        """
        return None

    def evidence(self, pairs: Sequence[Places]) -> Sequence[PairEvidence] | None:
        """What tests of independence look at, where it is not the tables and their variances.

        None of a method whose tables are unbiased, or that has nothing unbiased of a pair.
        """
        return None

    def is_unbiased(self, places: Places) -> bool:
        """Whether this table's estimate is unbiased."""
        return False

    def errs_by_factor(self, places: Places) -> bool:
        """Whether the small cells of this table err by a factor, being products of estimates."""
        return False

    def is_reconstructed(self, places: Places) -> bool:
        """Whether some of this table was never asked for, and comes from an assumption such as
        maximum entropy.
        """
        return False

    def remark(self, places: Places) -> str:
        """What a reader must know of this table alone; empty if there is nothing."""
        return ""

    @abstractmethod
    def is_heard(self, part: Places) -> bool:
        """Whether anybody's report tells of this attribute, or of these two together."""

    def heard_share(self, part: Places) -> float:
        """Of what is asked of this attribute, or of these two together, the share that reports tell
        of.
        """
        return float(self.is_heard(part))


class Offer(NamedTuple):
    """What a method would do, and the squared error of a table that it is predicted to make."""

    options: dict[str, Any]
    error: float


class MarginalMethod(Method[Workload]):
    """A way to collect and estimate marginals.

    Beside what every method has: :meth:`fit` says what the aggregate tells of any table, and
    :meth:`shares` whom a plan asks about which attributes.
    """

    @abstractmethod
    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> Fit:
        """What the aggregate says."""

    def estimate(self, work: Workload, aggregate: Aggregate, options: Options) -> RoundResult:
        from sottovoce.questions.marginals.estimate import MarginalEstimate  # which holds a Fit

        fit = self.fit(work, aggregate, options)
        return RoundResult(MarginalEstimate.of(work, fit, self.name, aggregate))

    @abstractmethod
    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        """The expected sum of squared errors of one of the workload's tables."""

    def predict_tables(
        self, work: Workload, terms: Terms, options: Options, tables: Sequence[Places]
    ) -> list[float]:
        """The expected sum of squared errors of each of some tables, of a plan for ``work``.

        They lie within the workload's tables, so that a plan tells of them.
        """
        # who is asked what stands in the options; the workload's sets are what errors are of
        return [self.predict(replace(work, sets=(places,)), terms, options) for places in tables]

    def offer(self, work: Workload, terms: Terms, most: float) -> Offer | None:
        """Its settled options and predicted error, for a planner that has something to compare.

        A method whose options or prediction take long need not find them, if it can tell sooner
        that a planner will not want them.

        Args:
            work: The tables asked for.
            terms: Epsilon and the number of people.
            most: The error of a plan that asks for every table; infinite if there is none yet.

        Returns:
            The offer; it may be None if it is sure to err by more than ``most``, or if it leaves
            out a table and ``most`` is finite.
        """
        options = self.settle(work, terms)
        return Offer(options, self.predict(work, terms, options))

    @abstractmethod
    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        """For each attribute, or two together, the share of the people whose reports tell of it."""

    def coefficients(self, work: Workload, part: Places) -> int:
        """How many coefficients an attribute, or two together, are asked by, one in a report; 1 if
        as a whole.
        """
        return 1

    def is_whole(self, work: Workload, options: Options, places: Places) -> bool:
        """Whether reports tell of this table as a whole, so that it need not be reconstructed from
        smaller ones.
        """
        return True

    def coverage(self, work: Workload, options: Options) -> Coverage:
        """Which attributes and pairs of the workload's tables people are asked about, from the
        options alone.
        """
        counts = tuple(self.coefficients(work, part) for part in work.parts)
        return Coverage(work.parts, tuple(self.shares(work, options, work.parts)), counts)
