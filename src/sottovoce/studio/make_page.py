"""Make a survey: a form, and while it is filled in what the survey would learn and how well."""

from __future__ import annotations

from concurrent.futures import Future
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from sottovoce.ground.errors import InvalidInput, SottovoceError
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.texts import LONGEST, LONGEST_QUESTION, Texts
from sottovoce.service.problems import Problem
from sottovoce.service.survey_service import why_unheard
from sottovoce.service.table_routes import ANSWER_SECONDS, finished
from sottovoce.studio.designs import SurveyDesign, ask_design
from sottovoce.studio.forms import ATTRIBUTE_KINDS, Draft, Fields, Row
from sottovoce.studio.languages import DEFAULT_LANGUAGE, LANGUAGE_NAMES, words
from sottovoce.studio.page_context import Studio


def routes(studio: Studio) -> list[Route]:
    """The form, its live preview, and what becomes of it."""

    def page(
        request: Request, draft: Draft, wrong: str = "", existing: str = "", status: int = 200
    ) -> Response:
        return studio.render(
            request,
            "make.html",
            status,
            draft=draft,
            wrong=wrong,
            existing=existing,
            kinds=ATTRIBUTE_KINDS,
            longest=LONGEST,
            longest_question=LONGEST_QUESTION,
            languages=LANGUAGE_NAMES,
            no_answers={code: words(code).form["no_answer"] for code in LANGUAGE_NAMES},
            key=studio.service.key,
        )

    def blank(request: Request) -> Response:
        studio.warm()
        return page(request, Draft(rows=(Row(missing=words(DEFAULT_LANGUAGE).form["no_answer"]),)))

    async def designed(draft: Draft) -> SurveyDesign:
        """Made in another process; nobody stands in line behind it."""
        return cast(
            SurveyDesign,
            await finished(await run_in_threadpool(ask, studio, draft), ANSWER_SECONDS),
        )

    async def preview(_: Request, fields: Fields) -> Response:
        draft = Draft.of(fields)
        try:
            made = await designed(draft)
        except SottovoceError as wrong:
            return JSONResponse({"wrong": str(wrong)})
        except Problem as busy:
            if busy.name != "busy":
                raise
            return JSONResponse({"wrong": busy.detail})
        unheard = why_unheard(draft.keys, studio.service.key)
        return JSONResponse({"wrong": None, "unheard": unheard, **made.to_json()})

    async def create(request: Request, fields: Fields) -> Response:
        draft = Draft.of(fields)
        try:
            texts = draft.texts()
            made = await designed(draft)
        except SottovoceError as wrong:
            return await run_in_threadpool(page, request, draft, str(wrong), status=422)
        except Problem as busy:
            if busy.name != "busy":
                raise
            return await run_in_threadpool(page, request, draft, busy.detail, status=422)
        return await run_in_threadpool(created, request, draft, made, texts)

    def created(request: Request, draft: Draft, made: SurveyDesign, texts: Texts) -> Response:
        if studio.service.has(made.id):
            return page(
                request,
                draft,
                "a survey with exactly this plan is there already",
                made.id,
                status=409,
            )
        try:
            studio.service.create(Plan.from_json(made.plan, made.id), texts)
        except InvalidInput as wrong:
            return page(request, draft, str(wrong), status=422)
        return RedirectResponse(f"{request.scope['root_path']}/watch/{made.id}", 303)

    return [
        Route("/new", studio.access.page(blank, "manage"), methods=["GET"]),
        Route("/new", studio.access.action(create), methods=["POST"]),
        Route("/new/preview", studio.access.action(preview), methods=["POST"]),
    ]


def ask(studio: Studio, draft: Draft) -> Future[SurveyDesign]:
    """The design of what a form describes, unless it is too large to be planned here."""
    body = draft.body()
    studio.service.check_body(body)
    return ask_design(studio.jobs, studio.service.planning, body)
