"""Make a survey: a form, and while it is filled in what the survey would learn and how well."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from sottovoce.errors import SottovoceError
from sottovoce.front import Plan
from sottovoce.studio.designs import ask_design
from sottovoce.studio.forms import KINDS, Draft, Fields
from sottovoce.studio.frame import Studio
from sottovoce.surveys import LONGEST_TITLE, Survey

LONGEST_PLANNING = 60.0  # seconds


def routes(studio: Studio) -> list[Route]:
    """The form, its live preview, and what becomes of it."""

    def page(request: Request, draft: Draft, wrong: str = "", existing: str = "", status: int = 200) -> Response:
        return studio.render(
            request,
            "make.html",
            status,
            draft=draft,
            wrong=wrong,
            existing=existing,
            kinds=KINDS,
            longest_title=LONGEST_TITLE,
        )

    def blank(request: Request) -> Response:
        studio.warm()
        return page(request, Draft())

    def preview(_: Request, fields: Fields) -> Response:
        try:
            made = ask_design(studio.artist, checked_body(studio, Draft.of(fields))).result(LONGEST_PLANNING)
        except SottovoceError as wrong:
            return JSONResponse({"wrong": str(wrong)})
        except TimeoutError:
            return JSONResponse({"wrong": "planning takes too long; ask about fewer attributes"})
        return JSONResponse({"wrong": None, **made.to_json()})

    def create(request: Request, fields: Fields) -> Response:
        draft = Draft.of(fields)
        try:
            body = checked_body(studio, draft)
            if len(draft.title) > LONGEST_TITLE:
                return page(request, draft, f"title must have at most {LONGEST_TITLE} characters", status=422)
            made = ask_design(studio.artist, body).result(LONGEST_PLANNING)
        except SottovoceError as wrong:
            return page(request, draft, str(wrong), status=422)
        except TimeoutError:
            return page(request, draft, "planning takes too long; ask about fewer attributes", status=422)
        if studio.desk.has(made.id):
            return page(request, draft, "a survey with exactly this plan is there already", made.id, status=409)
        studio.desk.create(Plan.from_json(made.plan, made.id), draft.title)
        return RedirectResponse(f"{request.scope['root_path']}/watch/{made.id}", 303)

    return [
        Route("/new", studio.access.page(blank, "manage"), methods=["GET"]),
        Route("/new", studio.access.action(create), methods=["POST"]),
        Route("/new/preview", studio.access.action(preview), methods=["POST"]),
    ]


def checked_body(studio: Studio, draft: Draft) -> dict[str, Any]:
    """What a form describes, unless it is too large to be planned here."""
    body = draft.body()
    described = Survey.parse(body)
    studio.desk.check(described.schema, described.question)
    return body
