"""Surveys as people write them, in TOML or JSON: what they hold, and the plans that come of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sottovoce.api.planning import plan
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.plan import COINS, Plan
from sottovoce.protocol.question_forms import QUESTIONS
from sottovoce.questions.base import Question
from sottovoce.questions.heavyhitters import HeavyHitters
from sottovoce.questions.itemsets import TopItems, TopItemsets
from sottovoce.questions.marginals import Marginals
from sottovoce.schema import Schema

PARTS = ("epsilon", "people", "schema", "question")
MORE_PARTS = ("title", "coin", "public")  # that may be left out
LONGEST_TITLE = 200
POPULAR = (HeavyHitters, TopItems, TopItemsets)  # questions about one attribute


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
        """Read ``epsilon``, ``people``, ``schema``, ``question`` and perhaps ``title``, ``coin`` and ``public``."""
        for part in PARTS:
            if part not in body:
                raise InvalidInput(f"{where}: {part} is missing")
        unknown = [part for part in body if part not in PARTS + MORE_PARTS]
        if unknown:
            raise InvalidInput(f"{where}: {unknown[0]} is not one of {', '.join(PARTS + MORE_PARTS)}")
        if not isinstance(body["question"], dict):
            raise InvalidInput(f"{where}: question must be a table, written [question]")
        title = body.get("title", "")
        if not isinstance(title, str) or len(title) > LONGEST_TITLE:
            raise InvalidInput(f"{where}: title must be text of at most {LONGEST_TITLE} characters")
        schema, question = parse_schema(body["schema"], where), parse_question(body["question"])
        public = body.get("public", [])
        if not _are_names(public):
            raise InvalidInput(f'{where}: public must be a list of names, such as ["state"]')
        coin = body.get("coin", COINS[0])
        return cls(schema, question, body["epsilon"], body["people"], title, coin, tuple(public))

    def plan(self) -> Plan:
        """The plan that comes of it."""
        return plan(
            self.schema, self.question, epsilon=self.epsilon, people=self.people, coin=self.coin, public=self.public
        )


def parse_schema(body: Any, where: str) -> Schema:
    """Attributes by name."""
    if not isinstance(body, dict):
        raise InvalidInput(f"{where}: schema must be a table, written [schema]")
    for name, attribute in body.items():
        if not isinstance(attribute, dict):
            raise InvalidInput(f"{where}: attribute {name!r} must be a table, written [schema.{name}]")
    return Schema.from_json(body)


def parse_question(body: Mapping[str, Any]) -> Question:
    """A question by its ``kind``."""
    options: dict[str, Any] = {key: str(part) if isinstance(part, Decimal) else part for key, part in body.items()}
    kind = options.pop("kind", None)
    known = {form.kind: form for form in QUESTIONS}
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInput(f"question: kind ({kind}) must be one of {', '.join(known)}")
    question = known[kind].load()
    if issubclass(question, POPULAR):
        return _popular(question, options)
    is_marginals = kind == Marginals.kind
    attributes = options.pop("attributes", None)
    if not _are_names(attributes) and not (is_marginals and attributes is None):
        raise InvalidInput('question: attributes must be a list of names, such as ["age"]')
    try:
        return _marginals(attributes, options) if is_marginals else question(*attributes, **options)
    except TypeError:
        raise InvalidInput(f"question: options ({', '.join(options)}) do not fit {kind}") from None


def _are_names(part: Any) -> bool:
    return isinstance(part, list) and all(isinstance(name, str) for name in part)


def _popular(question: type[Question], options: dict[str, Any]) -> Question:
    """What is popular of one attribute; whatever else is said is an option of the method."""
    if not isinstance(options.get("attribute"), str):
        raise InvalidInput('question: attribute must be a name, such as "word"')
    if not isinstance(options.get("method", ""), str):
        raise InvalidInput("question: method must be a name")
    try:
        return question(**options)
    except TypeError:
        raise InvalidInput(f"question: options ({', '.join(options)}) do not fit {question.kind}") from None


def _marginals(attributes: list[str] | None, options: dict[str, Any]) -> Question:
    if "up_to" not in options:
        raise InvalidInput("question: up_to is missing: how many attributes a table may have")
    workload = options.get("workload")
    if workload is not None and not (isinstance(workload, list) and all(_are_names(each) for each in workload)):
        raise InvalidInput('question: workload must be a list of lists of names, such as [["age", "state"]]')
    if not isinstance(options.get("method", ""), str):
        raise InvalidInput("question: method must be a name")
    return Marginals(attributes=attributes, **options)
