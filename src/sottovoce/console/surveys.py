"""Files that a command reads: surveys in TOML, plans; and what a plan's audit and ranking say."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.guarantee import at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sottovoce.api.surveys import Survey
    from sottovoce.oracles import Oracle
    from sottovoce.protocol.encodings import Ask
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.texts import Texts
    from sottovoce.questions.prediction import Rank
    from sottovoce.schema import Schema

MOST_AUDITED = 16  # asks of a plan that are audited one by one; of more, each different oracle once


def read_parts(path: Path) -> Survey:
    """A survey file: ``epsilon``, ``people``, ``[schema.NAME]`` for each attribute, ``[question]``.

    Numbers keep the digits they are written with, so that epsilon is exact.
    """
    from sottovoce.api.surveys import Survey

    return Survey.parse(_toml(path, "survey"), f"survey ({path})")


def read_schema(path: Path) -> Schema:
    """The ``[schema.NAME]`` part of a file, which may be a whole survey."""
    from sottovoce.api.surveys import parse_schema

    body = _toml(path, "schema")
    if "schema" not in body:
        raise InvalidInput(f"schema ({path}): the file has no [schema.NAME] part")
    return parse_schema(body["schema"], f"schema ({path})")


def _toml(path: Path, what: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"), parse_float=Decimal)
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} ({path}): the file is not UTF-8") from None
    except tomllib.TOMLDecodeError as wrong:
        raise InvalidInput(f"{what} ({path}): the file is not TOML: {wrong}") from None


def read_margins(path: Path) -> dict[str, dict[str, Any]]:
    """The population's shares of public columns: a table for each, in it a share for each value."""
    found = _toml(path, "rake")
    for name, shares in found.items():
        if not isinstance(shares, dict) or not all(
            isinstance(share, int | Decimal) for share in shares.values()
        ):
            raise InvalidInput(f"rake ({path}): {name!r} must be a table of shares, a value each")
    return found


def read_plan(path: Path, id: str | None = None) -> Plan:
    """A plan as stored; its thresholds, guarantee and, where one is expected, id are checked."""
    from sottovoce.protocol.plan import Plan

    made = Plan.from_json(path.read_bytes(), id)
    _ = made.question  # refused now, if it does not derive the plan
    return made


def read_texts(path: Path, made: Plan) -> Texts:
    """What a plan that was read from a file says to people, as it lies beside it."""
    from sottovoce.console.writing import texts_file
    from sottovoce.protocol.texts import NO_TEXTS, Texts

    beside = texts_file(path)
    if not beside.is_file():
        return NO_TEXTS
    try:
        body = json.loads(beside.read_text("utf-8"))
        of = body.pop("plan")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise InvalidInput(f"texts ({beside}): no file that `sottovoce plan` wrote") from None
    if of != made.id:
        raise InvalidInput(f"texts ({beside}): they belong to another plan; move them away")
    return Texts.parse(body, f"texts ({beside})")


def _read_derived(path: Path) -> Plan:
    """A plan to audit: whether it keeps what shuffling is to promise is for the audit to say."""
    from sottovoce.protocol.plan import Plan

    made = Plan.from_json(path.read_bytes())
    _ = made.derived_question
    return made


def asks(plan: Plan) -> list[tuple[int, Ask]]:
    """(people expected, ask) for all that a plan asks; of a rule, for a sample of cohorts."""
    cohorts = plan.cohorts
    shares = [
        (max(1, plan.round_people * each.weight // cohorts.weight), each) for each in cohorts.kinds
    ]
    return [(people, ask) for people, cohort in shares for ask in cohort.asks]


@dataclass(frozen=True)
class Suspect:
    """An oracle to audit, and where it is used; no attributes for an oracle by itself."""

    attributes: tuple[str, ...]
    oracle: Oracle
    alike: int = 1  # asks that use it, this one included
    # of a report, where people's own sampling makes it less than the oracle's epsilon
    cost: float | None = None

    def to_json(self) -> dict[str, Any]:
        told = {"attributes": list(self.attributes), "size": self.oracle.size, "asks": self.alike}
        return told if self.cost is None else told | {"report_epsilon": self.cost}

    def __str__(self) -> str:
        more = f" and {self.alike - 1:,} more asks" if self.alike > 1 else ""
        less = (
            ""
            if self.cost is None
            else f" (of a sampled item: a report costs {at_most(self.cost)})"
        )
        return f"{', '.join(self.attributes)}{more}{less}: " if self.attributes else ""


def audited_plan(
    plan_file: Path | None, oracle: str | None, size: int | None, epsilon: str | None
) -> tuple[Plan | None, Suspect | None]:
    """What an audit was asked to judge: a plan, or one oracle by itself."""
    from sottovoce.oracles import oracle as build

    if plan_file is not None:
        if (oracle, size, epsilon) != (None, None, None):
            raise InvalidInput("audit: give a plan, or --oracle, --size and --epsilon, not both")
        return _read_derived(plan_file), None
    if oracle is None or size is None or epsilon is None:
        raise InvalidInput("audit: give a plan, or all of --oracle, --size and --epsilon")
    return None, Suspect((), build(oracle, size=size, epsilon=epsilon))


def suspects(plan: Plan) -> list[Suspect]:
    """What an audit of a plan has to judge; of many asks each different oracle is judged once."""
    listed = [
        Suspect(ask.encoding.attributes, ask.oracle, cost=_cost(ask)) for _, ask in asks(plan)
    ]
    if len(listed) <= MOST_AUDITED:
        return listed
    groups: dict[Oracle, list[Suspect]] = {}
    for each in listed:
        groups.setdefault(each.oracle, []).append(each)
    return [
        Suspect(group[0].attributes, oracle, len(group), group[0].cost)
        for oracle, group in groups.items()
    ]


def _cost(ask: Ask) -> float | None:
    cost = ask.guarantee.per_report
    return cost if cost != ask.oracle.epsilon else None


def planner_ranking(plan: Plan) -> tuple[Rank, ...]:
    """Every method's predicted error for a plan, baselines too; those that do not fit are last.

    Empty where a question leaves no choice of methods.
    """
    return plan.question.rank(plan, baselines=True)


def ranking_json(plan: Plan, ranks: Sequence[Rank]) -> dict[str, Any]:
    """A ranking as JSON, and what the plan never asks about; nothing where there is no ranking."""
    if not ranks:
        return {}
    return plan.question.gaps(plan) | {"ranking": [rank.to_json() for rank in ranks]}
