"""What a device has told about each attribute, and how much more it may tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any

from sottovoce.ground.arguments import LARGEST_INTEGER, whole
from sottovoce.ground.errors import BudgetExceeded, InvalidInput
from sottovoce.protocol.families import Family

# what is spent is counted in billionths, rounded up, so that every language adds it up alike
UNITS = 10**9
DEFAULT_CAP = "10"
DEFAULT_DELTA_CAP = "0.01"


@dataclass(frozen=True)
class Spent:
    """An epsilon and a delta, in billionths."""

    epsilon: int = 0
    delta: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.epsilon + other.epsilon, self.delta + other.delta)

    @classmethod
    def from_json(cls, data: Any) -> Spent:
        """The inverse of ``asdict``, with nothing beside it."""
        if set(data) != {"epsilon", "delta"} or not all(
            type(part) is int for part in data.values()
        ):
            raise ValueError
        return cls(*(whole(name, data[name], 0, LARGEST_INTEGER) for name in ("epsilon", "delta")))


def cost_of(cohorts: Family) -> Spent:
    """The most that answering costs: of the cohorts that a device may be in, the dearest one."""
    costs = [_cost(requested, delta) for requested, delta in cohorts.charges]
    return Spent(max(cost.epsilon for cost in costs), max(cost.delta for cost in costs))


def _cost(requested: Iterable[Fraction], delta: Fraction) -> Spent:
    epsilons = [ceil(each * UNITS) for each in requested]
    return Spent(sum(epsilons), ceil(delta * UNITS))


@lru_cache(maxsize=64)
def _billionths(number: Decimal | str) -> int:
    return floor(Fraction(number) * UNITS)


def _limit(name: str, value: Any) -> int:
    """A cap in billionths, rounded down."""
    try:
        if isinstance(value, bool):
            raise TypeError
        units = _billionths(value if isinstance(value, Decimal) else str(value))
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput(f"{name} ({value}) must be a finite number") from None
    if not 0 <= units <= LARGEST_INTEGER:
        raise InvalidInput(f"{name} ({value}) must lie between 0 and {LARGEST_INTEGER // UNITS}")
    return units


@dataclass
class Account:
    """What was spent on each attribute, by name, and the most that may be.

    >>> account = Account.capped(cap=2, delta_cap=0)
    >>> account.charge(["id"], Spent(1_500_000_000))
    >>> try:
    ...     account.charge(["age", "id"], Spent(1_500_000_000))
    ... except BudgetExceeded as refused:
    ...     print(refused)
    attribute 'id': epsilon 1.5 was spent and 1.5 more would pass the cap of 2
    """

    cap: Spent
    spent: dict[str, Spent] = field(default_factory=dict)

    @classmethod
    def capped(cls, cap: Any, delta_cap: Any) -> Account:
        """An empty account."""
        return cls(Spent(_limit("cap", cap), _limit("delta_cap", delta_cap)))

    def charge(self, attributes: Iterable[str], cost: Spent) -> None:
        """Spend this on each of the attributes, or on none if that would pass a cap."""
        charged = {name: self.spent.get(name, Spent()) + cost for name in attributes}
        for name, total in charged.items():
            for part in ("epsilon", "delta"):
                most = getattr(self.cap, part)
                if getattr(total, part) > most:
                    before, more = getattr(total, part) - getattr(cost, part), getattr(cost, part)
                    raise BudgetExceeded(
                        f"attribute {name!r}: {part} {before / UNITS:.9g} was spent and "
                        f"{more / UNITS:.9g} more would pass the cap of {most / UNITS:.9g}"
                    )
        self.spent.update(charged)

    def to_json(self) -> dict[str, Any]:
        return {
            "cap": asdict(self.cap),
            "spent": {name: asdict(spent) for name, spent in self.spent.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Account:
        """The inverse of :meth:`to_json`."""
        spent = {str(name): Spent.from_json(each) for name, each in data["spent"].items()}
        return cls(Spent.from_json(data["cap"]), spent)
