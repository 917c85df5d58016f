"""Items and itemsets that many hold, method against method,
beside the truth that is mined exactly.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.api.surveys import asked
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.measure.choices import MethodChoice
from sottovoce.measure.popular import (
    Judge,
    PopularComparison,
    PopularCrowd,
    answered,
    checked,
    compare_popular,
    read_columns,
)
from sottovoce.measure.runs import seeded
from sottovoce.questions.base import Question
from sottovoce.schema import Items, Label, Schema, Sets

ITEMS_NAME = "items"  # of the attribute in the simulated plans
APART = ";"  # between the members of a set in a CSV

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Baskets:
    """What each person holds, by codes, and the items they stand for.

    >>> held = Baskets.of([["milk", "tea", "milk"], [], ["tea"]])
    >>> held.items, held.people
    (('milk', 'tea'), 3)
    """

    items: Sequence[Label]
    sets: Sets

    @classmethod
    def of(cls, rows: Any) -> Baskets:
        """Lists of numbers or texts, in Python or Arrow; what is repeated counts once."""
        pa = imported("pyarrow")

        column = rows if isinstance(rows, pa.Array) else pa.array(rows)
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise InvalidInput("table: the column must hold lists of items")
        lengths = column.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        members = column.flatten()
        if column.null_count or members.null_count:
            raise InvalidInput("table: the column must have no missing values")
        if not (
            pa.types.is_integer(members.type)
            or pa.types.is_string(members.type)
            or pa.types.is_large_string(members.type)
        ):
            raise InvalidInput("table: items must be whole numbers or text")
        distinct, codes = np.unique(members.to_numpy(zero_copy_only=False), return_inverse=True)
        if len(distinct) < 2:
            raise InvalidInput("table: there must be at least two different items")
        owners = np.repeat(np.arange(len(lengths)), lengths)
        sets = Sets.of(len(lengths), owners, codes.astype(np.uint64), len(distinct))
        return cls(tuple(distinct.tolist()), sets)

    @property
    def people(self) -> int:
        return len(self.sets)


def read_baskets(path: Path, column: str) -> Baskets:
    """The sets of a file: a Parquet column of lists, or a CSV text with ``;`` between members."""
    pa = imported("pyarrow")
    pc = imported("pyarrow.compute")

    found = read_columns(path, [column])[column]
    if pa.types.is_string(found.type) or pa.types.is_large_string(found.type):
        parts = pc.split_pattern(found, APART)
        lengths = parts.value_lengths().to_numpy(zero_copy_only=False)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        members = pc.utf8_trim_whitespace(parts.flatten())
        said = np.asarray(pc.not_equal(members, "").to_numpy(zero_copy_only=False))
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners[said], minlength=len(lengths)))])
        found = pa.ListArray.from_arrays(
            pa.array(starts, pa.int32()), members.filter(pa.array(said))
        )
    return Baskets.of(found)


@dataclass(frozen=True, eq=False)
class SetCrowd:
    """The people of one run: rows of a table, perhaps some of them several times."""

    held: Baskets
    rows: Whole | None  # None for everybody once
    top: int
    of_sets: bool

    @property
    def people(self) -> int:
        return self.held.people if self.rows is None else len(self.rows)

    @property
    def sets(self) -> Sets:
        return self.held.sets if self.rows is None else self.held.sets[self.rows]

    @cached_property
    def truth(self) -> Mapping[Any, int]:
        if self.of_sets:
            return dict(top_itemsets(self.sets, self.top))
        counts = np.bincount(self.sets.codes.astype(np.int64), minlength=len(self.held.items))
        order = np.argsort(-counts, kind="stable")[: self.top].tolist()
        return {item: int(counts[item]) for item in order if counts[item]}

    def table(self) -> Mapping[str, Any]:
        return {ITEMS_NAME: self.sets}

    def few(self, people: int) -> SetCrowd:
        rows = np.arange(self.people) if self.rows is None else self.rows
        return SetCrowd(self.held, rows[:people], self.top, self.of_sets)


def top_itemsets(sets: Sets, top: int) -> list[tuple[tuple[int, ...], int]]:
    """The ``top`` itemsets of any size that most people hold, with counts: exact, in order.

    No set is held by more people than a part of it. So the best sets are found by always extending
    the best set known; and every item of a set in the top is at least as frequent as the item of
    that rank. Among equals smaller sets come first, then smaller codes.

    >>> top_itemsets(Sets(np.array([0, 2, 4, 5]), np.array([0, 1, 0, 1, 1], np.uint64)), 3)
    [((1,), 3), ((0,), 2), ((0, 1), 2)]
    """
    codes = sets.codes.astype(np.int64)
    counts = np.bincount(codes) if len(codes) else np.zeros(0, np.int64)
    ranked = np.sort(counts)[::-1]
    least = max(1, int(ranked[top - 1]) if len(ranked) >= top else 1)
    items = np.flatnonzero(counts >= least)
    bits = _who_holds(sets, items)
    best: list[tuple[int, int, tuple[int, ...]]] = [
        (-int(counts[item]), 1, (place,)) for place, item in enumerate(items.tolist())
    ]
    heapq.heapify(best)
    # the best counts so far, the least first
    known = sorted((-each[0] for each in best), reverse=True)[:top][::-1]
    heapq.heapify(known)
    found: list[tuple[tuple[int, ...], int]] = []
    while best and len(found) < top:
        negative, size, places = heapq.heappop(best)
        found.append((tuple(int(items[place]) for place in places), -negative))
        both = np.bitwise_and.reduce(bits[list(places)], axis=0)
        later = np.bitwise_count(bits[places[-1] + 1 :] & both).sum(axis=1, dtype=np.int64)
        for place, count in enumerate(later.tolist(), start=places[-1] + 1):
            if count >= 1 and (len(known) < top or count >= known[0]):
                heapq.heappush(best, (-count, size + 1, (*places, place)))
                heapq.heappush(known, count)
                if len(known) > top:
                    heapq.heappop(known)
    return found


def _who_holds(sets: Sets, items: Whole) -> NDArray[np.uint64]:
    """For each item the people who hold it, one bit each."""
    owners = np.repeat(np.arange(len(sets)), sets.lengths)
    words = -(-len(sets) // 64)
    bits = np.zeros((len(items), words * 8), np.uint8)
    order = np.argsort(sets.codes, kind="stable")
    ends = np.searchsorted(sets.codes[order], np.stack([items, items + 1]))
    for place, (start, end) in enumerate(ends.T.tolist()):
        held = np.zeros(words * 64, bool)
        held[owners[order[start:end]]] = True
        bits[place] = np.packbits(held)
    return bits.view(np.uint64)


def compare_itemsets(
    held: Baskets,
    top: int,
    epsilons: Sequence[Any],
    methods: Sequence[str],
    runs: int,
    seed: int,
    people: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    of_sets: bool = False,
) -> Iterator[PopularComparison]:
    """One row per epsilon and method, for items or, ``of_sets``, for itemsets of any size.

    ``people``: sampled with replacement in each run, the same for every row; by default everybody
    answers once.

    >>> held = Baskets.of([[1, 2], [2]] * 2_000)
    >>> row, = compare_itemsets(held, 1, ["4"], ["psfo:length=1"], runs=2, seed=1)
    >>> row.method, row.found
    ('psfo:length=1', 1.0)
    """
    runs, count = checked(runs, people, held.people)
    whole("top", top, 1, 1 << 15)
    schema = Schema(**{ITEMS_NAME: Items(range(len(held.items)))})
    kind = "top-itemsets" if of_sets else "top-items"
    judges = []
    for text in methods:
        choice = MethodChoice.parse(text)
        wanted = {**choice.options, "attribute": ITEMS_NAME, "top": top, "method": choice.method}
        judges.append((text, _judge(asked(kind, **wanted), schema)))
    crowds: list[PopularCrowd] = []
    for run in range(runs):
        rows = None if people is None else seeded(seed, run, 0).integers(0, held.people, count)
        crowds.append(SetCrowd(held, rows, top, of_sets))
    yield from compare_popular(crowds, judges, top, epsilons, seed, progress)


def _judge(question: Question, schema: Schema) -> Judge:
    def judge(crowd: PopularCrowd, epsilon: Any, seed: int) -> Mapping[Any, float]:
        found = answered(question, schema, crowd, epsilon, seed)
        return {
            tuple(sorted(each)) if isinstance(each, tuple) else each: count
            for each, count in found.items()
        }

    return judge
