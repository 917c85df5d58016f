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
    from sottovoce.accounting.shuffling import Amplified, amplified
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.analysis import associate, dependency_tree, rake, synthesize
    from sottovoce.api.planning import next_plan, plan, simulate_rounds
    from sottovoce.central.release import load_release, release
    from sottovoce.central.result import Release
    from sottovoce.device.assignment import Assignment
    from sottovoce.device.client import (
        Client,
        ClientState,
        InvalidValueWarning,
        PrivacyWarning,
    )
    from sottovoce.device.simulation import simulate, simulate_block
    from sottovoce.ground.errors import (
        BadAssignment,
        BudgetExceeded,
        CorruptReport,
        InvalidInput,
        NotEnumerable,
        NotInThisRound,
        PlanMismatch,
        SottovoceError,
    )
    from sottovoce.oracles import oracle
    from sottovoce.pages.survey_page import SurveyPage, report
    from sottovoce.postprocessing import choose_postprocess, postprocess
    from sottovoce.protocol.guarantee import Guarantee
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.reports import CheckedReports, Report, Reports
    from sottovoce.protocol.texts import Texts
    from sottovoce.questions.frequencies import Frequencies
    from sottovoce.questions.heavyhitters import HeavyHitters
    from sottovoce.questions.itemsets import TopItems, TopItemsets, rules
    from sottovoce.questions.marginals import MarginalEstimate, Marginals
    from sottovoce.questions.queries import Queries, QueryEstimate
    from sottovoce.questions.queries.sql import query
    from sottovoce.questions.queries.sql.notebook import (
        load_ipython_extension as load_ipython_extension,
    )
    from sottovoce.results.estimate import Estimate, Table
    from sottovoce.results.findings import Findings
    from sottovoce.schema import (
        Boolean,
        Categorical,
        FixedPoint,
        Integer,
        Items,
        Number,
        Ordinal,
        Schema,
        Text,
    )

__version__ = "0.1.0"

# Where each public name lives. Modules load when a name of theirs is first used.
_HOMES = {
    "accounting.shuffling": ("Amplified", "amplified"),
    "aggregation.aggregate": ("Aggregate",),
    "analysis": ("associate", "dependency_tree", "rake", "synthesize"),
    "central.release": ("load_release", "release"),
    "central.result": ("Release",),
    "device.assignment": ("Assignment",),
    "device.client": ("Client", "ClientState", "InvalidValueWarning", "PrivacyWarning"),
    "device.simulation": ("simulate", "simulate_block"),
    "ground.errors": (
        "BadAssignment",
        "BudgetExceeded",
        "CorruptReport",
        "InvalidInput",
        "NotEnumerable",
        "NotInThisRound",
        "PlanMismatch",
        "SottovoceError",
    ),
    "results.estimate": ("Estimate", "Table"),
    "questions.frequencies": ("Frequencies",),
    "results.findings": ("Findings",),
    "api.planning": ("next_plan", "plan", "simulate_rounds"),
    "protocol.guarantee": ("Guarantee",),
    "protocol.plan": ("Plan",),
    "questions.heavyhitters": ("HeavyHitters",),
    "questions.itemsets": ("TopItems", "TopItemsets", "rules"),
    "questions.marginals": ("MarginalEstimate", "Marginals"),
    "questions.queries": ("Queries", "QueryEstimate"),
    "questions.queries.sql": ("query",),
    "questions.queries.sql.notebook": ("load_ipython_extension",),  # which %load_ext looks for
    "oracles": ("oracle",),
    "pages.survey_page": ("report", "SurveyPage"),
    "postprocessing": ("choose_postprocess", "postprocess"),
    "protocol.reports": ("CheckedReports", "Report", "Reports"),
    "protocol.texts": ("Texts",),
    "schema": (
        "Boolean",
        "Categorical",
        "FixedPoint",
        "Integer",
        "Items",
        "Number",
        "Ordinal",
        "Schema",
        "Text",
    ),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022  (in the order of the way of the data)
    "Schema", "Boolean", "Categorical", "Ordinal", "Integer", "Text", "Items", "FixedPoint",
    "Number",
    "Frequencies", "Marginals", "Queries", "HeavyHitters", "TopItems", "TopItemsets",
    "plan", "next_plan", "Plan", "Guarantee", "oracle",
    "Assignment", "Client", "ClientState", "simulate", "simulate_block", "simulate_rounds",
    "Report", "Reports", "CheckedReports",
    "Aggregate", "Estimate", "MarginalEstimate", "QueryEstimate", "Findings", "Table",
    "postprocess", "choose_postprocess", "query",
    "associate", "dependency_tree", "synthesize", "rules", "rake",
    "report", "SurveyPage", "Texts",
    "release", "load_release", "Release",
    "amplified", "Amplified",
    "SottovoceError", "InvalidInput", "CorruptReport", "PlanMismatch", "NotEnumerable",
    "NotInThisRound", "BadAssignment", "BudgetExceeded",
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
