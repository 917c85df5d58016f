"""CALM on the bits of the attributes' codes, each of them a yes-or-no attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from itertools import combinations, product
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.protocol.encodings import Encoding, Parities
from sottovoce.protocol.families import Family
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit, Floats, Offer, PairEvidence
from sottovoce.questions.marginals.methods.calm import Calm, CalmFit, Domain
from sottovoce.questions.marginals.methods.view_predictions import TypicalTables
from sottovoce.questions.marginals.methods.views import ViewsHeard
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Options
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate


class BitFit(CalmFit):
    """Tables of categories from views of their bits."""

    def __init__(self, work: Workload, heard: ViewsHeard, groups: Mapping[int, Places]) -> None:
        super().__init__(work, heard)
        self.groups = groups

    def _bits(self, places: Places) -> Places:
        """The bits of some attributes, one attribute after the other."""
        return tuple(bit for place in places for bit in self.groups[place])

    def evidence(self, pairs: Sequence[Places]) -> Sequence[PairEvidence] | None:
        """Views hold bits, and two attributes' bits may lie in several of them."""
        return None

    def is_known(self, places: Places) -> bool:
        return super().is_known(self._bits(places))

    def pairs(self) -> list[Places]:
        """Pairs of bits in one view, of two different attributes."""
        owner = {bit: place for place, bits in self.groups.items() for bit in bits}
        return [(one, two) for one, two in super().pairs() if owner[one] != owner[two]]

    def is_tied(self, places: Places) -> bool:
        one_bit_each = product(*(self.groups[place] for place in places))
        return all(super(BitFit, self).is_known(bits) for bits in one_bit_each)

    def is_heard(self, part: Places) -> bool:
        needed = _bit_parts(self._bits(part))
        return all(super(BitFit, self).is_known(bits) for bits in needed)

    def answer(self, source: Any, places: Places) -> Floats:
        """Maximum entropy over the categories there are, given the tables of bits in one view."""
        values = np.indices(self.work.shape(places)).reshape(len(places), -1)  # (places, cells)
        digits = []
        for row, place in enumerate(places):
            shifts = np.arange(len(self.groups[place]))[::-1, None]  # the highest bit first
            digits.append((values[row] >> shifts) & 1)  # (bits of the place, cells)
        return np.asarray(source.chosen(self._bits(places), np.concatenate(digits)))


@lru_cache(maxsize=64)
def _bits_of(sizes: tuple[int, ...]) -> Mapping[int, Places]:
    """The points of each attribute's bits, the highest bit first."""
    groups, start = {}, 0
    for place, size in enumerate(sizes):
        width = max(1, (size - 1).bit_length())
        groups[place] = tuple(range(start, start + width))
        start += width
    return groups


@lru_cache(maxsize=64)
def _bit_domain(work: Workload) -> Domain:
    """The bits of all attributes; a table has as many as those of the workload in the mean."""
    groups = _bits_of(work.sizes)
    widths = [sum(len(groups[place]) for place in places) for places in work.sample]
    points = sum(len(bits) for bits in groups.values())
    return Domain((2,) * points, round(sum(widths) / len(widths)))


@lru_cache(maxsize=32)
def _bit_tables(work: Workload, longest: int) -> TypicalTables:
    """The workload's tables as sets of bits."""
    groups = _bits_of(work.sizes)
    sample = []
    for places in work.sample:
        sample.append(tuple(bit for place in places for bit in groups[place]))
    return TypicalTables.of(sample, _bit_domain(work).sizes, longest)


def _bit_parts(bits: Places) -> list[Places]:
    """What must be told of some attributes' bits: every two together, or the only one."""
    return [bits] if len(bits) == 1 else list(combinations(bits, 2))


class CalmBinary(Calm):
    """CALM on attributes written in bits, each of them a yes-or-no attribute.

    Guarantee: that of its cohorts' oracles, one report each.
    Source:    zhang2018calm, section 5.3 (BE).
    """

    name: ClassVar[str] = "calm-binary"
    about: ClassVar[str] = "calm on the bits of the attributes' codes"
    source: ClassVar[str] = "zhang2018calm, section 5.3"

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        """At least calm's.

        The bits of one attribute are tied more than two attributes, which predictions leave out.
        """
        usual = self._usual(work, terms, inf)
        assert usual is not None  # no error is more than any
        return max(usual, super().predict(work, terms, options))

    def predict_tables(
        self, work: Workload, terms: Terms, options: Options, tables: Sequence[Places]
    ) -> list[float]:
        errors = []
        for places in tables:
            errors.append(super().predict(replace(work, sets=(places,)), terms, options))
        whole = Calm()
        if whole.refuse(work, terms) is not None:
            return errors
        usual = whole.predict_tables(work, terms, whole.settle(work, terms), tables)
        return [max(own, least) for own, least in zip(errors, usual, strict=True)]

    def offer(self, work: Workload, terms: Terms, most: float) -> Offer | None:
        usual = self._usual(work, terms, most)
        if usual is None:
            return None
        found = super().offer(work, terms, most)
        return None if found is None else Offer(found.options, max(usual, found.error))

    def _usual(self, work: Workload, terms: Terms, most: float) -> float | None:
        """Calm's error, 0 if it does not fit; None if it is more than ``most``."""
        whole = Calm()
        if whole.refuse(work, terms) is not None:
            return 0.0
        views = whole._views(work, whole.settle(work, terms))
        parts = whole.expected(work, terms, views, most)
        return None if parts is None else parts.error

    def _errs_more(self, work: Workload, terms: Terms, most: float) -> bool:
        return False

    def tables(self, work: Workload, longest: int) -> TypicalTables:
        return _bit_tables(work, longest)

    def groups(self, work: Workload) -> Mapping[int, Places]:
        return _bits_of(work.sizes)

    def domain(self, work: Workload) -> Domain:
        return _bit_domain(work)

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        """Of an attribute or pair, the share for the two of its bits asked about least."""
        needed = [_bit_parts(self._points(work, part)) for part in parts]
        distinct = list({bits for pairs in needed for bits in pairs})
        share_of = dict(zip(distinct, super().shares(work, options, distinct), strict=True))
        return [min(share_of[bits] for bits in pairs) for pairs in needed]

    def _points(self, work: Workload, places: Places) -> Places:
        """The bits of some attributes."""
        groups = self.groups(work)
        return tuple(bit for place in places for bit in groups[place])

    def is_whole(self, work: Workload, options: Options, places: Places) -> bool:
        return super().is_whole(work, options, self._points(work, places))

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        return self._listed(schema, work, epsilon, options)

    def encoding(self, schema: Schema, work: Workload, view: Places) -> Encoding:
        owners = {bit: place for place, bits in self.groups(work).items() for bit in bits}
        places = tuple(sorted({owners[bit] for bit in view}))
        products = []
        for bit in view:
            # the parity of one bit alone: a mask for its attribute, 0 for the others
            owner = owners[bit]
            bits = self.groups(work)[owner]
            mask = 1 << (len(bits) - 1 - bits.index(bit))
            products.append(tuple(mask if place == owner else 0 for place in places))
        return Parities(work.attributes(places), work.shape(places), tuple(products))

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> Fit:
        return BitFit(work, self.heard(work, aggregate, options), self.groups(work))
