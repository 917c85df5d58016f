"""The steps that a ledger holds: what was asked of the data, and the noise that answered.

Sensitivities are those of the ledger's neighbour relation. All numbers are exact fractions, and
JSON holds them as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from sottovoce.ground.arguments import written
from sottovoce.ground.errors import InvalidInput

Neighbours = Literal["add-remove", "replace-one"]
NEIGHBOUR_RELATIONS: tuple[Neighbours, ...] = ("add-remove", "replace-one")


@dataclass(frozen=True)
class Step:
    """One question to the data. A kind of step says which noise answered it."""

    mechanism: ClassVar[str]

    name: str  # one of its kind in a ledger's list for people, e.g. "1-tuples"
    purpose: str  # what it was spent for, in words

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "Fraction":
                object.__setattr__(self, field.name, _positive(field.name, value))

    def to_json(self) -> dict[str, Any]:
        """The step as plain values: fractions are text or whole numbers."""
        told: dict[str, Any] = {"mechanism": self.mechanism}
        for field in fields(self):
            value = getattr(self, field.name)
            told[field.name] = written(value) if isinstance(value, Fraction) else value
        return told

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
        return cls(**{field.name: data[field.name] for field in fields(cls)})


def _positive(name: str, value: Any) -> Fraction:
    """An exact number above 0; a float is refused, since its digits are seldom those meant."""
    if isinstance(value, float | bool):
        raise InvalidInput(f"{name} ({value}) must be exact: a Fraction, an int or text")
    try:
        exact = Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidInput(f"{name} ({value}) must be a number") from None
    if exact <= 0:
        raise InvalidInput(f"{name} ({value}) must be greater than 0")
    return exact


@dataclass(frozen=True)
class GaussianStep(Step):
    """Sums with Gaussian noise of one variance on every coordinate.

    >>> step = GaussianStep("pairs", "counts of pairs", Fraction(40), Fraction(400))
    >>> step.squared_mu
    Fraction(1, 10)
    """

    mechanism: ClassVar[str] = "gaussian"

    squared_sensitivity: Fraction  # in L2
    variance: Fraction

    @property
    def squared_mu(self) -> Fraction:
        """How far apart the answers of neighbours are, in squared standard deviations."""
        return self.squared_sensitivity / self.variance


@dataclass(frozen=True)
class LaplaceStep(Step):
    """Sums with Laplace noise of one scale on every coordinate.

    >>> LaplaceStep("views", "seven views", Fraction(7), Fraction(14)).epsilon
    Fraction(1, 2)
    """

    mechanism: ClassVar[str] = "laplace"

    sensitivity: Fraction  # in L1
    scale: Fraction

    @property
    def epsilon(self) -> Fraction:
        """What the step costs by itself."""
        return self.sensitivity / self.scale


@dataclass(frozen=True)
class ExponentialStep(Step):
    """One choice by the exponential mechanism, P(r) ~ exp(epsilon score(r) / (2 sensitivity)).

    >>> ExponentialStep("limit", "a percentile", Fraction(1, 10)).epsilon
    Fraction(1, 10)
    """

    mechanism: ClassVar[str] = "exponential"

    epsilon: Fraction


@dataclass(frozen=True)
class PureStep(Step):
    """Any epsilon-private answer, of which nothing else is known.

    >>> PureStep("votes", "whispered votes", Fraction(1)).epsilon
    Fraction(1, 1)
    """

    mechanism: ClassVar[str] = "pure"

    epsilon: Fraction


STEP_KINDS: tuple[type[Step], ...] = (GaussianStep, LaplaceStep, ExponentialStep, PureStep)


def step_from_json(data: Mapping[str, Any]) -> Step:
    """The step that :meth:`Step.to_json` wrote.

    >>> step = PureStep("votes", "whispered votes", Fraction(1, 3))
    >>> step_from_json(step.to_json()) == step
    True
    """
    for kind in STEP_KINDS:
        if kind.mechanism == data.get("mechanism"):
            return kind.from_json(data)
    raise InvalidInput(f"mechanism ({data.get('mechanism')}) is not one that a ledger knows")


def check_neighbours(neighbours: str) -> None:
    """Refuse a relation that is none of ``NEIGHBOUR_RELATIONS``."""
    if neighbours not in NEIGHBOUR_RELATIONS:
        raise InvalidInput(
            f"neighbours ({neighbours}) must be one of {', '.join(NEIGHBOUR_RELATIONS)}"
        )


def replaced(squared_sensitivity: Fraction, is_nonnegative: bool) -> Fraction:
    """The squared L2 sensitivity when one person is replaced, from that when one is added.

    |a - b|^2 = |a|^2 + |b|^2 - 2 a.b, and counts, which are never negative, have a.b >= 0.

    Args:
        squared_sensitivity: the largest |a|^2 that one person adds.
        is_nonnegative: whether what a person adds is nowhere below 0.

    >>> replaced(Fraction(5), True), replaced(Fraction(5), False)
    (Fraction(10, 1), Fraction(20, 1))
    """
    return squared_sensitivity * (2 if is_nonnegative else 4)
