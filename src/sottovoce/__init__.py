"""sottovoce: learn what a crowd does without ever receiving anybody's true answer.

>>> import sottovoce as sv
>>> schema = sv.Schema(x=sv.Categorical(range(4)))
>>> plan = sv.plan(schema, sv.Frequencies("x", oracle="grr"), epsilon=1.0, people=1000)
>>> reports = sv.simulate(plan, {"x": [0, 1, 1, 2] * 250}, seed=7)
>>> sv.Aggregate(plan).add(reports).estimate().marginal("x").people
1000
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sottovoce.aggregate import Aggregate
    from sottovoce.analysis import associate, dependency_tree, synthesize
    from sottovoce.assignments import Assignment
    from sottovoce.client import Client, ClientState, InvalidValueWarning, PrivacyWarning, simulate
    from sottovoce.errors import (
        BadAssignment,
        BudgetExceeded,
        CorruptReport,
        InvalidInput,
        NotEnumerable,
        NotInThisRound,
        PlanMismatch,
        SottovoceError,
    )
    from sottovoce.estimate import Estimate, Table
    from sottovoce.findings import Findings
    from sottovoce.frequencies import Frequencies
    from sottovoce.front import Plan, next_plan, plan, simulate_rounds
    from sottovoce.guarantee import Guarantee
    from sottovoce.heavyhitters import HeavyHitters
    from sottovoce.itemsets import TopItems, TopItemsets, rules
    from sottovoce.marginals import MarginalEstimate, Marginals
    from sottovoce.oracles import oracle
    from sottovoce.postprocessing import choose_postprocess, postprocess
    from sottovoce.reports import Report, Reports
    from sottovoce.schema import Boolean, Categorical, Integer, Items, Ordinal, Schema, Text

__version__ = "0.1.0"

# Where each public name lives. Modules load when a name of theirs is first used.
_HOMES = {
    "aggregate": ("Aggregate",),
    "analysis": ("associate", "dependency_tree", "synthesize"),
    "assignments": ("Assignment",),
    "client": ("Client", "ClientState", "InvalidValueWarning", "PrivacyWarning", "simulate"),
    "errors": (
        "BadAssignment",
        "BudgetExceeded",
        "CorruptReport",
        "InvalidInput",
        "NotEnumerable",
        "NotInThisRound",
        "PlanMismatch",
        "SottovoceError",
    ),
    "estimate": ("Estimate", "Table"),
    "frequencies": ("Frequencies",),
    "findings": ("Findings",),
    "front": ("Plan", "next_plan", "plan", "simulate_rounds"),
    "guarantee": ("Guarantee",),
    "heavyhitters": ("HeavyHitters",),
    "itemsets": ("TopItems", "TopItemsets", "rules"),
    "marginals": ("MarginalEstimate", "Marginals"),
    "oracles": ("oracle",),
    "postprocessing": ("choose_postprocess", "postprocess"),
    "reports": ("Report", "Reports"),
    "schema": ("Boolean", "Categorical", "Integer", "Items", "Ordinal", "Schema", "Text"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022  (in the order of the way of the data)
    "Schema", "Boolean", "Categorical", "Ordinal", "Integer", "Text", "Items",
    "Frequencies", "Marginals", "HeavyHitters", "TopItems", "TopItemsets",
    "plan", "next_plan", "Plan", "Guarantee", "oracle",
    "Assignment", "Client", "ClientState", "simulate", "simulate_rounds", "Report", "Reports",
    "Aggregate", "Estimate", "MarginalEstimate", "Findings", "Table", "postprocess", "choose_postprocess",
    "associate", "dependency_tree", "synthesize", "rules",
    "SottovoceError", "InvalidInput", "CorruptReport", "PlanMismatch", "NotEnumerable", "NotInThisRound",
    "BadAssignment", "BudgetExceeded",
    "InvalidValueWarning", "PrivacyWarning",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f"sottovoce.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sottovoce' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
