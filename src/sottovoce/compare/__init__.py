"""Method against method: oracles by formula and measured, marginals measured on real tables, and what a plan needs."""

from __future__ import annotations

from sottovoce.compare.advice import Advice, advise
from sottovoce.compare.marginals import MarginalsComparison, compare_marginals
from sottovoce.compare.oracles import (
    Comparison,
    Figures,
    compare_oracles,
    figures,
    fitting,
    ratio_spread,
    thesis_variance,
    zipf_counts,
)
from sottovoce.compare.populations import Population, read_population

__all__ = [
    "Advice",
    "Comparison",
    "Figures",
    "MarginalsComparison",
    "Population",
    "advise",
    "compare_marginals",
    "compare_oracles",
    "figures",
    "fitting",
    "ratio_spread",
    "read_population",
    "thesis_variance",
    "zipf_counts",
]
