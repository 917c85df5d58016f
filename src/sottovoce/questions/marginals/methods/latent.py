"""Latent classes behind signs: the method that makes the least error on most data.

A report holds signs of a few attributes. Its shape says which of their products it tells: a parity
that of all, a corner every one, a star those of the first sign with each other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from sottovoce.protocol.families import Block, Family
from sottovoce.protocol.families.base import MAX_PLAN_COHORTS
from sottovoce.protocol.families.choices import elementary
from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Fit, MarginalMethod
from sottovoce.questions.marginals.models.classes import ClassModel, with_residuals
from sottovoce.questions.marginals.models.posterior import Posterior
from sottovoce.questions.marginals.models.sharpness import (
    predicted_error,
    predicted_errors,
    triple_information,
)
from sottovoce.questions.marginals.models.sign_evidence import sign_overlaps
from sottovoce.questions.marginals.models.signfit import SignFit
from sottovoce.questions.marginals.models.signs import (
    SignSpace,
    attribute_weights,
    moments,
    shared_out,
    sign_cohorts,
    sign_count,
    sign_options,
    sign_shares,
)
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import NO_OPTIONS, Options
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

Shares = dict[tuple[str, int], float]  # of the people, by the shape and order of what they report

# Epsilons between which the collection changes.
PARITIES_BELOW = Decimal("0.62")  # where a single parity tells more than a corner
TOGETHER_FROM = Decimal("1.3")  # where more than half tell three or four attributes at once
MOSTLY_TOGETHER_FROM = Decimal("1.5")
ALWAYS_TOGETHER_FROM = Decimal("1.8")
QUADRUPLES_FROM = Decimal("3")  # where everybody tells four

MAX_MODEL_SIGNS = 600  # whose classes are fitted in about a minute
ENOUGH_FOR_TRIPLES = 50.0  # information per triple; below, four at once would be asked in vain
WIDE_ATTRIBUTES = (
    24  # attributes from which pairs are so many more than singles that most people tell pairs
)


def plain(attributes: int) -> Shares:
    """Singles and pairs, and nothing beyond."""
    corners = 0.2 if attributes >= WIDE_ATTRIBUTES else 0.5
    return {("corner", 2): corners, ("star", 3): 1 - corners}


def collection(epsilon: Decimal, work: Workload) -> Shares:
    """Which signs people report, in which shares.

    Little epsilon: one parity each. More: corners, which tell two attributes and their pair, and
    stars, which tell three pairs. As epsilon grows, more and more people tell three or four
    attributes at once, so that structure beyond pairs is seen where there is some; for tables of
    two that is not needed. Categories have so many more pairs than singles that most people tell
    pairs, and too many triples to learn any.

    Returns:
        The share of the people for each (shape, order); they sum to 1.
    """
    attributes = len(work.names)
    if attributes == 2:
        return {("corner", 2): 1.0}
    is_categorical = sum(size > 2 for size in work.sizes) > attributes / 2
    if epsilon < PARITIES_BELOW:
        if is_categorical:
            return {("parity", 1): 0.3, ("parity", 2): 0.7}
        return {("parity", 1): 0.4, ("parity", 2): 0.6}
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


def _can_be_named(work: Workload, shares: Shares) -> bool:
    """Whether a report can name the cohorts of these shapes."""
    # a cohort is a choice of one sign of each of ``order`` attributes, which have H - 1 signs each
    signs = [(1 << (size - 1).bit_length()) - 1 for size in work.sizes]
    cohorts = sum(elementary(signs, order)[-1] for _, order in shares)
    return cohorts < MAX_PLAN_COHORTS


class SignMethod(MarginalMethod):
    """What methods that collect signs share: who is asked what, and the error to expect."""

    def refuse(self, work: Workload, terms: Terms) -> str | None:
        if len(work.names) < 2:
            return "there must be two attributes or more"
        signs = SignSpace(work.sizes).count
        if signs > MAX_MODEL_SIGNS:
            return f"its attributes have {signs:,} signs, more than {MAX_MODEL_SIGNS}"
        return None

    def settle(self, work: Workload, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """Weights of attributes and blocks of shapes, as :func:`sign_options` has them.

        Three or four attributes at once are asked only if reports can name so many cohorts and
        their triples will be known well enough; else singles and pairs are.
        """
        self.check_options(options)
        weights = attribute_weights(work.sizes)
        shares = collection(terms.epsilon, work)
        chosen = sign_options(weights, shared_out(work, weights, shares))
        asks_triples = any(shape == "corner" and order > 2 for shape, order in shares)
        if not asks_triples:
            return chosen
        if _can_be_named(work, shares):
            information = triple_information(work, terms, chosen)
            if information >= ENOUGH_FOR_TRIPLES:
                return chosen
        fallback = plain(len(work.names))
        return sign_options(weights, shared_out(work, weights, fallback))

    def cohorts(self, schema: Schema, work: Workload, epsilon: Decimal, options: Options) -> Family:
        return sign_cohorts(schema, work, epsilon, options)

    def shares(self, work: Workload, options: Options, parts: Sequence[Places]) -> list[float]:
        blocks = [Block(shape, order, times) for shape, order, times in options["blocks"]]
        return sign_shares(work.sizes, options["weights"], blocks, parts)

    def coefficients(self, work: Workload, part: Places) -> int:
        return sign_count(work.sizes, part)

    def is_whole(self, work: Workload, options: Options, places: Places) -> bool:
        return len(places) <= 2

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        return predicted_error(work, terms, options)

    def predict_tables(
        self, work: Workload, terms: Terms, options: Options, tables: Sequence[Places]
    ) -> list[float]:
        return predicted_errors(work, terms, options, tables)


class Latent(SignMethod):
    """Latent classes fitted to the signs, and pairs shrunk toward the classes.

    Larger tables have maximum entropy given those.
    """

    name: ClassVar[str] = "latent"
    about: ClassVar[str] = "signs of few attributes, latent classes, maximum entropy"
    source: ClassVar[str] = "docs/marginals.md"

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> Fit:
        heard = moments(work, aggregate)

        def posterior() -> Posterior:
            classes = ClassModel(heard).posterior()
            return with_residuals(work, heard, classes)  # what the classes miss of pairs

        overlaps = sign_overlaps(work, aggregate)
        return SignFit(work, heard, posterior, aggregate.people, overlaps=overlaps)
