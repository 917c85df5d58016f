"""Latent classes behind signs: the method that makes the least error on most data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from sottovoce.protocol.families import Block, Family
from sottovoce.protocol.families.base import MOST_COHORTS
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit, Method
from sottovoce.questions.marginals.models.classes import ClassModel, with_residuals
from sottovoce.questions.marginals.models.sharpness import predicted_error, triple_information
from sottovoce.questions.marginals.models.signfit import SignFit
from sottovoce.questions.marginals.models.signs import (
    SignSpace,
    attribute_weights,
    elementary,
    moments,
    shared_out,
    sign_cohorts,
    sign_count,
    sign_options,
    sign_shares,
)
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

CHARACTERS_BELOW = Decimal("0.62")  # epsilon below which a single character tells more than a corner
TOGETHER_FROM = Decimal("1.3")  # where more than half tell three or four attributes at once, for three-way structure
MOSTLY_TOGETHER_FROM = Decimal("1.5")
ALWAYS_TOGETHER_FROM = Decimal("1.8")
QUADRUPLES_FROM = Decimal("3")  # where everybody tells four
MOST_SIGNS = 600  # whose classes are fitted in about a minute
ENOUGH_FOR_TRIPLES = 50.0  # information per triple below which four attributes at once would be asked in vain
WIDE = 24  # attributes from which pairs are so many more than singles that most people tell pairs


def plain(attributes: int) -> dict[tuple[str, int], float]:
    """Singles and pairs, and nothing beyond."""
    corners = 0.2 if attributes >= WIDE else 0.5
    return {("corner", 2): corners, ("star", 3): 1 - corners}


def collection(epsilon: Decimal, work: Workload) -> dict[tuple[str, int], float]:
    """Which signs people report, in which shares.

    Little epsilon: one character each. More: corners, which tell two attributes and their pair, and stars, which tell
    three pairs. As epsilon grows, more and more people tell three or four attributes at once, so that structure beyond
    pairs is seen where there is some; for tables of two that is not needed. Categories have so many more pairs than
    singles that most people tell pairs, and too many triples to learn any.
    """
    attributes = len(work.names)
    if attributes == 2:
        return {("corner", 2): 1.0}
    is_categorical = sum(size > 2 for size in work.sizes) > attributes / 2
    if epsilon < CHARACTERS_BELOW:
        return {("parity", 1): 0.3, ("parity", 2): 0.7} if is_categorical else {("parity", 1): 0.4, ("parity", 2): 0.6}
    if is_categorical:
        return {("corner", 2): 0.25, ("star", 3): 0.75}
    if work.order <= 2 or epsilon < TOGETHER_FROM:
        return plain(attributes)
    if attributes == 3:
        return {("corner", 3): 1.0}
    if epsilon < MOSTLY_TOGETHER_FROM:
        return {("star", 3): 0.4, ("corner", 3): 0.3, ("corner", 4): 0.3}
    if epsilon < ALWAYS_TOGETHER_FROM:
        return {("star", 3): 0.2, ("corner", 3): 0.4, ("corner", 4): 0.4}
    if epsilon < QUADRUPLES_FROM:
        return {("corner", 3): 0.5, ("corner", 4): 0.5}
    return {("corner", 4): 1.0}


def _can_be_named(work: Workload, shares: Mapping[tuple[str, int], float]) -> bool:
    """Whether a report can name the cohorts of these shapes."""
    masks = [(1 << (size - 1).bit_length()) - 1 for size in work.sizes]
    return sum(elementary(masks, order) for _, order in shares) < MOST_COHORTS


class SignMethod(Method):
    """What methods that collect signs share: who is asked what, and how sharply it will be known."""

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        if len(work.names) < 2:
            return "there must be two attributes or more"
        count = SignSpace(work.sizes).count
        if count > MOST_SIGNS:
            return f"its attributes have {count:,} signs, more than {MOST_SIGNS}"
        return None

    def settle(self, work: Workload, terms: Terms, **options: Any) -> dict[str, Any]:
        super().settle(work, terms, **options)
        weights = attribute_weights(work.sizes)
        shares = collection(terms.epsilon, work)
        chosen = sign_options(weights, shared_out(work, weights, shares))
        asks_triples = any(shape == "corner" and order > 2 for shape, order in shares)
        if asks_triples and not (
            _can_be_named(work, shares) and triple_information(work, terms, chosen) >= ENOUGH_FOR_TRIPLES
        ):
            return sign_options(weights, shared_out(work, weights, plain(len(work.names))))
        return chosen

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Mapping[str, Any]) -> Family:
        return sign_cohorts(schema, work, epsilon, options)

    def shares(self, work: Workload, options: Mapping[str, Any], parts: Sequence[Places]) -> list[float]:
        blocks = [Block(shape, order, times) for shape, order, times in options["blocks"]]
        return sign_shares(work.sizes, options["weights"], blocks, parts)

    def coefficients(self, work: Workload, part: Places) -> int:
        return sign_count(work.sizes, part)

    def is_whole(self, work: Workload, options: Mapping[str, Any], places: Places) -> bool:
        return len(places) <= 2

    def predict(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
        return predicted_error(work, terms, options)


class Latent(SignMethod):
    """Latent classes fitted to the signs, pairs shrunk toward the classes, maximum entropy for larger tables."""

    name: ClassVar[str] = "latent"
    about: ClassVar[str] = "signs of few attributes, latent classes, maximum entropy"
    source: ClassVar[str] = "docs/marginals.md"

    def fit(self, work: Workload, aggregate: Aggregate, options: Mapping[str, Any]) -> Fit:
        heard = moments(work, aggregate)
        posterior = with_residuals(work, heard, ClassModel(heard).posterior())
        return SignFit(work, heard, posterior, aggregate.people)
