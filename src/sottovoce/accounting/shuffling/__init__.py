"""Privacy of shuffled reports, numerically: what a crowd hides beyond each person's own coins."""

from __future__ import annotations

from sottovoce.accounting.shuffling.amplified import Amplified, amplified
from sottovoce.accounting.shuffling.bounds import (
    colluding_epsilon,
    shuffled_delta,
    shuffled_epsilon,
)
from sottovoce.accounting.shuffling.columns import column_epsilon, column_lower_epsilon
from sottovoce.accounting.shuffling.losses import Mixture
from sottovoce.accounting.shuffling.lower import lower_epsilon
from sottovoce.accounting.shuffling.solver import least_people, local_epsilon_for, oracle_mixture

__all__ = [
    "Amplified",
    "Mixture",
    "amplified",
    "colluding_epsilon",
    "column_epsilon",
    "column_lower_epsilon",
    "least_people",
    "local_epsilon_for",
    "lower_epsilon",
    "oracle_mixture",
    "shuffled_delta",
    "shuffled_epsilon",
]
