"""What one report of the blanket says about a person: the atoms that the accountant adds up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sottovoce.accounting.gaussian import Floats
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.blankets import Blanket
from sottovoce.oracles.thresholds import log_ratio

Mixture = Sequence[tuple[int, Sequence[Blanket]]]

MAX_LOSS_ATOMS = 1 << 12  # of a mixture; every sum over them is taken at thousands of frequencies
# E is rounded up to so many binary digits, so that asks of one epsilon have one E; a larger E hides
# less, as the smaller one is a mean of it and the blanket
_RATIO_DIGITS = 36


@dataclass(frozen=True)
class LossAtoms:
    """The law of (P(y | x)/m(y), P(y | x')/m(y)) where y has the measure m, below every P(. | x).

    Attributes:
        up: the first ratio of each atom.
        down: the second.
        chances: the measure of each atom; what they lack of 1 reveals nothing.
        gaps: up - down.
    """

    up: Floats
    down: Floats
    chances: Floats

    @property
    def gamma(self) -> float:
        """The measure of everything: the chance that a report is of the blanket."""
        return float(self.chances.sum())

    def values(self, epsilon: float) -> Floats:
        """l = P(y | x)/m(y) - e^epsilon P(y | x')/m(y), each moved up past its rounding."""
        # up - e down = (up - down) - (e - 1) down, whose terms are computed without cancelling
        loss = (self.up - self.down) - math.expm1(epsilon) * self.down
        return np.asarray(loss + np.abs(loss) * 2.0**-50)


def loss_atoms(mixture: Mixture, *, common: bool = False) -> LossAtoms:
    """The atoms of a report whose device drew one cohort of the mixture by weight.

    Args:
        mixture: (weight, the blankets of what is asked) of each cohort.
        common: whether every cohort gets the least gamma of all, so that a fake report, which
            draws its cohort by weight, has the law of the blanket.
    """
    total = sum(weight for weight, _ in mixture)
    cohorts = [_joint(asks) for _, asks in mixture]
    least = min(gamma for _, gamma in cohorts)
    rows = []
    for (weight, _), (atoms, gamma) in zip(mixture, cohorts, strict=True):
        scale = gamma / least if common else 1.0
        chances = atoms[:, 2] * (weight / total) / scale
        rows.append(np.column_stack([atoms[:, :2] * scale, chances]))
    merged = _merged(np.concatenate(rows))
    return LossAtoms(merged[:, 0], merged[:, 1], merged[:, 2])


def local_epsilon(mixture: Mixture) -> float:
    """The largest, over cohorts, of the sum of its asks' epsilons, rounded up."""
    worst = max(math.prod(ask.ratio for ask in asks) for _, asks in mixture)
    return math.nextafter(log_ratio(Fraction(worst)), math.inf)


def check_mixture(mixture: Mixture) -> None:
    """Refuse a mixture without people or asks."""
    if not mixture:
        raise InvalidInput("mixture (empty) must hold at least one cohort")
    for weight, asks in mixture:
        whole("weight", weight, 1, 1 << 62)
        if not asks:
            raise InvalidInput("mixture: every cohort must have at least one ask")


def _rounded_ratio(blanket: Blanket) -> float:
    """E rounded up to a coarse grid of doubles."""
    mantissa, exponent = math.frexp(float(blanket.ratio))
    up = math.floor(mantissa * 2**_RATIO_DIGITS) + 1
    return math.ldexp(up, exponent - _RATIO_DIGITS)


def _joint(asks: Sequence[Blanket]) -> tuple[Floats, float]:
    """Atoms (up, down, chance) of reports on all asks together, and their gamma."""
    atoms = np.array([[1.0, 1.0, 1.0]])
    for ask in sorted(asks, key=_rounded_ratio):
        ratio = _rounded_ratio(ask)
        q, both = float(ask.q), float(ask.both)
        gamma = 1 / (1 + q * (ratio - 1))
        # the report supports x alone, x' alone, both, or none of them
        law = np.array(
            [
                [ratio, 1.0, gamma * (q - both)],
                [1.0, ratio, gamma * (q - both)],
                [ratio, ratio, gamma * both],
                [1.0, 1.0, gamma * max(0.0, 1 - 2 * q + both)],
            ]
        )
        atoms = _merged((atoms[:, None, :] * law[None, :, :]).reshape(-1, 3))
    return atoms, float(atoms[:, 2].sum())


def _merged(atoms: Floats) -> Floats:
    """Atoms of equal ratios as one, without those of no chance."""
    keys, places = np.unique(atoms[:, :2], axis=0, return_inverse=True)
    chances = np.bincount(places.reshape(-1), atoms[:, 2], len(keys))
    kept = chances > 0
    if kept.sum() > MAX_LOSS_ATOMS:
        raise InvalidInput(
            f"mixture ({kept.sum()} different losses) must have at most {MAX_LOSS_ATOMS}: "
            "ask fewer things of a person, or at one epsilon"
        )
    return np.column_stack([keys[kept], chances[kept]])


def exact_share(colluding: float | Fraction) -> Fraction:
    """A share of people, as written.

    >>> exact_share(0.1)
    Fraction(1, 10)
    """
    try:
        share = colluding if isinstance(colluding, Fraction) else Fraction(str(colluding))
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"colluding ({colluding}) must be a share of people") from None
    if not 0 <= share <= 1:
        raise InvalidInput(f"colluding ({colluding}) must lie between 0 and 1")
    return share
