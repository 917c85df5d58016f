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

    Args:
        sizes: how many items people hold.
        count: how many items there are.
        epsilon: what a report may cost.
    """

    def clearness(length: int) -> float:
        _, variance = best_oracle(count, length, epsilon)
        return sizes.kept(length) ** 2 / variance

    return max(range(1, len(sizes.shares)), key=clearness)


def counting_length(sizes: Sizes, count: int, terms: Terms, square: float) -> int:
    """The length with the least predicted squared error for candidates whose mean squared frequency
    is ``square``.
    """

    def error(length: int) -> float:
        return predicted_error(sizes, length, count, terms, square)

    return min(range(1, len(sizes.shares)), key=error)


def predicted_error(sizes: Sizes, length: int, count: int, terms: Terms, square: float) -> float:
    """Squared error of a candidate's frequency: the variance of its estimate, and a bias that
    ``UNLIKE`` guesses.

    Args:
        sizes: how many candidates people hold.
        length: how many of them they can tell of.
        count: how many candidates there are.
        terms: epsilon and the people of the round.
        square: the mean squared frequency of the candidates.
    """
    # u^2 Var/n + (0.5 (1 - 1/u))^2 f^2, for the update factor u: it corrects the part 1 - 1/u
    factor = sizes.update_factor(length)
    _, of_one_person = best_oracle(count, length, terms.epsilon)
    variance = factor**2 * of_one_person / terms.people
    bias = UNLIKE * (1 - 1 / factor)
    return variance + bias**2 * square
