"""Take part: the questions, for somebody whose answers stay on her page; the browser draws what leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sottovoce.plans import Plan
from sottovoce.schema import Attribute, Boolean, Categorical, Integer, Items, Ordinal, Text
from sottovoce.studio.frame import POLICY, Studio

MOST_BUTTONS = 8  # choices that are shown side by side; more become a list
MOST_LISTED = 1000


@dataclass(frozen=True)
class Field:
    """How one attribute is asked for: by ``buttons``, a ``list`` or ``checks`` of (code, label), as a ``number``, in
    ``digits`` or as ``text``; ``none`` if it has more values than a page can show."""

    name: str
    kind: str
    choices: list[tuple[int, str]]
    low: int | None = None
    high: int | None = None
    step: int = 1
    longest: int | None = None


def field_of(name: str, attribute: Attribute) -> Field:
    """The right field for an attribute; of a list the browser's client takes the label at the chosen place."""
    if isinstance(attribute, Boolean):
        return Field(name, "buttons", [(1, "Yes"), (0, "No")])
    if isinstance(attribute, Text):
        return Field(name, "text", [], longest=attribute.bytes if attribute.longer == "refuse" else None)
    if isinstance(attribute, Integer) and attribute.size > MOST_LISTED:
        return Field(name, "digits", [], longest=len(str(attribute.size - 1)))
    if isinstance(attribute, Items):
        if attribute.size > MOST_LISTED:
            return Field(name, "none", [])
        return Field(name, "checks", list(enumerate(map(_spoken, attribute.labels()))))
    if isinstance(attribute, Ordinal) and (attribute.bins is not None or attribute.size > MOST_BUTTONS):
        return Field(name, "number", [], attribute.low, attribute.high)
    if isinstance(attribute, Categorical) and isinstance(attribute.values, range) and attribute.size > MOST_LISTED:
        ends = sorted((attribute.values[0], attribute.values[-1]))
        return Field(name, "number", [], ends[0], ends[1], abs(attribute.values.step))
    kind = "buttons" if attribute.size <= MOST_BUTTONS else "list"
    return Field(name, kind, list(enumerate(map(_spoken, attribute.labels()))))


def _spoken(label: Any) -> str:
    return {True: "Yes", False: "No"}[label] if isinstance(label, bool) else str(label)


def fields_of(plan: Plan) -> list[Field]:
    """Those that any cohort is asked about, in the schema's order."""
    asked = set(plan.cohorts.attributes)
    return [field_of(name, attribute) for name, attribute in plan.schema.items() if name in asked]


def routes(studio: Studio) -> list[Route]:
    """One page, for everybody."""

    def take(request: Request) -> Response:
        survey = studio.desk.exact_survey(request.path_params["id"])
        plan = survey.plan
        page = studio.render(
            request,
            "take.html",
            survey=survey,
            plan=plan,
            fields=fields_of(plan),
            guess=plan.guarantee.best_guess(0.5),
        )
        page.headers["Content-Security-Policy"] = POLICY.replace("form-action 'self'", "form-action 'none'")
        return page

    return [Route("/take/{id:str}", studio.access.public(take), methods=["GET"])]
