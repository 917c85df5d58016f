"""How a release shares its budget among its steps, from public numbers alone.

Every step is Gaussian or a threshold on Gaussian noise, so the whole budget is one mu^2, of which
steps get shares. ``USED`` of the mu^2 that (epsilon, delta) admit is shared, and the rest of delta
is what thresholds may fail by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sottovoce.accounting import Ledger, Neighbours, mu_of, rounded_variance
from sottovoce.accounting.steps import Weights, counts_lattice_loss
from sottovoce.accounting.threshold import largest_moved, threshold_for
from sottovoce.central.method import ReleaseTerms
from sottovoce.ground.errors import InvalidInput

USED = Fraction(998, 1000)
_DELTA_MARGIN = 1 - 1e-7  # what the ledger's roundings may take


@dataclass(frozen=True)
class CountShare:
    """A share of mu^2 that pays for counts: to how many a person adds, at least."""

    share: Fraction
    least_limit: int = 1


@dataclass(frozen=True)
class Budget:
    """mu^2 of a whole release, and what its lattices take from epsilon."""

    epsilon: float
    delta: float
    neighbours: Neighbours
    squared_mu: Fraction
    lattice_loss: float

    @property
    def people(self) -> int:
        """How many people two neighbours differ by, at most."""
        return 1 if self.neighbours == "add-remove" else 2

    def variance(self, share: Fraction, squared_sensitivity: int | Fraction) -> Fraction:
        """The variance that a share buys.

        Args:
            share: of mu^2.
            squared_sensitivity: in L2, of one person's addition, who adds nowhere below 0.
        """
        moved = self.people * Fraction(squared_sensitivity)
        return rounded_variance(moved / (share * self.squared_mu))

    def threshold(
        self, share: Fraction, limit: int, weights: Weights, per_unit: int = 1
    ) -> Fraction:
        """The least threshold for unknown values, all other shares being spent on Gaussian steps.

        Args:
            share: of mu^2 that the noise below the threshold gets.
            limit: the most values of a person.
            weights: how much a person adds to each.
            per_unit: steps of the lattice in a unit.
        """
        return _threshold(self, share, limit, weights, per_unit)


@lru_cache(maxsize=64)
def _threshold(
    budget: Budget, share: Fraction, limit: int, weights: Weights, per_unit: int
) -> Fraction:
    return threshold_for(
        budget.epsilon,
        budget.delta,
        budget.variance(share, largest_moved(limit, weights)),
        limit,
        weights,
        budget.neighbours,
        per_unit=per_unit,
        lattice_loss=budget.lattice_loss,
        other_squared_mu=float((1 - share) * budget.squared_mu),
    )


def budget_of(
    terms: ReleaseTerms,
    counts: Sequence[CountShare] = (),
    finer_loss: Fraction = Fraction(0),
    failures: Fraction = Fraction(0),
) -> Budget:
    """The budget of a release.

    Args:
        terms: what is promised.
        counts: all shares that pay for counts on integers.
        finer_loss: the lattice losses of all other steps together, at most.
        failures: what part of delta thresholds take that are fixed beforehand.
    """
    epsilon, delta = float(terms.epsilon), float(terms.delta) * _DELTA_MARGIN
    people = 1 if terms.neighbours == "add-remove" else 2
    first = Fraction(mu_of(epsilon, delta)) ** 2 * USED
    loss = finer_loss
    for each in counts:
        moved = people * each.least_limit
        variance = Fraction(moved) / (each.share * first)
        loss += people * counts_lattice_loss(moved, variance)
    loss_up = float(loss) * (1 + 1e-9)
    if loss_up >= epsilon:
        raise InvalidInput(
            f"epsilon ({terms.epsilon}) leaves nothing for noise on whole numbers with these limits"
        )
    left = delta * float(1 - failures)
    squared_mu = Fraction(mu_of(epsilon - loss_up, left)) ** 2 * USED
    return Budget(epsilon, delta, terms.neighbours, squared_mu, loss_up)


def check_ledger(terms: ReleaseTerms, ledger: Ledger) -> None:
    """Refuse a ledger of another neighbour relation: its sensitivities would be others."""
    if ledger.neighbours != terms.neighbours:
        raise InvalidInput(
            f"neighbours ({terms.neighbours}) must be those of the ledger, {ledger.neighbours}"
        )


def shares_of(name: str, given: Sequence[object]) -> tuple[Fraction, ...]:
    """Shares as fractions that add up to 1.

    Args:
        name: of the option, for errors.
        given: numbers above 0, in any unit.

    >>> shares_of("shares", ["0.1", "0.3", "0.6"])
    (Fraction(1, 10), Fraction(3, 10), Fraction(3, 5))
    """
    try:
        numbers = [Fraction(str(each)) for each in given]
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"{name} ({given}) must be numbers") from None
    if not numbers or min(numbers) <= 0:
        raise InvalidInput(f"{name} ({given}) must be greater than 0")
    total = sum(numbers)
    return tuple(number / total for number in numbers)
