"""Maximum likelihood on the simplex: from estimates (mle-apx), or from support counts.

Values and counts are (..., d): every row of the last axis is a table by itself.

Each problem is separable and concave, so one multiplier orders all values; sorting or a root finds
it.
"""

from __future__ import annotations

import numpy as np

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.results.cells import PureLaw
from sottovoce.results.estimate import Floats, Table


def noise_floor(table: Table) -> float:
    """The variance of the estimate of a value that nobody holds; refused unless there is noise.

    >>> from sottovoce.oracles import Noise
    >>> values, variances = np.array([0.7, 0.3]), np.full(2, 0.01)
    >>> noise_floor(Table(("x",), "ab", values, variances, 100, Noise(0.01, 0.0)))
    0.01
    """
    if not table.noise.floor > 0:
        raise InvalidInput(f"noise floor ({table.noise.floor}) must be greater than 0")
    return table.noise.floor


def mle_apx(table: Table) -> Floats:
    """The likeliest frequencies if errors are independent and normal, of the noise's variances.

    >>> from sottovoce.oracles import Noise
    >>> values, variances = np.array([0.9, 0.3, -0.1]), np.full(3, 0.01)
    >>> table = Table(("x",), "abc", values, variances, 100, Noise(0.01, 0.005))
    >>> mle_apx(table).round(4).tolist()
    [0.7885, 0.2115, 0.0]
    """
    # minimize sum (f - f~)^2 / (a + b f) on the simplex, a = floor and b = slope of the noise:
    #   a = q(1 - q) / (n (p - q)^2),  b = (1 - p - q) / (n (p - q))   wang2021thesis, eq. (3.2)
    a, b = noise_floor(table), table.noise.slope
    falling = np.sort(table.values, axis=-1)[..., ::-1]
    # at k = 1 the condition below reads a + b f~_(1) > 0, which every pure law keeps:
    # -q <= (p - q) f~ <= 1 - q
    largest = falling[..., 0]
    if not np.all(a + b * largest > 0):
        raise InvalidInput(
            f"the largest estimate ({largest.max():.4g}) must lie where the noise has a positive "
            "variance"
        )
    sums = np.cumsum(falling, axis=-1)
    counts = np.arange(1, falling.shape[-1] + 1)
    # D1 is the largest k with f~_(k) + a x_k > 0; the left side falls with k since
    #   f~_(k) (b + k a) + a (1 - S_k)  loses  (f~_(k) - f~_(k+1)) (b + k a)  at each step
    is_kept = falling * (b + counts * a) + a * (1 - sums) > 0
    kept = np.count_nonzero(is_kept, axis=-1, keepdims=True)  # (..., 1)
    # x = (1 - S) / (b + |D1| a)   wang2021thesis, x_v of section 8.1.4, corrected, see docs/errata
    x = (1 - np.take_along_axis(sums, kept - 1, axis=-1)) / (b + kept * a)
    # f_v = (f~_v + a x) / (1 - b x)   wang2021thesis, eq. (8.6)
    repaired = (table.values + a * x) / (1 - b * x)
    return np.asarray(np.maximum(repaired, 0.0))


def maximum_likelihood(table: Table) -> Floats:
    """The likeliest frequencies behind direct answers (GRR), exactly, in O(d log d).

    >>> from sottovoce.oracles import Noise
    >>> law = PureLaw(np.array([70, 25, 5]), 0.6, 0.2, "direct")
    >>> values, variances = np.array([1.25, 0.125, -0.375]), np.full(3, 0.01)
    >>> table = Table(("x",), "abc", values, variances, 100, Noise(0.01, 0.0), law=law)
    >>> maximum_likelihood(table).round(6).tolist()
    [0.973684, 0.026316, 0.0]
    """
    # maximize sum T_j log(q + (p - q) p_j):   kairouz2016discrete, supplement F.1
    #   p_j = max(T_j / lambda - 1/(E - 1), 0),  1/(E - 1) = q / (p - q)
    law = _law(table, "direct")
    level = law.q / (law.p - law.q)
    falling = np.sort(law.support, axis=-1)[..., ::-1]  # T_1 >= T_2 >= ...
    sums = np.cumsum(falling, axis=-1)
    counts = np.arange(1, falling.shape[-1] + 1)  # k
    # sum p_j = 1 over the first k:  lambda_k = (T_1 + ... + T_k) / (1 + k q/(p - q));
    # k is the largest with p_k > 0
    lambdas = sums / (1 + counts * level)
    kept = np.count_nonzero(falling > level * lambdas, axis=-1, keepdims=True)  # (..., 1)
    divisor = np.take_along_axis(lambdas, kept - 1, axis=-1)
    return np.maximum(law.support / divisor - level, 0.0)


