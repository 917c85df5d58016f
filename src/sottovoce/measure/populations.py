"""Populations whose answers are known: tables of codes to sample people from, domains given or
found in the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.csv_files import csv_layout, csv_table
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import PARQUET_ENDINGS, reading_table
from sottovoce.schema import Attribute, Boolean, Categorical, Label, Ordinal, Schema

MAX_NUMBER_CATEGORIES = 64  # different numbers that count as categories
MOST_TEXTS = 4096  # different texts that do
REST = "other"  # what the merged categories are called

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Column:
    """One attribute of a population: its domain, and everybody's code."""

    attribute: Attribute
    codes: Whole
    is_binned: bool = False  # whether neighbouring numbers were put together

    @property
    def counts(self) -> Whole:
        """How many people have each code."""
        return np.bincount(self.codes, minlength=self.attribute.size)

    @property
    def entropy(self) -> float:
        """In bits."""
        share = self.counts[self.counts > 0] / len(self.codes)
        return float(-(share * np.log2(share)).sum())


@dataclass(frozen=True, eq=False)
class Population:
    """People by their codes.

    >>> crowd = Population.of({"a": [0, 1, 1, 0], "b": ["x", "z", "y", "x"]})
    >>> crowd.schema, crowd.people
    (Schema(a=Boolean(sensitive=True), b=Categorical(sensitive=True, values=('x', 'y', 'z'))), 4)
    """

    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidInput("table: there must be at least one attribute")
        if len({len(column.codes) for column in self.columns.values()}) > 1:
            raise InvalidInput("table: columns must have equal lengths")
        if not self.people:
            raise InvalidInput("table: there must be at least one row")

    @classmethod
    def of(
        cls, table: Mapping[str, Any], schema: Schema | None = None, bins: int | None = None
    ) -> Population:
        """The people of a dict of columns; without a schema the domains are those in the data."""
        if schema is None:
            return cls(
                {name: found(name, np.asarray(values), bins) for name, values in table.items()}
            )
        codes = schema.encode_table(table, schema)
        return cls({name: Column(schema[name], codes[name].astype(np.int64)) for name in schema})

    @property
    def schema(self) -> Schema:
        return Schema(**{name: column.attribute for name, column in self.columns.items()})

    @property
    def people(self) -> int:
        return len(next(iter(self.columns.values())).codes)

    def merged(self, most: int) -> Population:
        """Every attribute with at most ``most`` categories: the frequent ones,
        and the rest as one.
        """
        return Population({name: merged(column, most) for name, column in self.columns.items()})

    def richest(self, count: int) -> Population:
        """The ``count`` attributes of the highest entropy, in the order they stand in."""
        ranked = sorted(self.columns, key=lambda name: -self.columns[name].entropy)[:count]
        return Population({name: self.columns[name] for name in self.columns if name in ranked})


def found(name: str, values: NDArray[Any], bins: int | None = None) -> Column:
    """A column whose domain is what occurs in it: categories, or quantile bins of many numbers."""
    if values.ndim != 1:
        raise InvalidInput(f"attribute {name!r}: the column must hold one value per person")
    kind = values.dtype.kind
    if kind == "b":
        return Column(Boolean(), values.astype(np.int64))
    if kind == "f" and not np.isfinite(values).all():
        raise InvalidInput(f"attribute {name!r}: the column must have no missing values")
    if kind not in "iuf":
        return _texts(name, values)
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) <= MAX_NUMBER_CATEGORIES:
        return _categories(name, [_label(value) for value in distinct.tolist()], codes)
    if bins is None:
        raise InvalidInput(
            f"attribute {name!r} has {len(distinct):,} different numbers, more than "
            f"{MAX_NUMBER_CATEGORIES}: give a schema, or "
            f"--bins N for quantile bins, or leave it out"
        )
    return quantile_bins(name, values, bins)


def _texts(name: str, values: NDArray[Any]) -> Column:
    listed = values.tolist()
    if any(value is None or not isinstance(value, str) for value in listed):
        raise InvalidInput(
            f"attribute {name!r}: the column must hold numbers or text, and no missing values"
        )
    distinct = sorted(set(listed))
    if len(distinct) > MOST_TEXTS:
        raise InvalidInput(
            f"attribute {name!r} has {len(distinct):,} different texts, more than {MOST_TEXTS:,}: "
            "give a schema or leave it out"
        )
    place = {value: code for code, value in enumerate(distinct)}
    codes = np.fromiter((place[value] for value in listed), np.int64, len(listed))
    if set(distinct) in ({"false", "true"}, {"no", "yes"}, {"False", "True"}, {"No", "Yes"}):
        return Column(Boolean(), codes)
    return _categories(name, distinct, codes)


