"""The estimate of a marginals question: a table for any attributes, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from math import comb, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.oracles import Noise
from sottovoce.questions.marginals.method import Fit, Floats
from sottovoce.questions.marginals.models.bounds import parts_of, stated_variances
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.results.cells import (
    CellLabel,
    Total,
    all_but,
    bounded_ends,
    cell_ends,
    largest_total,
    quantile,
    share_interval,
    sums_to_one,
)
from sottovoce.results.estimate import Table
from sottovoce.results.joint import JointEstimate, turned
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_TABLE_CELLS = 1 << 22  # of one table
MAX_LISTED_TABLES = 20_000  # that are listed at once
# of what is asked of a pair: a strength that is told from less would read as independence
MOSTLY_HEARD = 0.5


@dataclass(frozen=True, eq=False)
class CellSums:
    """The spread of a fit's table: normal for a cell, and for sums what the fit knows of them."""

    values: Floats
    std_error: Floats
    sum_variance: Callable[[NDArray[np.int64]], float | None]  # by places in the fit's flat table
    in_fit: NDArray[np.int64]  # those places, (cells,)
    people: int | None  # of a fit whose shares lie in [0, 1]; None of an unbiased one
    by_factor: bool = False  # whether small shares err by a factor

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """(low, high) of every cell."""
        if self.people:
            return share_interval(
                self.values, self.std_error, self.people, level, by_factor=self.by_factor
            )
        reach = quantile(level) * self.std_error
        return self.values - reach, self.values + reach

    def total(self, places: Sequence[int], value: float) -> Total:
        """The sum of the cells at these places, which is ``value``."""
        if len(places) == 1:
            error = float(self.std_error[places[0]])
            return Total(value, error, ends=partial(cell_ends, self, places[0]))
        size = self.values.size
        is_whole = sums_to_one(self.values)
        # of a table that sums to one, a sum errs by as much as that of all other cells
        fewer = all_but(places, size) if is_whole and 2 * len(places) > size else np.array(places)
        if not fewer.size:
            return Total(value, 0.0)
        variance = self.sum_variance(self.in_fit[fewer])
        if variance is None:
            return largest_total(self.values, self.std_error, places, is_complete=True)
        plain = Total(value, sqrt(variance))
        ends = partial(bounded_ends, plain) if self.people else None
        return Total(value, plain.std_error, ends=ends)


def cell_sums(
    fit: Fit,
    places: Places,
    values: Floats,
    variances: Floats,
    people: int,
    in_fit: NDArray[np.int64] | None = None,
) -> CellSums:
    """How the cells of a fit's table err.

    Args:
        fit: What the table comes from.
        places: Its attributes, increasing.
        values: Its cells, in any order.
        variances: Theirs, in the same order.
        people: How many were heard.
        in_fit: Where each cell stands in the fit's flat table; in its own order unless given.
    """
    if in_fit is None:
        in_fit = np.arange(values.size)
    sum_variance = partial(fit.sum_variance, places)
    whole_people = None if fit.is_unbiased(places) else people
    by_factor = fit.errs_by_factor(places)
    return CellSums(values, np.sqrt(variances), sum_variance, in_fit, whole_people, by_factor)


class _Singles(Mapping[tuple[str, ...], Table]):
    """The tables that are shown when nobody names one: each attribute, made when looked at."""

    def __init__(self, estimate: MarginalEstimate) -> None:
        self._estimate = estimate

    def __getitem__(self, names: tuple[str, ...]) -> Table:
        if names not in set(self):
            raise KeyError(names)
        return self._estimate.marginal(*names)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter((name,) for name in self._estimate.work.names)

    def __len__(self) -> int:
        return len(self._estimate.work.names)


