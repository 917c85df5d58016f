"""Latent classes: people of hidden kinds, whose attributes are independent within a kind, fitted to noisy signs.

Class c has weight w_c = softmax(u) and gives attribute i the chances softmax(Q (b_i + nu z_ci)), Q orthonormal
contrasts. Signs then have means m = sum_c w_c mu_c and pairs M = sum_c w_c mu_c mu_c^T, and the data say
m_r ~ N(m, v_r + t^2 S_r), M_rs ~ N(M, v_rs + t^2 S_r S_s), S_r = 1 - m_r^2: classes never fit quite.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.evidence import interactions
from sottovoce.questions.marginals.models.signs import Moments, contrasts
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.marginals.workload import Places, Workload

CLASSES = 8
BINARY_CLASSES = 6
TRIED = (1, 2, 3, 4, 6)  # numbers of classes for the start by maximum likelihood
RIDGE = 1e-3
HEATS = (0.02, 0.06, 0.2, 0.5, 1.0)  # the data's weight while a cold start is annealed
# means and standard deviations of the normal priors on beta, ln s, ln nu, ln t
PRIORS = np.array([[0.0, 1.4], [0.2, 0.5], [0.0, 0.6], [log(0.015), 0.7]])
STIFF = np.array([[0.0, 1.4], [0.2, 0.5], [0.0, 0.6], [log(0.015), 1e-3]])  # while t is held
STEPS = 8
WARM_UP = 400
ITERATIONS = 800
DRAWS = 100
EASY_SIGNS = 100  # up to half as many, twice the iterations; beyond, fewer


@dataclass(frozen=True)
class Posterior:
    """Means and variances of contrasts and of their products in pairs, and the classes of each draw.

    From the classes alone, pairs are what the classes say; :func:`with_residuals` adds what they miss.
    """

    single: Floats
    single_variance: Floats
    pair: Floats
    pair_variance: Floats
    weights: Floats  # draws x classes, all of them summing to 1
    chances: Floats  # draws x classes x values of all attributes


class ClassModel:
    """The model's layout for a space of signs, and the moments it is fitted to."""

    def __init__(self, moments: Moments) -> None:
        self.space = moments.space
        self.moments = moments
        sizes = self.space.sizes
        self.classes = BINARY_CLASSES if max(sizes) == 2 else CLASSES
        self.ends = np.cumsum([0, *sizes])
        self.contrast_ends = np.cumsum([0, *(size - 1 for size in sizes)])
        self.contrasts = np.zeros((self.ends[-1], max(sizes) - 1))
        self.signs = np.zeros((self.ends[-1], self.space.count))
        for place, size in enumerate(sizes):
            rows = slice(self.ends[place], self.ends[place + 1])
            self.contrasts[rows, : size - 1] = contrasts(size)
            self.signs[rows, self.space.of(place)] = self.space.rows[place].T
        self.is_binary = np.repeat([float(size == 2) for size in sizes], [size - 1 for size in sizes])
        owners = self.space.owners
        information = moments.second[1]
        self.info2 = np.where(owners[:, None] == owners[None, :], 0.0, information)
        self.mean2 = moments.mean(2)

    @cached_property
    def start_chances(self) -> list[Floats]:
        """Frequencies of each attribute by itself, shrunk a little: where the samplers start."""
        sums, information = self.moments.first
        mean = sums / (information + 4.0)
        out = []
        for place, rows in enumerate(self.space.rows):
            size = len(rows) + 1
            table = (1 + rows.T @ mean[self.space.of(place)]) / size
            table = np.maximum(table, 0.02)
            out.append(table / table.sum())
        return out

    @cached_property
    def scale1(self) -> Floats:
        single = np.concatenate(
            [rows @ chances for rows, chances in zip(self.space.rows, self.start_chances, strict=True)]
        )
        return np.asarray(np.maximum(1 - single**2, 1e-2))

    @cached_property
    def scale2(self) -> Floats:
        return np.outer(self.scale1, self.scale1)

    def layout(self, priors: Floats) -> tuple[Any, ...]:
        starts = self.space.starts
        return self.ends, self.contrast_ends, starts, self.contrasts, self.signs, self.is_binary, priors

    @cached_property
    def data(self) -> tuple[Floats, ...]:
        return self.moments.mean(1), self.moments.first[1], self.scale1, self.mean2, self.info2, self.scale2

    @cached_property
    def base(self) -> Floats:
        """Contrasts of the attributes' own frequencies."""
        parts = [contrasts(len(chances)).T @ np.log(chances) for chances in self.start_chances]
        return np.concatenate(parts)

    # -- starts

    def cold_start(self, draws: np.random.Generator) -> Floats:
        free = len(self.base)
        beta = float(self.base[self.is_binary > 0].mean()) if self.is_binary.any() else 0.0
        wild = 0.5 * draws.standard_normal(self.classes * free)
        return np.concatenate([self.base, wild, np.zeros(self.classes), [beta, *PRIORS[1:, 0]]])

    def likely_start(self, draws: np.random.Generator) -> Floats:
        """Penalised maximum likelihood, the number of classes by Akaike's criterion, clipped to the prior's reach."""
        free = len(self.base)
        fits = [self._most_likely(count, draws) for count in TRIED if count <= self.classes]
        _, weights, own = min(fits, key=lambda fit: fit[0])
        centre = np.clip(weights @ own, -3.5, 3.5)
        away = own - centre
        nu = float(np.clip(np.sqrt((weights[:, None] * away**2).sum() / free), 0.14, 3.5))
        z = 0.3 * draws.standard_normal((self.classes, free))
        z[: len(weights)] = np.clip(away / nu, -3, 3)
        u = np.full(self.classes, -2.5)
        u[: len(weights)] = np.log(np.maximum(weights, 0.02))
        u = np.maximum(u - u[: len(weights)].mean(), -3)
        beta = float(centre[self.is_binary > 0].mean()) if self.is_binary.any() else 0.0
        return np.concatenate([centre, z.ravel(), u, [beta, PRIORS[1, 0], log(nu), PRIORS[3, 0]]])

    def _most_likely(self, classes: int, draws: np.random.Generator) -> tuple[float, Floats, Floats]:
        minimize = imported("scipy.optimize").minimize

        from sottovoce.kernels.latent import potential

        free = len(self.base)
        layout, data = self.layout(PRIORS), self.data
        gradient = np.empty(free + classes * free + classes + 4)

        def objective(x: Floats) -> tuple[float, Floats]:
            energy = potential(x, classes, layout, data, 1.0, RIDGE, gradient)
            return energy, gradient.copy()

        best = None
        for _ in range(2 if classes > 1 else 1):
            wild = (0.7 if classes > 1 else 0.0) * draws.standard_normal(classes * free)
            start = np.concatenate([self.base, wild, np.zeros(classes + 4)])
            found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 250})
            if best is None or found.fun < best.fun:
                best = found
        assert best is not None
        own = best.x[:free] + best.x[free : free + classes * free].reshape(classes, free)
        u = best.x[free + classes * free : free + classes * free + classes]
        weights = np.exp(u - u.max())
        weights /= weights.sum()
        return 2 * best.fun + 2 * (classes * free + classes - 1), weights, own

    # -- chains

    @property
    def effort(self) -> float:
        """Of the usual iterations, the share that a model of many signs is given."""
        return min(2.0, max(0.4, EASY_SIGNS / self.space.count))

    def chain(self, kind: str, seed: int) -> Floats:
        """Draws of one chain: ``cold`` is annealed from the attributes alone, ``likely`` from maximum likelihood."""
        from sottovoce.kernels.latent import sample

        draws = np.random.Generator(np.random.PCG64(seed))
        stiff, free = self.layout(STIFF), self.layout(PRIORS)
        warm_up, iterations = (round(self.effort * count) for count in (WARM_UP, ITERATIONS))
        x = self.cold_start(draws) if kind == "cold" else self.likely_start(draws)
        for heat in HEATS if kind == "cold" else (1.0,):
            x = sample(x, self.classes, stiff, self.data, heat, 120, 10, STEPS, 1, seed)[-1]
        out: Floats = sample(x, self.classes, free, self.data, 1.0, warm_up, iterations, STEPS, DRAWS, seed + 1)
        return out

    def posterior(self, seed: int = 1) -> Posterior:
        """Two chains, weighted by how well they predict (the widely applicable information criterion)."""
        with one_thread():
            with ThreadPoolExecutor(2) as pool:
                chains = list(pool.map(self.chain, ("cold", "likely"), (seed, seed + 100)))
            parts = [self._summary(chain) for chain in chains]
        criteria = np.array([criterion for criterion, _ in parts])
        shares = np.exp(criteria - criteria.max())
        shares /= shares.sum()
        return _mixed(shares, [part for _, part in parts])

    def _unpacked(self, draws: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Class weights, chances, means of signs, and t^2 of each draw."""
        from sottovoce.kernels.latent import class_means

        free, classes = len(self.base), self.classes
        end = free + classes * free
        u = draws[:, end : end + classes]
        weights = np.exp(u - u.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        z = draws[:, free:end].reshape(len(draws), classes, free)
        own = draws[:, None, :free] + np.exp(draws[:, end + classes + 2])[:, None, None] * z
        logits = np.empty((len(draws), classes, self.ends[-1]))
        for place in range(len(self.space.sizes)):
            values = slice(self.ends[place], self.ends[place + 1])
            inside = slice(self.contrast_ends[place], self.contrast_ends[place + 1])
            basis = self.contrasts[values, : inside.stop - inside.start]
            logits[:, :, values] = own[:, :, inside] @ basis.T
        chances = np.empty_like(logits)
        means = np.empty((len(draws), classes, self.space.count))
        class_means(
            logits.reshape(-1, self.ends[-1]),
            self.ends,
            self.space.starts,
            self.signs,
            chances.reshape(-1, self.ends[-1]),
            means.reshape(-1, self.space.count),
        )
        return weights, chances, means, np.exp(2 * draws[:, end + classes + 3])

    def _summary(self, draws: Floats) -> tuple[float, Posterior]:
        weights, chances, means, t2 = self._unpacked(draws)
        singles = np.einsum("nc,ncr->nr", weights, means)
        information, mean1 = self.moments.first[1], self.moments.mean(1)
        heard = information > 0
        slack1 = t2[:, None] * self.scale1
        wide1 = 1 / information[heard] + slack1[:, heard]
        logs = -0.5 * (singles[:, heard] - mean1[heard]) ** 2 / wide1 - 0.5 * np.log(wide1)
        keep1 = slack1 * information / (1 + slack1 * information)
        spare1 = (slack1 / (1 + slack1 * information)).mean(0)
        upper = np.triu(self.info2 > 0)
        v2 = 1 / self.info2[upper]
        turn = self.space.to_contrasts
        total = np.zeros((2, len(turn), len(turn)))
        pair_logs = np.empty((len(draws), int(upper.sum())))
        for number in range(len(draws)):
            model = (means[number] * weights[number][:, None]).T @ means[number]
            slack = t2[number] * self.scale2
            pair = turn @ model @ turn.T
            total[0] += pair
            total[1] += pair**2
            wide = v2 + slack[upper]
            pair_logs[number] = -0.5 * (model[upper] - self.mean2[upper]) ** 2 / wide - 0.5 * np.log(wide)
        logs = np.concatenate([logs, pair_logs], axis=1)
        largest = logs.max(0)
        predictive = np.log(np.exp(logs - largest).mean(0)) + largest
        criterion = float((predictive - logs.var(0)).sum())
        mean = total[0] / len(draws)
        variance = total[1] / len(draws) - mean**2
        turned = (singles + keep1 * (mean1 - singles)) @ turn.T
        posterior = Posterior(
            turned.mean(0),
            turned.var(0) + turn**2 @ spare1,
            mean,
            np.maximum(variance, 0),
            weights / len(draws),
            chances,
        )
        return criterion, posterior


def _mixed(shares: Floats, parts: list[Posterior]) -> Posterior:
    def mean(name: str) -> Floats:
        return np.asarray(sum(share * getattr(part, name) for share, part in zip(shares, parts, strict=True)))

    single, pair = mean("single"), mean("pair")
    pairs = list(zip(shares, parts, strict=True))
    return Posterior(
        single,
        mean("single_variance") + sum(share * (part.single - single) ** 2 for share, part in pairs),
        pair,
        mean("pair_variance") + sum(share * (part.pair - pair) ** 2 for share, part in pairs),
        np.concatenate([share * part.weights for share, part in pairs]),
        np.concatenate([part.chances for part in parts]),
    )


def with_residuals(work: Workload, heard: Moments, posterior: Posterior) -> Posterior:
    """The posterior with pairs that may differ from what the classes say, each by the evidence for it."""

    def expected(shape: tuple[int, ...], sets: list[Places]) -> Floats:
        return np.array([class_table(work, posterior, places) for places in sets])

    found = interactions(work, heard, 2, posterior.single, expected)
    pair = np.triu(found.mean, 1)
    variance = np.triu(found.variance, 1)
    return replace(posterior, pair=pair + pair.T, pair_variance=posterior.pair_variance + variance + variance.T)


def class_table(work: Workload, posterior: Posterior, places: Places) -> Floats:
    """What the latent classes themselves say of a table, averaged over the draws."""
    starts = np.cumsum([0, *work.sizes])
    weights = posterior.weights.reshape(-1, 1)
    table = weights
    for at in places[:-1]:
        chances = posterior.chances[:, :, starts[at] : starts[at + 1]].reshape(len(weights), -1)
        table = (table[:, :, None] * chances[:, None, :]).reshape(len(weights), -1)
    last = places[-1]
    chances = posterior.chances[:, :, starts[last] : starts[last + 1]].reshape(len(weights), -1)
    return np.asarray(table.T @ chances).ravel()
