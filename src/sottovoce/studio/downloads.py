"""Tables to take away, one by one or all, and the report of a survey."""

from __future__ import annotations

import re
from concurrent.futures import Future
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sottovoce.ground.errors import InvalidInput
from sottovoce.service.streams import Download, file_stream
from sottovoce.service.survey_service import checked
from sottovoce.service.table_routes import ANSWER_SECONDS, finished
from sottovoce.studio import kept_estimates
from sottovoce.studio.page_context import Studio
from sottovoce.studio.watch_page import names_of

WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
}


def routes(studio: Studio) -> list[Route]:
    """Any table in any of the formats, all as Excel, and the report on one page."""

    def started(request: Request) -> tuple[Download, Future[Any]]:
        survey = studio.service.survey(request.path_params["id"])
        kind, names = _asked(request)
        if kind not in TYPES or not names:
            raise InvalidInput(f"table: ask for attributes, and for one of {', '.join(TYPES)}")
        studio.service.check_table(survey, names)
        snapshot = checked(studio.service.snapshot(survey), survey.people)
        work = (kept_estimates.of_file, snapshot.file, kept_estimates.write_download, names, kind)
        return studio.service.download(lambda out: studio.jobs.submit(*work, out))

    def reported(request: Request) -> tuple[Download, Future[Any]]:
        survey = studio.service.survey(request.path_params["id"])
        snapshot = checked(studio.service.snapshot(survey), survey.people)
        text, texts = survey.plan.to_json(), survey.entry.texts
        work = (kept_estimates.of_file, snapshot.file, kept_estimates.write_report, text, texts)
        return studio.service.download(lambda out: studio.jobs.submit(*work, out))

    async def report(request: Request) -> Response:
        made, drawing = await run_in_threadpool(reported, request)
        await finished(drawing, ANSWER_SECONDS, made)
        # a file to keep: the page that it is has a style of its own
        headers = {
            "Content-Disposition": 'attachment; filename="report.html"',
            "Cache-Control": "no-store",
        }
        return await run_in_threadpool(file_stream, made, "text/html; charset=utf-8", headers)

    def listed(request: Request) -> tuple[Download, Future[Any]]:
        survey = studio.service.survey(request.path_params["id"])
        snapshot = checked(studio.service.snapshot(survey), survey.people)
        text = survey.plan.to_json()
        work = (kept_estimates.of_file, snapshot.file, kept_estimates.write_tables, text)
        return studio.service.download(lambda out: studio.jobs.submit(*work, out))

    async def tables(request: Request) -> Response:
        made, writing = await run_in_threadpool(listed, request)
        await finished(writing, ANSWER_SECONDS, made)
        headers = {
            "Content-Disposition": 'attachment; filename="tables.xlsx"',
            "Cache-Control": "no-store",
        }
        return await run_in_threadpool(file_stream, made, WORKBOOK, headers)

    async def download(request: Request) -> Response:
        made, drawing = await run_in_threadpool(started, request)
        await finished(drawing, ANSWER_SECONDS, made)
        kind, names = _asked(request)
        name = "-".join(
            re.sub(r"[^A-Za-z0-9]+", "_", part).strip("_") or "table" for part in names
        )[:80]
        headers = {
            "Content-Disposition": f'attachment; filename="{name}.{kind}"',
            "Cache-Control": "no-store",
        }
        return await run_in_threadpool(file_stream, made, TYPES[kind], headers)

    return [
        Route("/watch/{id:str}/report.html", studio.access.page(report), methods=["GET"]),
        Route("/watch/{id:str}/tables.xlsx", studio.access.page(tables), methods=["GET"]),
        Route("/watch/{id:str}/table.{kind:str}", studio.access.page(download), methods=["GET"]),
    ]


def _asked(request: Request) -> tuple[str, list[str]]:
    return request.path_params["kind"], names_of(request)
