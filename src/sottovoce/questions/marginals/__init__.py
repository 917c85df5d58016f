"""Marginals: tables of how attributes go together,
by every method of the papers and better ones.
"""

from __future__ import annotations

from sottovoce.questions.marginals.estimate import MarginalEstimate
from sottovoce.questions.marginals.question import Marginals

__all__ = ["MarginalEstimate", "Marginals"]
