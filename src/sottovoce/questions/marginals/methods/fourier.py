"""Low-order coefficients, each shrunk by what all of them together show, and maximum entropy for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.protocol.terms import Terms
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.methods.latent import SignMethod
from sottovoce.questions.marginals.models.classes import Posterior
from sottovoce.questions.marginals.models.evidence import interactions
from sottovoce.questions.marginals.models.signfit import SignFit
from sottovoce.questions.marginals.models.signs import Moments, moments
from sottovoce.questions.marginals.workload import Places, Workload

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

SMALLEST_SPREAD = 1e-4
AT_THE_EDGE = 0.8  # nothing but its sign pulls a rare value up from zero
WITHOUT_CLASSES = 1.3  # times the error with classes, on public data


class Fourier(SignMethod):
    """The signs of ``latent``, without classes: pairs are shrunk toward independence, each by the evidence for it."""

    name: ClassVar[str] = "fourier"
    about: ClassVar[str] = "signs of few attributes, empirical Bayes, maximum entropy"
    source: ClassVar[str] = "docs/marginals.md"

    def predict(self, work: Workload, terms: Terms, options: Mapping[str, Any]) -> float:
        return WITHOUT_CLASSES * super().predict(work, terms, options)

    def fit(self, work: Workload, aggregate: Aggregate, options: Any) -> SignFit:
        heard = moments(work, aggregate)
        return SignFit(work, heard, shrunk_coefficients(work, heard), aggregate.people, AT_THE_EDGE)


def shrunk_coefficients(work: Workload, heard: Moments) -> Posterior:
    """Means of contrasts and of their pairs, shrunk by empirical Bayes toward a common mean and independence."""
    single, variance = shrunk_singles(heard)
    space = heard.space
    tables = [
        np.maximum(1 / len(basis) + basis @ single[space.contrasts_of(place)], SMALLEST_SPREAD)
        for place, basis in enumerate(space.bases)
    ]
    tables = [table / table.sum() for table in tables]

    def independent(shape: tuple[int, ...], sets: list[Places]) -> Floats:
        return np.array([np.outer(tables[one], tables[two]) for one, two in sets])

    pairs = interactions(work, heard, 2, single, independent)
    return Posterior(
        single,
        variance,
        pairs.mean + pairs.mean.T,
        pairs.variance + pairs.variance.T,
        np.ones((1, 1)),
        np.concatenate(tables)[None, None, :],
    )


def shrunk_singles(heard: Moments) -> tuple[Floats, Floats]:
    """Means of contrasts, those of yes-or-no attributes shrunk toward their mean, and their variances."""
    space = heard.space
    sums, information = heard.first
    means, known = [], []
    for place, (rows, basis) in enumerate(zip(space.rows, space.bases, strict=True)):
        own = space.of(place)
        total = max(float(information[own].sum()), 1e-9) * (len(rows) + 1) / len(rows)
        constant = rows.mean(1)  # a sign's mean under the uniform table
        means.append((sums[own] - information[own] * constant) @ (rows @ basis) / total)
        known.append(np.full(len(basis) - 1, total))
    mean, noise = np.concatenate(means), 1 / np.concatenate(known)
    is_binary = np.repeat([size == 2 for size in space.sizes], [size - 1 for size in space.sizes])
    centre = np.zeros(len(mean))
    if is_binary.any():
        centre[is_binary] = np.average(mean[is_binary], weights=1 / noise[is_binary])
    keep = np.ones(len(mean))  # contrasts of categories are too unlike one another to share a width
    if is_binary.any():
        away = (mean - centre)[is_binary] ** 2 - noise[is_binary]
        width = max(float(away.mean()), SMALLEST_SPREAD)
        keep[is_binary] = width / (width + noise[is_binary])
    return centre + keep * (mean - centre), keep * noise
