"""The family of signs: each cohort reports signs of characters of a few attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.seeds import Seed
from sottovoce.oracles import Oracle, PureOracle
from sottovoce.oracles import from_json as oracle_from_json
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.protocol.encodings import Ask, Parities
from sottovoce.protocol.families.base import (
    MAX_PLAN_COHORTS,
    Batch,
    Cohort,
    Family,
    alike,
    rows_by,
    share_of,
)
from sottovoce.protocol.families.choices import Choices, Places
from sottovoce.schema import Codes, Schema

MOST_TICKETS = 1 << 62
SHAPES = ("parity", "corner", "star")
MOST_SIGNS = 4  # that one report tells at once


@dataclass(frozen=True)
class Block:
    """Cohorts that report signs of ``order`` attributes; every ticket of a block counts ``times``.

    ``parity``: the product of all signs, one bit. ``corner``: each sign by itself, ``order`` bits.
    ``star``: the first sign times each of the others, ``order - 1`` bits, which tell every pair's
    product.
    """

    shape: str
    order: int
    times: int = 1

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise InvalidInput(f"plan: shape ({self.shape}) must be one of {', '.join(SHAPES)}")
        most = {"parity": 64, "corner": MOST_SIGNS, "star": MOST_SIGNS + 1}[self.shape]
        whole("plan: order", self.order, 2 if self.shape == "star" else 1, most)
        whole("plan: times", self.times, 1, 1 << 53)

    @property
    def products(self) -> tuple[tuple[int, ...], ...]:
        """Which of its attributes each bit multiplies, as 0 or 1 per attribute."""
        if self.shape == "parity":
            return ((1,) * self.order,)
        if self.shape == "corner":
            return tuple(tuple(int(i == j) for j in range(self.order)) for i in range(self.order))
        return tuple(
            tuple(int(j in (0, i)) for j in range(self.order)) for i in range(1, self.order)
        )


class Reached(NamedTuple):
    """Where cohorts of a block stand: for each the attributes (places) and the masks on codes."""

    members: Places
    masks: Places


class Signs(Family):
    """Cohorts that report signs of characters. A character has a mask, 1 to 2^b - 1, for each
    attribute of b bits.

    A cohort's tickets are the product of its attributes' weights, times its block's ``times``.
    ``oracles`` are those of the blocks, each over as many values as its signs have.
    """

    kind: ClassVar[str] = "signs"

    def __init__(
        self,
        schema: Schema,
        attributes: Sequence[str],
        weights: Sequence[int],
        blocks: Sequence[Block],
        epsilon: Decimal,
        oracles: Sequence[PureOracle],
    ) -> None:
        if not blocks or not attributes or len(weights) != len(attributes):
            raise InvalidInput("plan: signs need blocks, attributes and a weight for each")
        self._names = tuple(attributes)
        self._sizes = tuple(schema[name].size for name in attributes)
        self.masks = tuple((1 << (size - 1).bit_length()) - 1 for size in self._sizes)
        self._weights = tuple(whole("plan: weight", each, 1, 1 << 20) for each in weights)
        self.blocks = tuple(blocks)
        self._epsilon = epsilon
        tickets = [weight * masks for weight, masks in zip(self._weights, self.masks, strict=True)]
        for block in blocks:
            whole("plan: order", block.order, 1, len(self._names))
        self._choices = tuple(Choices(self.masks, block.order) for block in blocks)
        self._tickets = tuple(Choices(tickets, block.order) for block in blocks)
        if len(self) >= MAX_PLAN_COHORTS or self.weight >= MOST_TICKETS:
            raise InvalidInput(f"plan: {len(self)} cohorts are more than a report can name")
        self.oracles = tuple(oracles)
        for block, each in zip(blocks, self.oracles, strict=True):
            if each.size != 1 << len(block.products) or len(each.layout.fields) != 1:
                raise InvalidInput(
                    "plan: the oracle of a block of signs must take its signs and answer in one "
                    "field"
                )

    @cached_property
    def answer_bits(self) -> int:
        return max(each.layout.bits for each in self.oracles)

    @cached_property
    def starts(self) -> list[int]:
        """The first cohort of each block, and the end."""
        return [0, *np.cumsum([choices.total for choices in self._choices], dtype=object).tolist()]

    def __len__(self) -> int:
        return sum(choices.total for choices in self._choices)

    @cached_property
    def weight(self) -> int:
        return sum(self._shares)

    @property
    def _shares(self) -> list[int]:
        return [
            block.times * choices.total
            for block, choices in zip(self.blocks, self._tickets, strict=True)
        ]

    def __getitem__(self, index: int) -> Cohort:
        index = whole("cohort", index, 0, len(self) - 1)
        number = int(np.searchsorted(self.starts, index, side="right")) - 1
        members, digits = self._choices[number].unrank(index - self.starts[number])
        return self._cohort(number, members, [digit + 1 for digit in digits])

    def _cohort(self, number: int, members: Sequence[int], masks: Sequence[int]) -> Cohort:
        block = self.blocks[number]
        names = tuple(self._names[i] for i in members)
        products = tuple(
            tuple(m * on for m, on in zip(masks, row, strict=True)) for row in block.products
        )
        encoding = Parities(names, tuple(self._sizes[i] for i in members), products)
        weight = block.times * prod(self._weights[i] for i in members)
        return Cohort((Ask(encoding, self.oracles[number]),), weight)

    @cached_property
    def kinds(self) -> tuple[Cohort, ...]:
        return tuple(self[start] for start in self.starts[:-1])

    @property
    def shares(self) -> tuple[tuple[int, Cohort], ...]:
        return tuple(zip(self._shares, self.kinds, strict=True))

    def at_column(self, tickets: NDArray[np.int64]) -> NDArray[np.uint32]:
        numbers = share_of(tickets, self._shares)
        cohorts = np.empty(len(tickets), np.uint32)
        weights = np.array(self._weights, np.int64)
        starts = np.cumsum([0, *self._shares])
        for number, rows in rows_by(numbers, len(self.blocks)):
            ranks = (tickets[rows] - starts[number]) // self.blocks[number].times
            members, digits = self._tickets[number].unrank_column(ranks)
            ranks = self._choices[number].rank_column(members, digits // weights[members])
            cohorts[rows] = self.starts[number] + ranks
        return cohorts

    @property
    def attributes(self) -> tuple[str, ...]:
        return self._names

    def numbers(self, column: NDArray[Any]) -> NDArray[np.int64]:
        """The block of each cohort."""
        return np.searchsorted(np.array(self.starts[1:]), column, side="right").astype(np.int64)

    def reach(self, number: int, column: NDArray[Any]) -> Reached:
        """Attributes and masks of cohorts of one block."""
        members, digits = self._choices[number].unrank_column(
            column.astype(np.int64) - self.starts[number]
        )
        return Reached(members, digits + 1)

    def cohorts_of(self, number: int, members: Places, masks: Places) -> Places:
        """The cohorts of a block with these attributes and masks: the inverse of :meth:`reach`."""
        return self.starts[number] + self._choices[number].rank_column(members, masks - 1)

    def batches(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        for number, rows in rows_by(self.numbers(column), len(self.blocks)):
            yield Batch(number, rows, (self.oracles[number],))

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int64], list[tuple[Oracle, ...]]]:
        """The group of each block, and the oracle of each group."""
        return alike([(each,) for each in self.oracles])

    def groups(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        groups, oracles = self._groups
        labels = column if len(oracles) == 1 else groups[self.numbers(column)]
        for number, rows in rows_by(labels, len(oracles)):
            yield Batch(number, rows, oracles[number])

    def values(
        self, batch: Batch, column: NDArray[np.uint32], codes: Mapping[str, Any], seed: Seed
    ) -> list[Codes]:
        members, masks = self.reach(batch.number, column[batch.rows])
        table = np.stack([codes[name][batch.rows] for name in self._names], axis=1)
        signs = (
            np.bitwise_count(np.take_along_axis(table, members, 1) & masks.astype(np.uint64)) & 1
        )
        value = np.zeros(len(members), np.uint64)
        for product in self.blocks[batch.number].products:
            ones = signs @ np.array(product, np.uint8)
            value = value << np.uint64(1) | (ones & 1).astype(np.uint64)
        return [value]

    def to_json(self) -> dict[str, Any]:
        return {
            "family": self.kind,
            "attributes": list(self._names),
            "weights": list(self._weights),
            "epsilon": str(self._epsilon),
            "blocks": [
                {
                    "shape": block.shape,
                    "order": block.order,
                    "times": block.times,
                    "oracle": each.to_json(),
                }
                for block, each in zip(self.blocks, self.oracles, strict=True)
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Signs:
        epsilon = parse_epsilon(data["epsilon"])
        blocks = [Block(each["shape"], each["order"], each["times"]) for each in data["blocks"]]
        oracles = [oracle_from_json(each["oracle"]) for each in data["blocks"]]
        pure = [
            each for each in oracles if isinstance(each, PureOracle) and each.requested == epsilon
        ]
        if len(pure) != len(oracles):
            raise InvalidInput(
                "plan: the oracles of its cohorts are not those of signs and their epsilon"
            )
        return cls(schema, data["attributes"], data["weights"], blocks, epsilon, pure)
