"""Latent classes fitted to noisy signs: the potential with its gradient, and a Hamiltonian sampler.

Parameters are one vector, x = [b (one per contrast), z (classes x contrasts), u (classes),
a (classes), beta, ln s, ln nu, ln t, ln gamma].
"""

from __future__ import annotations

import math

import numpy as np

from sottovoce.kernels.compiled import njit

FAST = {"reassoc", "contract", "arcp"}
TARGET = 0.8  # share of proposals to accept


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def class_means(logits, ends, sign_ends, signs, chances, means):  # type: ignore[no-untyped-def]
    """Fill each class's chances (softmax by attribute) and the means of its signs from logits."""
    classes = logits.shape[0]
    for c in range(classes):
        for i in range(ends.size - 1):
            largest = -1e300
            for k in range(ends[i], ends[i + 1]):
                largest = max(largest, logits[c, k])
            total = 0.0
            for k in range(ends[i], ends[i + 1]):
                chances[c, k] = math.exp(logits[c, k] - largest)
                total += chances[c, k]
            for k in range(ends[i], ends[i + 1]):
                chances[c, k] /= total
            for r in range(sign_ends[i], sign_ends[i + 1]):
                mean = 0.0
                for k in range(ends[i], ends[i + 1]):
                    mean += chances[c, k] * signs[k, r]
                means[c, r] = mean


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _logits(x, classes, nu, gamma, ends, contrast_ends, contrasts, is_binary):  # type: ignore[no-untyped-def]
    """Q (b + nu z + gamma a) of every class; only yes-or-no attributes have a common shift a."""
    free = contrast_ends[-1]
    shifts = free + classes * free + classes
    logits = np.zeros((classes, ends[-1]))
    for c in range(classes):
        for i in range(ends.size - 1):
            for k in range(ends[i], ends[i + 1]):
                total = 0.0
                for j in range(contrast_ends[i], contrast_ends[i + 1]):
                    own = x[j] + nu * x[free + c * free + j]
                    common = gamma * is_binary[j] * x[shifts + c]
                    total += contrasts[k, j - contrast_ends[i]] * (own + common)
                logits[c, k] = total
    return logits


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _misfit(means, w, data, heat, t2, d_single, d_pairs):  # type: ignore[no-untyped-def]
    """The data's part of the potential and its slope in ln t; fills slopes in means and pairs."""
    mean1, info1, scale1, mean2, info2, scale2 = data
    weighted = means * w.reshape(-1, 1)
    pairs = means.T @ weighted
    energy = 0.0
    d_ln_t = 0.0
    product = 1.0  # of what the logarithms are taken of, so that they are few
    for r in range(mean1.size):
        single = 0.0
        for c in range(w.size):
            single += weighted[c, r]
        info = heat * info1[r]
        slack = t2 * scale1[r]
        shrink = 1 / (1 + slack * info)
        miss = single - mean1[r]
        d_single[r] = miss * info * shrink
        energy += 0.5 * miss * d_single[r]
        product *= 1 + slack * info
        d_ln_t += (info * shrink - d_single[r] * d_single[r]) * slack
        for q in range(r + 1, mean1.size):
            info = heat * info2[r, q]
            slack = t2 * scale2[r, q]
            shrink = 1 / (1 + slack * info)
            miss = pairs[r, q] - mean2[r, q]
            g = miss * info * shrink
            d_pairs[r, q] = g
            d_pairs[q, r] = g
            energy += 0.5 * miss * g
            product *= 1 + slack * info
            d_ln_t += (info * shrink - g * g) * slack
        energy += 0.5 * math.log(product)
        product = 1.0
    return energy, d_ln_t


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _descend(x, w, nu, gamma, layout, chances, means, d_single, d_pairs, gradient):  # type: ignore[no-untyped-def]
    """Fill the gradient of the data's part from the slopes in the means."""
    ends, contrast_ends, sign_ends, contrasts, signs, is_binary, _ = layout
    classes = w.size
    free = contrast_ends[-1]
    o = free + classes * free
    hyper = o + 2 * classes
    pull = means @ d_pairs
    d_w = np.zeros(classes)
    push = np.empty(ends[-1])
    for c in range(classes):
        for r in range(means.shape[1]):
            d_w[c] += means[c, r] * (d_single[r] + 0.5 * pull[c, r])
        for i in range(ends.size - 1):
            centre = 0.0
            for k in range(ends[i], ends[i + 1]):
                total = 0.0
                for r in range(sign_ends[i], sign_ends[i + 1]):
                    total += signs[k, r] * (d_single[r] + pull[c, r])
                push[k] = total
                centre += chances[c, k] * total
            for k in range(ends[i], ends[i + 1]):
                slope = w[c] * chances[c, k] * (push[k] - centre)
                for j in range(contrast_ends[i], contrast_ends[i + 1]):
                    part = slope * contrasts[k, j - contrast_ends[i]]
                    gradient[j] += part
                    gradient[free + c * free + j] += nu * part
                    gradient[hyper + 2] += nu * x[free + c * free + j] * part
                    common = gamma * is_binary[j] * part
                    gradient[o + classes + c] += common
                    gradient[hyper + 4] += x[o + classes + c] * common
    mixed = np.sum(w * d_w)
    for c in range(classes):
        gradient[o + c] = w[c] * (d_w[c] - mixed)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _priors(x, classes, free, is_binary, priors, gradient):  # type: ignore[no-untyped-def]
    """The priors' part of the potential and its slopes. z, u, a are normal, b ~ N(beta, s^2)."""
    hyper = free + classes * free + 2 * classes
    energy = 0.0
    for i in range(free, hyper):
        energy += 0.5 * x[i] * x[i]
        gradient[i] += x[i]
    beta, ln_s = x[hyper], x[hyper + 1]
    s = math.exp(ln_s)
    for j in range(free):
        r = (x[j] - beta * is_binary[j]) / s
        energy += 0.5 * r * r + ln_s
        gradient[j] += r / s
        gradient[hyper] -= is_binary[j] * r / s
        gradient[hyper + 1] += 1 - r * r
    for place in range(5):  # beta, ln s, ln nu, ln t, ln gamma are normal
        r = (x[hyper + place] - priors[place, 0]) / priors[place, 1]
        energy += 0.5 * r * r
        gradient[hyper + place] += r / priors[place, 1]
    return energy


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def potential(x, classes, layout, data, heat, ridge, gradient):  # type: ignore[no-untyped-def]
    """Minus the log posterior of the parameters ``x``, and its gradient.

    ``heat`` scales the data's weight; ``ridge`` > 0 asks for penalised maximum likelihood with nu =
    1, t = 0 and no common shifts.
    """
    ends, contrast_ends, sign_ends, contrasts, signs, is_binary, priors = layout
    free = contrast_ends[-1]
    o = free + classes * free
    hyper = o + 2 * classes
    nu = 1.0 if ridge > 0 else math.exp(x[hyper + 2])
    t2 = 0.0 if ridge > 0 else math.exp(2 * x[hyper + 3])
    gamma = 0.0 if ridge > 0 else math.exp(x[hyper + 4])
    u = x[o : o + classes]
    w = np.exp(u - u.max())
    w = w / w.sum()
    logits = _logits(x, classes, nu, gamma, ends, contrast_ends, contrasts, is_binary)
    chances = np.empty(logits.shape)
    means = np.empty((classes, sign_ends[-1]))
    class_means(logits, ends, sign_ends, signs, chances, means)
    d_single = np.empty(means.shape[1])
    d_pairs = np.zeros((means.shape[1], means.shape[1]))
    energy, d_ln_t = _misfit(means, w, data, heat, t2, d_single, d_pairs)
    gradient[:] = 0.0
    _descend(x, w, nu, gamma, layout, chances, means, d_single, d_pairs, gradient)
    if ridge > 0:
        for i in range(o + classes):
            energy += 0.5 * ridge * x[i] * x[i]
            gradient[i] += ridge * x[i]
        gradient[o + classes :] = 0.0
        return energy
    gradient[hyper + 3] = d_ln_t
    return energy + _priors(x, classes, free, is_binary, priors, gradient)


