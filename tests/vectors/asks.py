"""A question for the vectors alone: cohorts written down by hand, whatever question may ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

import sottovoce as sv
from sottovoce.api.planning import QUESTIONS
from sottovoce.protocol.cohorts import Cohorts
from sottovoce.protocol.plan import Question, Series

Build = Callable[[sv.Schema, Decimal], Cohorts]
BUILDS: dict[str, Build] = {}  # filled when the plans of tests.vectors.popular are made


@dataclass(frozen=True)
class Asks(Question):
    """Names cohorts of this list."""

    kind: ClassVar[str] = "asks"
    name: str

    def cohorts(self, schema: sv.Schema, epsilon: Decimal, people: int) -> Cohorts:
        return BUILDS[self.name](schema, epsilon)

    def estimate(self, aggregate: Any, **options: Any) -> Any:
        raise NotImplementedError

    def explain(self, plan: Any) -> list[str]:
        return []

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


class Plan(sv.Plan):
    """A plan that may hold such cohorts too."""

    @classmethod
    def from_json(cls, text: str | bytes, id: str | None = None) -> Self:
        return cls.parse(text, (*QUESTIONS, Asks), id)


def asking(
    name: str, schema: sv.Schema, build: Build, epsilon: str, coin: str = "device", series: Series | None = None
) -> Plan:
    """A plan of cohorts that are built by hand."""
    BUILDS[name] = build
    return Plan.make(schema, Asks(name), epsilon, 1000, series, coin)
