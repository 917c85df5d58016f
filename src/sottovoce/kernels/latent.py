"""Latent classes fitted to noisy signs: the potential with its gradient, and a Hamiltonian sampler."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

FAST = {"reassoc", "contract", "arcp"}


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
def potential(x, classes, layout, data, heat, ridge, gradient):  # type: ignore[no-untyped-def]
    """Minus the log posterior of the parameters ``x``, and its gradient.

    x = [b (one per contrast), z (classes x contrasts), u (classes), beta, ln s, ln nu, ln t].
    ``heat`` scales the data's weight; ``ridge`` > 0 asks for penalised maximum likelihood with nu = 1 and t = 0.
    """
    ends, contrast_ends, sign_ends, contrasts, signs, is_binary, priors = layout
    mean1, info1, scale1, mean2, info2, scale2 = data
    free = contrast_ends[-1]
    count = mean1.size
    o = free + classes * free
    beta, ln_s, ln_nu, ln_t = x[o + classes], x[o + classes + 1], x[o + classes + 2], x[o + classes + 3]
    nu = 1.0 if ridge > 0 else math.exp(ln_nu)
    t2 = 0.0 if ridge > 0 else math.exp(2 * ln_t)
    u = x[o : o + classes]
    w = np.exp(u - u.max())
    w = w / w.sum()
    logits = np.zeros((classes, ends[-1]))
    for c in range(classes):
        for i in range(ends.size - 1):
            for k in range(ends[i], ends[i + 1]):
                total = 0.0
                for j in range(contrast_ends[i], contrast_ends[i + 1]):
                    total += contrasts[k, j - contrast_ends[i]] * (x[j] + nu * x[free + c * free + j])
                logits[c, k] = total
    chances = np.empty((classes, ends[-1]))
    means = np.empty((classes, count))
    class_means(logits, ends, sign_ends, signs, chances, means)
    weighted = means.copy()
    single = np.zeros(count)
    for c in range(classes):
        for r in range(count):
            weighted[c, r] *= w[c]
            single[r] += weighted[c, r]
    pairs = means.T @ weighted
    energy = 0.0
    d_single = np.empty(count)
    d_pairs = np.zeros((count, count))
    d_ln_t = 0.0
    product = 1.0  # of what the logarithms are taken of, so that they are few
    for r in range(count):
        info = heat * info1[r]
        slack = t2 * scale1[r]
        shrink = 1 / (1 + slack * info)
        miss = single[r] - mean1[r]
        d_single[r] = miss * info * shrink
        energy += 0.5 * miss * d_single[r]
        product *= 1 + slack * info
        d_ln_t += (info * shrink - d_single[r] * d_single[r]) * slack
    for r in range(count):
        for q in range(r + 1, count):
            if info2[r, q] > 0:
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
    pull = means @ d_pairs
    gradient[:] = 0.0
    d_w = np.zeros(classes)
    mixed = 0.0
    push = np.empty(ends[-1])
    for c in range(classes):
        total = 0.0
        for r in range(count):
            total += means[c, r] * (d_single[r] + 0.5 * pull[c, r])
        d_w[c] = total
        mixed += w[c] * total
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
                    gradient[o + classes + 2] += nu * x[free + c * free + j] * part
    for c in range(classes):
        gradient[o + c] = w[c] * (d_w[c] - mixed)
    if ridge > 0:
        for i in range(o + classes):
            energy += 0.5 * ridge * x[i] * x[i]
            gradient[i] += ridge * x[i]
        for i in range(o + classes, o + classes + 4):
            gradient[i] = 0.0
        return energy
    for i in range(free, o + classes):
        energy += 0.5 * x[i] * x[i]
        gradient[i] += x[i]
    s = math.exp(ln_s)
    for j in range(free):
        r = (x[j] - beta * is_binary[j]) / s
        energy += 0.5 * r * r + ln_s
        gradient[j] += r / s
        gradient[o + classes] -= is_binary[j] * r / s
        gradient[o + classes + 1] += 1 - r * r
    for place in range(4):  # beta, ln s, ln nu, ln t are normal
        r = (x[o + classes + place] - priors[place, 0]) / priors[place, 1]
        energy += 0.5 * r * r
        gradient[o + classes + place] += r / priors[place, 1]
    gradient[o + classes + 3] += d_ln_t
    return energy


@njit(cache=True, nogil=True, error_model="numpy")
def sample(start, classes, layout, data, heat, warm_up, iterations, steps, keep, seed):  # type: ignore[no-untyped-def]
    """Hamiltonian Monte Carlo with dual averaging of the step and a diagonal metric; returns ``keep`` draws."""
    np.random.seed(seed)
    n = start.size
    x = start.copy()
    gradient = np.empty(n)
    energy = potential(x, classes, layout, data, heat, 0.0, gradient)
    step = 0.02
    metric = np.ones(n)
    centre = math.log(10 * step)
    drift = 0.0
    averaged = 0.0
    mean = np.zeros(n)
    square = np.zeros(n)
    seen = 0
    adapted = 0
    draws = np.empty((keep, n))
    every = max(1, iterations // keep)
    kept = 0
    new_gradient = np.empty(n)
    for iteration in range(warm_up + iterations):
        momentum = np.random.standard_normal(n)
        new = x.copy()
        new_gradient[:] = gradient
        before = energy + 0.5 * np.sum(momentum * momentum)
        length = step * (0.7 + 0.6 * np.random.random())
        leaps = 1 + int(np.random.random() * 2 * steps)
        new_energy = energy
        momentum -= 0.5 * length * metric * new_gradient
        for leap in range(leaps):
            new += length * metric * momentum
            new_energy = potential(new, classes, layout, data, heat, 0.0, new_gradient)
            if leap < leaps - 1:
                momentum -= length * metric * new_gradient
        momentum -= 0.5 * length * metric * new_gradient
        change = before - new_energy - 0.5 * np.sum(momentum * momentum)
        accept = 0.0
        if not math.isnan(change):
            accept = min(1.0, math.exp(min(0.0, change)))
        if np.random.random() < accept:
            x = new
            gradient[:] = new_gradient
            energy = new_energy
        if iteration < warm_up:
            adapted += 1
            rate = 1 / (adapted + 10)
            drift = (1 - rate) * drift + rate * (0.8 - accept)
            ln_step = centre - math.sqrt(adapted) / 0.05 * drift
            decay = adapted**-0.75
            averaged = decay * ln_step + (1 - decay) * averaged
            step = math.exp(ln_step)
            if iteration >= warm_up // 5:
                seen += 1
                delta = x - mean
                mean += delta / seen
                square += delta * (x - mean)
            if iteration == warm_up // 2 and warm_up >= 200:
                for i in range(n):
                    metric[i] = math.sqrt((square[i] + 5e-3) / (seen + 5) + 1e-6)
                step = step / math.exp(np.mean(np.log(metric)))
                centre = math.log(3 * step)
                adapted = 0
                drift = 0.0
                averaged = 0.0
            if iteration == warm_up - 1:
                step = math.exp(averaged)
        elif (iteration - warm_up) % every == 0 and kept < keep:
            draws[kept] = x
            kept += 1
    return draws[:kept]
