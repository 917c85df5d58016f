"""What analysts ask over HTTP, with a bearer token: surveys, estimates, tables, SQL, exports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from sottovoce.api.surveys import parse_texts
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.texts import LONGEST_TITLE, Texts
from sottovoce.service.concurrency import Turn
from sottovoce.service.json_bodies import read_model
from sottovoce.service.problems import Problem
from sottovoce.service.query_routes import query_routes
from sottovoce.service.streams import Download, file_stream
from sottovoce.service.survey_service import SurveyService, SurveyStatus
from sottovoce.service.table_routes import ANSWER_SECONDS, SurveyId, finished, table_routes
from sottovoce.service.tokens import needs_token
from sottovoce.store import export_file

_OBJECT = {"application/json": {"schema": {"type": "object"}}}
_THERE: dict[int | str, dict[str, Any]] = {200: {"description": "It was there", "content": _OBJECT}}
_PLAN = {"required": True, "content": _OBJECT}


class NewSurvey(BaseModel):
    """A survey to be made: as a survey file, in JSON."""

    model_config = ConfigDict(strict=True, extra="forbid", populate_by_name=True)

    title: str = Field("", max_length=LONGEST_TITLE)
    texts: dict[str, str] = Field({}, examples=[{"language": "en"}])
    epsilon: str | float | int = Field(examples=["1.0"])
    people: int = Field(examples=[10_000])
    attributes: dict[str, dict[str, Any]] = Field(
        alias="schema", examples=[{"smoker": {"kind": "boolean"}}]
    )
    question: dict[str, Any] = Field(examples=[{"kind": "frequencies", "attributes": ["smoker"]}])
    public: list[str] = []
    coin: Literal["device", "assigned"] = "device"
    trust: Literal["local", "shuffled"] = "local"
    delta: str | float | None = Field(None, examples=["1e-9"])  # of shuffled plans, as what follows
    cap: str | float | int | None = None
    fakes: int | None = None
    least: int | None = None
    hops: list[str] | None = None

    @classmethod
    def read(cls, data: bytes) -> NewSurvey:
        """From a request's body."""
        return read_model(cls, data)


_SURVEY = {
    "required": True,
    "content": {"application/json": {"schema": NewSurvey.model_json_schema()}},
}


def analyst_routes(service: SurveyService) -> APIRouter:
    """The routes that need a token: of the scope ``read`` to ask, ``manage`` to change something.

    None declares its body as a parameter: the framework would parse it before it asks for the
    token.
    """
    check = needs_token(service.store)
    router = APIRouter(prefix="/v1/surveys", dependencies=[Depends(check)], tags=["analyst"])

    @router.get("")
    def surveys() -> list[dict[str, Any]]:
        """All surveys, the newest first."""
        return [survey.to_json() for survey in service.surveys()]

    @router.post("", status_code=201, openapi_extra={"requestBody": _SURVEY})
    async def create(request: Request) -> dict[str, Any]:
        """Make a survey of a schema and a question."""
        asked = await run_in_threadpool(NewSurvey.read, await request.body())
        body = asked.model_dump(by_alias=True, exclude_none=True)
        text = await finished(
            await run_in_threadpool(service.planned, body),
            ANSWER_SECONDS,
        )

        def created() -> SurveyStatus:
            plan = Plan.from_json(text)
            if service.has(plan.id):
                raise Problem(
                    "survey-exists",
                    "a survey of exactly this plan is there; change a word, or use that one",
                )
            return service.create(plan, parse_texts(body))

        return (await run_in_threadpool(created)).to_json()

    @router.get("/{id}")
    def survey(id: SurveyId) -> dict[str, Any]:
        """One survey."""
        return service.survey(id).to_json()

    @router.post("/{id}/close")
    def close(id: SurveyId) -> dict[str, Any]:
        """Take no more reports."""
        return service.close(id).to_json()

    @router.post("/{id}/next", status_code=201, responses=_THERE)
    async def following(id: SurveyId, response: Response) -> dict[str, Any]:
        """Make the next round from the estimate of this one, which takes no more reports then; 200
        if it is there.
        """
        made, is_new = await to_thread.run_sync(service.next_round, id, limiter=service.waiting)
        response.status_code = 201 if is_new else 200
        return made.to_json()

    table_routes(router, service)

    def exported(id: str, turn: Turn) -> StreamingResponse:
        plan = service.survey(id).plan
        download = Download(service.new_file(), turn)
        try:
            export_file(service.store, plan, download.path)
        except BaseException:
            download.drop()
            raise
        named = {"Content-Disposition": f'attachment; filename="{plan.id[:16]}.parquet"'}
        return file_stream(download, "application/vnd.apache.parquet", named)

    @router.get("/{id}/export", response_class=StreamingResponse)
    async def export(id: SurveyId) -> StreamingResponse:
        """All reports so far, as one Parquet file."""
        # until all of it is sent: its bytes are on the disk for so long
        turn = service.downloads.take()
        try:
            return await to_thread.run_sync(exported, id, turn, limiter=service.waiting)
        except BaseException:
            turn.end()
            raise

    taking = APIRouter(prefix="/v1/plans", dependencies=[Depends(check)], tags=["analyst"])

    @taking.post("", status_code=201, responses=_THERE, openapi_extra={"requestBody": _PLAN})
    async def take(
        request: Request,
        response: Response,
        title: Annotated[str, Query(max_length=LONGEST_TITLE)] = "",
    ) -> dict[str, Any]:
        """Take in a plan that was made elsewhere, byte for byte; 200 if it is there."""
        text = await request.body()

        def taken() -> SurveyStatus:
            plan = Plan.from_json(text)
            response.status_code = 200 if service.has(plan.id) else 201
            return service.create(plan, Texts(title))

        return (await run_in_threadpool(taken)).to_json()

    both = APIRouter()
    both.include_router(router)
    both.include_router(query_routes(service))
    both.include_router(taking)
    return both
