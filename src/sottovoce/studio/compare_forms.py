"""What somebody typed into the forms that compare people, and what these forms need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from sottovoce.analysis.sums import group_in
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import Plan
from sottovoce.results.group_answers import Group
from sottovoce.schema import Attribute
from sottovoce.service.survey_service import SurveyStatus
from sottovoce.store import Entry
from sottovoce.studio.page_context import Studio

MAX_GROUP_LENGTH = 1000  # characters of a group
MAX_WEIGHT_VALUES = 200  # of a column in clear
MAX_EXAMPLE_VALUES = 4


def compare_context(studio: Studio, survey: SurveyStatus) -> dict[str, Any]:
    """What the forms of a survey need; those that do not fit it are left out."""
    plan = survey.plan
    names = listed_attributes(plan)
    if plan.question.answers_sql or not names:
        return {"group_attributes": [], "earlier": [], "weight_columns": []}
    return {
        "group_attributes": names if plan.question.is_joint else [],
        "earlier": _others(studio, plan, set(names)),
        "wave_attributes": names,
        "weight_columns": [
            (name, _example(plan.schema[name]))
            for name in plan.columns
            if plan.schema[name].size <= MAX_WEIGHT_VALUES
        ],
        "longest_group": MAX_GROUP_LENGTH,
    }


def _others(studio: Studio, plan: Plan, names: set[str]) -> list[Entry]:
    """Other surveys that ask about some of these attributes, the newest first."""
    entries = [
        entry
        for entry in studio.service.store.entries()
        if entry.plan.id != plan.id and names & set(entry.plan.cohorts.attributes)
    ]
    return entries[::-1]


def _example(attribute: Attribute) -> str:
    """How the shares of a column are typed."""
    labels = list(attribute.labels())[:MAX_EXAMPLE_VALUES]
    return ", ".join(f"{label}: …" for label in labels)


def listed_attributes(plan: Plan) -> list[str]:
    """Those that were asked about, whose values can be listed."""
    return [name for name in plan.cohorts.attributes if not plan.schema[name].is_open]


def one_of(request: Request, field: str, plan: Plan) -> str:
    """An attribute that a form names."""
    name = str(request.query_params.get(field, ""))
    check_known([name], plan)
    return name


def check_known(names: Sequence[str], plan: Plan) -> None:
    """Refuse attributes that a survey does not ask about."""
    for name in names:
        if name not in listed_attributes(plan):
            raise InvalidInput(f"attribute {name!r} is not one of this survey's")


def groups_in(request: Request, plan: Plan) -> list[Group]:
    """The groups that were typed, or one for each value of an attribute."""
    texts = [text.strip() for text in request.query_params.getlist("group") if text.strip()]
    by = str(request.query_params.get("by", ""))
    if any(len(text) > MAX_GROUP_LENGTH for text in texts):
        raise InvalidInput(f"group must have at most {MAX_GROUP_LENGTH:,} characters")
    if bool(texts) == bool(by):
        raise InvalidInput("name one or two groups, or choose an attribute that makes them")
    if by:
        check_known([by], plan)
        return [{by: label} for label in plan.schema[by].labels()]
    return [group_in(plan.schema, text) for text in texts]


def margin_in(name: str, typed: str) -> dict[str, str]:
    """The shares of a column's values, as they were typed: NY: 0.5, WA: 50%.

    >>> margin_in("state", "NY: 0.5, WA: 50%")
    {'NY': '0.5', 'WA': '0.5'}
    """
    shares: dict[str, str] = {}
    for part in typed.split(","):
        label, colon, share = part.rpartition(":")
        share = share.strip()
        try:
            number = float(share.rstrip("%")) / (100 if share.endswith("%") else 1)
        except ValueError:
            number = -1.0
        if not colon or not label.strip() or not 0 <= number <= 1:
            raise InvalidInput(
                f"shares of {name!r} must be written value: share, with commas between, such as "
                "NY: 0.5, WA: 50%"
            )
        if label.strip() in shares:
            raise InvalidInput(f"shares of {name!r} must name {label.strip()!r} once")
        shares[label.strip()] = repr(number)
    return shares