@dataclass(frozen=True, eq=False, repr=False)
class MarginalEstimate(JointEstimate):
    """What the crowd said about how attributes go together.

    ``tables`` lists the single attributes; :meth:`marginal` makes the table of any attributes.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(a=sv.Boolean(), b=sv.Boolean(), c=sv.Boolean())
    >>> plan = sv.plan(schema, sv.Marginals(up_to=2, method="inp-ht"), epsilon=4.0, people=3000)
    >>> people = {"a": [True, False] * 1500, "b": [True, False] * 1500}
    >>> people["c"] = [True, True, False] * 1000
    >>> estimate = sv.Aggregate(plan).add(sv.simulate(plan, people, seed=1)).estimate()
    >>> list(estimate.tables), estimate.marginal("a", "b").is_reconstructed
    ([('a',), ('b',), ('c',)], False)
    >>> estimate.marginal("a", "b", "c").is_reconstructed, len(estimate.marginals(2))
    (True, 3)
    """

    @classmethod
    def of(cls, work: Workload, fit: Fit, method: str, aggregate: Aggregate) -> MarginalEstimate:
        """The estimate of an aggregate.

        Args:
            aggregate: what the reports add up to.
        """
        return cls.of_fit(work, fit, method, aggregate.people, aggregate.plan.schema)

    @classmethod
    def of_fit(
        cls, work: Workload, fit: Fit, method: str, people: int, schema: Schema
    ) -> MarginalEstimate:
        """The estimate that a fit gives, wherever the fit comes from.

        Args:
            work: The attributes, and the tables that matter.
            fit: What is known of any table.
            method: By which it was found.
            people: How many people it tells of.
            schema: The attributes by name.
        """
        made = cls({}, people, work=work, fit=fit, method=method, schema=schema)
        object.__setattr__(made, "tables", _Singles(made))
        return made

    def refitted(self, fit: Fit, people: int) -> MarginalEstimate:
        return type(self).of_fit(self.work, fit, self.method, people, self.schema)

    def marginal(self, *attributes: str) -> Table:
        """The table of any attributes; more than the plan's ``up_to`` are reconstructed, marked."""
        first: Any = attributes[0] if attributes else None
        if len(attributes) == 1 and isinstance(first, list | tuple):
            attributes = tuple(first)  # a list of names serves as well
        return self._tables([self._asked(attributes)])[0]

    def marginals(self, k: int) -> dict[tuple[str, ...], Table]:
        """The tables of all sets of ``k`` attributes."""
        names = self.work.names
        k = whole("k", k, 1, 64)
        if not 1 <= k <= len(names):
            raise InvalidInput(
                f"k ({k}) must lie between 1 and the number of attributes ({len(names)})"
            )
        if comb(len(names), k) > MAX_LISTED_TABLES:
            raise InvalidInput(
                f"k ({k}) asks for {comb(len(names), k):,} tables; ask for those you want, at most "
                f"{MAX_LISTED_TABLES:,}"
            )
        sets = list(combinations(range(len(names)), k))
        cells = sum(self.work.cells(each) for each in sets)
        if cells > MAX_TABLE_CELLS:
            raise InvalidInput(
                f"k ({k}) asks for {cells:,} cells in all, more than {MAX_TABLE_CELLS:,}; "
                "ask table by table"
            )
        return {table.attributes: table for table in self._tables(sets)}

    def values_of(self, sets: Sequence[Sequence[str]]) -> list[Floats]:
        """Only the frequencies, of many sets at once: quicker than tables with their errors."""
        asked = [self._asked(each) for each in sets]
        flat = self.fit.tables([tuple(sorted(each)) for each in asked])
        return [_ordered(self.work, each, values) for each, values in zip(asked, flat, strict=True)]

    def _asked(self, attributes: Sequence[str]) -> Places:
        places = self.work.places(attributes)
        if self.work.cells(places) > MAX_TABLE_CELLS:
            raise InvalidInput(
                f"marginal: {self.work.cells(places):,} cells are more than {MAX_TABLE_CELLS:,}"
            )
        return places

    def _tables(self, asked: Sequence[Places]) -> list[Table]:
        sets = [tuple(sorted(places)) for places in asked]
        values = self.fit.tables(sets)
        variances = stated_variances(self.work, self.fit, sets, values)
        tables = []
        for places, own, flat, errors in zip(asked, sets, values, variances, strict=True):
            ordered = _ordered(self.work, places, flat)
            ordered_errors = _ordered(self.work, places, errors)
            tables.append(self._table(places, own, ordered, ordered_errors))
        return tables

    def _table(self, places: Places, own: Places, values: Floats, variances: Floats) -> Table:
        """A table with all that marks it.

        Args:
            places: The attributes, in the order asked for.
            own: The same, increasing.
            values: Frequencies in the order of ``places``, flat.
            variances: Of their errors.
        """
        names = self.work.attributes(places)
        unheard = []
        partly = {}  # what only some of the reports asked for tell of, and their share
        for part in parts_of(own):
            if not self.fit.is_heard(part):
                unheard.append(part)
                continue
            share = self.fit.heard_share(part)
            if share < 1:
                partly[self.work.attributes(part)] = share
        is_beyond = len(own) > self.work.order
        is_reconstructed = is_beyond or bool(unheard or partly) or self.fit.is_reconstructed(own)
        return Table(
            names,
            labels_of(self.schema, names),
            values,
            variances,
            self.people,
            Noise(float(variances.mean()), 0.0),
            is_unbiased=self.fit.is_unbiased(own),
            method=self.method,
            is_reconstructed=is_reconstructed,
            errors=self.fit.errors,
            never_asked=tuple(self.work.attributes(part) for part in unheard),
            partly_heard=partly,
            remark=self.fit.remark(own),
            spread=self._cell_sums(places, own, values, variances),
        )

    def _cell_sums(
        self, places: Places, own: Places, values: Floats, variances: Floats
    ) -> CellSums:
        """How cells, and sums of them, err, in the order of ``places``."""
        numbers = np.arange(float(values.size)).reshape(self.work.shape(own))
        # where each cell stands in the fit's flat table
        in_own = turned(numbers, own, places).astype(np.int64)
        return cell_sums(self.fit, own, values, variances, self.people, in_own)

    def is_asked(self, *attributes: str) -> bool:
        """Whether anybody's report tells of these attributes: of each,
        and of every two together.
        """
        own = tuple(sorted(self.work.places(attributes)))
        return all(self.fit.is_heard(part) for part in parts_of(own))

    def heard_share(self, *attributes: str) -> float:
        """Of what is asked of these attributes, and of pairs of them, the least share told of."""
        own = tuple(sorted(self.work.places(attributes)))
        return min(self.fit.heard_share(part) for part in parts_of(own))

    def never_asked_of(self, *attributes: str) -> tuple[tuple[str, ...], ...]:
        """Those of some attributes (by default all), and pairs of them, that no report tells of.

        Unlike ``never_asked`` it counts pairs that lie in none of the plan's tables.
        """
        own = tuple(sorted(self.work.places(attributes or self.work.names)))
        return tuple(
            self.work.attributes(part) for part in parts_of(own) if not self.fit.is_heard(part)
        )

    @property
    def never_asked(self) -> tuple[tuple[str, ...], ...]:
        """The attributes, and the pairs of them, inside the plan's tables that no report tells of.

        Pairs that lie in none of these tables are not listed: see :meth:`never_asked_of`.
        """
        return tuple(
            self.work.attributes(part) for part in self.work.parts if not self.fit.is_heard(part)
        )

    def correlations(self) -> Any:
        """Cramer's V of every pair (with a sign where both are yes or no), as a data frame.

        It is the V of the estimated tables as they stand, for a picture: noise makes it larger, a
        model that shrinks makes it smaller. :func:`sottovoce.associate` looks at what was heard
        before either, takes off what noise adds, and gives a test and an interval.

        A pair that was never asked, or of which less than half was heard, has none (NaN).
        """
        pd = imported("pandas")

        names = self.work.names
        out = np.eye(len(names))
        pairs = list(combinations(range(len(names)), 2))
        for (one, two), flat in zip(pairs, self.fit.tables(pairs), strict=True):
            table = flat.reshape(self.work.shape((one, two)))
            is_known = self.heard_share(names[one], names[two]) >= MOSTLY_HEARD
            out[one, two] = out[two, one] = _association(table) if is_known else np.nan
        return pd.DataFrame(out, index=list(names), columns=list(names))

    def plot(self, path: str | None = None) -> Any:
        """A heat map of the correlations."""
        from sottovoce.results.plots import matrix

        return matrix(self.correlations(), path, title=f"correlations ({self.people:,} people)")

    @property
    def is_unbiased(self) -> bool:
        return all(self.fit.is_unbiased((place,)) for place in range(len(self.work.names)))


