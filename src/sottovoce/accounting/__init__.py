"""What was spent on what: Gaussian steps exactly, others numerically, and the ledger of all."""

from __future__ import annotations

from sottovoce.accounting.gaussian import (
    composed,
    delta_of,
    epsilon_of,
    mu_of,
    rounded_variance,
    variance_for,
)
from sottovoce.accounting.ledger import Ledger
from sottovoce.accounting.steps import (
    NEIGHBOUR_RELATIONS,
    ExponentialStep,
    GaussianStep,
    LaplaceStep,
    Neighbours,
    PureStep,
    Step,
    replaced,
)

__all__ = [
    "NEIGHBOUR_RELATIONS",
    "ExponentialStep",
    "GaussianStep",
    "LaplaceStep",
    "Ledger",
    "Neighbours",
    "PureStep",
    "Step",
    "composed",
    "delta_of",
    "epsilon_of",
    "mu_of",
    "replaced",
    "rounded_variance",
    "variance_for",
]
