"""How many of their candidates people tell of, by predicted error."""

from __future__ import annotations

from decimal import Decimal

from sottovoce.protocol.terms import Terms
from sottovoce.questions.itemsets.known import Known
from sottovoce.questions.itemsets.padding import best_oracle
from sottovoce.questions.itemsets.size_law import OwnFactor, SizeLaw
from sottovoce.questions.itemsets.sizes import Sizes
from sottovoce.questions.itemsets.target import PERCENTILE
from sottovoce.questions.method import Options


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


def counting_length(law: SizeLaw, count: int, terms: Terms, square: float) -> int:
    """The length with the least predicted squared error for candidates whose mean squared frequency
    is ``square``.
    """

    def error(length: int) -> float:
        return predicted_error(law, length, count, terms, square)

    return min(range(1, law.sizes), key=error)


def predicted_error(law: SizeLaw, length: int, count: int, terms: Terms, square: float) -> float:
    """Squared error of a candidate's frequency: the variance of its estimate, and what its own
    update factor may miss.

    Args:
        law: how many candidates people hold.
        length: how many of them they can tell of.
        count: how many candidates there are.
        terms: epsilon and the people of the round.
        square: the mean squared frequency of the candidates.
    """
    # u^2 Var/n + Var[u] (f/u)^2, for the update factor u of a candidate
    factor = law.own_factor(length)
    _, of_one_person = best_oracle(count, length, terms.epsilon)
    variance = factor.value**2 * of_one_person / terms.people
    return variance + factor.variance / factor.value**2 * square


def counting_factor(known: Known, options: Options) -> OwnFactor | None:
    """What counts are multiplied by, with all that is not known of it; None if they are not."""
    if known.sizes is None or not options["update"]:
        return None
    length = known.length or 1
    expected = SizeLaw.of(known.sizes).own_factor(length)
    if options["second_length"] == PERCENTILE:  # corrected as in wang2021thesis, eq. (5.5)
        return expected.instead(known.sizes.filtered().update_factor(length))
    return expected
