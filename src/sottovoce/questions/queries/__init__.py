"""Answers to queries over whispered dimensions: counts, sums and quantiles of any selection."""

from __future__ import annotations

from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.question import Queries

__all__ = ["Queries", "QueryEstimate"]
