"""The tables that methods for queries are measured on, which docs/data.md names; the project ships
none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.measure.populations import Column
from sottovoce.measure.query_crowds import QueryPopulation
from sottovoce.schema import Categorical, Ordinal

# by name: the table, its column, and the range that is kept
NUMBERS = {
    "taxi-minute": ("nyc_yellow_taxi", "pickup_minute_of_day", 0, 1439),
    "taxi-fare": ("nyc_yellow_taxi", "fare_cents", 0, 8191),
    "taxi-distance": ("nyc_yellow_taxi", "distance_hundredth_mile", 0, 2047),
    "taxi-seconds": ("nyc_yellow_taxi", "duration_s", 0, 4095),
    "adult-age": ("adult", "age", 17, 90),
    "adult-hours": ("adult", "hours-per-week", 1, 99),
    "census-age": ("census_income_kdd", "age", 0, 90),
    "census-weeks": ("census_income_kdd", "weeks_worked", 0, 52),
    "census-wage": ("census_income_kdd", "wage_per_hour", 0, 2047),
    "census-gains": ("census_income_kdd", "capital_gains", 0, 16383),
    "salary": ("md_salary", "annual-salary", 0, 255),
    "salary-gross": ("md_salary", "ytd-gross", 0, 255),
    "salary-overtime": ("md_salary", "overtime-earning", 0, 255),
}
# sources that the recipe of `auto` was chosen on; no choice looked at the others
LOOKED_AT = (
    "INCOME",
    "HEPTH",
    "NETTRACE",
    "SEARCHLOGS",
    "BIDS-FJ",
    "MDSALARY",
    "LC-REQ-ALL",
    "taxi-minute",
    "adult-hours",
    "taxi-distance",
    "TWITTER",
    "SF-CABS-S",
    "BEIJING-CABS-E",
    "MDSALARY-OVERT",
    "taxi-distance-fare",
    "adult-age-hours",
)
LISTED = (
    "ADULT",
    "MEDCOST",
    "PATENT",
    "BIDS-ALL",
    "LC-DTIR-ALL",
    "BIDS-FM",
    "INCOME",
    "HEPTH",
    "NETTRACE",
    "SEARCHLOGS",
    "BIDS-FJ",
    "MDSALARY",
    "LC-REQ-ALL",
)
PLACES = (
    "GOWALLA",
    "BEIJING-CABS-S",
    "STROKE",
    "LOAN-FUNDED-INCOME",
    "TWITTER",
    "SF-CABS-S",
    "BEIJING-CABS-E",
    "MDSALARY-OVERT",
)
TOGETHER = {
    "taxi-minute-seconds": ("taxi-minute", "taxi-seconds"),
    "census-age-weeks": ("census-age", "census-weeks"),
    "taxi-distance-fare": ("taxi-distance", "taxi-fare"),
    "adult-age-hours": ("adult-age", "adult-hours"),
}
TRIPLES = {
    "taxi-minute-distance-fare": ("taxi-minute", "taxi-distance", "taxi-fare"),
    "taxi-minute-distance-seconds": ("taxi-minute", "taxi-distance", "taxi-seconds"),
    "census-age-weeks-wage": ("census-age", "census-weeks", "census-wage"),
    "salary-gross-overtime": ("salary", "salary-gross", "salary-overtime"),
}
# public numbers beside a dimension
SUMS = {
    "taxi-tip-by-minute": ("taxi-minute", "tip_cents"),
    "taxi-fare-by-distance": ("taxi-distance", "fare_cents"),
    "taxi-tolls-by-seconds": ("taxi-seconds", "tolls_cents"),
    "adult-gain-by-age": ("adult-age", "capital-gain"),
    "adult-hours-by-age": ("adult-age", "hours-per-week"),
    "census-dividends-by-age": ("census-age", "stock_dividends"),
}
# four in order and four without, for queries of a few of many dimensions
MIXED_ORDERED = ("census-age", "census-weeks", "census-wage", "census-gains")
# another census in place of the thesis's, with its figures' numbers of values
THESIS = {
    "census 1024": (("census-age", 1024),),
    "census 256 x 256": (("census-age", 256), ("census-weeks", 256)),
    "census 1024 x 64": (("census-age", 1024), ("census-weeks", 64)),
}
MIXED_CATEGORIES = ("education", "marital_stat", "race", "sex")


@dataclass(frozen=True)
class QuerySource:
    """One population by the size of its dimensions."""

    load: Callable[[Path, int], QueryPopulation]
    is_held_out: bool


@cache
def _table(data: Path, name: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(data / f"{name}.parquet")


def _values(data: Path, file: str, column: str) -> NDArray[Any]:
    return np.asarray(_table(data, file)[column].to_numpy())


def _codes(data: Path, name: str, size: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The bin of everybody's number, and whether it lies in the range."""
    file, column, low, high = NUMBERS[name]
    values = _values(data, file, column).astype(np.int64)
    codes = (np.clip(values, low, high) - low) * size // (high - low + 1)
    return codes, (values >= low) & (values <= high)