def _categories(name: str, labels: Sequence[Label], codes: NDArray[Any]) -> Column:
    if len(labels) < 2:
        raise InvalidInput(
            f"attribute {name!r} has a single value in the data: give a schema or leave it out"
        )
    if tuple(labels) == (0, 1):
        return Column(Boolean(), codes.astype(np.int64))
    return Column(Categorical(labels), codes.astype(np.int64))


def _label(value: float | int) -> Label:
    """A number as a plan may hold it: whole, or text."""
    return int(value) if isfinite(value) and value == int(value) else repr(value)


def quantile_bins(name: str, values: NDArray[Any], bins: int) -> Column:
    """Numbers in at most ``bins`` intervals of about equal counts; a heavy value makes fewer.

    >>> quantile_bins("x", np.array([0, 0, 0, 0, 0, 5, 6, 7]), 4).attribute.labels()
    ('0', '5', '6 to 7')
    """
    edges = quantile_edges(values, bins)
    distinct = np.unique(values)
    codes = np.searchsorted(edges, values, side="left")
    place = np.searchsorted(edges, distinct, side="left")
    labels: list[Label] = []
    for code in range(len(edges) + 1):
        own = distinct[place == code]
        low, high = _label(own[0].item()), _label(own[-1].item())
        labels.append(f"{low}" if low == high else f"{low} to {high}")
    return replace(_categories(name, labels, codes), is_binned=True)


def quantile_edges(values: NDArray[Any], bins: int) -> NDArray[Any]:
    """The last value of each bin but the last, of at most ``bins`` of about equal counts.

    >>> quantile_edges(np.array([0, 0, 0, 0, 0, 5, 6, 7]), 4).tolist()
    [0, 5]
    """
    shares = np.arange(1, bins) / bins
    edges = np.unique(np.quantile(values, shares, method="inverted_cdf"))
    distinct = np.unique(values)
    edges = edges[edges < distinct[-1]]
    return edges if len(edges) else distinct[-2:-1]


def merged(column: Column, most: int) -> Column:
    """At most ``most`` categories: the most frequent, then the rest as one; numbers in bins and
    ranges stay in order.

    Every attribute of zhang2018calm, section 5.3, has at most three categories.

    >>> merged(found("x", np.array(["a", "b", "b", "c", "c", "c", "d"])), 3).attribute.labels()
    ('b', 'c', 'other')
    """
    if column.attribute.size <= most:
        return column
    labels = column.attribute.labels()
    if column.is_binned or isinstance(column.attribute, Ordinal):
        narrow = quantile_bins("", column.codes, most)
        first = [
            int(np.flatnonzero(narrow.codes == code)[0]) for code in range(narrow.attribute.size)
        ]
        spans = [column.codes[narrow.codes == narrow.codes[place]] for place in first]
        named = [_span(labels[int(span.min())], labels[int(span.max())]) for span in spans]
        return Column(Categorical(named), narrow.codes, is_binned=True)
    ranked = np.argsort(-column.counts, kind="stable")
    kept = sorted(ranked[: most - 1].tolist())
    place = np.full(column.attribute.size, len(kept))
    place[kept] = np.arange(len(kept))
    rest = REST
    while rest in [labels[code] for code in kept]:
        rest += "s"
    return Column(Categorical([*(labels[code] for code in kept), rest]), place[column.codes])


def _span(first: Label, last: Label) -> str:
    return (
        str(first)
        if first == last
        else f"{str(first).split(' to ')[0]} to {str(last).split(' to ')[-1]}"
    )


