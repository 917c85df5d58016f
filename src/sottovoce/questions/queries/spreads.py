"""How the values of a table of queries err, and sums of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.fitted import Joint
from sottovoce.results.cells import Total, bounded_interval


@dataclass(frozen=True, eq=False)
class JointSpread:
    """The errors of shares that were estimated together; intervals stay within 0 and 1."""

    joint: Joint

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """(low, high) of every value, two arrays of shape (values,)."""
        return bounded_interval(*self.joint.interval(level), level)

    def total(self, places: Sequence[int], value: float) -> Total:
        """The sum of the values at these places, which is ``value``, with its error."""
        summed = self.joint.summed(places)

        def ends(level: float) -> tuple[float, float]:
            low, high = bounded_interval(*summed.interval(level), level)
            return float(low[0]), float(high[0])

        return Total(value, float(summed.std_errors[0]), ends=ends)
