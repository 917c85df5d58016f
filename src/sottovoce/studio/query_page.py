"""Ask in SQL: a box for the query, the table, a chart, and how it was answered."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sottovoce.ground.errors import SottovoceError, UnknownPlan
from sottovoce.ground.labels import visible_lines
from sottovoce.pages.figures import INTERVAL_LEVEL
from sottovoce.protocol.plan import Plan
from sottovoce.questions.queries.sql.examples import example_query
from sottovoce.schema import Attribute, FixedPoint, Ordinal
from sottovoce.service.limits import MAX_QUERY_BYTES, check_query
from sottovoce.service.problems import Problem, problem_of
from sottovoce.service.survey_service import SurveyStatus
from sottovoce.service.table_routes import ANSWER_SECONDS, finished
from sottovoce.studio.forms import Fields, one
from sottovoce.studio.page_context import Studio
from sottovoce.studio.query_figures import QueryPicture, query_picture

MAX_NAMED_VALUES = 12  # of a column, in its description
_SHOWN_PROBLEMS = ("busy", "no-reports", "not-installed", "invalid-input")


@dataclass(frozen=True)
class QueryColumn:
    """A column that a query may name."""

    name: str
    values: str
    in_clear: bool


def query_columns(plan: Plan) -> list[QueryColumn]:
    """What a query may name: whispered columns first, then those in clear."""
    return [
        QueryColumn(name, _values(plan.schema[name]), name in plan.columns)
        for name in (*plan.cohorts.attributes, *plan.columns)
    ]


def query_context(plan: Plan) -> dict[str, Any]:
    """What the form of a query needs, with an example in its box; nothing without SQL."""
    if not plan.question.answers_sql:
        return {}
    return {
        "sql": example_query(plan),
        "columns": query_columns(plan),
        "longest": MAX_QUERY_BYTES,
    }


def _values(attribute: Attribute) -> str:
    """What a column holds, in a few words."""
    if isinstance(attribute, Ordinal | FixedPoint):
        return f"{attribute.low} to {attribute.high}"
    if attribute.is_open:
        return attribute.kind
    named = [str(attribute.labels()[code]) for code in range(min(attribute.size, MAX_NAMED_VALUES))]
    more = attribute.size - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")


def routes(studio: Studio) -> list[Route]:
    """The page with an example, and with the answer to what was typed."""

    def page(
        request: Request,
        survey: SurveyStatus,
        sql: str | None = None,
        picture: QueryPicture | None = None,
        wrong: Problem | None = None,
    ) -> Response:
        answer = studio.render(
            request,
            "query.html",
            200 if wrong is None else wrong.status,
            survey=survey,
            plan=survey.plan,
            picture=picture,
            wrong="" if wrong is None else visible_lines(wrong.detail),
            **query_context(survey.plan) | ({} if sql is None else {"sql": sql}),
        )
        answer.headers.update({} if wrong is None else wrong.headers)
        return answer

    def blank(request: Request) -> Response:
        survey = studio.service.survey(request.path_params["id"])
        check_query(survey.plan, 0, "")
        return page(request, survey)

    def started(survey: SurveyStatus, sql: str) -> Future[Any]:
        return studio.service.query(survey, sql, INTERVAL_LEVEL, query_picture)

    async def ask(request: Request, fields: Fields) -> Response:
        survey = await run_in_threadpool(studio.service.survey, request.path_params["id"])
        check_query(survey.plan, 0, "")
        sql = one(fields, "sql").replace("\r\n", "\n")
        try:
            future = await run_in_threadpool(started, survey, sql)
            picture = await finished(future, ANSWER_SECONDS)
        except (SottovoceError, Problem) as refused:
            wrong = problem_of(refused)
            if isinstance(refused, UnknownPlan) or wrong.name not in _SHOWN_PROBLEMS:
                raise
            return await run_in_threadpool(page, request, survey, sql, wrong=wrong)
        return await run_in_threadpool(page, request, survey, sql, picture)

    return [
        Route("/watch/{id:str}/query", studio.access.page(blank), methods=["GET"]),
        Route("/watch/{id:str}/query", studio.access.action(ask, "read"), methods=["POST"]),
    ]
