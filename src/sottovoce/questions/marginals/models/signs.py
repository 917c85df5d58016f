"""Signs of attributes: what sign-based methods collect, and the moments that reports add up to.

An attribute of K values stands for H - 1 signs, the non-trivial rows of the Hadamard matrix of
order H, the smallest power of two that is at least K, on its first K columns.
A yes-or-no attribute is one sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.oracles.rules import sign_noise, sign_oracle
from sottovoce.protocol.families import Block, Signs
from sottovoce.protocol.families.choices import elementary
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_SIGNS_FOR_THIRDS = 192  # up to which the products of three signs are kept: 192^3 means
SHARE_PRECISION = 1000  # people are shared out to one part in so many
WEIGHT_SCALE = 12  # of the weights, before they are rounded: enough for ratios of square roots


def signs_per_attribute(size: int) -> int:
    """H - 1, the number of signs of an attribute of ``size`` values.

    >>> [signs_per_attribute(size) for size in (2, 3, 4, 5)]
    [1, 3, 3, 7]
    """
    return (1 << (size - 1).bit_length()) - 1


@dataclass(frozen=True)
class SignSpace:
    """The signs of a workload's attributes, numbered one attribute after another."""

    sizes: tuple[int, ...]

    @cached_property
    def rows(self) -> tuple[Floats, ...]:
        """For each attribute the signs of its values: (signs, values), all -1 or 1."""
        return tuple(hadamard(size)[1:, :size] for size in self.sizes)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first sign of each attribute, and the end: (attributes + 1,)."""
        counts = [signs_per_attribute(size) for size in self.sizes]
        return np.cumsum([0, *counts])

    @property
    def count(self) -> int:
        """How many signs all attributes have together."""
        return int(self.starts[-1])

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The attribute of each sign: (signs,)."""
        attributes = np.arange(len(self.sizes))
        return np.repeat(attributes, np.diff(self.starts))

    def of(self, place: int) -> slice:
        """The signs of one attribute."""
        start, stop = self.starts[place], self.starts[place + 1]
        return slice(int(start), int(stop))

    @cached_property
    def contrast_starts(self) -> NDArray[np.int64]:
        """The first contrast of each attribute, and the end: an attribute of K values has K - 1."""
        counts = [size - 1 for size in self.sizes]
        return np.cumsum([0, *counts])

    def contrasts_of(self, place: int) -> slice:
        """The contrasts of one attribute."""
        start, stop = self.contrast_starts[place], self.contrast_starts[place + 1]
        return slice(int(start), int(stop))

    @cached_property
    def bases(self) -> tuple[Floats, ...]:
        """For each attribute its orthonormal contrasts: (values, contrasts)."""
        return tuple(contrasts(size) for size in self.sizes)

    @cached_property
    def to_contrasts(self) -> Floats:
        """The linear map from means of signs to means of contrasts: (contrasts, signs).

        The signs are a tight frame: a table of K values is (1 + sum over r of m_r h_r)/H, so a
        contrast's mean is (1/H) sum over r of m_r <h_r, contrast>.
        """
        out = np.zeros((int(self.contrast_starts[-1]), self.count))
        for attribute, rows in enumerate(self.rows):
            order = len(rows) + 1  # H
            overlaps = self.bases[attribute].T @ rows.T  # (contrasts, signs) of this attribute
            out[self.contrasts_of(attribute), self.of(attribute)] = overlaps / order
        return out


def contrasts(size: int) -> Floats:
    """Orthonormal columns that sum to zero: Helmert's contrasts of ``size`` values.

    Returns:
        Floats of shape (values, contrasts) = (size, size - 1).
    """
    # column j, from 0:  (1, ..., 1, -(j + 1), 0, ..., 0) / sqrt((j + 1)(j + 2)),  j + 1 ones
    out = np.zeros((size, size - 1))
    for column in range(size - 1):
        out[: column + 1, column] = 1
        out[column + 1, column] = -(column + 1)
        out[:, column] /= np.sqrt((column + 1) * (column + 2))
    return out


def hadamard(size: int) -> Floats:
    """The Hadamard matrix of the smallest order that is a power of two and at least ``size``."""
    # h[r, v] = (-1)^(number of ones of r & v)
    index = np.arange(1 << (size - 1).bit_length())
    common = index[:, None] & index[None, :]  # (H, H)
    parity = np.bitwise_count(common) & 1
    return np.asarray(1.0 - 2.0 * parity)


def attribute_weights(sizes: Sequence[int]) -> list[int]:
    """Whole weights of one sign of each attribute.

    They are near 1/sqrt(H - 1): an attribute with its H - 1 signs then counts sqrt(H - 1).
    """
    counts = [signs_per_attribute(size) for size in sizes]
    fewest = min(counts)
    if max(counts) == fewest:
        return [1] * len(counts)
    scale = WEIGHT_SCALE * sqrt(fewest)
    return [max(1, round(scale / sqrt(count))) for count in counts]


