"""What is known of contrasts and their pairs after all reports, and the hidden classes behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.workload import Places, Workload


@dataclass(frozen=True)
class Posterior:
    """Means and variances of contrasts and of their products in pairs, and each draw's classes.

    From the classes alone, pairs are what the classes say; ``with_residuals`` adds what they miss.
    """

    single: Floats  # (contrasts,)
    single_variance: Floats  # (contrasts,)
    pair: Floats  # (contrasts, contrasts)
    pair_variance: Floats  # (contrasts, contrasts)
    weights: Floats  # (draws, classes), all of them summing to 1
    chances: Floats  # (draws, classes, values of all attributes)


def mixed(shares: Floats, parts: list[Posterior]) -> Posterior:
    """The mixture of some posteriors in these shares."""

    def mean(name: str) -> Floats:
        """The mean of one of the posteriors' arrays."""
        weighted = [share * getattr(part, name) for share, part in zip(shares, parts, strict=True)]
        return np.asarray(sum(weighted))

    def variance(name: str, centre: Floats) -> Floats:
        """The mean variance within the posteriors, and the variance of their means."""
        between = []
        for share, part in zip(shares, parts, strict=True):
            between.append(share * (getattr(part, name) - centre) ** 2)
        return np.asarray(mean(f"{name}_variance") + sum(between))

    single = mean("single")
    pair = mean("pair")
    weights = [share * part.weights for share, part in zip(shares, parts, strict=True)]
    return Posterior(
        single,
        variance("single", single),
        pair,
        variance("pair", pair),
        np.concatenate(weights),
        np.concatenate([part.chances for part in parts]),
    )


def class_table(work: Workload, posterior: Posterior, places: Places) -> Floats:
    """What the latent classes themselves say of a table, averaged over the draws: (cells,)."""
    # p(x) = sum over draws and classes of w prod over attributes of chance(x_i)
    ends = np.cumsum([0, *work.sizes])
    weights = posterior.weights.reshape(-1, 1)  # (draws x classes, 1)
    count = len(weights)

    def chances_of(attribute: int) -> Floats:
        """The chances of an attribute's values: (draws x classes, values)."""
        chances = posterior.chances[:, :, ends[attribute] : ends[attribute + 1]]
        return chances.reshape(count, -1)

    tables = weights  # (draws x classes, cells so far)
    for attribute in places[:-1]:
        chances = chances_of(attribute)
        tables = (tables[:, :, None] * chances[:, None, :]).reshape(count, -1)
    # the last attribute by a matrix product, which sums over draws and classes as it goes
    return np.asarray(tables.T @ chances_of(places[-1])).ravel()
