"""A question for the vectors alone: cohorts written down by hand, whatever question may ask for
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

import sottovoce as sv
from sottovoce.protocol import question_forms
from sottovoce.protocol.families import Family
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question

Build = Callable[[sv.Schema, Decimal], Family]
BUILDS: dict[str, Build] = {}  # filled when the plans of tests.vectors.popular are made


@dataclass(frozen=True)
class Asks(Question):
    """Names cohorts of this list."""

    kind: ClassVar[str] = "asks"
    name: str

    def cohorts(self, schema: sv.Schema, terms: Terms) -> Family:
        return BUILDS[self.name](schema, terms.epsilon)

    def estimate(self, aggregate: Any, **options: Any) -> Any:
        raise NotImplementedError

    def explain(self, plan: Any) -> list[str]:
        return []

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


# read with the others, in the tests of vectors alone
question_forms.QUESTIONS += (question_forms.QuestionForm(Asks.kind, ("name",), f"{__name__}:Asks"),)


def asking(
    name: str,
    schema: sv.Schema,
    build: Build,
    epsilon: str,
    coin: str = "device",
    series: Series | None = None,
) -> sv.Plan:
    """A plan of cohorts that are built by hand."""
    BUILDS[name] = build
    terms = Terms.of(epsilon, 1000)
    asked = {"kind": Asks.kind, **Asks(name).to_json()}
    return sv.Plan.write(
        schema, asked, terms, build(schema, terms.epsilon), series or Series(), coin
    )
