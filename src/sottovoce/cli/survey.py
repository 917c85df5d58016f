"""Surveys as people write them, in TOML, and the plans that come of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.encodings import Ask
    from sottovoce.front import Plan
    from sottovoce.plans import Question

PARTS = ("epsilon", "people", "schema", "question")


def read_survey(path: Path) -> Plan:
    """The plan of a survey file: ``epsilon``, ``people``, ``[schema.NAME]`` for each attribute, ``[question]``.

    Numbers keep the digits they are written with, so that epsilon is exact.
    """
    from sottovoce.front import plan
    from sottovoce.schema import Schema

    try:
        body = tomllib.loads(path.read_text(encoding="utf-8-sig"), parse_float=Decimal)
    except UnicodeDecodeError:
        raise InvalidInput(f"survey ({path}): the file is not UTF-8") from None
    except tomllib.TOMLDecodeError as wrong:
        raise InvalidInput(f"survey ({path}): the file is not TOML: {wrong}") from None
    for part in PARTS:
        if part not in body:
            raise InvalidInput(f"survey ({path}): {part} is missing")
    unknown = [part for part in body if part not in PARTS]
    if unknown:
        raise InvalidInput(f"survey ({path}): {unknown[0]} is not one of {', '.join(PARTS)}")
    for part in ("schema", "question"):
        if not isinstance(body[part], dict):
            raise InvalidInput(f"survey ({path}): {part} must be a table, written [{part}]")
    for name, attribute in body["schema"].items():
        if not isinstance(attribute, dict):
            raise InvalidInput(f"survey ({path}): attribute {name!r} must be a table, written [schema.{name}]")
    return plan(
        Schema.from_json(body["schema"]),
        _question(body["question"]),
        epsilon=body["epsilon"],
        people=body["people"],
    )


def _question(body: Mapping[str, Any]) -> Question:
    from sottovoce.front import QUESTIONS

    options = {key: str(value) if isinstance(value, Decimal) else value for key, value in body.items()}
    kind = options.pop("kind", None)
    known = {question.kind: question for question in QUESTIONS}
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInput(f"question: kind ({kind}) must be one of {', '.join(known)}")
    attributes = options.pop("attributes", None)
    if not isinstance(attributes, list) or not all(isinstance(name, str) for name in attributes):
        raise InvalidInput('question: attributes must be a list of names, such as ["age"]')
    try:
        return known[kind](*attributes, **options)
    except TypeError:
        raise InvalidInput(f"question: options ({', '.join(options)}) do not fit {kind}") from None


def read_plan(path: Path, id: str | None = None) -> Plan:
    """A plan as stored; its thresholds, its guarantee and, where one is expected, its id are checked."""
    from sottovoce.front import Plan

    return Plan.from_json(path.read_bytes(), id)


def asks(plan: Plan) -> list[tuple[int, Ask]]:
    """(people expected, ask) for all that a plan asks."""
    return [(plan.cohort_people(index), ask) for index in range(len(plan.cohorts)) for ask in plan.cohorts[index].asks]
