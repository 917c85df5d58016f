"""What was spent on what, and the ledger of all; what shuffling makes of a local epsilon."""

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
from sottovoce.accounting.shuffling import (
    Amplified,
    Mixture,
    amplified,
    colluding_epsilon,
    column_epsilon,
    column_lower_epsilon,
    least_people,
    local_epsilon_for,
    lower_epsilon,
    oracle_mixture,
    shuffled_delta,
    shuffled_epsilon,
)
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
from sottovoce.oracles.blankets import Blanket

__all__ = [
    "NEIGHBOUR_RELATIONS",
    "Amplified",
    "Blanket",
    "ExponentialStep",
    "GaussianStep",
    "LaplaceStep",
    "Ledger",
    "Mixture",
    "Neighbours",
    "PureStep",
    "Step",
    "ThresholdStep",
    "Weights",
    "amplified",
    "colluding_epsilon",
    "column_epsilon",
    "column_lower_epsilon",
    "composed",
    "delta_of",
    "epsilon_of",
    "least_people",
    "local_epsilon_for",
    "lower_epsilon",
    "mu_of",
    "oracle_mixture",
    "replaced",
    "rounded_variance",
    "shuffled_delta",
    "shuffled_epsilon",
    "threshold_delta",
    "threshold_for",
    "variance_for",
]
