"""The studio's pages, added to a collector."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from sottovoce.ground.errors import SottovoceError
from sottovoce.pages.parts import STATIC
from sottovoce.service.logs import log, log_problem
from sottovoce.service.problems import Problem, problem_of
from sottovoce.service.survey_service import SurveyService
from sottovoce.studio import (
    compare_page,
    downloads,
    make_page,
    query_page,
    start_page,
    take_page,
    watch_page,
)
from sottovoce.studio.access import Access
from sottovoce.studio.languages import words
from sottovoce.studio.page_context import Studio

_HERE = Path(__file__).parent
STUDIO_PATH = "/studio"
_TITLES = {
    403: "This is not allowed",
    404: "There is nothing here",
    405: "This page does not take that",
}
_DETAILS = {404: "no page has this address", 405: "go back and try again"}


class _Files(StaticFiles):
    """Files that a browser asks about each time it needs them, and fetches only if they changed."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        answer = super().file_response(*args, **options)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


def add_studio(
    app: FastAPI,
    service: SurveyService,
    address: str | None = None,
    shuffler: str | None = None,
    language: str | None = None,
) -> Access:
    """Add the pages under ``/studio``; what it returns makes codes that let one browser in.

    ``address``: where participants' pages are; those who ask for them elsewhere are sent there.
    ``shuffler``: where these pages send the sealed reports of shuffled surveys.
    ``language``: of participants' pages; by default what each browser prefers.
    """
    if language is not None:
        words(language)  # refused now rather than when somebody takes part
    studio = Studio(service, Access(service.store), address, shuffler, language)
    pages: list[BaseRoute] = [
        Mount("/static", _Files(directory=_HERE / "static")),
        Mount("/client", _Files(directory=_HERE / "client")),
        Mount("/pages", _Files(directory=STATIC)),
    ]
    nouns = (start_page, make_page, take_page, watch_page, compare_page, query_page, downloads)
    for noun in nouns:
        pages += noun.routes(studio)

    async def refused(request: Request, wrong: Exception) -> Response:
        if isinstance(wrong, HTTPException):
            log("refused", path=STUDIO_PATH, status=wrong.status_code)
            title, detail = (
                _TITLES.get(wrong.status_code, "The request cannot be read"),
                _DETAILS.get(wrong.status_code),
            )
            return studio.render(
                request,
                "problem.html",
                wrong.status_code,
                title=title,
                detail=detail or wrong.detail,
            )
        problem = problem_of(wrong)
        log_problem(STUDIO_PATH, problem, wrong)
        page = studio.render(
            request, "problem.html", problem.status, title=problem.title, detail=problem.detail
        )
        page.headers.update(problem.headers)
        return page

    kinds: tuple[type[Exception], ...] = (Problem, SottovoceError, HTTPException, Exception)
    inner = Starlette(routes=pages, exception_handlers=dict.fromkeys(kinds, refused))
    app.router.routes += [Mount(STUDIO_PATH, inner), Route("/", _to_studio)]
    _stop_with(app, studio)
    return studio.access


async def _to_studio(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}{STUDIO_PATH}/")


def _stop_with(app: FastAPI, studio: Studio) -> None:
    """Stop background jobs when the collector stops."""
    inner = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(outer: FastAPI) -> AsyncIterator[Any]:
        try:
            async with inner(outer) as state:
                yield state
        finally:
            studio.jobs.close()

    app.router.lifespan_context = lifespan
