"""Compare people: shares within groups, what changed since another survey, weighted answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible
from sottovoce.pages.comparisons import PeopleCompared
from sottovoce.service.survey_service import SurveyStatus
from sottovoce.studio import kept_estimates
from sottovoce.studio.background_jobs import DRAWING_TOO_LONG
from sottovoce.studio.compare_forms import (
    check_known,
    compare_context,
    groups_in,
    margin_in,
    one_of,
)
from sottovoce.studio.page_context import Studio
from sottovoce.studio.watch_page import A_MOMENT, names_of

MAX_WEIGHTED_REPORTS = 2_000_000  # of a survey whose answers are weighted here
SAME_SURVEY = (
    "Both surveys are of one plan: a device that remembers sent its first report again, so that "
    "no change is seen"
)


@dataclass(frozen=True)
class Asked:
    """A question: what makes its answer elsewhere, and under which key that is kept."""

    title: str
    key: tuple[Any, ...]
    work: tuple[Any, ...]


def routes(studio: Studio) -> list[Route]:
    """A page for each question, with its answer as soon as it is there."""

    def answered(request: Request, asked_of: Callable[[Request, SurveyStatus], Asked]) -> Response:
        survey = studio.service.survey(request.path_params["id"])
        found, wrong, title = None, "", "Compare"
        try:
            asked = asked_of(request, survey)
            title = asked.title
            found, wrong = answer(survey, asked)
        except InvalidInput as refused:
            wrong = visible(str(refused))
        return studio.render(
            request,
            "compare.html",
            422 if wrong else 200,
            survey=survey,
            plan=survey.plan,
            title=title,
            found=found,
            wrong=wrong,
            typed=request.query_params,
            **compare_context(studio, survey),
        )

    def answer(survey: SurveyStatus, asked: Asked) -> tuple[PeopleCompared | None, str]:
        """(the answer if it is there in a moment, what is wrong with the question)"""
        snapshot = studio.service.snapshot(survey)
        if snapshot.file is None:
            return None, snapshot.problem or ""
        key = (survey.plan.id, survey.kept.version, *asked.key)
        work = (kept_estimates.of_file, snapshot.file, *asked.work)
        _, found = studio.jobs.latest(
            key, snapshot.number, *work, patience=A_MOMENT, late=DRAWING_TOO_LONG
        )
        return (None, found) if isinstance(found, str) else (found, "")

    def groups(request: Request, survey: SurveyStatus) -> Asked:
        attribute = one_of(request, "attribute", survey.plan)
        chosen = groups_in(request, survey.plan)
        names = {attribute, *(name for group in chosen for name in group)}
        studio.service.check_table(survey, sorted(names))
        work = (kept_estimates.compared_groups, attribute, chosen)
        return Asked(f"{attribute}, by group", ("groups", attribute, repr(chosen)), work)

    def waves(request: Request, survey: SurveyStatus) -> Asked:
        names = names_of(request)
        if not names:
            raise InvalidInput("choose at least one attribute")
        earlier = studio.service.survey(request.query_params.get("before", ""))
        for each in (survey, earlier):
            check_known(names, each.plan)
            studio.service.check_table(each, names)
        if earlier.plan.id == survey.plan.id:
            raise InvalidInput(SAME_SURVEY)
        snapshot = studio.service.snapshot(earlier)
        if snapshot.file is None:
            raise InvalidInput("the earlier survey has no estimate yet; ask again")
        key = ("waves", earlier.plan.id, earlier.kept.version, snapshot.number, *names)
        title = f"What changed since {earlier.entry.title or earlier.plan.id[:8]}"
        return Asked(title, key, (kept_estimates.compared_waves, snapshot.file, names))

    def weights(request: Request, survey: SurveyStatus) -> Asked:
        plan = survey.plan
        margins = {
            name: margin_in(name, typed)
            for name in plan.columns
            if (typed := request.query_params.get(f"share {name}", "").strip())
        }
        if not margins:
            raise InvalidInput("give the population's shares of at least one column in clear")
        if survey.people > MAX_WEIGHTED_REPORTS:
            raise InvalidInput(
                f"at most {MAX_WEIGHTED_REPORTS:,} reports are weighted here; give the store to "
                "`sottovoce estimate --rake`"
            )
        work = (
            kept_estimates.compared_weights,
            studio.service.store.address,
            plan.to_json(),
            margins,
        )
        return Asked("Weighted answers", ("weights", repr(margins)), work)

    def page(asked_of: Callable[[Request, SurveyStatus], Asked]) -> Callable[[Request], Response]:
        return lambda request: answered(request, asked_of)

    access = studio.access
    return [
        Route("/watch/{id:str}/groups", access.page(page(groups)), methods=["GET"]),
        Route("/watch/{id:str}/change", access.page(page(waves)), methods=["GET"]),
        Route("/watch/{id:str}/weights", access.page(page(weights)), methods=["GET"]),
    ]