def expectation_maximization(
    table: Table, *, iterations: int = 10_000, tolerance: float = 1e-12
) -> Floats:
    """The same maximum, approached from the uniform distribution by EM at O(d) per iteration.

    ``iterations`` few on purpose give a smoother answer; it ends early when no value moves by
    ``tolerance``.

    >>> from sottovoce.oracles import Noise
    >>> law = PureLaw(np.array([70, 25, 5]), 0.6, 0.2, "direct")
    >>> values, variances = np.array([1.25, 0.125, -0.375]), np.full(3, 0.01)
    >>> table = Table(("x",), "abc", values, variances, 100, Noise(0.01, 0.0), law=law)
    >>> expectation_maximization(table).round(6).tolist()
    [0.973684, 0.026316, 0.0]
    """
    if iterations < 1:
        raise InvalidInput(f"iterations ({iterations}) must be at least 1")
    law = _law(table, "direct")
    heard = law.support / table.people  # T_y/n
    gap = law.p - law.q
    shares = np.full(heard.shape, 1 / heard.shape[-1])  # f
    for _ in range(iterations):
        # f_j <- f_j sum_y (T_y/n) P(y|j) / m_y,
        #   where P(y|j) = q + (p - q) [y = j] and m = q + (p - q) f:
        # f_j <- f_j [(T_j/n)(p - q)/m_j + q sum_y (T_y/n)/m_y]
        ratios = heard / (law.q + gap * shares)  # (T_y/n)/m_y
        moved = shares * (gap * ratios + law.q * ratios.sum(axis=-1, keepdims=True))
        largest_move = float(np.abs(moved - shares).max())
        shares = moved
        if largest_move < tolerance:
            break
    return shares


def composite_likelihood(table: Table) -> Floats:
    """The likeliest frequencies behind unary reports, if the columns of bits were independent.

    They are not quite: a report has one true bit. Hence a composite likelihood, from the column
    sums alone.

    >>> from sottovoce.oracles import Noise
    >>> law = PureLaw(np.array([70, 30, 20]), 0.75, 0.25, "bits")
    >>> values, variances = np.array([0.9, 0.1, -0.1]), np.full(3, 0.01)
    >>> table = Table(("x",), "abc", values, variances, 100, Noise(0.01, 0.0), law=law)
    >>> composite_likelihood(table).round(4).tolist()
    [0.9, 0.1, 0.0]
    """
    # maximize sum T_j log m_j + (n - T_j) log(1 - m_j) on the simplex,
    # m_j = q + (p - q) f_j   kairouz2016discrete, eq. (10)
    law = _law(table, "bits")
    heard = law.support / table.people
    if heard.ndim > 1:
        return np.stack([_composite(row, law) for row in heard])
    return _composite(heard, law)


def _composite(heard: Floats, law: PureLaw) -> Floats:
    """The maximum of one table, by the shares of reports that support each value, (values,)."""

    def shares(multiplier: float) -> Floats:
        chances = _chances(heard, multiplier)  # m_j
        return np.maximum((chances - law.q) / (law.p - law.q), 0.0)

    def excess(multiplier: float) -> float:
        return float(shares(multiplier).sum()) - 1

    # the sum falls with the multiplier, from more than one to zero: double a bracket, then solve
    low, high = -1.0, 1.0
    while excess(low) < 0:
        low *= 2
    while excess(high) > 0:
        high *= 2
    brentq = imported("scipy.optimize").brentq
    solution = shares(float(brentq(excess, low, high, xtol=1e-15, rtol=1e-15)))
    return np.asarray(solution / solution.sum())  # the last digits, which the root leaves open


def _chances(heard: Floats, multiplier: float) -> Floats:
    """The m in [0, 1] with  t/m - (1 - t)/(1 - m) = mu,  i.e.  mu m^2 - (1 + mu) m + t = 0."""
    half = 1 + multiplier
    # (1 + mu)^2 - 4 mu t = (1 - mu)^2 + 4 mu (1 - t):
    # of the two, the one that rounding cannot make negative
    if multiplier > 0:
        root = np.sqrt((1 - multiplier) ** 2 + 4 * multiplier * (1 - heard))
    else:
        root = np.sqrt(half**2 - 4 * multiplier * heard)
    # two forms of the one solution, each where nothing cancels
    if half > 0:
        return np.asarray(2 * heard / (half + root))
    return np.asarray((half - root) / (2 * multiplier))


def is_complete(table: Table, encoding: str) -> bool:
    """Whether the table carries the counts of such reports, and, for direct answers, of all values.

    >>> from sottovoce.oracles import Noise
    >>> values, variances = np.array([0.7, 0.3]), np.full(2, 0.01)
    >>> is_complete(Table(("x",), "ab", values, variances, 100, Noise(0.01, 0.0)), "direct")
    False
    """
    law = table.law
    if law is None or law.encoding != encoding or not counts_people(table, law):
        return False
    return encoding != "direct" or bool(np.all(law.support.sum(axis=-1) == table.people))


def counts_people(table: Table, law: PureLaw) -> bool:
    """Whether every value is supported by 0 to all people, as without negative weights.

    >>> from sottovoce.oracles import Noise
    >>> law = PureLaw(np.array([70, -3]), 0.6, 0.4, "bits")
    >>> values, variances = np.array([1.5, -2.15]), np.full(2, 0.01)
    >>> counts_people(Table(("x",), "ab", values, variances, 100, Noise(0.01, 0.0), law=law), law)
    False
    """
    low, high = law.support.min(initial=0), law.support.max(initial=0)
    return bool(low >= 0 and high <= table.people)


def _law(table: Table, encoding: str) -> PureLaw:
    if table.law is not None and not counts_people(table, table.law):
        raise InvalidInput("this likelihood needs reports whose weights are not negative")
    if table.law is None or not is_complete(table, encoding):
        wanted = (
            "direct answers (grr), all values listed"
            if encoding == "direct"
            else "unary reports (sue, oue, the)"
        )
        found = "no counts" if table.law is None else f"those of {table.law.encoding!r} reports"
        raise InvalidInput(
            f"this likelihood needs a table with the counts of {wanted}; the table has {found}"
        )
    return table.law
