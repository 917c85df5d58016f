"""Signs of attributes: what the sign-based methods collect, and the moments that their reports add up to.

An attribute of K values stands for H - 1 signs, the non-trivial rows of the Hadamard matrix of order H, the smallest
power of two that is at least K, on its first K columns. A yes-or-no attribute is one sign.
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
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MOST_THIRDS = 192  # signs up to which the products of three are kept
PRECISION = 1000  # to one part in which people are shared out


@dataclass(frozen=True)
class SignSpace:
    """The signs of a workload's attributes, numbered one attribute after another."""

    sizes: tuple[int, ...]

    @cached_property
    def rows(self) -> tuple[Floats, ...]:
        """For each attribute its signs (rows) of its values (columns)."""
        return tuple(hadamard(size)[1:, :size] for size in self.sizes)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first sign of each attribute, and the end."""
        return np.cumsum([0, *((1 << (size - 1).bit_length()) - 1 for size in self.sizes)])

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The attribute of each sign."""
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.starts))

    def of(self, place: int) -> slice:
        """The signs of one attribute."""
        return slice(int(self.starts[place]), int(self.starts[place + 1]))

    @cached_property
    def contrast_starts(self) -> NDArray[np.int64]:
        """The first contrast of each attribute, and the end: an attribute of K values has K - 1."""
        return np.cumsum([0, *(size - 1 for size in self.sizes)])

    def contrasts_of(self, place: int) -> slice:
        """The contrasts of one attribute."""
        return slice(int(self.contrast_starts[place]), int(self.contrast_starts[place + 1]))

    @cached_property
    def bases(self) -> tuple[Floats, ...]:
        """For each attribute its orthonormal contrasts: values x contrasts."""
        return tuple(contrasts(size) for size in self.sizes)

    @cached_property
    def to_contrasts(self) -> Floats:
        """The linear map from means of signs to means of contrasts.

        The signs are a tight frame: a table of K values is (1 + sum over r of m_r h_r)/H, so a contrast's mean is
        (1/H) sum over r of m_r <h_r, contrast>.
        """
        out = np.zeros((int(self.contrast_starts[-1]), self.count))
        for place, (rows, basis) in enumerate(zip(self.rows, self.bases, strict=True)):
            out[self.contrasts_of(place), self.of(place)] = basis.T @ rows.T / (len(rows) + 1)
        return out


def contrasts(size: int) -> Floats:
    """Orthonormal columns that sum to zero: Helmert's contrasts of ``size`` values."""
    out = np.zeros((size, size - 1))
    for column in range(size - 1):
        out[: column + 1, column] = 1
        out[column + 1, column] = -(column + 1)
        out[:, column] /= np.sqrt((column + 1) * (column + 2))
    return out


def hadamard(size: int) -> Floats:
    """The Hadamard matrix of the smallest order that is a power of two and at least ``size``."""
    order = np.arange(1 << (size - 1).bit_length())
    return np.asarray(1.0 - 2.0 * (np.bitwise_count(order[:, None] & order[None, :]) & 1))


def attribute_weights(sizes: Sequence[int]) -> list[int]:
    """Whole weights of a sign of each attribute, near 1/sqrt(H - 1), so that attributes count sqrt(H - 1)."""
    counts = [(1 << (size - 1).bit_length()) - 1 for size in sizes]
    fewest = min(counts)
    scale = 1 if max(counts) == fewest else 12 * sqrt(fewest)
    return [max(1, round(scale / sqrt(count))) if scale != 1 else 1 for count in counts]


def shared_out(work: Workload, weights: Sequence[int], shares: Mapping[tuple[str, int], float]) -> list[Block]:
    """Blocks of these shapes and orders whose people come in these shares."""
    counts = [(1 << (size - 1).bit_length()) - 1 for size in work.sizes]
    tickets = [weight * count for weight, count in zip(weights, counts, strict=True)]
    kept = {key: share for key, share in shares.items() if share > 0 and key[1] <= len(work.names)}
    totals = {key: elementary(tickets, key[1]) for key in kept}
    scale = max(totals[key] / share for key, share in kept.items())
    return [Block(*key, times=max(1, round(PRECISION * share * scale / totals[key]))) for key, share in kept.items()]


def elementary(weights: Sequence[int], order: int) -> int:
    """The sum over sets of ``order`` of the products of their weights."""
    sums = [1] + [0] * order
    for weight in weights:
        for size in reversed(range(order)):
            sums[size + 1] += weight * sums[size]
    return sums[order]


def sign_shares(
    sizes: Sequence[int], weights: Sequence[int], blocks: Sequence[Block], sets: Sequence[Places]
) -> list[float]:
    """The share of the people for each set, if cohorts report signs in blocks of these shapes."""
    tickets = [weight * ((1 << (size - 1).bit_length()) - 1) for weight, size in zip(weights, sizes, strict=True)]
    totals = [block.times * elementary(tickets, block.order) for block in blocks]
    out = []
    for own in sets:
        others = [ticket for place, ticket in enumerate(tickets) if place not in own]
        chosen = prod(tickets[place] for place in own)
        told = 0
        for block in blocks:
            if _tells(block, len(own)):
                told += block.times * chosen * elementary(others, block.order - len(own))
        out.append(told / sum(totals))
    return out


