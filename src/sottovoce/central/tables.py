"""Tables that a curator holds, read once into codes: from files larger than memory, or from memory.

Codes that are too many for memory wait in a temporary file. What must fit is the owner of every
row, if there is a user column, and the different values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.central.code_blocks import CodeBlocks, FileCodes
from sottovoce.central.method import EMPTY_CODE, CentralTable, Integers, RowBatch
from sottovoce.central.sources import TableSource, lists_of, open_source
from sottovoce.central.values import Coder, Codes, DiscoveredValues, ListedValues, flattened
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.schema import Schema

TABLE_BATCH_ROWS = 1 << 18  # of the batches that methods read; a user's rows may make it more

Advance = Callable[[int], None]  # takes how many rows were read


@dataclass(frozen=True, eq=False)
class EncodedTable(CentralTable):
    """A table as codes, which lie in memory or in a temporary file."""

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    is_known: tuple[bool, ...]
    people: int
    is_sets: bool
    codes: Codes | FileCodes  # (cells, attributes), as they were read
    order: Integers | None  # which row of codes comes first, and so on; None for as they are
    users: Integers | None  # of each row in that order, ascending; None if each row is a user

    @property
    def rows(self) -> int:  # type: ignore[override]
        return len(self.codes) if self.order is None else len(self.order)

    @property
    def has_user_column(self) -> bool:  # type: ignore[override]
        return self.users is not None

    def batches(self) -> Iterator[RowBatch]:
        start = 0
        while start < self.rows:
            end = self._end_of_batch(start)
            rows = slice(start, end) if self.order is None else self.order[start:end]
            codes = np.asarray(self.codes[rows], np.int64)
            users = np.arange(start, end) if self.users is None else self.users[start:end]
            yield RowBatch(codes, users)
            start = end

    def _end_of_batch(self, start: int) -> int:
        """Where a batch ends so that no user is in two."""
        end = min(start + TABLE_BATCH_ROWS, self.rows)
        if self.users is None:
            return end
        return int(np.searchsorted(self.users, self.users[end - 1], side="right"))


def read_table(
    table: Any,
    *,
    user: str | None = None,
    items: str | None = None,
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    empty: Sequence[str] = (),
    force: Sequence[str] = (),
    advance: Advance | None = None,
) -> EncodedTable:
    """Read a table once, as codes.

    Args:
        table: the path of a CSV or Parquet file or of a folder of Parquet files; or an Arrow or
            pandas table, or a mapping of columns.
        user: the column that says whose a row is; without it each row is a user.
        items: the column of sets: of lists, of text with ``;`` between items, or with ``user`` of
            one item in each row. Other columns are then left out.
        schema: attributes whose values are public. Others are read off the data, and only those
            values are ever told that a method releases.
        columns: the attributes; by default those of the schema, or all columns but the user's.
        empty: texts that say nothing, beside None, NaN and the empty text.
        force: columns that are taken although nearly every row has a value of its own.
        advance: told how many rows were read.

    >>> table = read_table({"tea": ["green", "black", "green", ""], "milk": [1.0, 0.0, None, 1.0]})
    >>> table.columns, table.values, table.people
    (('tea', 'milk'), (('green', 'black'), (1, 0)), 4)
    >>> next(table.batches()).codes.tolist()
    [[0, 0], [1, 1], [0, -1], [-1, 0]]
    """
    for option, listed in (("columns", columns), ("empty", empty), ("force", force)):
        check_is_list(option, listed)
    source = open_source(table, items)
    names = _attributes(source, user, items, schema, columns)
    for name in force:
        if name not in names:
            raise InvalidInput(f"force ({name}) must be one of the attributes")
    coders = [_coder(name, schema, empty, items is not None or name in force) for name in names]
    reader = _SetReader if items is not None else _RowReader
    reading = reader(coders, user)
    told = advance or (lambda rows: None)
    for batch in source.batches([*names, *([user] if user is not None else [])]):
        reading.take(batch)
        told(reading.rows_read)
    if not reading.rows_read:
        raise InvalidInput("table must have at least one row")
    for coder in coders:
        if isinstance(coder, DiscoveredValues):
            coder.check_is_shared()
    return reading.finished()


def check_is_list(name: str, given: Sequence[str] | None) -> None:
    """Refuse a text where texts are listed: it would be read letter by letter."""
    if isinstance(given, str):
        raise InvalidInput(f"{name} ({given}) must be a list of texts, not one text")


def _attributes(
    source: TableSource,
    user: str | None,
    items: str | None,
    schema: Schema | None,
    columns: Sequence[str] | None,
) -> tuple[str, ...]:
    """The columns that are attributes, all of which the table has."""
    if user is not None and user not in source.names:
        raise InvalidInput(f"user ({user}) must be a column of the table{_listed(source)}")
    if items is not None:
        return _items_alone(source, user, items, columns)
    if columns is not None:
        chosen = tuple(columns)
    elif schema is not None:
        chosen = tuple(name for name in schema if name != user)
    else:
        chosen = tuple(name for name in source.names if name != user)
    if not chosen:
        raise InvalidInput("table must have at least one attribute beside the user column")
    if len(set(chosen)) < len(chosen):
        raise InvalidInput("columns: a name occurs twice")
    for name in chosen:
        if name not in source.names:
            raise InvalidInput(f"column {name!r} is not in the table{_listed(source)}")
        if name == user:
            raise InvalidInput(f"column {name!r} must not be the user column: it tells who it is")
    return chosen


def _items_alone(
    source: TableSource, user: str | None, items: str, columns: Sequence[str] | None
) -> tuple[str, ...]:
    if items not in source.names:
        raise InvalidInput(f"items ({items}) must be a column of the table{_listed(source)}")
    if columns is not None:
        raise InvalidInput("columns must not be given with items, which is the only attribute")
    if items == user:
        raise InvalidInput(f"items ({items}) must be another column than user")
    return (items,)


def _listed(source: TableSource) -> str:
    shown = ", ".join(source.names[:20])
    more = ", ..." if len(source.names) > 20 else ""
    return f" (it has: {shown}{more})"


def _coder(
    name: str, schema: Schema | None, empty: Sequence[str], may_be_unique: bool
) -> ListedValues | DiscoveredValues:
    attribute = schema[name] if schema is not None and name in schema else None
    if attribute is None or attribute.is_open:
        return DiscoveredValues(name, empty, may_be_unique)
    return ListedValues(name, empty, attribute)


class _Reader(ABC):
    """Takes batches in, and keeps codes and owners."""

    is_sets = False

    def __init__(self, coders: Sequence[Coder], user: str | None) -> None:
        self._coders = coders
        self._user = user
        self._codes = CodeBlocks([coder.code_type for coder in coders])
        self._ids: list[Any] = []  # of the owners of rows, Arrow's
        self.rows_read = 0

    @abstractmethod
    def take(self, batch: Any) -> None:
        """Read a record batch of Arrow's."""

    def _take_ids(self, batch: Any) -> None:
        column = flattened(str(self._user), batch.column(self._user))
        pa = imported("pyarrow")
        pc = imported("pyarrow.compute")
        is_missing = pc.is_null(column, nan_is_null=True)
        if pa.types.is_string(column.type):
            is_missing = pc.or_kleene(is_missing, pc.equal(column, ""))
        if pc.any(is_missing).as_py():
            raise InvalidInput(f"user ({self._user}): every row must say whose it is")
        self._ids.append(column)

    def _numbered_ids(self) -> tuple[Integers, int]:
        """The owner of each row read, numbered in the order of ids; and how many there are.

        The order of ids is one that no other user's rows can change.
        """
        pa = imported("pyarrow")
        pc = imported("pyarrow.compute")
        encoded = pa.chunked_array(self._ids).combine_chunks().dictionary_encode()
        ranked = pc.sort_indices(encoded.dictionary).to_numpy()  # places, the least id first
        rank = np.empty(len(ranked), np.int64)
        rank[ranked] = np.arange(len(ranked))
        places = encoded.indices.to_numpy(zero_copy_only=False)
        self._ids.clear()
        return rank[places], len(ranked)

    @abstractmethod
    def finished(self) -> EncodedTable:
        """The table of all that was read."""

    def _table(
        self, codes: Codes | FileCodes, order: Integers | None, users: Integers | None, people: int
    ) -> EncodedTable:
        return EncodedTable(
            columns=tuple(coder.name for coder in self._coders),
            values=tuple(coder.values for coder in self._coders),
            is_known=tuple(coder.is_known for coder in self._coders),
            people=people,
            is_sets=self.is_sets,
            codes=codes,
            order=order,
            users=users,
        )


