"""What an estimate says of groups: shares within one, differences between two, averages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sottovoce.ground.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.results.averages import Average
    from sottovoce.results.differences import Differences
    from sottovoce.results.estimate import Table
    from sottovoce.schema import Schema

Group = Mapping[str, Any]  # by attribute the value, or the list of values, of whoever is in it
EVERYBODY: Group = {}


class GroupAnswers(ABC):
    """Questions about groups, which every estimate takes whose tables hold them.

    Throughout:
        attributes: their names.
    """

    schema: Schema | None

    @abstractmethod
    def marginal(self, *attributes: str) -> Table:
        """The table of these attributes."""

    def within(self, attribute: str, group: Group) -> Table:
        """The shares of an attribute's values among the people of a group.

        Each is a ratio of two sums of cells, both estimated; intervals know how the two err
        together (Fieller's). A group whose own share cannot be told from noise is refused.

        Args:
            attribute: whose values are counted.
            group: by attribute the value, or the list of values, of whoever is in it.

        >>> import sottovoce as sv
        >>> schema = sv.Schema(tea=sv.Boolean(), old=sv.Boolean())
        >>> plan = sv.plan(schema, sv.Marginals(up_to=2), epsilon=4.0, people=20_000)
        >>> people = {"tea": [True, True, True, False] * 5000, "old": [True, False] * 10_000}
        >>> estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=2)).estimate()
        >>> table = estimate.within("tea", {"old": False})
        >>> low, high = table.interval(0.95)
        >>> bool(low[1] < 0.5 < high[1]), bool(high[1] - low[1] < 0.1)
        (True, True)
        """
        from sottovoce.results.groups import group_table

        return group_table(self.marginal, attribute, group)

    def compare(self, attribute: str, one: Group, other: Group) -> Differences:
        """How much more often each value of an attribute is said in one group than in another.

        Args:
            attribute: whose values are counted.
            one: a group, see :meth:`within`.
            other: another, with nobody in both.
        """
        from sottovoce.results.differences import group_differences

        return group_differences(self.marginal, attribute, one, other)

    def change_since(self, earlier: GroupAnswers, *attributes: str) -> Differences:
        """How much larger each share is than in an earlier wave of the survey.

        The waves' coins must be independent: they asked other people, or the same ones by another
        plan. A device that remembers sends its first report again in the same plan, and the
        change is not seen then.

        Args:
            earlier: the estimate of the earlier wave.
            attributes: whose table is compared.

        >>> import sottovoce as sv
        >>> schema, asked = sv.Schema(tea=sv.Boolean()), sv.Frequencies("tea")
        >>> waves = []
        >>> for wave, drinkers in enumerate((2000, 3000)):
        ...     plan = sv.plan(schema, asked, epsilon=2.0, people=10_000 + wave)
        ...     people = {"tea": [True] * drinkers + [False] * (10_000 - drinkers)}
        ...     reports = sv.simulate(plan, people, seed=wave)
        ...     waves.append(sv.Aggregate(plan).add(reports).estimate())
        >>> low, high = waves[1].change_since(waves[0], "tea").interval(0.95)
        >>> bool(low[1] < 0.1 < high[1]), bool(low[1] > 0)
        (True, True)
        """
        from sottovoce.results.differences import wave_differences

        return wave_differences(earlier.marginal(*attributes), self.marginal(*attributes))

    def mean(
        self, attribute: str, group: Group = EVERYBODY, *, without: int | None = None
    ) -> Average:
        """The mean of a number, of everybody or of a group.

        Of numbers that are told in bins each counts as the middle of its bin, and the interval
        holds the mean wherever in their bins people are.

        Args:
            attribute: whose values are numbers.
            group: who is meant, by the values of other attributes.
            without: a number whose people are left out, with all of its bin: the one that stands
            for no answer.
        """
        from sottovoce.results.averages import mean_of

        spans = self._numbers(attribute, "mean")
        return mean_of(self.marginal, attribute, spans, group, self._code(attribute, without))

    def median(
        self, attribute: str, group: Group = EVERYBODY, *, without: int | None = None
    ) -> Average:
        """The median of a number, of everybody or of a group: half of them are not above it.

        Of numbers that are told in bins it lies inside one, as if people were even there.

        Args:
            attribute: the number, as of :meth:`mean`.
            group: as of :meth:`mean`.
            without: as of :meth:`mean`.
        """
        from sottovoce.results.averages import median_of

        spans = self._numbers(attribute, "median")
        return median_of(self.marginal, attribute, spans, group, self._code(attribute, without))

    def averages(self, attribute: str, group: Group = EVERYBODY) -> list[Average]:
        """The mean and the median of those who answered; none if the values are no numbers.

        Args:
            attribute: as of :meth:`mean`.
            group: as of :meth:`mean`.
        """
        from sottovoce.results.averages import silent_number

        known = self.schema[attribute] if self.schema and attribute in self.schema else None
        if known is None or known.spans() is None:
            return []
        silent = silent_number(known)
        return [
            self.mean(attribute, group, without=silent),
            self.median(attribute, group, without=silent),
        ]

    def _code(self, attribute: str, value: int | None) -> int | None:
        """The place of a value among an attribute's."""
        return None if value is None or self.schema is None else self.schema[attribute].code(value)

    def _numbers(self, attribute: str, what: str) -> Sequence[tuple[float, float]]:
        """The smallest and the largest number of each value of an attribute."""
        if self.schema is None or attribute not in self.schema:
            raise InvalidInput(f"{what}: attribute {attribute!r} is not in the schema")
        spans = self.schema[attribute].spans()
        if spans is None:
            raise InvalidInput(f"{what}: the values of attribute {attribute!r} are no numbers")
        return spans