def labels_of(schema: Schema, names: Sequence[str]) -> tuple[CellLabel, ...]:
    """The labels of a table's cells: those of its attribute, or tuples of them."""
    each = [schema[name].labels() for name in names]
    return tuple(each[0]) if len(each) == 1 else tuple(product(*each))


def _ordered(work: Workload, asked: Places, flat: Floats) -> Floats:
    """A flat table over increasing places, turned to the order asked for."""
    own = tuple(sorted(asked))
    return flat if own == asked else turned(flat.reshape(work.shape(own)), own, asked)


def _association(table: Floats) -> float:
    """Cramer's V of a table, (values, values); of two by two negative if unlike values go together.

    Negative cells count as 0.
    """
    cells = np.clip(table, 0, None)
    if not cells.any():
        return 0.0
    cells = cells / cells.sum()
    expected = np.outer(cells.sum(1), cells.sum(0))  # if the two were independent
    # V^2 = sum (f - e)^2/e / (min(rows, columns) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = (cells - expected) ** 2 / expected
    squared = np.where(expected > 0, squares, 0).sum()
    strength = float(np.sqrt(squared / (min(table.shape) - 1)))
    is_binary = table.shape == (2, 2)
    if is_binary and cells[0, 0] * cells[1, 1] < cells[0, 1] * cells[1, 0]:
        return -strength
    return strength
