"""Estimates over HTTP: a page of rows in JSON or a whole table in CSV,
as another process wrote it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi import Path as InPath
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from sottovoce.service.estimate_cache import Snapshot
from sottovoce.service.problems import Problem
from sottovoce.service.serialized import Page, estimates_page, marginal_page, write_table
from sottovoce.service.streams import Download, file_stream
from sottovoce.service.survey_service import WAIT, SurveyService, checked

SurveyId = Annotated[
    str, InPath(description="A plan's id, or enough of its first digits.", max_length=64)
]
Level = Annotated[float, Query(gt=0, lt=1, description="Of the intervals.")]
MAX_PAGE_ROWS = 10_000  # of one page
ANSWER_SECONDS = 58.0  # seconds, less than the 60 for which a proxy waits
LONGEST_WRITING = 300.0  # seconds that a whole table may take to be written
_OBJECT = {"application/json": {"schema": {"type": "object"}}}
_JSON: dict[int | str, dict[str, Any]] = {
    200: {"description": "A page of rows", "content": _OBJECT}
}
_JSON_OR_CSV: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of rows, or the whole table",
        "content": {**_OBJECT, "text/csv": {"schema": {"type": "string"}}},
    }
}


@dataclass(frozen=True)
class RowsQuery:
    """Which rows an answer has."""

    limit: Annotated[
        int, Query(ge=1, le=MAX_PAGE_ROWS, description="Rows of this page, over all its tables.")
    ] = 1000
    offset: Annotated[int, Query(ge=0, lt=1 << 53, description="Rows before this page.")] = 0
    order: Annotated[
        Literal["largest", "schema"], Query(description="Of the rows of each table.")
    ] = "largest"

    def page(self) -> Page:
        return Page(self.limit, self.offset, self.order)


def table_routes(router: APIRouter, service: SurveyService) -> None:
    """Add the routes of estimates to those of a survey."""

    async def ready(id: str, names: Sequence[str] = ()) -> Snapshot:
        """An estimate of now, or the last; a problem if there is none, or too many are named."""
        survey = await run_in_threadpool(service.survey, id)
        service.check_table(survey, names)
        asked = await run_in_threadpool(service.ask, survey)
        if asked is not None:
            await asyncio.wait([waited(asked)], timeout=WAIT)
        return checked(await run_in_threadpool(service.last, survey), survey.people)

    @router.get("/{id}/estimates", response_class=Response, responses=_JSON)
    async def estimates(
        id: SurveyId, rows: Annotated[RowsQuery, Depends()], level: Level = 0.95
    ) -> Response:
        """Every table the survey asked for, or every attribute by itself: a page of their rows."""
        snapshot = await ready(id)
        made = await run_in_threadpool(
            service.answer, snapshot, estimates_page, snapshot.problem, level, rows.page()
        )
        return Response(await finished(made), media_type="application/json")

    @router.get("/{id}/marginals", response_class=Response, responses=_JSON_OR_CSV)
    async def marginals(
        id: SurveyId,
        attributes: Annotated[
            list[str], Query(description="Names, with commas between or one by one.", max_length=64)
        ],
        rows: Annotated[RowsQuery, Depends()],
        level: Level = 0.95,
        format: Annotated[
            Literal["json", "csv"], Query(description="A page, or the whole table.")
        ] = "json",
    ) -> Response:
        """The table of these attributes together."""
        names = (
            attributes
            if len(attributes) > 1
            else [name.strip() for name in attributes[0].split(",")]
        )
        snapshot = await ready(id, names)
        if format == "csv":
            download, writing = await run_in_threadpool(
                service.write, snapshot, write_table, names, level, rows.order
            )
            await finished(writing, LONGEST_WRITING, download)
            return await run_in_threadpool(file_stream, download, "text/csv")
        made = await run_in_threadpool(
            service.answer, snapshot, marginal_page, tuple(names), level, rows.page()
        )
        return Response(await finished(made), media_type="application/json")


def waited(future: Future[Any]) -> asyncio.Future[Any]:
    """A process's work to wait for; once nobody waits, its failure is nobody's concern."""
    wrapped = asyncio.wrap_future(future)
    wrapped.add_done_callback(lambda done: done.cancelled() or done.exception())
    return wrapped


async def finished(
    future: Future[Any], seconds: float = WAIT, download: Download | None = None
) -> Any:
    """What a process makes, if in time; a ``download`` is dropped, once written, if not sent."""
    done = waited(future)
    await asyncio.wait([done], timeout=seconds)
    if done.done() and not done.cancelled() and done.exception() is None:
        return done.result()
    if download is not None:
        future.add_done_callback(lambda _: download.drop())
    if done.done() and not done.cancelled():
        return done.result()  # raises
    future.cancel()  # if it has not begun, nobody needs it
    raise Problem("busy", "the answer takes long to make; ask again", {"Retry-After": "2"})
