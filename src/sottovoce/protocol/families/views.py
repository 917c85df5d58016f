"""The family of some sets of attributes: each cohort reports its set's cell.

Sets are told by their ranks among all sets of as many, in runs: "2 3 1 1" passes over two, takes
three, passes over one and takes one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Oracle
from sottovoce.oracles import from_json as oracle_from_json
from sottovoce.protocol.families.choices import Choices, Places
from sottovoce.protocol.families.tables import TableFamily
from sottovoce.schema import MOST_SPELLED, Schema

MAX_VIEWS = 1 << 16  # of one family
View = tuple[int, ...]  # places, in increasing order


def blocks_of(points: int, views: Iterable[View]) -> list[dict[str, Any]]:
    """Different sets of some of so many points, as a plan holds them: those of each order by the
    runs of their ranks, small sets first.

    >>> blocks_of(4, [(0, 1), (0, 2), (2, 3), (1, 2, 3)])
    [{'order': 2, 'runs': '0 2 3 1'}, {'order': 3, 'runs': '3 1'}]
    """
    by_order: dict[int, list[View]] = {}
    for view in views:
        by_order.setdefault(len(view), []).append(view)
    return [
        {"order": order, "runs": _runs_of(_choices(points, order).ranks_of_sets(by_order[order]))}
        for order in sorted(by_order)
    ]


def views_of(points: int, blocks: Sequence[Mapping[str, Any]]) -> tuple[View, ...]:
    """The inverse of :func:`blocks_of`; refuses what it does not give.

    >>> views_of(4, [{"order": 2, "runs": "0 2 3 1"}, {"order": 3, "runs": "3 1"}])
    ((0, 1), (0, 2), (2, 3), (1, 2, 3))
    """
    if any(set(block) != {"order", "runs"} for block in blocks):
        raise InvalidInput("plan: a block of views must have order and runs")
    return _views_of(points, tuple((block["order"], block["runs"]) for block in blocks))


@lru_cache(maxsize=16)
def _views_of(points: int, blocks: tuple[tuple[int, str], ...]) -> tuple[View, ...]:
    views: list[View] = []
    last = 0
    for order, runs in blocks:
        # a table has at most 2^128 cells
        last = whole("plan: order", order, last + 1, min(points, MOST_SPELLED))
        choices = _choices(points, order)
        views += choices.sets_of_ranks(_ranks_of(runs, choices.total, MAX_VIEWS - len(views)))
    return tuple(views)


@lru_cache(maxsize=64)
def _choices(points: int, order: int) -> Choices:
    return Choices([1] * points, order)


def _runs_of(ranks: Iterable[int]) -> str:
    """Runs of different ranks: how many are passed over, how many follow, and so on."""
    counts: list[int] = []
    end = 0  # of the last run
    for rank in sorted(ranks):
        if not counts or rank > end:
            counts += [rank - end, 0]
        counts[-1] += 1
        end = rank + 1
    return " ".join(map(str, counts))


def _ranks_of(runs: Any, total: int, most: int) -> list[int]:
    """The inverse of :func:`_runs_of`, for ranks below ``total``, at most so many."""
    counts = [int(each) for each in runs.split(" ")]
    passed, taken = counts[::2], counts[1::2]
    if (
        len(passed) != len(taken)
        or " ".join(map(str, counts)) != runs
        or min(*taken, passed[0] + 1, *passed[1:]) < 1
        or sum(counts) > total
    ):
        raise InvalidInput(
            "plan: runs of views must be whole numbers in turn, sets to pass over and sets to "
            f"take, of {total} in all"
        )
    if sum(taken) > most:
        raise InvalidInput(f"plan: its views must be at most {MAX_VIEWS}")
    ranks: list[int] = []
    start = 0
    for skip, take in zip(passed, taken, strict=True):
        ranks += range(start + skip, start + skip + take)
        start += skip + take
    return ranks


class ViewFamily(TableFamily):
    """One cohort for each of some sets of attributes, small sets first, in the order of their
    members. Attributes that none of them holds are left out.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(a=sv.Boolean(), b=sv.Boolean(), c=sv.Boolean())
    >>> oracle = sv.oracle("grr", size=4, epsilon=1)
    >>> family = ViewFamily(schema, ["a", "b", "c"], [(0, 2), (0, 1)], [oracle])
    >>> [cohort.attributes for cohort in family]
    [('a', 'b'), ('a', 'c')]
    """

    kind: ClassVar[str] = "views"

    def __init__(
        self,
        schema: Schema,
        attributes: Sequence[str],
        views: Iterable[View],
        oracles: Iterable[Oracle],
    ) -> None:
        given = [tuple(view) for view in views]
        held = sorted({place for view in given for place in view})
        if not held:
            raise InvalidInput("a plan must have at least one cohort")
        super().__init__(schema, [attributes[place] for place in held])
        number = {place: new for new, place in enumerate(held)}
        sets = [tuple(number[place] for place in view) for view in given]
        self._blocks = blocks_of(len(held), sets)
        self._views = views_of(len(held), self._blocks)
        by_size = {oracle.size: oracle for oracle in oracles}
        if not self._tables_by_size.keys() <= by_size.keys():
            raise InvalidInput("plan: an oracle of its cohorts' tables is missing")
        self._by_size = {size: by_size[size] for size in self._tables_by_size}

    @property
    def _oracles(self) -> Mapping[int, Oracle]:
        return self._by_size

    @cached_property
    def _rows(self) -> Places:
        """The views, filled up with the number of all attributes, (views, the widest's order)."""
        widest = max(map(len, self._views))
        filled = [view + (len(self._names),) * (widest - len(view)) for view in self._views]
        return np.array(filled, np.int64)

    @cached_property
    def _tables_by_size(self) -> Mapping[int, int]:
        counts = Counter(prod(self._sizes[place] for place in view) for view in self._views)
        return dict(sorted(counts.items()))

    def __len__(self) -> int:
        return len(self._views)

    def _members(self, index: int) -> View:
        return self._views[index]

    def _members_column(self, column: NDArray[np.uint32]) -> Places:
        return self._rows[column]

    def to_json(self) -> dict[str, Any]:
        return {
            "family": self.kind,
            "attributes": list(self._names),
            "blocks": self._blocks,
            "oracles": [oracle.to_json() for oracle in self._oracles.values()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> ViewFamily:
        views = views_of(len(data["attributes"]), data["blocks"])
        oracles = [oracle_from_json(each) for each in data["oracles"]]
        made = cls(schema, data["attributes"], views, oracles)
        if list(made._oracles.values()) != oracles:
            raise InvalidInput("plan: the oracles of its cohorts are not those of their tables")
        return made
