"""The tables that methods for marginals are measured on, which docs/data.md names; the project
ships none of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from pathlib import Path

import numpy as np

from sottovoce.measure.populations import Population, found, quantile_bins, read_population

MOST_CELLS = 1 << 16  # of a table that is asked for
# share of the tables of k attributes that may be larger, and are then not asked for
MOST_TOO_LARGE = 0.1
NUMBER_BINS = 8
RICHEST = 16  # attributes of the census with the highest entropy


@dataclass(frozen=True)
class Source:
    """One population, and whether no choice of any method was made with it in view."""

    load: Callable[[Path], Population]
    is_binary: bool
    held_out: bool = False


def _top(file: str, count: int) -> Callable[[Path], Population]:
    return lambda data: read_population(data / f"{file}.parquet", top=count)


def _own(
    file: str, without: tuple[str, ...], richest: int | None = None
) -> Callable[[Path], Population]:
    """Its own categories; numbers in quantile bins."""

    def load(data: Path) -> Population:
        import pyarrow.parquet as pq

        about = json.loads((data / f"{file}.json").read_text(encoding="utf-8"))
        numbers = {each["name"] for each in about["attributes"] if each["kind"] == "ordinal"}
        table = pq.read_table(data / f"{file}.parquet")
        columns = {}
        for name in table.column_names:
            if name not in without:
                values = np.asarray(table[name].to_numpy())
                is_number = name in numbers
                columns[name] = (
                    quantile_bins(name, values, NUMBER_BINS) if is_number else found(name, values)
                )
        crowd = Population(columns)
        return crowd if richest is None else crowd.richest(richest)

    return load


def _merged(
    file: str, without: tuple[str, ...], richest: int | None = None
) -> Callable[[Path], Population]:
    """At most three categories each, as zhang2018calm, section 5.3;
    many numbers in quantile bins.
    """

    def load(data: Path) -> Population:
        import pyarrow.parquet as pq

        path = data / f"{file}.parquet"
        names = [name for name in pq.read_schema(path).names if name not in without]
        crowd = read_population(path, attributes=names, merge=3)
        return crowd if richest is None else crowd.richest(richest)

    return load


SOURCES: dict[str, Source] = {
    **{f"kosarak-{d}": Source(_top("kosarak_prefix70k", d), is_binary=True) for d in (8, 16, 32)},
    **{f"retail-{d}": Source(_top("retail", d), is_binary=True) for d in (8, 16, 32)},
    "taxi": Source(lambda data: read_population(data / "nyc_taxi_binary.parquet"), is_binary=True),
    "adult-3": Source(_merged("adult", ("split",)), is_binary=False),
    "census-3": Source(
        _merged("census_income_kdd", ("instance_weight",), RICHEST), is_binary=False
    ),
    "adult": Source(_own("adult", ("split",)), is_binary=False),
    "census": Source(_own("census_income_kdd", ("instance_weight",), RICHEST), is_binary=False),
    "mushroom-16": Source(_top("mushroom", 16), is_binary=True),
    "msweb-16": Source(_top("msweb", 16), is_binary=True),
    "bms-16": Source(_top("bms_webview1", 16), is_binary=True),
    **{
        f"online-{d}": Source(_top("online_retail", d), is_binary=True, held_out=True)
        for d in (16, 32)
    },
    **{
        f"lastfm-{d}": Source(_top("lastfm_genres", d), is_binary=True, held_out=True)
        for d in (16, 32)
    },
    "chess-16": Source(_top("chess", 16), is_binary=True, held_out=True),
    "quest-32": Source(_top("t10i4d100k", 32), is_binary=True, held_out=True),
    "fire": Source(
        lambda data: read_population(data / "sf_fire.parquet"), is_binary=False, held_out=True
    ),
}


def orders(population: Population, wanted: tuple[int, ...]) -> list[int]:
    """The k to ask: 3 for all, 6 from 15 attributes on, 8 from 32 on (zhang2018calm, 5.1), while
    tables are small.
    """
    sizes = [column.attribute.size for column in population.columns.values()]
    least = {6: 15, 8: 32}
    return [
        k
        for k in wanted
        if len(sizes) >= least.get(k, k) and _too_large(sizes, k) <= MOST_TOO_LARGE
    ]


def _too_large(sizes: list[int], k: int) -> float:
    """The share of tables with too many cells."""
    if prod(sorted(sizes)[-k:]) <= MOST_CELLS:
        return 0.0
    return sum(prod(each) > MOST_CELLS for each in combinations(sizes, k)) / comb(len(sizes), k)