def attribute_tickets(sizes: Sequence[int], weights: Sequence[int]) -> list[int]:
    """How often each attribute is drawn, relative to others: a sign's weight times its signs."""
    pairs = zip(weights, sizes, strict=True)
    return [weight * signs_per_attribute(size) for weight, size in pairs]


def shared_out(
    work: Workload,
    weights: Sequence[int],
    shares: Mapping[tuple[str, int], float],
) -> list[Block]:
    """Blocks of these shapes and orders whose people come in these shares.

    Args:
        work: the tables that are asked for.
        weights: the weight of a sign of each attribute.
        shares: for (shape, order) of a block its share of the people; orders beyond the number of
            attributes, and shares of 0, are left out.
    """
    tickets = attribute_tickets(work.sizes, weights)
    kept = {}
    totals = {}  # tickets of a block that counts once
    for key, share in shares.items():
        _, order = key
        if share > 0 and order <= len(work.names):
            kept[key] = share
            totals[key] = elementary(tickets, order)[-1]
    # A block of T tickets that counts c times gets people in proportion to c T. The block with the
    # most tickets for its share counts SHARE_PRECISION times, so that rounding moves no share much.
    scale = max(totals[key] / share for key, share in kept.items())
    blocks = []
    for (shape, order), share in kept.items():
        times = round(SHARE_PRECISION * share * scale / totals[shape, order])
        blocks.append(Block(shape, order, times=max(1, times)))
    return blocks


def sign_shares(
    sizes: Sequence[int], weights: Sequence[int], blocks: Sequence[Block], sets: Sequence[Places]
) -> list[float]:
    """The share of the people for each set, if cohorts report signs in blocks of these shapes.

    Args:
        sizes: the number of values of each attribute.
        weights: the weight of a sign of each attribute.
        blocks: what cohorts report.
        sets: sets of attributes, by their numbers.

    Returns:
        For each set the share, 0 to 1, of people whose report tells its product of signs by itself.
    """
    tickets = attribute_tickets(sizes, weights)
    total = sum(block.times * elementary(tickets, block.order)[-1] for block in blocks)
    by_tickets: dict[tuple[int, ...], float] = {}  # attributes of as many tickets are alike
    shares = []
    for attributes in sets:
        own = tuple(sorted([tickets[number] for number in attributes]))
        if own not in by_tickets:
            # cohorts with these attributes: their tickets, times those of the others in the block
            others = [ticket for number, ticket in enumerate(tickets) if number not in attributes]
            reached = 0
            for block in blocks:
                if _tells(block, len(attributes)):
                    remaining = block.order - len(attributes)
                    reached += block.times * prod(own) * elementary(others, remaining)[-1]
            by_tickets[own] = reached / total
        shares.append(by_tickets[own])
    return shares


def sign_count(sizes: Sequence[int], part: Places) -> int:
    """How many products of signs an attribute, or several together, have.

    >>> sign_count((2, 3, 8), (1, 2))
    21
    """
    return prod(signs_per_attribute(sizes[attribute]) for attribute in part)


def _tells(block: Block, count: int) -> bool:
    """Whether a report of a block tells the product of ``count`` of its signs by itself."""
    if block.shape == "parity":
        return block.order == count
    if block.shape == "corner":
        return count <= block.order
    # a star: the products of its first sign with others, and of two such products
    return count == 2


def sign_family(
    schema: Schema,
    names: Sequence[str],
    weights: Sequence[int],
    blocks: Sequence[Block],
    epsilon: Decimal,
) -> Signs:
    """The family of signs of these blocks.

    Each block is reported through the oracle that tells most about its products.
    """
    oracles = [sign_oracle(len(block.products), epsilon) for block in blocks]
    return Signs(schema, names, weights, blocks, epsilon, oracles)


def sign_cohorts(
    schema: Schema,
    work: Workload,
    epsilon: Decimal,
    options: Mapping[str, Any],
) -> Signs:
    """The family that settled options describe."""
    blocks = blocks_of(options)
    return sign_family(schema, work.names, options["weights"], blocks, epsilon)


def sign_options(weights: Sequence[int], blocks: Sequence[Block]) -> dict[str, Any]:
    """Blocks and weights as a plan holds them."""
    rows = [[block.shape, block.order, block.times] for block in blocks]
    return {"weights": list(weights), "blocks": rows}


def blocks_of(options: Mapping[str, Any]) -> list[Block]:
    """The blocks that a plan's options hold: the inverse of :func:`sign_options`."""
    return [Block(shape, order, times) for shape, order, times in options["blocks"]]