class _RowReader(_Reader):
    """Rows of attributes."""

    def take(self, batch: Any) -> None:
        columns = [coder.codes(batch.column(coder.name)) for coder in self._coders]
        self._codes.append(np.column_stack(columns))
        self.rows_read += batch.num_rows
        if self._user is not None:
            self._take_ids(batch)

    def finished(self) -> EncodedTable:
        codes = self._codes.finished()
        if self._user is None:
            return self._table(codes, None, None, len(codes))
        owners, people = self._numbered_ids()
        order = np.argsort(owners, kind="stable")
        return self._table(codes, order, owners[order], people)


class _SetReader(_Reader):
    """Sets of items: a row for each item that a user holds, once."""

    is_sets = True

    def __init__(self, coders: Sequence[Coder], user: str | None) -> None:
        super().__init__(coders, user)
        self._rows: list[Integers] = []  # of the table, from which each pair came

    def take(self, batch: Any) -> None:
        coder = self._coders[0]
        column = batch.column(coder.name)
        if self._is_one_each(column.type):
            values, lengths = column, np.ones(len(column), np.int64)
        else:
            values, lengths = lists_of(coder.name, column)
        codes = coder.codes(values)
        rows = self.rows_read + np.repeat(np.arange(len(lengths)), lengths)
        if self._user is not None:
            self._take_ids(batch)
        holds = codes != EMPTY_CODE
        kept = _once(rows[holds], codes[holds])
        self._rows.append(rows[holds][kept])
        self._codes.append(codes[holds][kept][:, None])
        self.rows_read += batch.num_rows

    def _is_one_each(self, type: Any) -> bool:
        """Whether a row has one item, and a user several rows."""
        types = imported("pyarrow").types
        is_nested = types.is_nested(type)
        return self._user is not None and not is_nested

    def finished(self) -> EncodedTable:
        codes = self._codes.finished()
        rows = np.concatenate(self._rows)
        if self._user is None:
            return self._table(codes, None, rows, self.rows_read)
        owners, people = self._numbered_ids()
        holders = owners[rows]
        order = _once(holders, np.asarray(codes[:, 0]))
        return self._table(codes, order, holders[order], people)


def _once(users: Integers, codes: Codes) -> Integers:
    """Places of the different pairs, by user and then by code."""
    order = np.lexsort((codes, users))
    if not len(order):
        return order
    sorted_users, sorted_codes = users[order], codes[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (sorted_users[1:] != sorted_users[:-1]) | (sorted_codes[1:] != sorted_codes[:-1])
    return order[is_new]
