"""How sharply a collection of signs will be known: predicted errors of tables made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb, prod
from typing import Any

from sottovoce.oracles.rules import sign_noise, sign_oracle
from sottovoce.protocol.families import Block
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.models.signs import elementary
from sottovoce.questions.marginals.models.structure import EVENNESS, PAIR_TIE, TRIPLE_TIE, contrast_spread, squared_mass
from sottovoce.questions.marginals.workload import Places, Workload

TYPICAL_CLASSES = 3
SIGN_SQUARE = 1 / (2 * EVENNESS + 1)  # expected square of a yes-or-no attribute's mean sign


def predicted_error(work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
    """The expected squared error of one of the workload's tables, singles, pairs and triples each shrunk by evidence.

    A contrast that is off by e moves a table by e times the other attributes' frequencies, so that its squared error
    counts e^2 times their squared mass.
    """
    blocks = [Block(shape, order, times) for shape, order, times in options["blocks"]]
    information = _Information(work, terms, options["weights"], blocks)
    sample = work.sample[:: max(1, len(work.sample) // 50)]
    return sum(_table_error(work, places, information) for places in sample) / len(sample)


def triple_information(work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
    """What the reports will tell of three attributes at once: information on the average triple."""
    blocks = [Block(shape, order, times) for shape, order, times in options["blocks"]]
    information = _Information(work, terms, options["weights"], blocks)
    return information.told[2] / comb(len(work.names), 3)


def _table_error(work: Workload, places: Places, information: _Information) -> float:
    total = 0.0
    for size in (1, 2, 3):
        for own in combinations(places, size):
            rest = tuple(place for place in places if place not in own)
            free = prod(work.sizes[place] - 1 for place in own)
            total += free * information.left(own) * squared_mass(work, rest)
    return total


class _Information:
    """What is expected to be known of the contrasts of up to three attributes."""

    def __init__(self, work: Workload, terms: Terms, weights: Sequence[int], blocks: Sequence[Block]) -> None:
        self._work = work
        self._rows = [(1 << (size - 1).bit_length()) - 1 for size in work.sizes]
        tickets = [weight * rows for weight, rows in zip(weights, self._rows, strict=True)]
        self._shares = [ticket / sum(tickets) for ticket in tickets]
        self.told = [0.0, 0.0, 0.0]  # information on singles, pairs and triples, over all of them
        totals = [block.times * elementary(tickets, block.order) for block in blocks]
        for block, total in zip(blocks, totals, strict=True):
            each = terms.people * total / sum(totals) / sign_noise(sign_oracle(len(block.products), terms.epsilon))
            for size in (1, 2, 3):
                self.told[size - 1] += each * _products_told(block, size)
        self._pairs = 1 - sum(share**2 for share in self._shares)
        cubes = sum(share**3 for share in self._shares)
        self._triples = max(1 - 3 * (1 - self._pairs) + 2 * cubes, 1e-12)

    def left(self, own: Places) -> float:
        """The expected variance that is left of one product of contrasts of these attributes."""
        share = prod(self._shares[place] for place in own)
        share *= (1.0, 2 / self._pairs, 6 / self._triples)[len(own) - 1]
        gain = prod((self._rows[place] + 1) / self._rows[place] for place in own)
        tie = (1.0, PAIR_TIE, TRIPLE_TIE)[len(own) - 1]
        before = tie**2 * prod(contrast_spread(self._work.sizes[place]) for place in own)
        if len(own) == 1:
            before /= self._work.sizes[own[0]] * EVENNESS  # of a contrast's mean: 1/(K (K a + 1))
        told = self.told[len(own) - 1]
        if len(own) == 1:
            told += self.told[1] * 2 * SIGN_SQUARE  # a pair tells of either sign what the other lets through
        if len(own) == 2:
            told *= max(1.0, (len(self._shares) - 1) / (2 * TYPICAL_CLASSES))  # classes pool the pairs
        return 1 / (gain * told * share + 1 / before)


def _products_told(block: Block, size: int) -> int:
    """How many products of ``size`` different signs one report of a block tells."""
    if block.shape == "parity":
        return int(block.order == size)
    if block.shape == "corner":
        return comb(block.order, size)
    return comb(block.order, 2) if size == 2 else 0