@dataclass(frozen=True)
class Moments:
    """Unbiased means of signs and of their products, each with its information (1 / variance).

    Each is a pair (sums, information) of arrays of one shape; sums are means times information.

    Attributes:
        space: the signs.
        first: of every sign, (signs,).
        second: of every two signs of different attributes, (signs, signs), symmetric; 0 elsewhere.
        third: of every three with increasing numbers, (signs, signs, signs), 0 elsewhere; None if
            nobody told any, or if there are too many.
    """

    space: SignSpace
    first: tuple[Floats, Floats]
    second: tuple[Floats, Floats]
    third: tuple[Floats, Floats] | None

    def mean(self, order: int) -> Floats:
        """Means of products of ``order`` signs, 0 where nobody was asked."""
        sums, information = (self.first, self.second, self.third)[order - 1]  # type: ignore[misc]
        return np.divide(sums, information, out=np.zeros_like(sums), where=information > 0)


def moments(work: Workload, aggregate: Aggregate) -> Moments:
    """What the reports of a family of signs say of the means of signs and their products.

    Over the reports y that tell a product S, with E[y] = gap_y * S and noise_y the variance of
    y / gap_y:

        information_S = sum of 1 / noise_y          sums_S = sum of (y / gap_y) / noise_y
    """
    space = SignSpace(work.sizes)
    family: Any = aggregate.plan.cohorts
    # a row for each cohort and answer, and how many people gave it: (rows,) each
    aggregate.require_counts("a mean of signs")
    cohorts, answers, people = aggregate.answers
    tells_thirds = any(block.order > 2 and block.shape != "star" for block in family.blocks)
    has_thirds = tells_thirds and space.count <= MAX_SIGNS_FOR_THIRDS
    max_order = 3 if has_thirds else 2

    # for each order, sums and information of all products: (2, signs^order)
    totals = [np.zeros((2, space.count**order)) for order in range(1, max_order + 1)]
    block_numbers = family.numbers(cohorts)  # (rows,)
    for number, block in enumerate(family.blocks):
        rows = np.flatnonzero(block_numbers == number)
        members, masks = family.reach(number, cohorts[rows])  # (rows of the block, block.order)
        signs = space.starts[members] + masks - 1  # the same shape: numbers of signs
        _add_block(totals, block, family.oracles[number], signs, answers[rows], people[rows])

    # reports name two signs in increasing order: the lower half mirrors the upper
    second = totals[1].reshape(2, space.count, space.count)
    second = second + second.transpose(0, 2, 1)
    third = None
    if has_thirds:
        cube = totals[2].reshape(2, space.count, space.count, space.count)
        third = (cube[0], cube[1])
    return Moments(space, (totals[0][0], totals[0][1]), (second[0], second[1]), third)


def _add_block(
    totals: list[Floats],
    block: Block,
    oracle: Any,
    signs: NDArray[np.int64],
    answers: NDArray[Any],
    people: NDArray[Any],
) -> None:
    """Add what the reports of one block tell of products of up to ``len(totals)`` signs.

    Args:
        totals: sums and information by order, (2, signs^order) each; changed in place.
        block: which products of its signs a report has as bits.
        oracle: what the bits are reported through.
        signs: the numbers of the signs that each row is about, (rows, block.order).
        answers: what was answered, (rows,).
        people: how many people answered it, (rows,).
    """
    count = totals[0].shape[1]
    gap = oracle.gap
    noise = sign_noise(oracle)
    bits = len(block.products)
    statistics = _character_sums(oracle, bits)  # (characters, answers)
    for character in range(1, 1 << bits):
        # a character multiplies some of the bits; a sign that two of them hold cancels out
        multiplied = np.zeros(block.order, np.int64)  # 0 or 1 for each sign of the block
        for bit, product in enumerate(block.products):
            if character >> (bits - 1 - bit) & 1:
                multiplied ^= np.array(product)
        order = int(multiplied.sum())
        if not 1 <= order <= len(totals):
            continue
        # products of signs are numbered with the signs' numbers as digits
        key = np.zeros(len(signs), np.int64)  # (rows,)
        for column in np.flatnonzero(multiplied):
            key = key * count + signs[:, column]
        y = statistics[character][answers]  # (rows,)
        sums, information = totals[order - 1]
        sums += np.bincount(key, y * people / (gap * noise), minlength=len(sums))
        information += np.bincount(key, people / noise, minlength=len(information))


def _character_sums(oracle: Any, bits: int) -> Floats:
    """What each answer says of each character: its sum over the values that the answer supports.

    Returns:
        Floats of shape (characters, answers). An oracle that answers with one value supports that
        one; an answer of a subset oracle is a mask of the values that it supports.
    """
    characters = hadamard(1 << bits)  # (characters, values)
    if not hasattr(oracle, "chosen"):
        return characters
    masks = np.arange(1 << oracle.size)
    is_supported = masks[:, None] >> np.arange(oracle.size) & 1  # (answers, values)
    return np.asarray(characters @ is_supported.T.astype(float))
