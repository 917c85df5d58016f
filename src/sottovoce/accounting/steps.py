"""The steps that a ledger holds: what was asked of the data, and the noise that answered.

Sensitivities are those of the ledger's neighbour relation. All numbers are exact fractions, and
JSON holds them as text.

**Noise on a lattice.** The curve of :mod:`sottovoce.accounting.gaussian` is that of real Gaussian
noise; counts get discrete noise. Discrete noise X is stochastically below N + 1 (one step of the
lattice; canonne2020discrete, on tails), and the privacy loss rises with it, so the loss of a
step is below that of real noise plus a constant, its ``lattice_loss``. Such constants add up over
steps, however they are chosen, and delta(eps) <= G(eps - sum of them, mu). With v the move of the
sums, in steps of the lattice, and variance in squared steps:

* in general |v|_1 / variance, and never more than |v|_2^2 / variance, which is mu^2;
* for counts, which move by 0 or 1, 1 / variance if that is at least 1: what speaks of a person is
  one sum of discrete noises, and its law is that of one discrete noise, to 1e-4 at variance 1.
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

# How much a person adds to each of her t items: 1; 1/sqrt(t); at most 1 in L2, by steps towards a
# common level.
Weights = Literal["counts", "equal", "descent"]
WEIGHT_RULES: tuple[Weights, ...] = ("counts", "equal", "descent")


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
                object.__setattr__(self, field.name, _exact(field.name, value))
            elif field.type == "int" and (not isinstance(value, int) or value < 1):
                raise InvalidInput(f"{field.name} ({value}) must be a whole number of at least 1")

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


def _exact(name: str, value: Any, least: int | None = None) -> Fraction:
    """An exact number above 0, or of at least ``least``.

    A float is refused, since its digits are seldom those that were meant.
    """
    if isinstance(value, float | bool):
        raise InvalidInput(f"{name} ({value}) must be exact: a Fraction, an int or text")
    try:
        exact = Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidInput(f"{name} ({value}) must be a number") from None
    if least is None and exact <= 0:
        raise InvalidInput(f"{name} ({value}) must be greater than 0")
    if least is not None and exact < least:
        raise InvalidInput(f"{name} ({value}) must be at least {least}")
    return exact


@dataclass(frozen=True)
class GaussianStep(Step):
    """Sums with Gaussian noise of one variance on every coordinate.

    Guarantee: (epsilon, G(epsilon - lattice loss, mu))-DP for every epsilon.
    Assumes:   discrete Gaussian noise of the variance; the sensitivity of the ledger's neighbours.
    Source:    dong2022gaussian, corollary 2; balle2018improving, theorem 8.
    Checked:   tests/exact/test_lattice_loss.py

    >>> step = GaussianStep("pairs", "sums over pairs", Fraction(40), Fraction(400))
    >>> step.squared_mu, step.lattice_loss
    (Fraction(1, 10), Fraction(1, 10))
    >>> counts = GaussianStep.of_counts("pairs", "counts of pairs", 40, Fraction(400))
    >>> counts.squared_mu, counts.lattice_loss
    (Fraction(1, 10), Fraction(1, 400))
    """

    mechanism: ClassVar[str] = "gaussian"

    squared_sensitivity: Fraction  # in L2
    variance: Fraction
    # see the module's text; None for mu^2, which any lattice keeps, and 0 for real noise
    lattice_loss: Fraction | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        loss = self.squared_mu if self.lattice_loss is None else self.lattice_loss
        object.__setattr__(self, "lattice_loss", _exact("lattice_loss", loss, 0))

    @classmethod
    def of_counts(
        cls,
        name: str,
        purpose: str,
        limit: int,
        variance: Fraction,
        neighbours: Neighbours = "add-remove",
    ) -> Self:
        """Counts to which a person adds 0 or 1 each, with discrete Gaussian noise on integers.

        Args:
            name: of the step.
            purpose: of the step.
            limit: how many counts a person adds to, at most.
            variance: of the noise on a count.
            neighbours: who counts as a neighbour.
        """
        check_neighbours(neighbours)
        moved = limit if neighbours == "add-remove" else 2 * limit
        loss = counts_lattice_loss(moved, variance)
        return cls(name, purpose, Fraction(moved), variance, loss)

    @property
    def squared_mu(self) -> Fraction:
        """How far apart the answers of neighbours are, in squared standard deviations."""
        return self.squared_sensitivity / self.variance


def counts_lattice_loss(moved: int, variance: Fraction) -> Fraction:
    """The lattice loss of counts, ``moved`` of which differ by 1 between neighbours.

    >>> counts_lattice_loss(20, Fraction(400)), counts_lattice_loss(20, Fraction(1, 2))
    (Fraction(1, 400), Fraction(40, 1))
    """
    return (1 if variance >= 1 else moved) / Fraction(variance)


@dataclass(frozen=True)
class ThresholdStep(Step):
    """Noisy weights of items of an unknown domain, published where they are above a threshold.

    Guarantee: (epsilon, delta)-DP for every epsilon, delta by accounting.threshold.
    Assumes:   discrete Gaussian noise; weights and threshold are multiples of its lattice.
    Source:    wilkins2024gaussian, derived anew; gopi2020union.
    Checked:   tests/exact/test_threshold.py

    >>> step = ThresholdStep("items", "which exist", 20, "counts", Fraction(400), Fraction(110))
    >>> step.lattice_loss
    Fraction(1, 400)
    """

    mechanism: ClassVar[str] = "gaussian threshold"

    limit: int  # items of one person
    weights: Weights  # see accounting.threshold
    variance: Fraction  # of the noise on a weight
    threshold: Fraction  # a noisy weight is greater if it is published
    # see the module's text; None for that of counts, or else mu^2 when a person is added
    lattice_loss: Fraction | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weights(self.weights)
        loss = self.lattice_loss
        if loss is None and self.weights == "counts":
            loss = counts_lattice_loss(self.limit, self.variance)
        elif loss is None:
            loss = 1 / self.variance
        object.__setattr__(self, "lattice_loss", _exact("lattice_loss", loss, 0))


@dataclass(frozen=True)
class LaplaceStep(Step):
    """Sums with Laplace noise of one scale on every coordinate.

    Guarantee: epsilon-DP, and what discrete Laplace noise keeps of it beside other steps.
    Assumes:   discrete Laplace noise of the scale; the sensitivity of the ledger's neighbours.
    Source:    canonne2020discrete, algorithm 2; composed as in accounting.composition.
    Checked:   tests/unit/test_composition.py

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

    Guarantee: epsilon-DP, with losses in an interval of length epsilon.
    Assumes:   scores of the stated sensitivity for the ledger's neighbours.
    Source:    dong2020exponential, bounded range.
    Checked:   tests/unit/test_composition.py

    >>> ExponentialStep("limit", "a percentile", Fraction(1, 10)).epsilon
    Fraction(1, 10)
    """

    mechanism: ClassVar[str] = "exponential"

    epsilon: Fraction


@dataclass(frozen=True)
class PureStep(Step):
    """Any epsilon-private answer, of which nothing else is known.

    Guarantee: epsilon-DP.
    Assumes:   that the answer is.
    Source:    kairouz2017composition.
    Checked:   tests/unit/test_composition.py

    >>> PureStep("votes", "whispered votes", Fraction(1)).epsilon
    Fraction(1, 1)
    """

    mechanism: ClassVar[str] = "pure"

    epsilon: Fraction


STEP_KINDS: tuple[type[Step], ...] = (
    GaussianStep,
    ThresholdStep,
    LaplaceStep,
    ExponentialStep,
    PureStep,
)


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


def check_weights(weights: str) -> None:
    """Refuse a rule that is none of ``WEIGHT_RULES``."""
    if weights not in WEIGHT_RULES:
        raise InvalidInput(f"weights ({weights}) must be one of {', '.join(WEIGHT_RULES)}")


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
