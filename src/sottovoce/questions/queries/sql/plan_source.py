"""A plan of queries and what was heard of it, as a source of answers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import cast

from sottovoce.aggregation.aggregate import Aggregate, fold
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.evidence import Integers
from sottovoce.questions.queries.fitted import FittedTable
from sottovoce.questions.queries.question import Queries
from sottovoce.questions.queries.sql.source import QuerySource, WhisperedColumn

# the thesis's, which answer ranges and their products: conditions reach them in its normal form
BOXES_ONLY = ("hi", "hio", "sc", "mg")

Heard = Reports | Aggregate | str | os.PathLike[str]


class PlanSource(QuerySource):
    """Whispers of a plan whose question is :class:`~sottovoce.Queries`.

    With reports every query can be answered; an aggregate has no public columns.
    """

    def __init__(self, plan: Plan, heard: Heard) -> None:
        question = plan.question
        if not isinstance(question, Queries):
            raise InvalidInput(
                f"plan: SQL needs a plan whose question is queries, not {question.kind}"
            )
        self.plan = plan
        self.plan_id = plan.id
        if isinstance(heard, str | os.PathLike):
            heard = _read(heard, plan)
        if heard_plan_id(heard) != plan.id:
            raise PlanMismatch("reports: they belong to another plan")
        self.reports: Reports | None = None
        if isinstance(heard, Reports):
            # an object of its own, so that a source does not keep its caller's alive
            self.reports = replace(heard.checked(plan))
            # what is folded needs no public columns: groups of rows are copied without them
            self.whispers = replace(self.reports, public={})
            heard = fold(plan, self.whispers)
        self.estimate = cast(QueryEstimate, heard.estimate())
        self.people = heard.people
        self.dimensions = tuple(
            WhisperedColumn(each.name, plan.schema[each.name])
            for each in self.estimate.target.dimensions
        )
        self.method = self.estimate.method.name
        self.boxes_only = self.method in BOXES_ONLY

    @property
    def public_names(self) -> tuple[str, ...]:
        return self.plan.public.names

    def public(self, name: str) -> PublicColumn:
        if self.reports is None:
            raise InvalidInput(
                f"reports: the public column {name!r} is only in reports, not in an aggregate"
            )
        return self.reports.public[name]

    def fit(self, rows: Integers | None, weights: Integers | None) -> FittedTable:
        if rows is None and weights is None:
            return self.estimate.fitted
        if self.reports is None:
            raise InvalidInput("reports: groups and weights need reports, not an aggregate")
        chosen = self.whispers if rows is None else self.whispers[rows]
        if weights is None:
            return self.estimate.fit_weights(fold(self.plan, chosen), None)
        return self.estimate.weighted(chosen, weights)


def _read(path: str | os.PathLike[str], plan: Plan) -> Reports:
    """The reports of a file, or of a folder."""
    from sottovoce.protocol.report_files import stream

    return Reports.concat(stream(Path(path), plan_id=plan.id))


def heard_plan_id(heard: Reports | Aggregate) -> str:
    """The plan that reports or an aggregate are of."""
    if isinstance(heard, Reports):
        return heard.plan_id
    if isinstance(heard, Aggregate):
        return heard.plan.id
    raise InvalidInput("reports must be reports, an aggregate, or the path of a file of reports")
