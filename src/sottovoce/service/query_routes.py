"""SQL over HTTP: one query in, its rows out, as another process made them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from sottovoce.service.json_bodies import read_model
from sottovoce.service.query_sessions import query_rows
from sottovoce.service.survey_service import SurveyService
from sottovoce.service.table_routes import ANSWER_SECONDS, SurveyId, finished
from sottovoce.service.tokens import needs_token


class AskedQuery(BaseModel):
    """A query of an analyst."""

    model_config = ConfigDict(strict=True, extra="forbid")

    sql: str = Field(
        description="One SELECT of at most 4,096 bytes; the table may have any name.",
        examples=["SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 40"],
    )
    level: float = Field(0.95, gt=0, lt=1, description="Of the intervals.")


_QUERY = {
    "required": True,
    "content": {"application/json": {"schema": AskedQuery.model_json_schema()}},
}
_ROWS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A row for each group and aggregate",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


def query_routes(service: SurveyService) -> APIRouter:
    """The route that asks SQL; a query changes nothing, so a token of the scope ``read`` does."""
    check = needs_token(service.store, "read")
    router = APIRouter(prefix="/v1/surveys", dependencies=[Depends(check)], tags=["analyst"])

    def started(id: str, data: bytes) -> Future[Any]:
        asked = read_model(AskedQuery, data)
        return service.query(service.survey(id), asked.sql, asked.level, query_rows)

    @router.post(
        "/{id}/query",
        response_class=Response,
        responses=_ROWS,
        openapi_extra={"requestBody": _QUERY},
    )
    async def query(id: SurveyId, request: Request) -> Response:
        """The answer to SQL over a survey whose question is queries."""
        future = await run_in_threadpool(started, id, await request.body())
        return Response(await finished(future, ANSWER_SECONDS), media_type="application/json")

    return router
