"""Sums of estimated cells by brute force: every output of an oracle, and how many of some values it
supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sottovoce.oracles import PureOracle


def person_variances(oracle: PureOracle, members: Sequence[int]) -> np.ndarray:
    """For each value a person may hold, what she adds to n^2 times the variance of the estimated
    sum over members.
    """
    counts = {
        output: sum(oracle.supports(output, value) for value in members)
        for output in oracle.outputs()
    }
    found = []
    for law in oracle.exact_channel():
        mean = sum((chance * counts[output] for output, chance in law.items()), Fraction(0))
        square = sum((chance * counts[output] ** 2 for output, chance in law.items()), Fraction(0))
        found.append(float((square - mean**2) / (oracle.exact_p - oracle.exact_q) ** 2))
    return np.array(found)
