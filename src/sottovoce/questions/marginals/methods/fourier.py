"""Low-order coefficients, shrunk by what all of them together show; maximum entropy for the rest.

Coefficients are means of orthonormal contrasts of the attributes' values: the table of an attribute
of K values is 1/K + basis @ means, with a basis of (K, K - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.methods.latent import SignMethod
from sottovoce.questions.marginals.models.evidence import interactions
from sottovoce.questions.marginals.models.posterior import Posterior
from sottovoce.questions.marginals.models.sign_evidence import sign_overlaps
from sottovoce.questions.marginals.models.signfit import SignFit
from sottovoce.questions.marginals.models.signs import Moments, moments
from sottovoce.questions.marginals.workload import Places, Workload
from sottovoce.questions.method import Options

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

SMALLEST_SINGLE_CELL = 1e-4  # of an attribute's table that pairs are shrunk toward
SMALLEST_WIDTH = 1e-4  # variance of yes-or-no attributes' true means around their centre
# nothing but its sign pulls a rare value up from zero
EDGE_WITHOUT_CLASSES = {1: 0.8, 2: 0.8}
WITHOUT_CLASSES = 1.3  # times the error with classes, on public data


class Fourier(SignMethod):
    """The signs of ``latent``, without classes.

    Pairs are shrunk toward independence, each by the evidence for it.
    """

    name: ClassVar[str] = "fourier"
    about: ClassVar[str] = "signs of few attributes, empirical Bayes, maximum entropy"
    source: ClassVar[str] = "docs/marginals.md"

    def predict(self, work: Workload, terms: Terms, options: Options) -> float:
        return WITHOUT_CLASSES * super().predict(work, terms, options)

    def predict_tables(
        self, work: Workload, terms: Terms, options: Options, tables: Sequence[Places]
    ) -> list[float]:
        found = super().predict_tables(work, terms, options, tables)
        return [WITHOUT_CLASSES * error for error in found]

    def fit(self, work: Workload, aggregate: Aggregate, options: Options) -> SignFit:
        heard = moments(work, aggregate)
        posterior = shrunk_coefficients(work, heard)
        overlaps = sign_overlaps(work, aggregate)
        return SignFit(work, heard, posterior, aggregate.people, EDGE_WITHOUT_CLASSES, overlaps)


def shrunk_coefficients(work: Workload, heard: Moments) -> Posterior:
    """Means of contrasts and of their pairs, shrunk by empirical Bayes.

    Those of single attributes are shrunk toward a common mean, those of pairs toward independence.
    """
    single, variance = shrunk_singles(heard)
    space = heard.space
    tables = []  # of each attribute, (values,)
    for attribute, basis in enumerate(space.bases):
        means = single[space.contrasts_of(attribute)]
        table = np.maximum(1 / len(basis) + basis @ means, SMALLEST_SINGLE_CELL)
        tables.append(table / table.sum())

    def independent(shape: tuple[int, ...], sets: list[Places]) -> Floats:
        """What pairs are shrunk toward, (pairs, *shape)."""
        return np.array([np.outer(tables[one], tables[two]) for one, two in sets])

    pairs = interactions(work, heard, 2, single, independent)
    # one draw of one class: attributes are independent but for the pairs
    weights = np.ones((1, 1))
    chances = np.concatenate(tables)[None, None, :]
    return Posterior(
        single,
        variance,
        pairs.mean + pairs.mean.T,
        pairs.variance + pairs.variance.T,
        weights,
        chances,
    )


def shrunk_singles(heard: Moments) -> tuple[Floats, Floats]:
    """Means of contrasts, those of yes-or-no attributes shrunk toward their mean.

    Contrasts of categories are too unlike one another to share a width, and stay as they are.

    Returns:
        The means and their variances, both (contrasts,).
    """
    mean, noise = _unbiased_singles(heard)
    sizes = heard.space.sizes
    is_binary = np.repeat([size == 2 for size in sizes], [size - 1 for size in sizes])
    centre = np.zeros(len(mean))
    keep = np.ones(len(mean))  # the share of its distance from the centre that a mean keeps
    if is_binary.any():
        binary_noise = noise[is_binary]
        centre[is_binary] = np.average(mean[is_binary], weights=1 / binary_noise)
        # E[(mean - centre)^2] = width + noise, and the posterior mean keeps width / (width + noise)
        excess = (mean - centre)[is_binary] ** 2 - binary_noise
        width = max(float(excess.mean()), SMALLEST_WIDTH)
        keep[is_binary] = width / (width + binary_noise)
    return centre + keep * (mean - centre), keep * noise


def _unbiased_singles(heard: Moments) -> tuple[Floats, Floats]:
    """Unbiased means of all contrasts and the variances of their errors, both (contrasts,)."""
    space = heard.space
    sums, information = heard.first  # means of signs times information, and information: (signs,)
    means, totals = [], []
    for attribute, (rows, basis) in enumerate(zip(space.rows, space.bases, strict=True)):
        # rows: (H - 1 signs, K values); basis: (K values, K - 1 contrasts)
        signs = space.of(attribute)
        # The signs are a tight frame: over all H - 1 of them, <sign, contrast>^2 sums to H.
        known = max(float(information[signs].sum()), 1e-9)  # 1e-9 where nobody was asked
        total = known * (len(rows) + 1) / len(rows)
        constant = rows.mean(1)  # a sign's mean under the uniform table
        centred = sums[signs] - information[signs] * constant  # (H - 1,)
        means.append(centred @ (rows @ basis) / total)
        totals.append(np.full(len(basis) - 1, total))
    return np.concatenate(means), 1 / np.concatenate(totals)