@njit(cache=True, nogil=True, error_model="numpy")
def _leapfrog(x, gradient, energy, length, leaps, metric, classes, layout, data, heat):  # type: ignore[no-untyped-def]
    """A proposal by ``leaps`` steps: its place, gradient and energy,
    and the chance to accept it.
    """
    momentum = np.random.standard_normal(x.size)
    before = energy + 0.5 * np.sum(momentum * momentum)
    new = x.copy()
    slope = gradient.copy()
    height = energy
    momentum -= 0.5 * length * metric * slope
    for leap in range(leaps):
        new += length * metric * momentum
        height = potential(new, classes, layout, data, heat, 0.0, slope)
        if leap < leaps - 1:
            momentum -= length * metric * slope
    momentum -= 0.5 * length * metric * slope
    change = before - height - 0.5 * np.sum(momentum * momentum)
    accept = 0.0 if math.isnan(change) else min(1.0, math.exp(min(0.0, change)))
    return new, slope, height, accept


@njit(cache=True, nogil=True, error_model="numpy")
def sample(start, classes, layout, data, heat, warm_up, iterations, steps, keep, seed):  # type: ignore[no-untyped-def]
    """Hamiltonian Monte Carlo: dual averaging of the step, a diagonal metric; ``keep`` draws."""
    np.random.seed(seed)
    x = start.copy()
    gradient = np.empty(x.size)
    energy = potential(x, classes, layout, data, heat, 0.0, gradient)
    step = 0.02
    metric = np.ones(x.size)
    centre = math.log(10 * step)
    drift, averaged, adapted, seen = 0.0, 0.0, 0, 0
    mean, square = np.zeros(x.size), np.zeros(x.size)
    draws = np.empty((keep, x.size))
    every = max(1, iterations // keep)
    kept = 0
    for iteration in range(warm_up + iterations):
        length = step * (0.7 + 0.6 * np.random.random())
        leaps = 1 + int(np.random.random() * 2 * steps)
        new, slope, height, accept = _leapfrog(
            x, gradient, energy, length, leaps, metric, classes, layout, data, heat
        )
        if np.random.random() < accept:
            x, gradient, energy = new, slope, height
        if iteration >= warm_up:
            if (iteration - warm_up) % every == 0 and kept < keep:
                draws[kept] = x
                kept += 1
            continue
        adapted += 1
        rate = 1 / (adapted + 10)
        drift = (1 - rate) * drift + rate * (TARGET - accept)
        ln_step = centre - math.sqrt(adapted) / 0.05 * drift
        decay = adapted**-0.75
        averaged = decay * ln_step + (1 - decay) * averaged
        step = math.exp(averaged if iteration == warm_up - 1 else ln_step)
        if iteration >= warm_up // 5:
            seen += 1
            delta = x - mean
            mean += delta / seen
            square += delta * (x - mean)
        if iteration == warm_up // 2 and warm_up >= 200:
            metric = np.sqrt((square + 5e-3) / (seen + 5) + 1e-6)
            step = step / math.exp(np.mean(np.log(metric)))
            centre = math.log(3 * step)
            drift, averaged, adapted = 0.0, 0.0, 0
    return draws[:kept]
