"""Known domains: what a row of a table may hold, and how often each combination occurs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from sottovoce.central.method import EMPTY_CODE, CentralTable, Integers, RowBatch
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.noise import sampled_within_groups
from sottovoce.schema import Attribute, Boolean, Categorical, Label, Schema

Places = tuple[int, ...]  # attributes by their places in the table, increasing

EMPTY_LABEL = "(empty)"
OTHER_LABEL = "(other)"
MAX_JOINT_CELLS = 1 << 15  # of a table that is counted so that others are summed from it
MAX_ALL_JOINT_CELLS = 1 << 22  # of all of them, which are in memory together
MAX_JOINT_SETS = 1 << 13  # more are not put together, since that takes longer the more there are


@dataclass(frozen=True)
class TableDomain:
    """The values that each attribute may have, the empty one last where it is one of them.

    >>> domain = TableDomain(("a", "b"), (("x", "y"), (1, 2, 3)), (False, True))
    >>> domain.sizes, domain.labels[1]
    ((2, 4), (1, 2, 3, '(empty)'))
    """

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    may_be_empty: tuple[bool, ...]

    @classmethod
    def of(cls, table: CentralTable, may_be_empty: Sequence[str] = ()) -> TableDomain:
        """The domain of a table.

        Args:
            table: What a curator holds.
            may_be_empty: Attributes for which to be empty counts as a value of its own.
        """
        if isinstance(may_be_empty, str):
            raise InvalidInput(f"may_be_empty ({may_be_empty}) must be a list of attributes")
        for name in may_be_empty:
            if name not in table.columns:
                known = ", ".join(table.columns)
                raise InvalidInput(f"may_be_empty ({name}) must name attributes (of: {known})")
        flags = tuple(name in may_be_empty for name in table.columns)
        return cls(table.columns, table.values, flags)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        pairs = zip(self.values, self.may_be_empty, strict=True)
        return tuple(len(values) + is_empty for values, is_empty in pairs)

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """The values as a schema names them."""
        named = []
        for values, is_empty in zip(self.values, self.may_be_empty, strict=True):
            own = tuple(each if isinstance(each, int | str) else str(each) for each in values)
            named.append((*own, EMPTY_LABEL) if is_empty else own)
        return tuple(named)

    @property
    def schema(self) -> Schema:
        """The attributes as tables of frequencies name them."""
        attributes: dict[str, Attribute] = {}
        for name, labels in zip(self.names, self.labels, strict=True):
            is_boolean = all(isinstance(label, bool) for label in labels)
            if is_boolean and labels == (False, True):
                attributes[name] = Boolean()
            else:
                own = [str(label) if isinstance(label, bool) else label for label in labels]
                attributes[name] = Categorical(own)
        return Schema(**attributes)

    def cells(self, places: Places) -> int:
        """How many combinations of values some attributes have."""
        return prod(self.sizes[place] for place in places)

    def all_cells(self, order: int) -> int:
        """How many cells all tables of so many attributes have together.

        >>> TableDomain(("a", "b", "c"), (("x", "y"),) * 3, (False,) * 3).all_cells(2)
        12
        """
        return int(symmetric_sums(self.sizes, order)[order])

    def why_too_large(self, up_to: int, most: int) -> str | None:
        """Why tables of up to so many attributes cannot all be listed; None if they can."""
        cells = sum(self.all_cells(count) for count in range(1, up_to + 1))
        if cells <= most:
            return None
        return f"tables of up to {up_to} attributes have {cells:,} cells in all, more than {most:,}"


def symmetric_sums(sizes: Sequence[Any], order: int) -> list[Any]:
    """For 0, 1, ... ``order`` the sum, over all sets of so many numbers, of their product.

    >>> symmetric_sums((2, 3, 5), 2)
    [1, 10, 31]
    """
    sums: list[Any] = [1] + [0] * order
    for size in sizes:
        for degree in range(order, 0, -1):
            sums[degree] += size * sums[degree - 1]
    return sums


def sets_up_to(points: int, order: int) -> list[Places]:
    """All sets of up to ``order`` of so many attributes, the empty one first.

    >>> sets_up_to(3, 1)
    [(), (0,), (1,), (2,)]
    """
    return [own for count in range(order + 1) for own in combinations(range(points), count)]


def one_row_each(batch: RowBatch, entropy: Entropy) -> Integers:
    """The codes of a batch with one row for each user, drawn at random where there are more.

    Then nobody adds more than one to all cells of a table together.
    """
    if (np.diff(batch.users) > 0).all():
        return batch.codes
    _, sizes = np.unique(batch.users, return_counts=True)
    stays = sampled_within_groups(sizes, 1, entropy)
    return batch.codes[stays]


def joint_sets(sets: Sequence[Places], sizes: Sequence[int]) -> dict[Places, Places]:
    """For each set of attributes a wider one, so that few tables are counted and all others summed.

    Args:
        sets: of attributes whose tables are wanted.
        sizes: how many values each attribute has.

    Returns:
        The wider set of each; the set itself, if there are too many, of sets or of cells.

    >>> joint_sets([(0, 1), (0, 2), (1, 2)], (2, 3, 4))
    {(0, 1): (0, 1, 2), (0, 2): (0, 1, 2), (1, 2): (0, 1, 2)}
    """
    alone = {own: own for own in sets}
    if len(alone) > MAX_JOINT_SETS:
        return alone
    wider: dict[Places, Places] = {}
    left = list(alone)
    cells = 0
    while left:
        wide = _merged(left, sizes)
        cells += prod(sizes[place] for place in wide)
        if cells > MAX_ALL_JOINT_CELLS:
            return alone
        within = frozenset(wide)
        wider |= {own: wide for own in left if within.issuperset(own)}
        left = [own for own in left if not within.issuperset(own)]
    return wider


def _merged(sets: Sequence[Places], sizes: Sequence[int]) -> Places:
    """The first set together with those after it that leave its table small."""
    wide = set(sets[0])
    cells = prod(sizes[place] for place in wide)
    for own in sets:
        further = wide.union(own) - wide
        more = prod(sizes[place] for place in further)
        if cells * more <= MAX_JOINT_CELLS:
            wide |= further
            cells *= more
    return tuple(sorted(wide))


def exact_counts(
    table: CentralTable, domain: TableDomain, sets: Sequence[Places], entropy: Entropy
) -> dict[Places, Integers]:
    """How many users have each combination of values; exact, so nothing to show to anybody.

    Args:
        table: What a curator holds; of a user with several rows one counts.
        domain: Its values.
        sets: The attributes of each table that is counted.
        entropy: What draws the row of a user with several.

    Returns:
        For each set a table with an axis for each of its attributes.
    """
    joint = joint_sets(sets, domain.sizes)
    shapes = {wide: tuple(domain.sizes[place] for place in wide) for wide in joint.values()}
    counts = {wide: np.zeros(prod(shape), np.int64) for wide, shape in shapes.items()}
    for batch in table.batches():
        columns = _columns(one_row_each(batch, entropy), domain)
        for wide, shape in shapes.items():
            cell = np.zeros(columns.shape[1], np.int64)
            for place, size in zip(wide, shape, strict=True):
                cell = cell * size + columns[place]
            counts[wide] += np.bincount(cell, minlength=counts[wide].size)
    tables = {}
    for own, wide in joint.items():
        axes = tuple(axis for axis, place in enumerate(wide) if place not in own)
        tables[own] = counts[wide].reshape(shapes[wide]).sum(axis=axes)
    return tables


def _columns(codes: Integers, domain: TableDomain) -> Integers:
    """The codes by attribute, (attributes, rows), the empty one as the last value."""
    columns = np.array(codes.T, order="C")  # a copy: empty cells get another code
    for place, name in enumerate(domain.names):
        column = columns[place]
        is_empty = column == EMPTY_CODE
        if not is_empty.any():
            continue
        if not domain.may_be_empty[place]:
            raise InvalidInput(
                f"attribute {name!r} has empty cells: name it in may_be_empty, so that to be "
                "empty is one of its values"
            )
        columns[place] = np.where(is_empty, domain.sizes[place] - 1, column)
    return columns


def margins(counts: Mapping[Places, Integers], wanted: Places, points: int) -> Integers:
    """The table of some attributes, summed from that of more of them.

    Args:
        counts: Tables of one number of attributes, all of them.
        wanted: No more attributes than those have.
        points: How many attributes there are.
    """
    order = len(next(iter(counts)))
    others = [place for place in range(points) if place not in wanted]
    wider = tuple(sorted((*wanted, *others[: order - len(wanted)])))
    axes = tuple(axis for axis, place in enumerate(wider) if place not in wanted)
    return np.asarray(counts[wider].sum(axis=axes), np.int64)


class NarrowedTable(CentralTable):
    """A table with some of its values, such as those that a search found, and the rest as one.

    To be empty counts as the rest too, so every row has a value of every attribute.

    >>> from sottovoce.central.method import MemoryTable
    >>> codes = np.array([[0], [2], [1]])
    >>> table = MemoryTable(("x",), (("a", "b", "c"),), (False,), codes, np.arange(3), 3)
    >>> narrow = NarrowedTable(table, [[2]])
    >>> narrow.values, next(narrow.batches()).codes.ravel().tolist()
    ((('c', '(other)'),), [1, 0, 1])
    """

    def __init__(self, table: CentralTable, kept: Sequence[Sequence[int]]) -> None:
        """Keep some values.

        Args:
            table: A table, not sets.
            kept: For each attribute the codes that were found, each once; public by now.
        """
        if table.is_sets or len(kept) != len(table.columns):
            raise InvalidInput("kept must list codes for each attribute of a table")
        self._table = table
        self._maps = []
        listed = []
        for codes, values in zip(kept, table.values, strict=True):
            new_code = np.full(len(values) + 1, len(codes), np.int64)  # the last one for EMPTY_CODE
            new_code[list(codes)] = np.arange(len(codes))
            self._maps.append(new_code)
            listed.append((*(values[code] for code in codes), OTHER_LABEL))
        self.columns = table.columns
        self.values = tuple(listed)
        self.is_known = (True,) * len(table.columns)
        self.people = table.people
        self.rows = table.rows
        self.is_sets = False
        self.has_user_column = table.has_user_column

    def batches(self) -> Iterator[RowBatch]:
        for batch in self._table.batches():
            codes = np.empty_like(batch.codes)
            for place, new_code in enumerate(self._maps):
                codes[:, place] = new_code[batch.codes[:, place]]  # EMPTY_CODE is -1: the last one
            yield RowBatch(codes, batch.users)
