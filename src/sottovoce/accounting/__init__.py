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
    ThresholdStep,
    Weights,
    replaced,
)
from sottovoce.accounting.threshold import threshold_delta, threshold_for

__all__ = [
    "NEIGHBOUR_RELATIONS",
    "ExponentialStep",
    "GaussianStep",
    "LaplaceStep",
    "Ledger",
    "Neighbours",
    "PureStep",
    "Step",
    "ThresholdStep",
    "Weights",
    "composed",
    "delta_of",
    "epsilon_of",
    "mu_of",
    "replaced",
    "rounded_variance",
    "threshold_delta",
    "threshold_for",
    "variance_for",
]
