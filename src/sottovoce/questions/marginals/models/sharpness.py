"""How sharply a collection of signs will be known: predicted errors of tables made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb, prod
from typing import Any

from sottovoce.oracles.rules import sign_noise, sign_oracle
from sottovoce.protocol.families import Block
from sottovoce.protocol.families.choices import elementary
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.models.signs import (
    attribute_tickets,
    blocks_of,
    signs_per_attribute,
)
from sottovoce.questions.marginals.models.structure import (
    EVENNESS,
    PAIR_TIE,
    TRIPLE_TIE,
    contrast_spread,
    squared_mass,
)
from sottovoce.questions.marginals.workload import Places, Workload

TYPICAL_CLASSES = 3
SIGN_SQUARE = 1 / (2 * EVENNESS + 1)  # expected square of a yes-or-no attribute's mean sign
# The same for what people are promised: an even attribute lets nothing of its pairs through to the
# other's share, a lopsided one much. This little is right within a factor of 1.5 for either.
CAUTIOUS_SIGN_SQUARE = 0.15
SAMPLED_TABLES = 50  # about so many of the workload's tables stand for all
SMALLEST_TRIPLE_CHANCE = 1e-12  # two attributes have no triple


def predicted_error(work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
    """The expected squared error of one of the workload's tables, shrunk by evidence.

    A contrast that is off by e moves a table by e times the other attributes' frequencies, so that
    its squared error counts e^2 times their squared mass.

    Args:
        work: the tables that are asked for.
        terms: epsilon and how many people.
        options: the blocks and weights that the method settled on.

    Returns:
        The sum over a table's cells of expected squared errors, averaged over tables.
    """
    return _predicted_error(work, terms, tuple(options["weights"]), tuple(blocks_of(options)))


@lru_cache(maxsize=64)
def _predicted_error(
    work: Workload, terms: Terms, weights: tuple[int, ...], blocks: tuple[Block, ...]
) -> float:
    information = _Information(work, terms, weights, blocks)
    every = max(1, len(work.sample) // SAMPLED_TABLES)
    sample = work.sample[::every]
    # attributes of the same size and weight are alike, and tables of such attributes
    kinds: dict[tuple[tuple[int, int], ...], list[Places]] = {}
    for places in sample:
        kind = tuple(sorted((work.sizes[place], weights[place]) for place in places))
        kinds.setdefault(kind, []).append(places)
    total = 0.0
    for alike in kinds.values():
        total += len(alike) * _table_error(work, alike[0], information)
    return total / len(sample)


def predicted_errors(
    work: Workload, terms: Terms, options: Mapping[str, Any], tables: Sequence[Places]
) -> list[float]:
    """The expected squared errors of some tables, of a plan for ``work``, as people are told.

    Planners compare collections with :func:`predicted_error`, whose typical people are lopsided:
    pairs then tell much of single attributes. Here they tell little.

    Returns:
        For each table the sum over its cells.
    """
    blocks = blocks_of(options)
    information = _Information(work, terms, options["weights"], blocks, CAUTIOUS_SIGN_SQUARE)
    return [_table_error(work, places, information) for places in tables]


def triple_information(work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
    """What the reports will tell of three attributes at once: information on the average triple."""
    information = _Information(work, terms, options["weights"], blocks_of(options))
    return information.by_order[2] / comb(len(work.names), 3)


def _table_error(work: Workload, places: Places, information: _Information) -> float:
    """The expected squared error of one table."""
    # sum over S in places, |S| <= 3, of  prod_S (K - 1) * variance left of S * squared mass of rest
    total = 0.0
    for order in (1, 2, 3):
        for part in combinations(places, order):
            rest = tuple(attribute for attribute in places if attribute not in part)
            free = prod(work.sizes[attribute] - 1 for attribute in part)
            total += free * information.left(part) * squared_mass(work, rest)
    return total


class _Information:
    """What is expected to be known of the contrasts of up to three attributes.

    Attributes:
        by_order: information (1 / variance) on singles, pairs and triples of attributes, summed
            over all of them.
    """

    def __init__(
        self,
        work: Workload,
        terms: Terms,
        weights: Sequence[int],
        blocks: Sequence[Block],
        sign_square: float = SIGN_SQUARE,
    ) -> None:
        """Add up what every block's reports tell."""
        self._work = work
        self._sign_square = sign_square
        self._signs = [signs_per_attribute(size) for size in work.sizes]
        tickets = attribute_tickets(work.sizes, weights)
        self._shares = [ticket / sum(tickets) for ticket in tickets]  # sum to 1

        self.by_order = [0.0, 0.0, 0.0]
        block_tickets = [block.times * elementary(tickets, block.order)[-1] for block in blocks]
        for block, ticket in zip(blocks, block_tickets, strict=True):
            people = terms.people * ticket / sum(block_tickets)
            noise = sign_noise(sign_oracle(len(block.products), terms.epsilon))
            information = people / noise
            for order in (1, 2, 3):
                self.by_order[order - 1] += information * _products_told(block, order)

        # the chance that two, or three, attributes drawn by their shares are different:
        # 1 - s2  and  1 - 3 s2 + 2 s3,  with s2 and s3 the sums of squared and cubed shares
        self._pair_chance = 1 - sum(share**2 for share in self._shares)
        cubes = sum(share**3 for share in self._shares)
        triple_chance = 1 - 3 * (1 - self._pair_chance) + 2 * cubes
        self._triple_chance = max(triple_chance, SMALLEST_TRIPLE_CHANCE)

    def left(self, part: Places) -> float:
        """The expected variance that is left of one product of contrasts of these attributes."""
        # 1 / (gain * information * share + 1 / prior variance)
        order = len(part)
        sizes = [self._work.sizes[attribute] for attribute in part]

        # of the information on all sets of so many attributes, the share for this one
        share = prod(self._shares[attribute] for attribute in part)
        share *= (1.0, 2 / self._pair_chance, 6 / self._triple_chance)[order - 1]

        # a contrast has H / (H - 1) times the information of its signs, as in ``evidence``
        signs = [self._signs[attribute] for attribute in part]
        gain = prod((count + 1) / count for count in signs)

        # the variance before anybody is asked
        tie = (1.0, PAIR_TIE, TRIPLE_TIE)[order - 1]
        prior = tie**2 * prod(contrast_spread(size) for size in sizes)
        if order == 1:
            prior /= sizes[0] * EVENNESS  # of a contrast's mean: 1/(K (K a + 1))

        information = self.by_order[order - 1]
        if order == 1:
            # a pair tells of either sign what the other lets through
            information += self.by_order[1] * 2 * self._sign_square
        if order == 2:
            # classes pool the pairs
            information *= max(1.0, (len(self._shares) - 1) / (2 * TYPICAL_CLASSES))
        return 1 / (gain * information * share + 1 / prior)


def _products_told(block: Block, order: int) -> int:
    """How many products of ``order`` different signs one report of a block tells."""
    if block.shape == "parity":
        return int(block.order == order)
    if block.shape == "corner":
        return comb(block.order, order)
    return comb(block.order, 2) if order == 2 else 0
