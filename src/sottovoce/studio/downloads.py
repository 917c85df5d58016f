"""Tables to take away, one by one or all, and the report of a survey."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sottovoce.ground.errors import InvalidInput
from sottovoce.service.streams import Download, file_stream
from sottovoce.service.survey_service import SurveyStatus, checked
from sottovoce.service.table_routes import ANSWER_SECONDS, finished
from sottovoce.studio import kept_estimates
from sottovoce.studio.page_context import Studio
from sottovoce.studio.watch_page import names_of

LONGEST_NAME = 80  # characters of a file's name
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
}


@dataclass(frozen=True)
class KeptFile:
    """A file to take away: what writes it of a survey's estimate, its name and its type."""

    work: tuple[Any, ...]
    name: str
    media_type: str


def routes(studio: Studio) -> list[Route]:
    """Any table in any of the formats, all as Excel, and the report on one page."""

    def started(
        request: Request, asked_of: Callable[[Request, SurveyStatus], KeptFile]
    ) -> tuple[KeptFile, Download, Future[Any]]:
        survey = studio.service.survey(request.path_params["id"])
        asked = asked_of(request, survey)
        snapshot = checked(studio.service.snapshot(survey), survey.people)
        work = (kept_estimates.of_file, snapshot.file, *asked.work)
        return asked, *studio.service.download(lambda out: studio.jobs.submit(*work, out))

    def file(
        asked_of: Callable[[Request, SurveyStatus], KeptFile],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def sent(request: Request) -> Response:
            asked, made, writing = await run_in_threadpool(started, request, asked_of)
            await finished(writing, ANSWER_SECONDS, made)
            headers = {
                "Content-Disposition": f'attachment; filename="{asked.name}"',
                "Cache-Control": "no-store",
            }
            return await run_in_threadpool(file_stream, made, asked.media_type, headers)

        return sent

    def report(_: Request, survey: SurveyStatus) -> KeptFile:
        work = (kept_estimates.write_report, survey.plan.to_json(), survey.entry.texts)
        # a file to keep: the page that it is has a style of its own
        return KeptFile(work, "report.html", "text/html; charset=utf-8")

    def tables(_: Request, survey: SurveyStatus) -> KeptFile:
        work = (kept_estimates.write_tables, survey.plan.to_json())
        return KeptFile(work, "tables.xlsx", WORKBOOK)

    def table(request: Request, survey: SurveyStatus) -> KeptFile:
        kind, names = request.path_params["kind"], names_of(request)
        if kind not in TYPES or not names:
            raise InvalidInput(f"table: ask for attributes, and for one of {', '.join(TYPES)}")
        studio.service.check_table(survey, names)
        words = [re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "table" for name in names]
        name = "-".join(words)[:LONGEST_NAME]
        return KeptFile((kept_estimates.write_download, names, kind), f"{name}.{kind}", TYPES[kind])

    page, folder = studio.access.page, "/watch/{id:str}"
    return [
        Route(f"{folder}/report.html", page(file(report)), methods=["GET"]),
        Route(f"{folder}/tables.xlsx", page(file(tables)), methods=["GET"]),
        Route(f"{folder}/table.{{kind:str}}", page(file(table)), methods=["GET"]),
    ]
