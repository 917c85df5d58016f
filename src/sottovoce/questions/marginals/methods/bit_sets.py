"""The Fourier transformation as zhang2018calm compares with it: coefficients of sets of bits.

A categorical attribute is written in bits, and each bit taken for an attribute of its own. Tables
of k attributes then have up to k' bits, and every set of at most k' bits is asked for, also those
that touch more than k attributes and that no table needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.oracles import PureOracle, oracle
from sottovoce.protocol.encodings import Ask, Parities
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families import Places as Columns
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.methods.coefficients import (
    CoefficientMeans,
    HadamardFit,
    InputHadamard,
    too_many,
)
from sottovoce.questions.marginals.models.signs import sign_count
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Options
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

MAX_BIT_SETS = 1 << 14  # that a plan lists, each a cohort

# the attributes that a set of bits touches, increasing, each with the mask on its code
BitSet = tuple[tuple[int, int], ...]


class BitCoefficients(CoefficientMeans):
    """The means of the characters of sets of bits, each by its listed cohort."""

    def __init__(self, work: Workload, aggregate: Aggregate) -> None:
        aggregate.require_counts("a mean of signs")
        cohorts = aggregate.plan.cohorts
        coin: Any = cohorts[0].oracles[0]
        assert isinstance(coin, PureOracle)
        self._masks = [(1 << width) - 1 for width in bit_widths(work.sizes)]
        self._index = {each: number for number, each in enumerate(bit_sets(work))}
        support = np.stack([aggregate.support(number) for number in range(len(cohorts))])
        people = support.sum(axis=1).astype(float)  # (cohorts,)
        sums = (support[:, 0] - support[:, 1]).astype(float)  # the answer 0 is the sign +1
        super().__init__(aggregate.people, people, sums, coin.gap)

    def _numbered(self, places: Places) -> Columns:
        shape = tuple(self._masks[place] for place in places)
        masks = np.indices(shape).reshape(len(places), -1).T + 1  # (characters, attributes)
        numbers = [self._index[tuple(zip(places, row, strict=True))] for row in masks.tolist()]
        return np.array(numbers, np.int64).reshape(shape)


class FourierTransform(InputHadamard):
    """Every set of as many bits as tables have is asked for equally often.

    On yes-or-no attributes this is ``inp-ht``, whose cohorts it then has. On categories it also
    asks for sets that no table needs: 14,892 for 8 ternary attributes and k = 3, where ``inp-ht``
    has 1,788.
    """

    name: ClassVar[str] = "ft"
    about: ClassVar[str] = "one Fourier coefficient of the record's bits each"
    source: ClassVar[str] = "zhang2018calm, sections 3.5 and 5.1"
    is_baseline: ClassVar[bool] = True

    def total(self, work: Workload) -> int:
        if is_binary(work):
            return super().total(work)
        bits = sum(bit_widths(work.sizes))
        return sum(comb(bits, size) for size in range(1, table_bits(work) + 1))

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        reason = too_many(work, terms.people)
        if reason is not None or is_binary(work):
            return reason
        total = self.total(work)
        if total > terms.people:
            return f"it asks for {total:,} sets of bits, more than the {terms.people:,} people"
        if total > MAX_BIT_SETS:
            return f"it asks for {total:,} sets of bits, more than {MAX_BIT_SETS:,}"
        return None

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        if is_binary(work):
            return super().cohorts(schema, work, epsilon, options)
        coin = oracle("rr", size=2, epsilon=epsilon)
        listed = []
        for touched in bit_sets(work):
            names = tuple(work.names[place] for place, _ in touched)
            sizes = tuple(work.sizes[place] for place, _ in touched)
            product = tuple(mask for _, mask in touched)
            listed.append(Cohort((Ask(Parities(names, sizes, (product,)), coin),)))
        return Listed(listed)

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> HadamardFit:
        if is_binary(work):
            return super().fit(work, aggregate, options)
        return HadamardFit(work, BitCoefficients(work, aggregate))

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        if is_binary(work):
            return super().shares(work, options, parts)
        # larger tables than those of the workload are not read off sets of bits, even where some
        # of theirs are asked for
        told = [sign_count(work.sizes, part) if len(part) <= work.order else 0 for part in parts]
        return [count / self.total(work) for count in told]


def is_binary(work: Workload) -> bool:
    """Whether no attribute has more than two values."""
    return max(work.sizes) <= 2


def bit_widths(sizes: Sequence[int]) -> list[int]:
    """How many bits the codes of each attribute take.

    >>> bit_widths((2, 3, 5))
    [1, 2, 3]
    """
    return [(size - 1).bit_length() for size in sizes]


def table_bits(work: Workload) -> int:
    """k': how many bits the widest table of the workload's order has."""
    return sum(sorted(bit_widths(work.sizes))[-work.order :])


def bit_sets(work: Workload) -> Iterator[BitSet]:
    """Every set of at most k' bits, the smallest first."""
    owners = [
        (place, 1 << bit)
        for place, width in enumerate(bit_widths(work.sizes))
        for bit in range(width)
    ]
    for size in range(1, table_bits(work) + 1):
        for chosen in combinations(owners, size):
            masks: dict[int, int] = {}
            for place, mask in chosen:
                masks[place] = masks.get(place, 0) | mask
            yield tuple(masks.items())
