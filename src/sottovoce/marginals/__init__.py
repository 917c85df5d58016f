"""Marginals: tables of how attributes go together, by every method of the papers and better ones."""

from __future__ import annotations

from sottovoce.marginals.answers import MarginalEstimate
from sottovoce.marginals.question import Marginals

__all__ = ["MarginalEstimate", "Marginals"]
