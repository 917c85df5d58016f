"""Families by a rule: every set of so many attributes, as a table or as signs. Millions of cohorts, a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import comb, prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Oracle, PureOracle, oracle
from sottovoce.oracles.thresholds import exp, parse_epsilon
from sottovoce.protocol.cohorts import MOST_COHORTS, Batch, Cohort, Cohorts, rows_by, share_of
from sottovoce.protocol.encodings import Ask, Cells, Parities
from sottovoce.schema import MOST_SPELLED, Codes, Schema

MOST_TICKETS = 1 << 62
Places = NDArray[np.int64]


class Choices:
    """All ways to choose ``order`` of some things and a digit of ``range(weights[i])`` for each, in order.

    A choice has a rank: sets come in the order of their members, digits in the order of a number's.

    >>> Choices((1, 2, 1), 2).total, Choices((1, 2, 1), 2).unrank(3)
    (5, ((1, 2), (0, 0)))
    """

    def __init__(self, weights: Sequence[int], order: int) -> None:
        self.weights, self.order = tuple(weights), order
        # counts[j][i]: choices of j among the things from i on, the elementary symmetric polynomial of their weights
        counts = [[1] * (len(weights) + 1)] + [[0] * (len(weights) + 1) for _ in range(order)]
        for size in range(1, order + 1):
            for place in reversed(range(len(weights))):
                counts[size][place] = counts[size][place + 1] + weights[place] * counts[size - 1][place + 1]
        self.counts = counts

    @property
    def total(self) -> int:
        return self.counts[self.order][0]

    def unrank(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The members and digits of one rank."""
        members, digits, place = [], [], 0
        for left in reversed(range(self.order)):
            while rank >= self.weights[place] * self.counts[left][place + 1]:
                rank -= self.weights[place] * self.counts[left][place + 1]
                place += 1
            digit, rank = divmod(rank, self.counts[left][place + 1])
            members.append(place)
            digits.append(digit)
            place += 1
        return tuple(members), tuple(digits)

    def rank(self, members: Sequence[int], digits: Sequence[int]) -> int:
        """The inverse of :meth:`unrank`."""
        rank, place = 0, 0
        for left, member, digit in zip(reversed(range(self.order)), members, digits, strict=True):
            rank += sum(self.weights[other] * self.counts[left][other + 1] for other in range(place, member))
            rank += digit * self.counts[left][member + 1]
            place = member + 1
        return rank

    @cached_property
    def _arrays(self) -> tuple[Places, Places]:
        """(counts, before): before[j][i] choices of j + 1 things have their first member before i."""
        counts = np.array(self.counts, np.int64)
        return counts, counts[1:, :1] - counts[1:]

    def unrank_column(self, ranks: Places) -> tuple[Places, Places]:
        """Members and digits of many ranks, one row each."""
        counts, before = self._arrays
        members = np.empty((len(ranks), self.order), np.int64)
        digits = np.empty_like(members)
        place = np.zeros(len(ranks), np.int64)  # the first that may be the next member
        rest = np.asarray(ranks, np.int64)
        for slot, left in enumerate(reversed(range(self.order))):
            rest = rest + before[left][place]
            member = np.searchsorted(before[left], rest, side="right") - 1
            rest = rest - before[left][member]
            digits[:, slot], rest = np.divmod(rest, counts[left][member + 1])
            members[:, slot] = member
            place = member + 1
        return members, digits

    def rank_column(self, members: Places, digits: Places) -> Places:
        """The ranks of many choices."""
        counts, before = self._arrays
        ranks = np.zeros(len(members), np.int64)
        place = np.zeros(len(members), np.int64)
        for slot, left in enumerate(reversed(range(self.order))):
            member = members[:, slot]
            ranks += before[left][member] - before[left][place]
            ranks += digits[:, slot] * counts[left][member + 1]
            place = member + 1
        return ranks