def read_population(
    path: Path,
    schema: Schema | None = None,
    attributes: Sequence[str] | None = None,
    bins: int | None = None,
    top: int | None = None,
    merge: int | None = None,
) -> Population:
    """The people of a CSV or Parquet file.

    ``attributes``: which columns. ``bins``: quantile bins for columns of many numbers. ``top``: the
    so many most frequent items of a list column, each a yes or no. ``merge``: at most so many
    categories each.
    """
    for parameter, value in (("bins", bins), ("merge", merge)):
        if value is not None:
            whole(parameter, value, 2, MOST_TEXTS)
    table = read_arrow(path, as_text=schema is not None)
    if top is not None:
        if schema is not None:
            raise InvalidInput("top is for a table without a schema")
        crowd = _chosen(_items(path, table, top), attributes)
    elif schema is not None:
        wanted = list(schema) if attributes is None else list(attributes)
        crowd = _encoded(table, Schema(**{name: schema[name] for name in wanted}))
    else:
        crowd = _found(table, attributes, bins if bins is not None or merge is None else merge)
    return crowd if merge is None else crowd.merged(merge)


def read_arrow(path: Path, as_text: bool, separator: str | None = None) -> Any:
    """An Arrow table; every column of a CSV as text where a schema says what it means."""
    pa = imported("pyarrow")
    pq = imported("pyarrow.parquet")

    if not path.is_file():
        raise InvalidInput(f"table ({path}) must be a file that exists")
    with reading_table("table", path):
        if path.suffix.lower() in PARQUET_ENDINGS:
            table = pq.read_table(path)
        else:
            layout = csv_layout(path, separator)
            if len(set(layout.names)) < len(layout.names):
                raise InvalidInput(f"table ({path}): a column name occurs twice")
            types = {name: pa.string() for name in layout.names} if as_text else None
            table = csv_table(path, layout, types)
    if len(set(table.column_names)) < len(table.column_names):
        raise InvalidInput(f"table ({path}): a column name occurs twice")
    return table


def is_list(field: Any) -> bool:
    pa = imported("pyarrow")

    return bool(pa.types.is_list(field.type) or pa.types.is_large_list(field.type))


def plain_column(table: Any, name: str) -> NDArray[Any]:
    """A column as numpy has it; a category is its value, a date its text."""
    pa = imported("pyarrow")

    if name not in table.column_names:
        raise InvalidInput(
            f"attribute {name!r} is not in the table (it has: {', '.join(table.column_names)})"
        )
    column = table[name]
    if column.null_count:
        raise InvalidInput(f"attribute {name!r}: the column must have no missing values")
    if is_list(table.schema.field(name)):
        raise InvalidInput(
            f"attribute {name!r} holds lists; --top N takes their N most frequent items"
        )
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_temporal(kind):
        kind = pa.string()
    return np.asarray(column.cast(kind).combine_chunks().to_numpy(zero_copy_only=False))


def _found(table: Any, attributes: Sequence[str] | None, bins: int | None) -> Population:
    names = table.column_names if attributes is None else list(attributes)
    return Population({name: found(name, plain_column(table, name), bins) for name in names})


def _encoded(table: Any, schema: Schema) -> Population:
    return Population.of({name: plain_column(table, name) for name in schema}, schema)


def _chosen(crowd: Population, attributes: Sequence[str] | None) -> Population:
    for name in attributes or ():
        if name not in crowd.columns:
            raise InvalidInput(
                f"attribute {name!r} is not in the table (it has: {', '.join(crowd.columns)})"
            )
    return (
        crowd
        if attributes is None
        else Population({name: crowd.columns[name] for name in attributes})
    )


def _items(path: Path, table: Any, top: int) -> Population:
    """A yes or no for each of the items that the most rows have; a tie goes to the smaller item."""
    whole("top", top, 1, 1 << 20)
    lists = [field.name for field in table.schema if is_list(field)]
    if len(lists) != 1:
        raise InvalidInput(
            f"table ({path}): --top needs exactly one column of lists, and it has {len(lists)}"
        )
    column = table[lists[0]].combine_chunks()
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    items, place = np.unique(column.flatten().to_numpy(zero_copy_only=False), return_inverse=True)
    if top > len(items):
        raise InvalidInput(
            f"top ({top}) must be at most the number of different items ({len(items)})"
        )
    rows = np.repeat(np.arange(len(lengths)), lengths)
    # an item counts once per row
    rows, place = np.divmod(np.unique(rows * len(items) + place.ravel()), len(items))
    ranked = np.argsort(-np.bincount(place, minlength=len(items)), kind="stable")[:top]
    columns = {}
    for code in ranked.tolist():
        has = np.zeros(len(lengths), np.int64)
        has[rows[place == code]] = 1
        columns[f"{lists[0]}_{items[code]}"] = Column(Boolean(), has)
    return Population(columns)
