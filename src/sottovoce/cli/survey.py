"""Surveys as people write them, in TOML, and the plans that come of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sottovoce.errors import InvalidInput

if TYPE_CHECKING:
    from sottovoce.encodings import Ask
    from sottovoce.front import Plan
    from sottovoce.oracles import Oracle
    from sottovoce.plans import Question
    from sottovoce.schema import Schema

PARTS = ("epsilon", "people", "schema", "question")
MOST_AUDITED = 16  # asks of a plan that are audited one by one; of more, each different oracle once


class Survey(NamedTuple):
    """What a survey file says, before anything is planned."""

    schema: Schema
    question: Question
    epsilon: Any
    people: int


def read_survey(path: Path) -> Plan:
    """The plan of a survey file."""
    from sottovoce.front import plan

    survey = read_parts(path)
    return plan(survey.schema, survey.question, epsilon=survey.epsilon, people=survey.people)


def read_parts(path: Path) -> Survey:
    """A survey file: ``epsilon``, ``people``, ``[schema.NAME]`` for each attribute, ``[question]``.

    Numbers keep the digits they are written with, so that epsilon is exact.
    """
    body = _toml(path, "survey")
    for part in PARTS:
        if part not in body:
            raise InvalidInput(f"survey ({path}): {part} is missing")
    unknown = [part for part in body if part not in PARTS]
    if unknown:
        raise InvalidInput(f"survey ({path}): {unknown[0]} is not one of {', '.join(PARTS)}")
    if not isinstance(body["question"], dict):
        raise InvalidInput(f"survey ({path}): question must be a table, written [question]")
    return Survey(_schema(body["schema"], path, "survey"), _question(body["question"]), body["epsilon"], body["people"])


def read_schema(path: Path) -> Schema:
    """The ``[schema.NAME]`` part of a file, which may be a whole survey."""
    body = _toml(path, "schema")
    if "schema" not in body:
        raise InvalidInput(f"schema ({path}): the file has no [schema.NAME] part")
    return _schema(body["schema"], path, "schema")


def _toml(path: Path, what: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"), parse_float=Decimal)
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} ({path}): the file is not UTF-8") from None
    except tomllib.TOMLDecodeError as wrong:
        raise InvalidInput(f"{what} ({path}): the file is not TOML: {wrong}") from None


def _schema(body: Any, path: Path, what: str) -> Schema:
    from sottovoce.schema import Schema

    if not isinstance(body, dict):
        raise InvalidInput(f"{what} ({path}): schema must be a table, written [schema]")
    for name, attribute in body.items():
        if not isinstance(attribute, dict):
            raise InvalidInput(f"{what} ({path}): attribute {name!r} must be a table, written [schema.{name}]")
    return Schema.from_json(body)


def _question(body: Mapping[str, Any]) -> Question:
    from sottovoce.front import QUESTIONS
    from sottovoce.marginals import Marginals

    options: dict[str, Any] = {key: str(part) if isinstance(part, Decimal) else part for key, part in body.items()}
    kind = options.pop("kind", None)
    known = {question.kind: question for question in QUESTIONS}
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInput(f"question: kind ({kind}) must be one of {', '.join(known)}")
    is_marginals = kind == Marginals.kind
    attributes = options.pop("attributes", None)
    if not _are_names(attributes) and not (is_marginals and attributes is None):
        raise InvalidInput('question: attributes must be a list of names, such as ["age"]')
    try:
        return _marginals(attributes, options) if is_marginals else known[kind](*attributes, **options)
    except TypeError:
        raise InvalidInput(f"question: options ({', '.join(options)}) do not fit {kind}") from None


def _are_names(part: Any) -> bool:
    return isinstance(part, list) and all(isinstance(name, str) for name in part)


def _marginals(attributes: list[str] | None, options: dict[str, Any]) -> Question:
    from sottovoce.marginals import Marginals

    if "up_to" not in options:
        raise InvalidInput("question: up_to is missing: how many attributes a table may have")
    workload = options.get("workload")
    if workload is not None and not (isinstance(workload, list) and all(_are_names(each) for each in workload)):
        raise InvalidInput('question: workload must be a list of lists of names, such as [["age", "state"]]')
    if not isinstance(options.get("method", ""), str):
        raise InvalidInput("question: method must be a name")
    return Marginals(attributes=attributes, **options)


def read_plan(path: Path, id: str | None = None) -> Plan:
    """A plan as stored; its thresholds, its guarantee and, where one is expected, its id are checked."""
    from sottovoce.front import Plan

    return Plan.from_json(path.read_bytes(), id)


def asks(plan: Plan) -> list[tuple[int, Ask]]:
    """(people expected, ask) for all that a plan asks; of a family by a rule, for cohorts that stand for all."""
    cohorts = plan.cohorts
    shares = [(max(1, plan.round_people * each.weight // cohorts.weight), each) for each in cohorts.kinds]
    return [(people, ask) for people, cohort in shares for ask in cohort.asks]


@dataclass(frozen=True)
class Suspect:
    """An oracle to audit, and where it is used; no attributes for an oracle by itself."""

    attributes: tuple[str, ...]
    oracle: Oracle
    alike: int = 1  # asks that use it, this one included

    def to_json(self) -> dict[str, Any]:
        return {"attributes": list(self.attributes), "size": self.oracle.size, "asks": self.alike}

    def __str__(self) -> str:
        more = f" and {self.alike - 1:,} more asks" if self.alike > 1 else ""
        return f"{', '.join(self.attributes)}{more}: " if self.attributes else ""


def suspects(plan: Plan) -> list[Suspect]:
    """What an audit of a plan has to judge; of many asks each different oracle is judged once."""
    listed = [Suspect(ask.encoding.attributes, ask.oracle) for _, ask in asks(plan)]
    if len(listed) <= MOST_AUDITED:
        return listed
    groups: dict[Oracle, list[Suspect]] = {}
    for each in listed:
        groups.setdefault(each.oracle, []).append(each)
    return [Suspect(group[0].attributes, oracle, len(group)) for oracle, group in groups.items()]


@dataclass(frozen=True)
class Rank:
    """A method in the planner's ranking. One that does not fit has a reason and no figures."""

    method: str
    predicted_sse: float | None
    per_cell: float | None  # root mean squared error
    ratio: float | None  # of the squared error to the best method's
    reason: str
    chosen: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def planner_ranking(plan: Plan) -> list[Rank] | None:
    """Every method's predicted error for a plan of marginals, the best first and those that do not fit last."""
    from sottovoce.marginals import Marginals
    from sottovoce.marginals.methods import METHODS
    from sottovoce.marginals.planner import ranking

    question = plan.question
    if not isinstance(question, Marginals):
        return None
    work = question.work(plan.schema)
    cells = sum(work.cells(each) for each in work.sample) / len(work.sample)
    choices = ranking(work, plan.epsilon, plan.round_people)
    best = choices[0].error
    ranks = [
        Rank(
            choice.method.name,
            choice.error,
            (choice.error / cells) ** 0.5,
            choice.error / best if best > 0 else None,
            choice.reason,
            choice.method.name == question.method,
        )
        for choice in choices
    ]
    fitting = {rank.method for rank in ranks}
    for method in METHODS:
        if method.name not in fitting:
            reason = method.refuse(work, plan.epsilon, plan.round_people) or "left out by the planner"
            ranks.append(Rank(method.name, None, None, None, reason, method.name == question.method))
    return ranks
