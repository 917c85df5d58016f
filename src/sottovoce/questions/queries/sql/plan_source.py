"""A plan of queries and what was heard of it, as a source of answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate, fold
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_files import read_with_ids
from sottovoce.protocol.reports import Reports
from sottovoce.questions.queries.estimate import QueryEstimate
from sottovoce.questions.queries.evidence import Integers
from sottovoce.questions.queries.fitted import FittedTable
from sottovoce.questions.queries.question import Queries
from sottovoce.questions.queries.sql.joining import (
    JoinTable,
    joined_columns,
    read_ids,
)
from sottovoce.questions.queries.sql.source import QuerySource, WhisperedColumn
from sottovoce.schema import Attribute

# the thesis's, which answer ranges and their products: conditions reach them in its normal form
BOXES_ONLY = ("hi", "hio", "sc", "mg")

Heard = Reports | Aggregate | str | os.PathLike[str]


class EstimateSource(QuerySource):
    """What all sources of a plan share: its dimensions, and the estimate of all reports."""

    def __init__(self, plan: Plan, estimate: QueryEstimate) -> None:
        self.plan = plan
        self.plan_id = plan.id
        self.estimate = estimate
        self.people = estimate.people
        self.dimensions = tuple(
            WhisperedColumn(each.name, plan.schema[each.name])
            for each in estimate.target.dimensions
        )
        self.method = estimate.method.name
        self.boxes_only = self.method in BOXES_ONLY

    def public_attribute(self, name: str) -> Attribute:
        return self.plan.schema[name]


class PlanSource(EstimateSource):
    """Whispers of a plan whose question is :class:`~sottovoce.Queries`.

    With reports every query can be answered; an aggregate has no public columns.

    Args:
        plan: of what was heard.
        heard: reports, the path of a file or a folder of them, or an aggregate.
        table: of the analyst, with public columns that do not travel.
        ids: of the reports, where ``heard`` is an object of them and there is a table.
    """

    def __init__(
        self, plan: Plan, heard: Heard, table: JoinTable | None = None, ids: Any = None
    ) -> None:
        question = plan.question
        if not isinstance(question, Queries):
            raise InvalidInput(
                f"plan: SQL needs a plan whose question is queries, not {question.kind}"
            )
        self.plan = plan
        if isinstance(heard, str | os.PathLike):
            if table is not None:
                ids, heard = read_with_ids(heard, plan.id)
            else:
                heard = _read(heard, plan)
        if heard_plan_id(heard) != plan.id:
            raise PlanMismatch("reports: they belong to another plan")
        self.joined: Mapping[str, PublicColumn] = {}
        if table is not None:
            heard = self._join(heard, table, ids)
        self.unsent_names = tuple(name for name in plan.unsent if name not in self.joined)
        self.reports: Reports | None = None
        if isinstance(heard, Reports):
            # an object of its own, so that a source does not keep its caller's alive
            self.reports = replace(self._in_order(heard).checked(plan))
            # what is folded needs no public columns: groups of rows are copied without them
            self.whispers = replace(self.reports, public={})
            heard = fold(plan, self.whispers)
        super().__init__(plan, cast(QueryEstimate, heard.estimate()))

    def _join(self, heard: Reports | Aggregate, table: JoinTable, ids: Any) -> Reports:
        """The reports that have a row in the table; what the table says of them is kept."""
        if not isinstance(heard, Reports):
            raise InvalidInput("table: it is joined with single reports, not with an aggregate")
        if ids is None:
            raise InvalidInput(
                "ids must be given, one for each report: these reports have none to join a table by"
            )
        known = read_ids(ids)
        if len(known) != len(heard):
            raise InvalidInput(f"ids ({len(known):,}) must be as many as reports ({len(heard):,})")
        found = joined_columns(self.plan, known, table)
        self.joined = found.columns
        self.notes = found.notes
        return heard[found.rows]

    def _in_order(self, heard: Reports) -> Reports:
        """The reports by cohort, with what was joined to them: every later fold, of all of them or
        of a group, then reads each cohort's reports one after the other.
        """
        cohorts = heard.cohorts
        if (cohorts[1:] >= cohorts[:-1]).all():
            return heard
        if int(cohorts.max()) < 1 << 16:
            cohorts = cohorts.astype(np.uint16)  # which are sorted many times as fast
        order = np.argsort(cohorts, kind="stable")
        self.joined = {name: column[order] for name, column in self.joined.items()}
        return heard[order]

    @property
    def public_names(self) -> tuple[str, ...]:
        return (*self.plan.public.names, *self.joined)

    def public(self, name: str) -> PublicColumn:
        if name in self.joined:
            return self.joined[name]
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
