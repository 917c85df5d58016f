"""Estimates: values with variances, and the ways people look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import written
from sottovoce.oracles import Noise
from sottovoce.results.cells import (
    Cell,
    CellLabel,
    Mark,
    PureLaw,
    Spread,
    SpreadPart,
    Total,
    largest_total,
    quantile,
)
from sottovoce.results.frames import Frames
from sottovoce.results.group_answers import GroupAnswers
from sottovoce.results.words import CLOSED_FORM, TableWords

if TYPE_CHECKING:
    from sottovoce.questions.base import Question
    from sottovoce.results.findings import PrefixStep
    from sottovoce.results.joint import JointEstimate
    from sottovoce.schema import Schema

Floats = NDArray[np.float64]
MAX_NAMED_TABLES = 8  # tables that the short name of an estimate lists


@dataclass(frozen=True, eq=False, repr=False)
class Table(Frames, TableWords):
    """Estimated frequencies of the values of one or more attributes.

    ``variances`` are those of the error given the people asked. ``method`` says how it was
    collected, by an oracle or a method of marginals or popular values; ``repair`` what was done to
    it since, None for nothing. ``table["yes"]``, or ``table["yes", "daily"]`` of two attributes, is
    one :class:`Cell`.

    Throughout:
        level: of the intervals.
        population: whether intervals are for everybody whom the people stand for.
        alpha: how many false ones are expected at most.
        labels: of some values.
        places: of some values.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> reports = sv.simulate(plan, {"x": [True] * 700 + [False] * 300}, seed=1)
    >>> table = sv.Aggregate(plan).add(reports).estimate().marginal("x")
    >>> low, high = table.interval(0.95)
    >>> bool(low[1] < 0.7 < high[1]), table.is_unbiased, table.method, table.repair
    (True, True, 'grr', None)
    >>> len(table), table[True].label, table.total([False, True]).std_error
    (2, True, 0.0)
    """

    attributes: tuple[str, ...]  # their names
    labels: Sequence[CellLabel]  # the value of each cell; of several attributes, one of each
    values: Floats  # the estimated frequencies
    variances: Floats  # of the errors of the values
    people: int  # who were heard
    noise: Noise = field(repr=False)  # the variance of a value by its frequency
    is_unbiased: bool = True  # whether values are right on average
    method: str = ""  # how it was collected
    is_complete: bool = True  # whether it lists every value that can occur
    # whether some of it was never asked for, and follows from an assumption
    is_reconstructed: bool = False
    errors: str = CLOSED_FORM  # where the variances come from
    # attributes, and pairs of them, that no report tells of
    never_asked: tuple[tuple[str, ...], ...] = ()
    # others, and the share told of each
    partly_heard: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    law: PureLaw | None = field(default=None, repr=False)  # of the reports behind it
    repair: str | None = None  # what was done to it since
    remark: str = ""  # of the method about this table, such as that it failed
    # of the sum of so many values
    sum_noise: Callable[[int], Noise] | None = field(default=None, repr=False)
    # intervals and errors of sums that do not follow from the variances
    spread: Spread | None = field(default=None, repr=False)
    # of each value, as far as it is known: what it is too large by, on average
    bias: Floats | None = field(default=None, repr=False)
    # what is left for values that were not asked for, where it is known
    off_list: Total | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[CellLabel]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._places

    def __getitem__(self, label: CellLabel) -> Cell:
        """The cell of a value; of several attributes, of one value each."""
        (place,) = self._placed([label])
        (row,) = self.at(np.array([place])).rows()
        return Cell(label, row["frequency"], row["std_error"], row["low"], row["high"])

    @cached_property
    def _places(self) -> dict[CellLabel, int]:
        return {label: place for place, label in enumerate(self.labels)}

    def _placed(self, labels: Sequence[CellLabel]) -> list[int]:
        """The places of some labels."""
        for label in labels:
            if label not in self._places:
                raise InvalidInput(f"label {label!r} is not in the table")
        return [self._places[label] for label in labels]

    @property
    def std_error(self) -> Floats:
        """Standard errors of the values."""
        return np.sqrt(self.variances)

    def interval(self, level: float = 0.95, *, population: bool = False) -> tuple[Floats, Floats]:
        """(low, high) per value, of the true frequencies; ``population``: the people are a sample.

        Normal intervals, or those of the table's ``spread``, if it has one.
        """
        reaching = quantile(level)
        share = np.clip(self.values, 0, 1)
        # what a sample of people adds to the squared reach
        sampling = reaching**2 * share * (1 - share) / self.people if population else 0.0
        if self.spread is None:
            reach = np.sqrt(reaching**2 * self.variances + sampling)
            return self.values - reach, self.values + reach
        low, high = self.spread.interval(level)
        if population:
            inside, drawn = np.clip(self.values, low, high), np.sqrt(sampling)
            low = np.maximum(inside - np.hypot(inside - low, drawn), np.minimum(low, 0))
            high = np.minimum(inside + np.hypot(high - inside, drawn), np.maximum(high, 1))
        return low, high

    def threshold(self, alpha: float = 0.05) -> float:
        """Estimates above this are significant: of unheld values ``alpha`` pass in expectation.

        T = Phi^-1(1 - alpha/d) sqrt(Var*)                     wang2021thesis, eq. (3.13)
        """
        if not 0 < alpha < len(self.labels):
            raise InvalidInput(f"alpha ({alpha}) must lie between 0 and the number of values")
        return -NormalDist().inv_cdf(alpha / len(self.labels)) * float(np.sqrt(self.noise.floor))

    def significant(self, alpha: float = 0.05) -> NDArray[np.bool_]:
        """Which values rise above the noise."""
        return self.values > self.threshold(alpha)

    def total(self, labels: Sequence[CellLabel]) -> Total:
        """The summed frequency of some values, with its error; not negative after ``post-pos``.

        The error is the oracle's for sums, or that of the table's ``spread``, if it has one. Where
        neither is known, as of most tables of marginals, it is the largest that the cells' errors
        allow (``is_bound``), and its interval lies in [0, 1]; a smaller table, asked for by itself,
        is then better known.
        """
        places = self._placed(list(dict.fromkeys(labels)))
        total = float(self.values[places].sum())
        if self.spread is not None and places:
            return self.spread.total(places, total)
        if self.sum_noise is not None and places:
            variance = float(self.sum_noise(len(places)).variance(min(max(total, 0.0), 1.0)))
            return Total(total, float(np.sqrt(max(variance, 0.0))))
        return largest_total(self.values, self.std_error, places, is_complete=self.is_complete)

    def repaired(
        self,
        values: Floats,
        repair: str,
        *,
        is_unbiased: bool = False,
        variances: Floats | None = None,
        bias: Floats | None = None,
        spread: Spread | None = None,
        errors: str | None = None,
    ) -> Table:
        """The same table with repaired values, marked, and what is known of their errors.

        Variances that are not given stay those of the unrepaired values; a spread does not stay.
        """
        return replace(
            self,
            values=values,
            repair=repair,
            is_unbiased=is_unbiased,
            variances=self.variances if variances is None else variances,
            bias=bias,
            spread=spread,
            errors=self.errors if errors is None else errors,
            off_list=None,  # what repaired values leave for others is not known
        )

    def largest_first(self) -> NDArray[np.int64]:
        """The places of its values, the largest first; equal ones stay in their order."""
        return np.argsort(-self.values, kind="stable")

    def at(self, places: NDArray[np.int64]) -> Table:
        """Some of its values, in the order given, to be shown; what follows from all of them
        (``law``) is left out.
        """
        labels = [self.labels[place] for place in places.tolist()]
        values, variances = self.values[places], self.variances[places]
        return replace(
            self,
            labels=labels,
            values=values,
            variances=variances,
            is_complete=False,
            law=None,
            spread=None if self.spread is None else SpreadPart(self.spread, places),
            bias=None if self.bias is None else self.bias[places],
        )

    def rows(self, level: float = 0.95, *, population: bool = False) -> list[dict[str, Any]]:
        """One mapping per value, ready for JSON."""
        low, high = self.interval(level, population=population)
        rows: list[dict[str, Any]] = [
            {
                "value": label,
                "frequency": float(value),
                "std_error": float(error),
                "low": float(bottom),
                "high": float(top),
            }
            for label, value, error, bottom, top in zip(
                self.labels, self.values, self.std_error, low, high, strict=True
            )
        ]
        if self.bias is not None:
            for row, bias in zip(rows, self.bias.tolist(), strict=True):
                row["bias"] = bias
        return rows

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        """The table with all that marks it."""
        return {
            "attributes": list(self.attributes),
            "people": self.people,
            "method": self.method,
            "repair": self.repair,
            "is_unbiased": self.is_unbiased,
            "is_reconstructed": self.is_reconstructed,
            "never_asked": [list(part) for part in self.never_asked],
            "partly_heard": [
                {"attributes": list(part), "share": share}
                for part, share in self.partly_heard.items()
            ],
            "off_list": None if self.off_list is None else self.off_list.to_json(level),
            "errors": self.errors,
            "remark": self.remark,
            "level": level,
            "rows": self.rows(level),
        }

    def plot(
        self,
        path: str | None = None,
        *,
        truth: Floats | None = None,
        level: float = 0.95,
        population: bool = False,
        most: int = 64,
        kind: str | None = None,
    ) -> Any:
        """An Altair chart; written to ``path`` if given.

        One attribute: bars with intervals. Two: a heat map. Three: one for each value of the first.
        More, or with the ``truth``: bars of the largest cells, the truth as ticks.

        Args:
            path: a file .svg, .png, .html or .json.
            truth: the true frequencies, if they are known.
            most: how many bars there are at most.
            kind: ``bars`` or ``heat``, to insist.
        """
        from sottovoce.results.plots import picture

        return picture(
            self, path, truth=truth, level=level, population=population, most=most, kind=kind
        )

    def __str__(self) -> str:
        low, high = self.interval()
        head = (
            f"{', '.join(self.attributes):<24} {'frequency':>10} {'std error':>10} "
            f"{'95% interval':>22}"
        )
        lines = [
            f"{written(label):<24.24} {value:>10.4f} {error:>10.4f} "
            f"{f'[{bottom:.4f}, {top:.4f}]':>22}"
            for label, value, error, bottom, top in zip(
                self.labels, self.values, self.std_error, low, high, strict=True
            )
        ]
        return "\n".join([head, *lines, ", ".join(self.notes)])

    def __repr__(self) -> str:
        return (
            f"<Table {' x '.join(self.attributes)}: {len(self):,} values, {', '.join(self.notes)}>"
        )

    def _repr_html_(self) -> str:
        """In a notebook: rows with their intervals drawn."""
        from sottovoce.results.html import table_html

        return table_html(self)


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(GroupAnswers):
    """What a plan's crowd said: one table per set of attributes.

    Throughout:
        k: how many attributes a table has.
        level: of the intervals.
        table: one of its tables.
        places: of some of its values.
        path: a file .svg, .png, .html or .json.
        with_prefixes: whether the prefixes that led to popular values are drawn too.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> estimate = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [True] * 100}, seed=1)).estimate()
    >>> estimate.people, list(estimate.tables)
    (100, [('x',)])
    """

    tables: Mapping[tuple[str, ...], Table]  # by their attributes
    people: int  # reports heard, over all tables
    # what the next round asks, if there is one
    next: Question | None = field(default=None, kw_only=True)
    schema: Schema | None = field(default=None, repr=False, kw_only=True)  # of the plan

    is_part: ClassVar[bool] = False  # whether it lists the popular values alone, each with a mark
    apart: ClassVar[str] = (
        "asks about each attribute by itself, so it cannot say how they go together"
    )

    def marginal(self, *attributes: str) -> Table:
        """The table of these attributes."""
        if attributes not in self.tables:
            known = "; ".join(", ".join(names) for names in self.tables)
            raise InvalidInput(
                f"marginal ({', '.join(attributes)}) was not asked for (there is: {known})"
            )
        return self.tables[attributes]

    def marginals(self, k: int) -> dict[tuple[str, ...], Table]:
        """The tables of all sets of ``k`` attributes, if they were asked for together."""
        raise InvalidInput(f"k ({k}) is for a plan whose question is marginals")

    @property
    def joint(self) -> JointEstimate:
        """Itself, if it tells how attributes go together; else a clear refusal."""
        raise InvalidInput("estimate must be that of a Marginals question, or its aggregate")

    @property
    def singles(self) -> list[tuple[str, ...]]:
        """The tables that show each attribute by itself."""
        return [names for names in self.tables if len(names) == 1]

    @property
    def table(self) -> Table:
        """The table, if there is just one."""
        if len(self.tables) != 1:
            raise InvalidInput("there are several tables; choose one with marginal(...)")
        return next(iter(self.tables.values()))

    @property
    def remarks(self) -> Sequence[str]:
        """What a reader should know of the whole, such as an answer smaller than was asked for."""
        return ()

    @property
    def marks(self) -> Sequence[Mark] | None:
        """For each popular value whether noise alone explains it; None if none was looked for."""
        return None

    def prefixes(self) -> Sequence[PrefixStep]:
        """The prefixes that led to popular values, or a clear refusal."""
        raise InvalidInput("tree: only popular values are found by prefixes")

    def page(self, table: Table, places: NDArray[np.int64], level: float = 0.95) -> dict[str, Any]:
        """Some rows of one of its tables, in the order given, with their marks, ready for JSON."""
        return {"tables": [table.at(places).to_json(level)]}

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        """All its tables with all that marks them."""
        return {"tables": [table.to_json(level) for table in self.tables.values()]}

    def chart(self, *, with_prefixes: bool = False) -> Any:
        """The picture worth showing: every table, one below the other."""
        from sottovoce.results.plots import stacked

        if with_prefixes:
            self.prefixes()
        return stacked(list(self.tables.values()))

    @property
    def values(self) -> Floats:
        """Those of the only table."""
        return self.table.values

    @property
    def variances(self) -> Floats:
        """Those of the only table."""
        return self.table.variances

    @property
    def std_error(self) -> Floats:
        """Those of the only table."""
        return self.table.std_error

    @property
    def is_unbiased(self) -> bool:
        """Whether all tables are."""
        return all(table.is_unbiased for table in self.tables.values())

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """(low, high) per value of the only table."""
        return self.table.interval(level)

    def to_pandas(self) -> Any:
        """The only table as a data frame."""
        return self.table.to_pandas()

    def plot(self, path: str | None = None) -> Any:
        """An Altair chart of the only table; written to ``path`` if given."""
        return self.table.plot(path)

    def __str__(self) -> str:
        return "\n\n".join(str(table) for table in self.tables.values())

    def __repr__(self) -> str:
        names = [" x ".join(each) for each in self.tables]
        told = ", ".join(names[:MAX_NAMED_TABLES])
        more = (
            f" and {len(names) - MAX_NAMED_TABLES:,} more" if len(names) > MAX_NAMED_TABLES else ""
        )
        return f"<{type(self).__name__} of {told}{more}: {self.people:,} people>"

    def _repr_html_(self) -> str:
        """In a notebook: its tables, with their intervals drawn."""
        from sottovoce.results.html import estimate_html

        return estimate_html(self)
