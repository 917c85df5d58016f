"""Method against method, measured beside theory; and what an error needs."""

from __future__ import annotations

from sottovoce.measure.advice import Advice, advise
from sottovoce.measure.heavyhitters import Holdings, compare_heavyhitters, read_holdings
from sottovoce.measure.itemsets import Baskets, compare_itemsets, read_baskets, top_itemsets
from sottovoce.measure.marginals import MarginalsComparison, compare_marginals
from sottovoce.measure.oracles import (
    Comparison,
    Figures,
    compare_oracles,
    figures,
    fitting,
    ratio_spread,
    thesis_variance,
    zipf_counts,
)
from sottovoce.measure.popular import PopularComparison
from sottovoce.measure.populations import Population, read_population
from sottovoce.measure.queries import QueriesComparison, compare_queries
from sottovoce.measure.query_crowds import QueryPopulation, read_query_population

__all__ = [
    "Advice",
    "Baskets",
    "Comparison",
    "Figures",
    "Holdings",
    "MarginalsComparison",
    "PopularComparison",
    "Population",
    "QueriesComparison",
    "QueryPopulation",
    "advise",
    "compare_heavyhitters",
    "compare_itemsets",
    "compare_marginals",
    "compare_oracles",
    "compare_queries",
    "figures",
    "fitting",
    "ratio_spread",
    "read_baskets",
    "read_holdings",
    "read_population",
    "read_query_population",
    "thesis_variance",
    "top_itemsets",
    "zipf_counts",
]
