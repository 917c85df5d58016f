"""Estimates of how attributes go together: for tests, trees and synthetic records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sottovoce.results.estimate import Estimate, Floats

if TYPE_CHECKING:
    from sottovoce.questions.marginals.method import Fit
    from sottovoce.questions.marginals.workload import Workload
    from sottovoce.schema import Schema


def turned(table: Floats, axes: Sequence[Hashable], wanted: Sequence[Hashable]) -> Floats:
    """A table with its axes in another order, flat.

    Args:
        table: One axis for each of ``axes``.
        axes: What its axes are: names or places of attributes.
        wanted: The same in the order asked for.

    >>> import numpy as np
    >>> turned(np.array([[1, 2, 3], [4, 5, 6]]), ("a", "b"), ("b", "a")).tolist()
    [1, 4, 2, 5, 3, 6]
    """
    order = [axes.index(axis) for axis in wanted]
    return table.transpose(order).ravel()


@dataclass(frozen=True, eq=False, repr=False)
class JointEstimate(Estimate):
    """An estimate with a table for any attributes together.

    Throughout:
        sets: of attributes.
    """

    work: Workload = field(repr=False, kw_only=True)  # the tables that were asked for
    fit: Fit = field(repr=False, kw_only=True)  # what was made of the reports
    method: str = field(kw_only=True)  # its name
    schema: Schema = field(repr=False, kw_only=True)

    @property
    def joint(self) -> JointEstimate:
        return self

    @property
    def apart(self) -> str:  # type: ignore[override]
        """Why it cannot say how attributes go together; empty if it can."""
        if self.work.order < 2:
            return "asks for tables of one attribute, so it cannot say how they go together"
        return ""

    @abstractmethod
    def refitted(self, fit: Fit, people: int) -> JointEstimate:
        """The same tables by another fit, that tells of so many people."""

    @abstractmethod
    def values_of(self, sets: Sequence[Sequence[str]]) -> list[Floats]:
        """Only the frequencies, of many sets at once: quicker than tables with their errors."""

    @abstractmethod
    def is_asked(self, *attributes: str) -> bool:
        """Whether anybody's report tells of these attributes: of each,
        and of every two together.
        """

    @abstractmethod
    def heard_share(self, *attributes: str) -> float:
        """Of what is asked of these attributes, and of pairs of them, the least share told of."""

    @abstractmethod
    def never_asked_of(self, *attributes: str) -> tuple[tuple[str, ...], ...]:
        """Those of some attributes (by default all), and pairs of them, that no report tells of."""
