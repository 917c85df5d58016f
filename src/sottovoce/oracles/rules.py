"""Rules that choose an oracle: the paper's for a view's table, and the one best for signs."""

from __future__ import annotations

from decimal import Decimal

from sottovoce.oracles import Oracle, PureOracle, oracle
from sottovoce.oracles.thresholds import exp

CALM_RULE = "calm-rule"
MOST_UNARY = 512  # values whose unary report has 64 bytes; beyond, hashing does the same with fewer


def oracle_by(name: str, size: int, epsilon: Decimal) -> Oracle:
    """The oracle called ``name``, or the one that the rule of that name chooses for the size.

    >>> [oracle_by(CALM_RULE, size, Decimal(1)).names[0] for size in (8, 16, 1024)]
    ['grr', 'oue', 'olh']
    """
    if name != CALM_RULE:
        return oracle(name, size=size, epsilon=epsilon)
    # randomized response while L - 2 < 3E, or else optimized unary encoding
    #     zhang2018calm, section 2.2.3
    if size - 2 < 3 * exp(epsilon):
        return oracle("grr", size=size, epsilon=epsilon)
    return oracle("oue" if size <= MOST_UNARY else "olh", size=size, epsilon=epsilon)


def sign_oracle(signs: int, epsilon: Decimal) -> PureOracle:
    """The oracle that tells most about products of so many signs: one random answer, or a set."""
    size = 1 << signs
    if signs == 1:
        return _pure(oracle("rr", size=2, epsilon=epsilon))
    known = [_pure(oracle("grr", size=size, epsilon=epsilon))]
    known += [
        _pure(oracle("ss", size=size, epsilon=epsilon, chosen=chosen))
        for chosen in range(2, size // 2 + 1)
    ]
    return min(known, key=sign_noise)


def sign_noise(source: PureOracle) -> float:
    """Variance of a sign's unbiased estimate from one report, at a mean of zero."""
    return _answer_square(source) / source.gap**2


def _answer_square(source: PureOracle) -> float:
    """E[T^2] for T the sum of a character over the values that a report supports.

    T has mean (p - q) chi(value). Of w values, those beside the true one are a uniform set; sum
    over x != y of chi(x) chi(y) is -2 over the pairs with the true value and 2 - L over the others.
    """
    size = source.size
    w = getattr(source, "chosen", 1)
    near = source.p * (w - 1) / (size - 1)
    far = (source.p * (w - 1) * (w - 2) + (1 - source.p) * w * (w - 1)) / max(
        (size - 1) * (size - 2), 1
    )
    return w - 2 * near + (2 - size) * far


def _pure(source: Oracle) -> PureOracle:
    assert isinstance(source, PureOracle)
    return source
