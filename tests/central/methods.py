"""Small methods whose behaviour is known, to test what stands around every method."""

from __future__ import annotations

import os
import signal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sottovoce.accounting import GaussianStep, Ledger, variance_for
from sottovoce.central.method import (
    CentralTable,
    ReleasedCounts,
    ReleaseMethod,
    ReleaseTerms,
    TupleCounts,
)
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.noise import discrete_gaussian


class NoisyValues(ReleaseMethod):
    """Counts of single values of users with one row each; codes last to first, as no order is
    promised.
    """

    name: ClassVar[str] = "noisy-values"
    about: ClassVar[str] = "counts of single values"
    source: ClassVar[str] = "none"
    options: ClassVar[tuple[str, ...]] = ("fails",)

    def refuse(self, table: CentralTable, terms: ReleaseTerms) -> str | None:
        return "it knows single values only" if terms.up_to > 1 else None

    def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
        return float(self._variance(table, terms))

    def _variance(self, table: CentralTable, terms: ReleaseTerms) -> Fraction:
        moved = Fraction(2 * len(table.columns))  # of both relations
        return variance_for(float(terms.epsilon) * 0.9, float(terms.delta) * 0.9, moved)

    def release(
        self, table: CentralTable, terms: ReleaseTerms, ledger: Ledger, entropy: Entropy
    ) -> ReleasedCounts:
        variance = self._variance(table, terms)
        limit = len(table.columns)
        step = GaussianStep.of_counts(
            "values", "counts of values", limit, variance, terms.neighbours
        )
        ledger.spend(step)
        if terms.options.get("fails") == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if terms.options.get("fails"):
            raise RuntimeError("the machine stops here")
        parts = []
        for place, values in enumerate(table.values):
            codes = np.arange(len(values))[::-1]
            column = np.concatenate([batch.codes[:, place] for batch in table.batches()])
            exact = np.bincount(column[column >= 0], minlength=len(values))[codes]
            noisy = exact + discrete_gaussian(variance, len(values), entropy)
            parts.append((np.full(len(codes), place), codes, noisy.astype(float)))
        attributes, codes, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        # all but the value that is called withheld
        shown = np.array(
            [
                table.values[place][code] != "withheld"
                for place, code in zip(attributes, codes, strict=True)
            ],
            bool,
        )
        errors = np.full(len(codes), float(variance) ** 0.5)
        told = TupleCounts(
            attributes[shown, None],
            codes[shown, None],
            counts[shown],
            errors[shown],
            np.zeros(int(shown.sum()), bool),
        )
        return ReleasedCounts({1: told}, ("These are single values.",))
