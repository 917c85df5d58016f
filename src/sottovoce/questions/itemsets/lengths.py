"""How many of their candidates people tell of, by predicted error."""

from __future__ import annotations

from decimal import Decimal

from sottovoce.protocol.terms import Terms
from sottovoce.questions.itemsets.padding import best_oracle
from sottovoce.questions.itemsets.sizes import Sizes

# how far an item's own update factor may lie from the common one, in parts of what that corrects
UNLIKE = 0.5


def finding_length(sizes: Sizes, count: int, epsilon: Decimal) -> int:
    """The length at which an item rises most above the noise: the squared part that is told over
    the variance.
    """
    lengths = range(1, len(sizes.shares))
    return max(
        lengths, key=lambda each: sizes.kept(each) ** 2 / best_oracle(count, each, epsilon)[1]
    )


def counting_length(sizes: Sizes, count: int, terms: Terms, square: float) -> int:
    """The length with the least predicted squared error for candidates whose mean squared frequency
    is ``square``.
    """
    lengths = range(1, len(sizes.shares))
    return min(lengths, key=lambda each: predicted_error(sizes, each, count, terms, square))


def predicted_error(sizes: Sizes, length: int, count: int, terms: Terms, square: float) -> float:
    """Squared error of a candidate's frequency: the variance of its estimate, and a bias that
    ``UNLIKE`` guesses.
    """
    factor = sizes.update_factor(length)
    variance = factor**2 * best_oracle(count, length, terms.epsilon)[1] / terms.people
    return variance + (UNLIKE * (1 - 1 / factor)) ** 2 * square