CALM_RULE = "calm-rule"
MOST_UNARY = 512  # values whose unary report has 64 bytes; beyond, hashing does the same with fewer


def oracle_by(name: str, size: int, epsilon: Decimal) -> Oracle:
    """The oracle called ``name``, or the one that the rule of that name chooses for the size.

    >>> [oracle_by(CALM_RULE, size, Decimal(1)).names[0] for size in (8, 16, 1024)]
    ['grr', 'oue', 'olh']
    """
    if name != CALM_RULE:
        return oracle(name, size=size, epsilon=epsilon)
    # randomized response while L - 2 < 3E, or else optimized unary encoding     zhang2018calm, section 2.2.3
    if size - 2 < 3 * exp(epsilon):
        return oracle("grr", size=size, epsilon=epsilon)
    return oracle("oue" if size <= MOST_UNARY else "olh", size=size, epsilon=epsilon)


class Subsets(Cohorts):
    """One cohort for every set of ``order`` attributes, which reports the set's cell.

    Its oracle is called ``name`` or chosen by the rule of that name, for the size of the set's table.
    """

    kind: ClassVar[str] = "subsets"

    def __init__(self, schema: Schema, attributes: Sequence[str], order: int, name: str, epsilon: Decimal) -> None:
        self._names = tuple(attributes)
        self._sizes = tuple(schema[each].size for each in attributes)
        self._order, self._oracle_name, self._epsilon = order, name, epsilon
        whole("plan: order", order, 1, min(len(self._names), MOST_SPELLED))  # a table has at most 2^128 cells
        total = comb(len(self._names), order)
        if total >= MOST_COHORTS:
            raise InvalidInput(f"plan: {total} cohorts are more than a report can name")
        self._choices = Choices([1] * len(self._names), order)

    @cached_property
    def _oracles(self) -> dict[int, Oracle]:
        sizes = products_of(self._sizes, self._order, MOST_COHORTS)
        return {size: oracle_by(self._oracle_name, size, self._epsilon) for size in sorted(sizes)}

    def __eq__(self, other: object) -> bool:
        """By what says which oracles there are, without one of them."""
        return isinstance(other, Subsets) and self._rule == other._rule

    __hash__ = Cohorts.__hash__

    @property
    def _rule(self) -> tuple[Any, ...]:
        return self._names, self._sizes, self._order, self._oracle_name, str(self._epsilon)

    def __len__(self) -> int:
        return self._choices.total

    def __getitem__(self, index: Any) -> Any:
        members, _ = self._choices.unrank(whole("cohort", index, 0, len(self) - 1))
        cells = Cells(tuple(self._names[i] for i in members), tuple(self._sizes[i] for i in members))
        return Cohort((Ask(cells, self._oracles[cells.size]),))

    def __iter__(self) -> Iterator[Cohort]:
        return (self[index] for index in range(len(self)))

    @cached_property
    def kinds(self) -> tuple[Cohort, ...]:
        return tuple(Cohort((Ask(Cells(self._names, (each.size,)), each),)) for each in self._oracles.values())

    @property
    def weight(self) -> int:
        return len(self)

    def at_column(self, tickets: NDArray[np.int64]) -> NDArray[np.uint32]:
        return tickets.astype(np.uint32)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self._names

    def _table_sizes(self, column: NDArray[np.uint32]) -> tuple[Places, Places]:
        members, _ = self._choices.unrank_column(column.astype(np.int64))
        return members, np.array(self._sizes, np.int64)[members].prod(axis=1)

    def batches(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        known = np.array(sorted(self._oracles), np.int64)
        labels = np.searchsorted(known, self._table_sizes(column)[1])
        for number, rows in rows_by(labels, len(known)):
            yield Batch(number, rows, (self._oracles[int(known[number])],))

    def values(self, batch: Batch, column: NDArray[np.uint32], codes: Mapping[str, Any], seed: int) -> list[Codes]:
        members, _ = self._choices.unrank_column(column[batch.rows].astype(np.int64))
        table = np.stack([codes[name][batch.rows] for name in self._names], axis=1)
        sizes = np.array(self._sizes, np.uint64)
        cell = np.zeros(len(members), np.uint64)
        for place in range(self._order):
            cell = cell * sizes[members[:, place]] + np.take_along_axis(table, members[:, place, None], 1)[:, 0]
        return [cell]

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
        made = cls(schema, data["attributes"], data["order"], data["oracle"], parse_epsilon(data["epsilon"]))
        listed = len(data["oracles"])  # a few lines may stand for millions of oracles: none is built in vain
        if len(products_of(made._sizes, made._order, listed)) != listed or made.to_json() != dict(data):
            raise InvalidInput("plan: the oracles of its cohorts are not those of their epsilon")
        return made


def products_of(sizes: Sequence[int], order: int, most: int) -> set[int]:
    """The products of any ``order`` of the sizes; as soon as there are more than ``most``, some of them.

    >>> sorted(products_of((2, 3, 3), 2, 10)), len(products_of((2, 3, 5, 7, 11), 2, 3)) > 3
    ([6, 9], True)
    """
    products: list[set[int]] = [{1}, *(set() for _ in range(order))]  # of so many of the sizes seen so far
    for seen, size in enumerate(sizes, start=1):
        needed = max(0, order - 1 - (len(sizes) - seen))  # fewer factors than that cannot become enough any more
        for count in reversed(range(needed, order)):
            products[count + 1] |= {product * size for product in products[count]}
            if len(products[count + 1]) > most:  # times any sizes that follow they stay as many
                return products[count + 1]
    return products[order]


SHAPES = ("parity", "corner", "star")
MOST_SIGNS = 4  # that one report tells at once


def sign_oracle(signs: int, epsilon: Decimal) -> PureOracle:
    """The oracle that tells most about products of so many signs: a random answer, or a random set of them."""
    size = 1 << signs
    if signs == 1:
        return _pure(oracle("rr", size=2, epsilon=epsilon))
    known = [_pure(oracle("grr", size=size, epsilon=epsilon))]
    known += [_pure(oracle("ss", size=size, epsilon=epsilon, chosen=chosen)) for chosen in range(2, size // 2 + 1)]
    return min(known, key=sign_noise)


def sign_noise(source: PureOracle) -> float:
    """Variance of a sign's unbiased estimate from one report, at a mean of zero."""
    return _answer_square(source) / source.gap**2


def _answer_square(source: PureOracle) -> float:
    """E[T^2] for T the sum of a character over the values that a report supports.

    T has mean (p - q) chi(value). Of w values, those beside the true one are a uniform set; sum over x != y of
    chi(x) chi(y) is -2 over the pairs with the true value and 2 - L over the others.
    """
    size = source.size
    w = getattr(source, "chosen", 1)
    near = source.p * (w - 1) / (size - 1)
    far = (source.p * (w - 1) * (w - 2) + (1 - source.p) * w * (w - 1)) / max((size - 1) * (size - 2), 1)
    return w - 2 * near + (2 - size) * far


def _pure(source: Oracle) -> PureOracle:
    assert isinstance(source, PureOracle)
    return source


@dataclass(frozen=True)
class Block:
    """Cohorts that report signs of ``order`` attributes each; every ticket of the block's choices counts ``times``.

    ``parity``: the product of all signs, one bit. ``corner``: each sign by itself, ``order`` bits.
    ``star``: the first sign times each of the others, ``order - 1`` bits, which tell every pair's product.
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
        return tuple(tuple(int(j in (0, i)) for j in range(self.order)) for i in range(1, self.order))


class Reached(NamedTuple):
    """Where cohorts of a block stand: for each the attributes (places) and the masks on their codes."""

    members: Places
    masks: Places


class Signs(Cohorts):
    """Cohorts that report signs of characters. A character has a mask, 1 to 2^b - 1, for each attribute of b bits.

    A cohort's tickets are the product of its attributes' weights, times its block's ``times``.
    """

    kind: ClassVar[str] = "signs"
    counted_by: ClassVar[str] = "tally"

    def __init__(
        self,
        schema: Schema,
        attributes: Sequence[str],
        weights: Sequence[int],
        blocks: Sequence[Block],
        epsilon: Decimal,
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
        if len(self) >= MOST_COHORTS or self.weight >= MOST_TICKETS:
            raise InvalidInput(f"plan: {len(self)} cohorts are more than a report can name")
        self.oracles = tuple(sign_oracle(len(block.products), epsilon) for block in blocks)

    @cached_property
    def answer_bits(self) -> int:
        """Bits of the widest answer."""
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
        return [block.times * choices.total for block, choices in zip(self.blocks, self._tickets, strict=True)]

    def __getitem__(self, index: Any) -> Any:
        index = whole("cohort", index, 0, len(self) - 1)
        number = int(np.searchsorted(self.starts, index, side="right")) - 1
        members, digits = self._choices[number].unrank(index - self.starts[number])
        return self._cohort(number, members, [digit + 1 for digit in digits])

    def _cohort(self, number: int, members: Sequence[int], masks: Sequence[int]) -> Cohort:
        block = self.blocks[number]
        names = tuple(self._names[i] for i in members)
        products = tuple(tuple(m * on for m, on in zip(masks, row, strict=True)) for row in block.products)
        encoding = Parities(names, tuple(self._sizes[i] for i in members), products)
        weight = block.times * prod(self._weights[i] for i in members)
        return Cohort((Ask(encoding, self.oracles[number]),), weight)

    def __iter__(self) -> Iterator[Cohort]:
        return (self[index] for index in range(len(self)))

    @cached_property
    def kinds(self) -> tuple[Cohort, ...]:
        return tuple(self[start] for start in self.starts[:-1])

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
        members, digits = self._choices[number].unrank_column(column.astype(np.int64) - self.starts[number])
        return Reached(members, digits + 1)

    def cohorts_of(self, number: int, members: Places, masks: Places) -> Places:
        """The cohorts of one block that have these attributes (increasing) and masks: the inverse of :meth:`reach`."""
        return self.starts[number] + self._choices[number].rank_column(members, masks - 1)

    def batches(self, column: NDArray[np.uint32]) -> Iterator[Batch]:
        for number, rows in rows_by(self.numbers(column), len(self.blocks)):
            yield Batch(number, rows, (self.oracles[number],))

    def values(self, batch: Batch, column: NDArray[np.uint32], codes: Mapping[str, Any], seed: int) -> list[Codes]:
        members, masks = self.reach(batch.number, column[batch.rows])
        table = np.stack([codes[name][batch.rows] for name in self._names], axis=1)
        signs = np.bitwise_count(np.take_along_axis(table, members, 1) & masks.astype(np.uint64)) & 1
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
                {"shape": block.shape, "order": block.order, "times": block.times, "oracle": each.to_json()}
                for block, each in zip(self.blocks, self.oracles, strict=True)
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> Signs:
        blocks = [Block(each["shape"], each["order"], each["times"]) for each in data["blocks"]]
        made = cls(schema, data["attributes"], data["weights"], blocks, parse_epsilon(data["epsilon"]))
        if made.to_json() != dict(data):
            raise InvalidInput("plan: the oracles of its cohorts are not those of their epsilon")
        return made


class Together(Cohorts):
    """Cohorts of several asks whose answers are kept together, person by person: their joint law is wanted."""

    kind: ClassVar[str] = "together"
    counted_by: ClassVar[str] = "joint"


# Every family there is. A new one is a class here and its name in docs/wire.md.
FAMILIES: tuple[type[Cohorts], ...] = (Cohorts, Subsets, Signs, Together)
