"""The one explicit tuple of methods, and how one is found by its name."""

from __future__ import annotations

from sottovoce.questions.method import method_named
from sottovoce.questions.queries.method import QueryMethod
from sottovoce.questions.queries.methods.adaptive import AdaptiveTree
from sottovoce.questions.queries.methods.conjunction import SplitAndConjunction
from sottovoce.questions.queries.methods.grids import ShiftedGrids, UnbiasedGrids
from sottovoce.questions.queries.methods.haar import HaarCoefficients
from sottovoce.questions.queries.methods.hierarchical import LevelsByBudget, LevelsByPeople
from sottovoce.questions.queries.methods.hybrid_grids import HybridGrids
from sottovoce.questions.queries.methods.marginals import ThroughMarginals
from sottovoce.questions.queries.methods.square_wave import SquareWaves
from sottovoce.questions.queries.methods.tree import ConsistentTree

# Every method there is. A new one is a class in a file of this folder and a line here.
METHODS: tuple[QueryMethod, ...] = (
    ThroughMarginals(),
    LevelsByBudget(),
    LevelsByPeople(),
    HaarCoefficients(),
    SquareWaves(),
    HybridGrids(),
    AdaptiveTree(),
    SplitAndConjunction(),
    ConsistentTree(),
    ShiftedGrids(),
    UnbiasedGrids(),
)


def method(name: str) -> QueryMethod:
    """A method by its name."""
    return method_named(METHODS, name)
