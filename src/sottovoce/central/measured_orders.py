"""Up to how many attributes together are measured; wider tables are filled in by maximum entropy.

What is measured costs budget: the wider the tables, the more of them, and the more noise on all.
What is not measured is missed. Both are predicted here from public facts, as the squared error of
the shares of a table, summed over its cells:

    error(m) = N_A Var_A(m) / n^2 + MISSED (|A| - m)+

where Var_A(m) is the noise of a count of the table A, of N_A cells, if residuals of up to m
attributes are measured and no wider ones, and n is the number of people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.central.method import CentralTable, ReleaseTerms
from sottovoce.central.residual_plan import Equal, ResidualPlan
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput

# what tables of three miss that are of maximum entropy given their exact pairs, as squared shares
# summed over cells: 2.6e-6 on clicks, 6.9e-6 on adult, 2.6e-6 on the census; docs/central.md
USUAL_MISS = 2e-6
LEAST_MEASURED = 2  # which attributes go together is what most readers look for
USUAL_PEOPLE = 1 << 16  # where nothing is said of how many there are


@dataclass(frozen=True)
class MeasuredOrder:
    """A number of attributes up to which is measured, and what it is predicted to cost.

    Attributes:
        order: the number of attributes.
        noise: squared error by noise of a table of shares, in the mean over tables and over how
            many attributes they have.
        missed: what maximum entropy adds to it.
    """

    order: int
    noise: float
    missed: float

    @property
    def error(self) -> float:
        """All of it."""
        return self.noise + self.missed


def measured_of(terms: ReleaseTerms) -> int:
    """Up to how many attributes together are measured: the option ``measured``, or all."""
    asked: Any = terms.options.get("measured", terms.up_to)
    if isinstance(asked, str) and asked.isdecimal():
        asked = int(asked)
    order = whole("measured", asked, 1, 1 << 10)
    if order > terms.up_to:
        raise InvalidInput(f"measured ({order}) must be at most up_to ({terms.up_to})")
    return order


def measured_terms(terms: ReleaseTerms) -> ReleaseTerms:
    """The terms of what is measured."""
    return replace(terms, up_to=measured_of(terms))


def known_people(table: CentralTable, terms: ReleaseTerms) -> int | None:
    """How many people there are, if that is public: told by an option, or what neighbours share."""
    if "expected_people" in terms.options:
        asked: Any = terms.options["expected_people"]
        if isinstance(asked, str) and asked.isdecimal():
            asked = int(asked)
        return whole("expected_people", asked, 1, 1 << 40)
    return table.people if terms.neighbours == "replace-one" else None


def measured_orders(
    sizes: Sequence[int], terms: ReleaseTerms, people: int, equal: Equal = "counts"
) -> tuple[MeasuredOrder, ...]:
    """What each number of attributes is predicted to cost, from the least to ``up_to``.

    Args:
        sizes: of the attributes.
        terms: what is promised, and how many attributes tables have at most.
        people: about how many there are.
        equal: what weighs the same, as in the plan of residuals.

    >>> from decimal import Decimal
    >>> terms = ReleaseTerms(Decimal(1), Decimal("1e-6"), 3)
    >>> [each.order for each in measured_orders((2, 3, 4), terms, 1000)]
    [2, 3]
    """
    found = []
    for order in range(min(LEAST_MEASURED, terms.up_to), terms.up_to + 1):
        plan = ResidualPlan.of(sizes, replace(terms, up_to=order), None, equal)
        found.append(predicted(plan, terms.up_to, people))
    return tuple(found)


def predicted(plan: ResidualPlan, up_to: int, people: int) -> MeasuredOrder:
    """What tables of 1, 2, ... ``up_to`` attributes err, in the mean.

    Args:
        plan: the noise of what is measured.
        up_to: how many attributes tables have at most.
        people: about how many there are.
    """
    noise, missed = 0.0, 0.0
    for width in range(1, up_to + 1):
        noise += plan.table_noise(width) / people**2
        missed += USUAL_MISS * max(0, width - plan.order)
    return MeasuredOrder(plan.order, noise / up_to, missed / up_to)


def best_order(orders: Sequence[MeasuredOrder]) -> MeasuredOrder:
    """The one of the least predicted error; of equal ones the widest, which misses least."""
    return min(orders, key=lambda each: (each.error, -each.order))


def why_order(orders: Sequence[MeasuredOrder], people: int, is_public: bool) -> str:
    """The choice in words.

    Args:
        orders: what each was predicted to cost.
        people: with which.
        is_public: whether their number is public, or was assumed.
    """
    best = best_order(orders)
    whom = f"{people:,} people" if is_public else f"{people:,} people assumed"
    rivals = [f"{each.error:.2g} up to {each.order}" for each in orders if each is not best]
    against = ", ".join(rivals)
    if best is orders[-1]:
        told = f"tables of all widths are measured: predicted squared error {best.error:.2g}"
    else:
        told = (
            f"tables of up to {best.order} attributes are measured and wider ones filled in by "
            f"maximum entropy: predicted squared error of a table {best.error:.2g}"
        )
    return f"{told}, against {against} ({whom})"