def sign_count(sizes: Sequence[int], part: Places) -> int:
    """How many products of signs an attribute, or several together, have.

    >>> sign_count((2, 3, 8), (1, 2))
    21
    """
    return prod((1 << (sizes[place] - 1).bit_length()) - 1 for place in part)


def _tells(block: Block, count: int) -> bool:
    """Whether a report of a block tells the product of the signs of ``count`` of its attributes by itself."""
    if block.shape == "parity":
        return block.order == count
    if block.shape == "corner":
        return count <= block.order
    return count == 2  # a star: the products of its first sign with others, and of two such products


def sign_family(
    schema: Schema, names: Sequence[str], weights: Sequence[int], blocks: Sequence[Block], epsilon: Decimal
) -> Signs:
    """The family of signs of these blocks, each told through the oracle that tells most about its products."""
    oracles = [sign_oracle(len(block.products), epsilon) for block in blocks]
    return Signs(schema, names, weights, blocks, epsilon, oracles)


def sign_cohorts(schema: Schema, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> Signs:
    """The family that settled options describe."""
    blocks = [Block(shape, order, times) for shape, order, times in options["blocks"]]
    return sign_family(schema, work.names, options["weights"], blocks, epsilon)


def sign_options(weights: Sequence[int], blocks: Sequence[Block]) -> dict[str, Any]:
    """Blocks and weights as a plan holds them."""
    return {"weights": list(weights), "blocks": [[block.shape, block.order, block.times] for block in blocks]}


@dataclass(frozen=True)
class Moments:
    """Unbiased means of signs and of their products, each with its information (1 / variance).

    ``first``: of every sign; ``second``: of every two of different attributes; ``third``: of every three with
    increasing numbers, or None if there are too many. ``sums`` are means times information.
    """

    space: SignSpace
    first: tuple[Floats, Floats]  # (sums, information)
    second: tuple[Floats, Floats]
    third: tuple[Floats, Floats] | None

    def mean(self, order: int) -> Floats:
        """Means, 0 where nobody was asked."""
        sums, information = (self.first, self.second, self.third)[order - 1]  # type: ignore[misc]
        return np.divide(sums, information, out=np.zeros_like(sums), where=information > 0)


def moments(work: Workload, aggregate: Aggregate) -> Moments:
    """What the reports of a family of signs say of the means of signs and their products."""
    space = SignSpace(work.sizes)
    family: Any = aggregate.plan.cohorts
    cohorts, answers, people = aggregate.counts.answers  # type: ignore[attr-defined]
    count = space.count
    has_thirds = count <= MOST_THIRDS and any(block.order > 2 and block.shape != "star" for block in family.blocks)
    totals = [np.zeros((2, count**order)) for order in (1, 2, 3)[: 3 if has_thirds else 2]]
    numbers = family.numbers(cohorts)
    for number, block in enumerate(family.blocks):
        rows = np.flatnonzero(numbers == number)
        members, masks = family.reach(number, cohorts[rows])
        signs = space.starts[members] + masks - 1
        source = family.oracles[number]
        gap, noise = source.gap, sign_noise(source)  # E[told] = gap * sign
        bits = len(block.products)
        told_of = _told(source, bits)
        for chosen in range(1, 1 << bits):
            inside = np.zeros(block.order, np.int64)
            for bit, product in enumerate(block.products):
                if chosen >> (bits - 1 - bit) & 1:
                    inside ^= np.array(product)
            order = int(inside.sum())
            if not 1 <= order <= len(totals):
                continue
            key = np.zeros(len(rows), np.int64)
            for column in np.flatnonzero(inside):
                key = key * count + signs[:, column]
            told = told_of[chosen][answers[rows]]
            totals[order - 1][0] += np.bincount(key, told * people[rows] / (gap * noise), minlength=count**order)
            totals[order - 1][1] += np.bincount(key, people[rows] / noise, minlength=count**order)
    second = totals[1].reshape(2, count, count)
    second = second + second.transpose(0, 2, 1)
    third = totals[2].reshape(2, count, count, count) if has_thirds else None
    return Moments(
        space,
        (totals[0][0], totals[0][1]),
        (second[0], second[1]),
        None if third is None else (third[0], third[1]),
    )


def _told(source: Any, bits: int) -> Floats:
    """What each answer (columns) says of each character (rows): its sum over the values that the answer supports."""
    characters = hadamard(1 << bits)
    if not hasattr(source, "chosen"):
        return characters
    answers = np.arange(1 << source.size)
    inside = answers[:, None] >> np.arange(source.size) & 1
    return np.asarray(characters @ inside.T.astype(float))