def _ordered(codes: NDArray[np.int64], size: int) -> Column:
    return Column(Ordinal(0, size - 1), codes)


def _listed(name: str) -> Callable[[Path, int], QueryPopulation]:
    """A histogram of 4,096 counts, added up to the size."""

    def load(data: Path, size: int) -> QueryPopulation:
        counts = _values(data, "dpbench_1d", name).astype(np.int64).reshape(size, -1).sum(axis=1)
        columns = {"x": _ordered(np.arange(size), size)}
        return QueryPopulation(name, columns, counts=counts)

    return load


def _placed(name: str) -> Callable[[Path, int], QueryPopulation]:
    """Points of a square of 256 by 256, with counts."""

    def load(data: Path, size: int) -> QueryPopulation:
        table = _table(data, "dpbench_2d")
        own = table.filter(np.asarray(table["dataset"].cast("string")) == name)
        columns = {
            axis: _ordered(np.asarray(own[axis]).astype(np.int64) * size // 256, size)
            for axis in ("x", "y")
        }
        return QueryPopulation(name, columns, counts=np.asarray(own["count"]).astype(np.int64))

    return load


def _joined(
    source: str, names: Sequence[str], measure: str | None = None
) -> Callable[[Path, int], QueryPopulation]:
    """Numbers of one table together, of rows where all lie in their ranges."""

    def load(data: Path, size: int) -> QueryPopulation:
        columns, is_kept = {}, None
        for place, name in enumerate(names):
            codes, inside = _codes(data, name, size)
            columns[f"x{place}"] = codes
            is_kept = inside if is_kept is None else is_kept & inside
        assert is_kept is not None
        numbers = None
        if measure is not None:
            numbers = _values(data, NUMBERS[names[0]][0], measure).astype(float)[is_kept]
        kept = {axis: _ordered(codes[is_kept], size) for axis, codes in columns.items()}
        return QueryPopulation(source, kept, numbers)

    return load


def _mixed(data: Path, size: int) -> QueryPopulation:
    columns = {}
    for name in MIXED_ORDERED:
        codes, _ = _codes(data, name, size)
        columns[name] = _ordered(codes, size)
    for name in MIXED_CATEGORIES:
        labels, codes = np.unique(_values(data, "census_income_kdd", name), return_inverse=True)
        columns[name] = Column(Categorical(range(len(labels))), codes.astype(np.int64))
    return QueryPopulation("census-mixed", columns)


def _as_in_thesis(name: str) -> Callable[[Path, int], QueryPopulation]:
    """Dimensions of their own sizes."""

    def load(data: Path, _: int) -> QueryPopulation:
        columns = {}
        for place, (number, size) in enumerate(THESIS[name]):
            codes, _inside = _codes(data, number, size)
            columns[f"x{place}"] = _ordered(codes, size)
        return QueryPopulation(name, columns)

    return load


def _source(name: str, load: Callable[[Path, int], QueryPopulation]) -> QuerySource:
    return QuerySource(load, name not in LOOKED_AT)


_SINGLE = (
    "taxi-fare",
    "taxi-seconds",
    "adult-age",
    "census-age",
    "taxi-minute",
    "adult-hours",
    "taxi-distance",
)
# by the number of dimensions, or what is special
SOURCES: dict[str, dict[str, QuerySource]] = {
    "one": {
        **{name: _source(name, _listed(name)) for name in LISTED},
        **{name: _source(name, _joined(name, [name])) for name in _SINGLE},
    },
    "two": {
        **{name: _source(name, _placed(name)) for name in PLACES},
        **{name: _source(name, _joined(name, pair)) for name, pair in TOGETHER.items()},
    },
    "three": {name: _source(name, _joined(name, each)) for name, each in TRIPLES.items()},
    "mixed": {"census-mixed": QuerySource(_mixed, True)},
    "thesis": {name: QuerySource(_as_in_thesis(name), True) for name in THESIS},
    "sums": {
        name: _source(name, _joined(name, [axis], measure))
        for name, (axis, measure) in SUMS.items()
    },
}
