"""Latent classes: people of hidden kinds, whose attributes are independent within a kind.

Fitted to noisy signs. Class c has weight w_c = softmax(u) and gives attribute i the chances
softmax(Q (b_i + nu z_ci + gamma a_c)), Q orthonormal contrasts. The common shift a_c, of yes-or-no
attributes alone, is how much more people of a class say yes to anything: without it, that all
pairs go together a little would cost as many z as there are attributes, and would not be believed.
Signs then have means m = sum_c w_c mu_c and pairs M = sum_c w_c mu_c mu_c^T, and the data say

    m_r ~ N(m, v_r + t^2 S_r),    M_rs ~ N(M, v_rs + t^2 S_r S_s),    S_r = 1 - m_r^2,

with t > 0 because classes never fit quite. The parameters are one vector,

    x = [b (contrasts), z (classes x contrasts), u (classes), a (classes),
         beta, ln s, ln nu, ln t, ln gamma].
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.questions.marginals.method import Floats
from sottovoce.questions.marginals.models.evidence import interactions
from sottovoce.questions.marginals.models.posterior import Posterior, class_table, mixed
from sottovoce.questions.marginals.models.signs import Moments, contrasts
from sottovoce.questions.marginals.models.threads import one_thread
from sottovoce.questions.marginals.workload import Places, Workload

CLASSES = 8
BINARY_CLASSES = 6  # if all attributes are yes-or-no
TRIED_CLASSES = (1, 2, 3, 4, 6)  # numbers of classes for the start by maximum likelihood
START_RIDGE = 1e-3  # penalty of that start
LBFGS_ITERATIONS = 250
HEATS = (0.02, 0.06, 0.2, 0.5, 1.0)  # the data's weight while a cold start is annealed
# means and standard deviations of the normal priors on beta, ln s, ln nu, ln t, ln gamma
PRIORS = np.array([[0.0, 1.4], [0.2, 0.5], [0.0, 0.6], [log(0.015), 0.7], [-1.0, 1.0]])
STIFF_PRIORS = PRIORS.copy()
STIFF_PRIORS[3, 1] = 1e-3  # t is held
HYPER_PARAMETERS = len(PRIORS)
LEAPFROG_STEPS = 8
ANNEALING_WARM_UP = 120  # iterations at each heat, and those after it
ANNEALING_ITERATIONS = 10
CHAIN_WARM_UP = 400
ITERATIONS = 800
CHAIN_DRAWS = 100
EASY_SIGNS = 100  # up to half as many, twice the iterations; beyond, fewer
# the reach of the prior, to which the start by maximum likelihood is clipped
LARGEST_CENTRE = 3.5
NU_RANGE = (0.14, 3.5)
LARGEST_Z = 3
SMALLEST_U = -3
SMALLEST_WEIGHT = 0.02
SMALLEST_START_CHANCE = 0.02
START_PSEUDO_INFORMATION = 4.0  # shrinks the frequencies at the start
SMALLEST_SCALE = 1e-2  # of 1 - m^2


class ClassModel:
    """The model's layout for a space of signs, and the moments it is fitted to."""

    def __init__(self, moments: Moments) -> None:
        """Lay out the parameters and the linear maps that the kernels need."""
        self.space = moments.space
        self.moments = moments
        sizes = self.space.sizes
        free = [size - 1 for size in sizes]
        self.classes = BINARY_CLASSES if max(sizes) == 2 else CLASSES
        self.ends = np.cumsum([0, *sizes])
        self.contrast_ends = np.cumsum([0, *free])
        # for each value of each attribute, its contrasts (filled up with zeros) and all signs
        self.contrasts = np.zeros((self.ends[-1], max(sizes) - 1))
        self.signs = np.zeros((self.ends[-1], self.space.count))
        for attribute, size in enumerate(sizes):
            values = slice(self.ends[attribute], self.ends[attribute + 1])
            self.contrasts[values, : size - 1] = contrasts(size)
            self.signs[values, self.space.of(attribute)] = self.space.rows[attribute].T
        self.is_binary = np.repeat([float(size == 2) for size in sizes], free)  # (contrasts,)
        # two signs of one attribute say nothing that its frequencies do not: they are masked
        owners = self.space.owners
        is_same_attribute = owners[:, None] == owners[None, :]
        self.info2 = np.where(is_same_attribute, 0.0, moments.second[1])  # (signs, signs)
        self.mean2 = moments.mean(2)  # (signs, signs)

    @cached_property
    def start_chances(self) -> list[Floats]:
        """Frequencies of each attribute by itself, shrunk a little: where the samplers start."""
        # f(v) = (1 + sum over r of m_r h_r(v)) / H
        sums, information = self.moments.first
        mean = sums / (information + START_PSEUDO_INFORMATION)  # (signs,)
        out = []
        for attribute, rows in enumerate(self.space.rows):
            order = len(rows) + 1  # H
            table = (1 + rows.T @ mean[self.space.of(attribute)]) / order  # (values,)
            table = np.maximum(table, SMALLEST_START_CHANCE)
            out.append(table / table.sum())
        return out

    @cached_property
    def scale1(self) -> Floats:
        """S_r = 1 - m_r^2 of each sign at the start: (signs,)."""
        means = []
        for rows, chances in zip(self.space.rows, self.start_chances, strict=True):
            means.append(rows @ chances)
        single = np.concatenate(means)
        return np.asarray(np.maximum(1 - single**2, SMALLEST_SCALE))

    @cached_property
    def scale2(self) -> Floats:
        """S_r S_s of every two signs: (signs, signs)."""
        return np.outer(self.scale1, self.scale1)

    def layout(self, priors: Floats) -> tuple[Any, ...]:
        """What the kernels must know of the model, in their order; ``priors`` as in ``PRIORS``."""
        return (
            self.ends,
            self.contrast_ends,
            self.space.starts,
            self.contrasts,
            self.signs,
            self.is_binary,
            priors,
        )

    @cached_property
    def data(self) -> tuple[Floats, ...]:
        """What the kernels must know of the data, in their order: of signs, then of their pairs."""
        mean1 = self.moments.mean(1)
        _, info1 = self.moments.first
        return mean1, info1, self.scale1, self.mean2, self.info2, self.scale2

    @cached_property
    def base(self) -> Floats:
        """Contrasts of the logarithms of the attributes' own frequencies: (contrasts,)."""
        parts = []
        for chances in self.start_chances:
            parts.append(contrasts(len(chances)).T @ np.log(chances))
        return np.concatenate(parts)

    # -- starts

    def cold_start(self, draws: np.random.Generator) -> Floats:
        """Parameters x with the attributes' own frequencies and classes that differ at random."""
        z = 0.5 * draws.standard_normal(self.classes * len(self.base))
        u = np.zeros(self.classes)
        shifts = np.zeros(self.classes)
        beta = self._binary_mean(self.base)
        return np.concatenate([self.base, z, u, shifts, [beta, *PRIORS[1:, 0]]])

    def likely_start(self, draws: np.random.Generator) -> Floats:
        """Parameters x by penalised maximum likelihood, clipped to the prior's reach.

        The number of classes is the one with the least of Akaike's criterion.
        """
        free = len(self.base)
        fits = [self._most_likely(count, draws) for count in TRIED_CLASSES if count <= self.classes]
        _, weights, positions = min(fits, key=lambda fit: fit[0])
        fitted = len(weights)  # classes; the others start with little weight, near the centre

        # b = centre,  nu^2 = mean square of a class's distance from it,  z = distance / nu
        centre = np.clip(weights @ positions, -LARGEST_CENTRE, LARGEST_CENTRE)  # (contrasts,)
        distance = positions - centre  # (fitted classes, contrasts)
        mean_square = (weights[:, None] * distance**2).sum() / free
        nu = float(np.clip(np.sqrt(mean_square), *NU_RANGE))
        z = 0.3 * draws.standard_normal((self.classes, free))
        z[:fitted] = np.clip(distance / nu, -LARGEST_Z, LARGEST_Z)
        u = np.full(self.classes, -2.5)
        u[:fitted] = np.log(np.maximum(weights, SMALLEST_WEIGHT))
        u = np.maximum(u - u[:fitted].mean(), SMALLEST_U)
        shifts = np.zeros(self.classes)
        beta = self._binary_mean(centre)
        hyper = [beta, PRIORS[1, 0], log(nu), *PRIORS[3:, 0]]
        return np.concatenate([centre, z.ravel(), u, shifts, hyper])

    def _binary_mean(self, values: Floats) -> float:
        """The mean over contrasts of yes-or-no attributes: where beta, their prior mean, starts."""
        if not self.is_binary.any():
            return 0.0
        return float(values[self.is_binary > 0].mean())

    def _most_likely(
        self,
        classes: int,
        draws: np.random.Generator,
    ) -> tuple[float, Floats, Floats]:
        """The likeliest model of so many classes, with hyper-parameters held at 0.

        Returns:
            Akaike's criterion, the weights, (classes,), and the positions b + z, (classes,
            contrasts).
        """
        minimize = imported("scipy.optimize").minimize

        from sottovoce.kernels.latent import potential

        free = len(self.base)
        layout = self.layout(PRIORS)
        data = self.data
        end = free + classes * free  # of b and z
        rest = 2 * classes + HYPER_PARAMETERS  # weights, shifts (not used here) and priors
        gradient = np.empty(end + rest)

        def objective(x: Floats) -> tuple[float, Floats]:
            energy = potential(x, classes, layout, data, 1.0, START_RIDGE, gradient)
            return energy, gradient.copy()

        # one class starts from the frequencies alone; of several, the better of two random starts
        starts, spread = (2, 0.7) if classes > 1 else (1, 0.0)
        best = None
        for _ in range(starts):
            z = spread * draws.standard_normal(classes * free)
            start = np.concatenate([self.base, z, np.zeros(rest)])
            options = {"maxiter": LBFGS_ITERATIONS}
            fit = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
            if best is None or fit.fun < best.fun:
                best = fit
        assert best is not None
        positions = best.x[:free] + best.x[free:end].reshape(classes, free)
        u = best.x[end : end + classes]
        weights = np.exp(u - u.max())
        weights /= weights.sum()
        # AIC = 2 (- log likelihood) + 2 (number of parameters)
        criterion = 2 * best.fun + 2 * (classes * free + classes - 1)
        return criterion, weights, positions

    # -- chains

    @property
    def effort(self) -> float:
        """Of the usual iterations, the share that a model of so many signs is given: 0.4 to 2."""
        return min(2.0, max(0.4, EASY_SIGNS / self.space.count))

    def chain(self, kind: str, seed: int) -> Floats:
        """Draws of one chain: (draws, parameters).

        Args:
            kind: ``cold``, annealed from the attributes alone, or ``likely``, from maximum
                likelihood.
            seed: of the chain; the same seed gives the same draws.
        """
        from sottovoce.kernels.latent import sample

        draws = np.random.Generator(np.random.PCG64(seed))
        if kind == "cold":
            x = self.cold_start(draws)
            heats: tuple[float, ...] = HEATS
        else:
            x = self.likely_start(draws)
            heats = (1.0,)

        # t is held until the classes have been found
        stiff = self.layout(STIFF_PRIORS)
        for heat in heats:
            annealed = sample(
                x,
                self.classes,
                stiff,
                self.data,
                heat,
                ANNEALING_WARM_UP,
                ANNEALING_ITERATIONS,
                LEAPFROG_STEPS,
                1,
                seed,
            )
            x = annealed[-1]
        out: Floats = sample(
            x,
            self.classes,
            self.layout(PRIORS),
            self.data,
            1.0,
            round(self.effort * CHAIN_WARM_UP),
            round(self.effort * ITERATIONS),
            LEAPFROG_STEPS,
            CHAIN_DRAWS,
            seed + 1,
        )
        return out

    def posterior(self, seed: int = 1) -> Posterior:
        """Two chains, weighted by how well they predict (the widely applicable criterion, WAIC)."""
        with one_thread():
            with ThreadPoolExecutor(2) as pool:
                chains = list(pool.map(self.chain, ("cold", "likely"), (seed, seed + 100)))
            summaries = [self._summary(chain) for chain in chains]
        criteria = np.array([criterion for criterion, _ in summaries])
        shares = np.exp(criteria - criteria.max())
        shares /= shares.sum()
        return mixed(shares, [part for _, part in summaries])

    def _unpacked(self, draws: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """What the draws' parameters, (draws, parameters), stand for.

        Returns:
            Class weights, (draws, classes); chances, (draws, classes, values); means of signs,
            (draws, classes, signs); t^2, (draws,).
        """
        from sottovoce.kernels.latent import class_means

        count, free, classes = len(draws), len(self.base), self.classes
        end = free + classes * free  # of b and z
        b = draws[:, None, :free]
        z = draws[:, free:end].reshape(count, classes, free)
        u = draws[:, end : end + classes]
        shifts = draws[:, end + classes : end + 2 * classes]
        _, _, ln_nu, ln_t, ln_gamma = draws[:, end + 2 * classes :].T
        nu = np.exp(ln_nu)
        t2 = np.exp(2 * ln_t)
        gamma = np.exp(ln_gamma)

        weights = np.exp(u - u.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        common = (gamma[:, None] * shifts)[:, :, None] * self.is_binary
        positions = b + nu[:, None, None] * z + common  # (draws, classes, contrasts)
        logits = np.empty((count, classes, self.ends[-1]))  # Q (b_i + nu z_ci + gamma a_c)
        for attribute in range(len(self.space.sizes)):
            values = slice(self.ends[attribute], self.ends[attribute + 1])
            span = slice(self.contrast_ends[attribute], self.contrast_ends[attribute + 1])
            basis = self.contrasts[values, : span.stop - span.start]  # (values, contrasts)
            logits[:, :, values] = positions[:, :, span] @ basis.T
        chances = np.empty_like(logits)
        means = np.empty((count, classes, self.space.count))
        class_means(  # fills chances and means
            logits.reshape(-1, self.ends[-1]),
            self.ends,
            self.space.starts,
            self.signs,
            chances.reshape(-1, self.ends[-1]),
            means.reshape(-1, self.space.count),
        )
        return weights, chances, means, t2

    def _summary(self, draws: Floats) -> tuple[float, Posterior]:
        """The WAIC (more is better) and the posterior of a chain's draws, (draws, parameters)."""
        weights, chances, means, t2 = self._unpacked(draws)
        single, single_variance, single_logs = self._single_summary(weights, means, t2)
        pair, pair_variance, pair_logs = self._pair_summary(weights, means, t2)
        logs = np.concatenate([single_logs, pair_logs], axis=1)  # (draws, data)
        shares = weights / len(draws)
        posterior = Posterior(single, single_variance, pair, pair_variance, shares, chances)
        return _widely_applicable(logs), posterior

    def _single_summary(
        self,
        weights: Floats,
        means: Floats,
        t2: Floats,
    ) -> tuple[Floats, Floats, Floats]:
        """Means and variances of contrasts, (contrasts,), and log likelihoods, (draws, signs told).

        Args:
            weights: (draws, classes).
            means: of signs, (draws, classes, signs).
            t2: (draws,).
        """
        model = np.einsum("nc,ncr->nr", weights, means)  # (draws, signs)
        _, information = self.moments.first
        told_mean = self.moments.mean(1)
        is_told = information > 0
        slack = t2[:, None] * self.scale1  # t^2 S, (draws, signs)

        # the data's likelihood:  N(m, v + t^2 S),  v = 1 / information
        variance = 1 / information[is_told] + slack[:, is_told]
        misfit = (model[:, is_told] - told_mean[is_told]) ** 2
        logs = -0.5 * misfit / variance - 0.5 * np.log(variance)

        # given the classes, a mean has posterior mean m + f (told - m) and variance f v,
        # f = t^2 S / (t^2 S + v)
        factor = slack * information / (1 + slack * information)
        residual_variance = (slack / (1 + slack * information)).mean(0)  # (signs,)
        to_contrasts = self.space.to_contrasts  # (contrasts, signs)
        singles = (model + factor * (told_mean - model)) @ to_contrasts.T  # (draws, contrasts)
        total_variance = singles.var(0) + to_contrasts**2 @ residual_variance
        return singles.mean(0), total_variance, logs

    def _pair_summary(
        self,
        weights: Floats,
        means: Floats,
        t2: Floats,
    ) -> tuple[Floats, Floats, Floats]:
        """Means and variances, (contrasts, contrasts), and log likelihoods, (draws, pairs told).

        The arguments are those of :meth:`_single_summary`. Draw by draw: all at once would hold
        (draws, signs, signs) in memory.
        """
        is_told = np.triu(self.info2 > 0)  # (signs, signs)
        told_mean = self.mean2[is_told]  # (pairs told,)
        told_variance = 1 / self.info2[is_told]
        to_contrasts = self.space.to_contrasts  # (contrasts, signs)
        count = len(weights)
        total = np.zeros((len(to_contrasts), len(to_contrasts)))
        total_square = np.zeros_like(total)
        logs = np.empty((count, int(is_told.sum())))
        for draw in range(count):
            # M = sum_c w_c mu_c mu_c^T
            model = (means[draw] * weights[draw][:, None]).T @ means[draw]  # (signs, signs)
            pair = to_contrasts @ model @ to_contrasts.T  # (contrasts, contrasts)
            total += pair
            total_square += pair**2
            slack = t2[draw] * self.scale2  # t^2 S_r S_s
            variance = told_variance + slack[is_told]
            misfit = (model[is_told] - told_mean) ** 2
            logs[draw] = -0.5 * misfit / variance - 0.5 * np.log(variance)
        mean = total / count
        return mean, np.maximum(total_square / count - mean**2, 0), logs


def _widely_applicable(logs: Floats) -> float:
    """WAIC, as a sum of logarithms (more is better), from log likelihoods, (draws, data)."""
    # sum over data of  log mean_draws p(datum | draw) - Var_draws log p(datum | draw)
    largest = logs.max(0)
    predictive = np.log(np.exp(logs - largest).mean(0)) + largest  # (data,)
    return float((predictive - logs.var(0)).sum())


def with_residuals(work: Workload, heard: Moments, posterior: Posterior) -> Posterior:
    """The posterior with pairs that may differ from the classes', each by the evidence for it.

    Args:
        work: the attributes and their sizes.
        heard: the means of signs that reports tell.
        posterior: from the classes alone.
    """

    def expected(shape: tuple[int, ...], sets: list[Places]) -> Floats:
        return np.array([class_table(work, posterior, places) for places in sets])

    pairs = interactions(work, heard, 2, posterior.single, expected)
    # given for increasing contrasts only: the lower half mirrors the upper
    mean = np.triu(pairs.mean, 1)
    variance = np.triu(pairs.variance, 1)
    pair_variance = posterior.pair_variance + variance + variance.T
    return replace(posterior, pair=mean + mean.T, pair_variance=pair_variance)
