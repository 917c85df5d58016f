"""Surveys as people write them, in TOML or JSON: what they hold,
and the plans that come of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sottovoce.api.planning import plan
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import COINS, Plan
from sottovoce.protocol.question_forms import QUESTIONS
from sottovoce.protocol.terms import LOCAL
from sottovoce.protocol.texts import Texts
from sottovoce.questions.base import Question, are_names
from sottovoce.questions.outside import BROUGHT_QUESTIONS
from sottovoce.schema import Attribute, Schema
from sottovoce.schema.missing import with_missing

SURVEY_PARTS = ("epsilon", "people", "schema", "question")
SHUFFLED_PARTS = ("delta", "cap", "fakes", "least", "hops")  # that only shuffled plans have
MORE_PARTS = ("title", "texts", "coin", "public", "trust", *SHUFFLED_PARTS)  # may be left out
ATTRIBUTE_TEXT = "question"  # beside an attribute: how people are asked for it
MISSING = "missing"  # beside an attribute: the answer of people who give none


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
    texts: Texts = field(default_factory=Texts)
    coin: str = COINS[0]
    public: tuple[str, ...] = ()
    trust: str = LOCAL
    shuffled: Mapping[str, Any] = field(default_factory=dict)  # what only shuffled plans have

    @classmethod
    def parse(cls, body: Mapping[str, Any], where: str = "survey") -> Survey:
        """Read ``epsilon``, ``people``, ``schema`` and ``question``.

        ``title``, ``texts``, ``coin``, ``public`` and ``trust`` may be there too, with
        ``trust = "shuffled"`` what :func:`sottovoce.plan` takes for it, and beside an attribute
        its ``question`` and the answer of people who give none (``missing``).
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
        schema, question = parse_schema(body["schema"], where), parse_question(body["question"])
        texts = parse_texts(body, where)
        public = body.get("public", [])
        if not are_names(public):
            raise InvalidInput(f'{where}: public must be a list of names, such as ["state"]')
        hops = body.get("hops", [])
        if not are_names(hops):
            raise InvalidInput(f"{where}: hops must be a list of public keys")
        return cls(
            schema,
            question,
            body["epsilon"],
            body["people"],
            texts,
            body.get("coin", COINS[0]),
            tuple(public),
            body.get("trust", LOCAL),
            {name: body[name] for name in SHUFFLED_PARTS if name in body},
        )

    def plan(self) -> Plan:
        """The plan that comes of it."""
        return plan(
            self.schema,
            self.question,
            epsilon=self.epsilon,
            people=self.people,
            coin=self.coin,
            public=self.public,
            trust=self.trust,
            **self.shuffled,
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
    plain = {
        name: {key: part for key, part in attribute.items() if key not in (ATTRIBUTE_TEXT, MISSING)}
        for name, attribute in body.items()
    }
    schema = Schema.from_json(plain)
    asked = {name: body[name][MISSING] for name in body if MISSING in body[name]}
    return Schema(
        **{
            name: _answerable(name, attribute, asked[name]) if name in asked else attribute
            for name, attribute in schema.items()
        }
    )


def _answerable(name: str, attribute: Attribute, missing: Any) -> Attribute:
    """An attribute with the answer of people who give none."""
    try:
        return with_missing(attribute, missing)
    except InvalidInput as wrong:
        raise InvalidInput(f"attribute {name!r}: {wrong}") from None


def parse_texts(body: Mapping[str, Any], where: str = "survey") -> Texts:
    """What a survey says to people: its ``title`` and ``texts``, each attribute's ``question``."""
    texts = body.get("texts", {})
    if not isinstance(texts, dict):
        raise InvalidInput(f"{where}: texts must be a table, written [texts]")
    title = body.get("title", "")
    if title != "" and "title" in texts:
        raise InvalidInput(f"{where}: title is given twice, by itself and among the texts")
    questions = {
        name: attribute[ATTRIBUTE_TEXT]
        for name, attribute in body["schema"].items()
        if ATTRIBUTE_TEXT in attribute
    }
    if "questions" in texts:
        raise InvalidInput(f"{where}: questions stand beside their attributes, as question = ...")
    named = texts if title == "" else {**texts, "title": title}
    return Texts.parse({**named, "questions": questions}, where)


def parse_question(body: Mapping[str, Any]) -> Question:
    """A question by its ``kind``."""
    options: dict[str, Any] = {
        key: str(part) if isinstance(part, Decimal) else part for key, part in body.items()
    }
    kind = options.pop("kind", None)
    known = {form.kind: form for form in QUESTIONS}
    if not isinstance(kind, str):
        raise InvalidInput(f"question: kind ({kind}) must be one of {', '.join(known)}")
    question: type[Question] | None = known[kind].load() if kind in known else None
    if question is None:
        question = BROUGHT_QUESTIONS.load(kind, known)
    if question is None:
        names = ", ".join([*known, *BROUGHT_QUESTIONS.entries(known)])
        raise InvalidInput(f"question: kind ({kind}) must be one of {names}")
    return question.from_survey(options)


def asked(kind: str, **options: Any) -> Question:
    """A question by its kind, as a survey file would describe it.

    >>> asked("frequencies", attributes=["age"]).kind
    'frequencies'
    """
    return parse_question(options | {"kind": kind})
