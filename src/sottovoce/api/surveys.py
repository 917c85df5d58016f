"""Surveys as people write them, in TOML or JSON: what they hold,
and the plans that come of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sottovoce.api.planning import plan
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import COINS, Plan
from sottovoce.protocol.question_forms import QUESTIONS
from sottovoce.questions.base import Question, are_names
from sottovoce.schema import Schema

SURVEY_PARTS = ("epsilon", "people", "schema", "question")
MORE_PARTS = ("title", "coin", "public")  # that may be left out
LONGEST_TITLE = 200


@dataclass(frozen=True)
class Survey:
    """What a survey says, before anything is planned.

    >>> made = Survey.parse({"epsilon": "1", "people": 1000, "schema": {"x": {"kind": "boolean"}},
    ...     "question": {"kind": "frequencies", "attributes": ["x"]}})
    >>> made.plan().people
    1000
    """

    schema: Schema
    question: Question
    epsilon: Any
    people: int
    title: str = ""
    coin: str = COINS[0]
    public: tuple[str, ...] = ()

    @classmethod
    def parse(cls, body: Mapping[str, Any], where: str = "survey") -> Survey:
        """Read ``epsilon``, ``people``, ``schema`` and ``question``.

        ``title``, ``coin`` and ``public`` may be there too.
        """
        for part in SURVEY_PARTS:
            if part not in body:
                raise InvalidInput(f"{where}: {part} is missing")
        unknown = [part for part in body if part not in SURVEY_PARTS + MORE_PARTS]
        if unknown:
            raise InvalidInput(
                f"{where}: {unknown[0]} is not one of {', '.join(SURVEY_PARTS + MORE_PARTS)}"
            )
        if not isinstance(body["question"], dict):
            raise InvalidInput(f"{where}: question must be a table, written [question]")
        title = body.get("title", "")
        if not isinstance(title, str) or len(title) > LONGEST_TITLE:
            raise InvalidInput(f"{where}: title must be text of at most {LONGEST_TITLE} characters")
        schema, question = parse_schema(body["schema"], where), parse_question(body["question"])
        public = body.get("public", [])
        if not are_names(public):
            raise InvalidInput(f'{where}: public must be a list of names, such as ["state"]')
        coin = body.get("coin", COINS[0])
        return cls(schema, question, body["epsilon"], body["people"], title, coin, tuple(public))

    def plan(self) -> Plan:
        """The plan that comes of it."""
        return plan(
            self.schema,
            self.question,
            epsilon=self.epsilon,
            people=self.people,
            coin=self.coin,
            public=self.public,
        )


def parse_schema(body: Any, where: str) -> Schema:
    """Attributes by name."""
    if not isinstance(body, dict):
        raise InvalidInput(f"{where}: schema must be a table, written [schema]")
    for name, attribute in body.items():
        if not isinstance(attribute, dict):
            raise InvalidInput(
                f"{where}: attribute {name!r} must be a table, written [schema.{name}]"
            )
    return Schema.from_json(body)


def parse_question(body: Mapping[str, Any]) -> Question:
    """A question by its ``kind``."""
    options: dict[str, Any] = {
        key: str(part) if isinstance(part, Decimal) else part for key, part in body.items()
    }
    kind = options.pop("kind", None)
    known = {form.kind: form for form in QUESTIONS}
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInput(f"question: kind ({kind}) must be one of {', '.join(known)}")
    question: type[Question] = known[kind].load()
    return question.from_survey(options)


def asked(kind: str, **options: Any) -> Question:
    """A question by its kind, as a survey file would describe it.

    >>> asked("frequencies", attributes=["age"]).kind
    'frequencies'
    """
    return parse_question(options | {"kind": kind})
