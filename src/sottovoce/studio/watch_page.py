"""Watch a survey: people so far, what they say, how it goes together; updated in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sottovoce.analysis.sums import attributes_in
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible
from sottovoce.pages import figures
from sottovoce.pages.figures import Picture, Relations
from sottovoce.service.estimate_cache import Snapshot
from sottovoce.service.survey_service import SurveyStatus
from sottovoce.studio import kept_estimates
from sottovoce.studio.background_jobs import DRAWING_TOO_LONG
from sottovoce.studio.compare_forms import compare_context
from sottovoce.studio.forms import Fields
from sottovoce.studio.page_context import Studio
from sottovoce.studio.query_page import query_context
from sottovoce.studio.take_page import receiver_of

A_MOMENT = 0.15  # seconds that a page waits for a table before it says that it is being computed
MAX_SUM_LENGTH = 1000  # characters of a set of values that is asked for
PAGE_PARTS = ("people", "singles", "relations")


@dataclass(frozen=True)
class View:
    """What the page of a survey shows now."""

    survey: SurveyStatus
    snapshot: Snapshot
    singles: list[Picture] | None  # None while they are made
    relations: Relations | str | None
    versions: dict[str, str]  # of the page's parts

    @property
    def problem(self) -> str | None:
        """Why there is no estimate, if there is a reason."""
        return self.snapshot.problem


def view_of(studio: Studio, plan_id: str) -> View:
    """All that is known at once; whatever is not is made behind it."""
    survey = studio.service.survey(plan_id)
    snapshot = studio.service.snapshot(survey)
    drawn: dict[str, tuple[float, Any]] = {"singles": (0.0, None), "relations": (0.0, None)}
    if snapshot.file is not None:
        for part, work in (("singles", figures.singles), ("relations", figures.relations)):
            key, of_file = (
                (survey.plan.id, survey.kept.version, part),
                (kept_estimates.of_file, snapshot.file),
            )
            late = DRAWING_TOO_LONG if part == "relations" else None
            drawn[part] = studio.jobs.latest(key, snapshot.number, *of_file, work, late=late)
    versions = {
        part: f"{part}-{version}-{snapshot.problem is not None}"
        for part, (version, _) in drawn.items()
    }
    versions["people"] = f"people-{survey.people}-{survey.entry.closed}-{snapshot.number}"
    return View(survey, snapshot, drawn["singles"][1], drawn["relations"][1], versions)


def routes(studio: Studio) -> list[Route]:
    """The page, its parts as they change, any table, and the button that ends it."""
    access = studio.access

    def watch(request: Request) -> Response:
        studio.warm()
        view = view_of(studio, request.path_params["id"])
        link = f"{request.url.scheme}://{request.url.netloc}{request.scope['root_path']}/take/{view.survey.plan.id}"
        return studio.render(
            request,
            "watch.html",
            view=view,
            parts=PAGE_PARTS,
            link=link,
            receiver=receiver_of(view.survey.plan, studio.shuffler),
            names=[],
            summed="",
            typed=request.query_params,
            **_about(view.survey),
            **compare_context(studio, view.survey),
            **query_context(view.survey.plan),
        )

    def live(request: Request) -> Response:
        view = view_of(studio, request.path_params["id"])
        have = set(request.query_params.getlist("have"))
        parts = [part for part in PAGE_PARTS if view.versions[part] not in have]
        return studio.render(request, "live.html", view=view, parts=parts)

    def close(request: Request, _: Fields) -> Response:
        survey = studio.service.close(request.path_params["id"])
        return RedirectResponse(f"{request.scope['root_path']}/watch/{survey.plan.id}", 303)

    async def following(request: Request, _: Fields) -> Response:
        service = studio.service
        survey, _new = await to_thread.run_sync(
            service.next_round, request.path_params["id"], limiter=service.waiting
        )
        return RedirectResponse(f"{request.scope['root_path']}/watch/{survey.plan.id}", 303)

    def table(request: Request) -> Response:
        survey = studio.service.survey(request.path_params["id"])
        names, summed = names_of(request), request.query_params.get("sum", "").strip()
        if summed:
            names, wrong = _summed_names(survey, summed)
        else:
            wrong = ""
        picture = None
        if not wrong:
            picture, wrong = _table(studio, survey, names, summed)
        context = {"survey": survey, "names": names, "picture": picture, "wrong": wrong}
        context["summed"] = summed
        status = 422 if wrong else 200
        return studio.render(request, "table.html", status, **context, **_about(survey))

    return [
        Route("/watch/{id:str}", access.page(watch), methods=["GET"]),
        Route("/watch/{id:str}/live", access.page(live), methods=["GET"]),
        Route("/watch/{id:str}/close", access.action(close), methods=["POST"]),
        Route("/watch/{id:str}/next", access.action(following), methods=["POST"]),
        Route("/watch/{id:str}/table", access.page(table), methods=["GET"]),
    ]


def names_of(request: Request) -> list[str]:
    """The attributes that a table is asked of."""
    return request.query_params.getlist("attribute")


def _summed_names(survey: SurveyStatus, summed: str) -> tuple[list[str], str]:
    """(the attributes of a sum as it was typed, what is wrong with it)"""
    if len(summed) > MAX_SUM_LENGTH:
        return [], f"sum must have at most {MAX_SUM_LENGTH:,} characters"
    try:
        return list(attributes_in(survey.plan.schema, summed)), ""
    except InvalidInput as refused:
        return [], visible(str(refused))


def _table(
    studio: Studio, survey: SurveyStatus, names: list[str], summed: str
) -> tuple[Picture | None, str]:
    """(the picture if it is there in a moment, what is wrong with the question)"""
    known = survey.plan.cohorts.attributes
    wrong = next(
        (f"attribute {name!r} is not one of this survey's" for name in names if name not in known),
        "",
    )
    if not names or wrong:
        return None, wrong or "choose at least one attribute"
    try:
        studio.service.check_table(survey, names)
    except InvalidInput as refused:
        return None, str(refused)
    snapshot = studio.service.snapshot(survey)
    if snapshot.file is None:
        return None, snapshot.problem or ""
    key, of_file = (
        (survey.plan.id, survey.kept.version, "table", *names, summed),
        (kept_estimates.of_file, snapshot.file),
    )
    work: tuple[Any, ...] = (*of_file, figures.table_of, names)
    if summed:
        work = (*of_file, figures.summed_table, names, survey.plan.schema, summed)
    _, found = studio.jobs.latest(
        key, snapshot.number, *work, patience=A_MOMENT, late=DRAWING_TOO_LONG
    )
    return (None, found) if isinstance(found, str) else (found, "")


def _about(survey: SurveyStatus) -> dict[str, Any]:
    """What both pages say of a survey."""
    plan = survey.plan
    return {
        "plan": plan,
        "attributes": plan.cohorts.attributes,
        "joint": plan.question.is_joint,
        "words": str(plan),
        "longest_sum": MAX_SUM_LENGTH,
    }
