"""The family of every set of so many attributes: each cohort reports its set's cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Oracle
from sottovoce.oracles import from_json as oracle_from_json
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.protocol.families.base import MAX_PLAN_COHORTS, Family
from sottovoce.protocol.families.choices import Choices, Places
from sottovoce.protocol.families.tables import TableFamily
from sottovoce.schema import MOST_SPELLED, Schema


class Subsets(TableFamily):
    """One cohort for every set of ``order`` attributes, which reports the set's cell.

    ``build`` gives the oracle for the size of a set's table; ``name`` says what it is called, or by
    which rule it was chosen, and is no more than a word here.
    """

    kind: ClassVar[str] = "subsets"

    def __init__(
        self,
        schema: Schema,
        attributes: Sequence[str],
        order: int,
        name: str,
        epsilon: Decimal,
        build: Callable[[str, int, Decimal], Oracle],
    ) -> None:
        super().__init__(schema, attributes)
        self._order, self._oracle_name, self._epsilon, self._build = order, name, epsilon, build
        # a table has at most 2^128 cells
        whole("plan: order", order, 1, min(len(self._names), MOST_SPELLED))
        total = comb(len(self._names), order)
        if total >= MAX_PLAN_COHORTS:
            raise InvalidInput(f"plan: {total} cohorts are more than a report can name")
        self._choices = Choices([1] * len(self._names), order)

    @cached_property
    def _oracles(self) -> dict[int, Oracle]:
        sizes = products_of(self._sizes, self._order, MAX_PLAN_COHORTS)
        return {size: self._build(self._oracle_name, size, self._epsilon) for size in sorted(sizes)}

    def __eq__(self, other: object) -> bool:
        """By what says which oracles there are, and then by the oracles: none is built in vain."""
        return (
            isinstance(other, Subsets)
            and self._rule == other._rule
            and self._oracles == other._oracles
        )

    __hash__ = Family.__hash__

    @property
    def _rule(self) -> tuple[Any, ...]:
        return self._names, self._sizes, self._order, self._oracle_name, str(self._epsilon)

    def __len__(self) -> int:
        return self._choices.total

    @cached_property
    def _tables_by_size(self) -> Mapping[int, int]:
        return tables_by_size(self._sizes, self._order)

    def _members(self, index: int) -> tuple[int, ...]:
        return self._choices.unrank(whole("cohort", index, 0, len(self) - 1))[0]

    def _members_column(self, column: NDArray[np.uint32]) -> Places:
        return self._choices.unrank_column(column.astype(np.int64))[0]

    def to_json(self) -> dict[str, Any]:
        return {
            "family": self.kind,
            "attributes": list(self._names),
            "order": self._order,
            "oracle": self._oracle_name,
            "epsilon": str(self._epsilon),
            "oracles": [each.to_json() for each in self._oracles.values()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Subsets:
        if not isinstance(data["oracle"], str):
            raise InvalidInput("plan: the name of its cohorts' oracles must be text")
        epsilon = parse_epsilon(data["epsilon"])
        listed: dict[int, Oracle] = {}
        made = cls(
            schema,
            data["attributes"],
            data["order"],
            data["oracle"],
            epsilon,
            lambda _, size, __: listed[size],
        )
        # a few lines may stand for millions of tables:
        # their sizes are counted no further than oracles are listed
        sizes = products_of(made._sizes, made._order, len(data["oracles"]))
        if len(sizes) == len(data["oracles"]):
            oracles = [oracle_from_json(each) for each in data["oracles"]]
            listed |= {each.size: each for each in oracles}
        if sizes != listed.keys() or any(each.requested != epsilon for each in listed.values()):
            raise InvalidInput(
                "plan: the oracles of its cohorts are not those of their tables and their epsilon"
            )
        return made


def products_of(sizes: Sequence[int], order: int, most: int) -> set[int]:
    """The products of any ``order`` of the sizes; if there are more than ``most``, some.

    >>> sorted(products_of((2, 3, 3), 2, 10)), len(products_of((2, 3, 5, 7, 11), 2, 3)) > 3
    ([6, 9], True)
    """
    # of so many of the sizes seen so far
    products: list[set[int]] = [
        {1},
        *(set() for _ in range(order)),
    ]
    for seen, size in enumerate(sizes, start=1):
        # fewer factors than that cannot become enough any more
        needed = max(0, order - 1 - (len(sizes) - seen))
        for count in reversed(range(needed, order)):
            products[count + 1] |= {product * size for product in products[count]}
            if len(products[count + 1]) > most:  # times any sizes that follow they stay as many
                return products[count + 1]
    return products[order]


def tables_by_size(sizes: Sequence[int], order: int) -> dict[int, int]:
    """How many sets of ``order`` attributes have a table of each size.

    >>> tables_by_size([2, 2, 3], 2)
    {4: 1, 6: 2}
    """
    known: list[dict[int, int]] = [{1: 1}, *({} for _ in range(order))]
    for size in sizes:
        for count in range(order, 0, -1):
            for cells, sets in known[count - 1].items():
                known[count][cells * size] = known[count].get(cells * size, 0) + sets
    return dict(sorted(known[order].items()))
