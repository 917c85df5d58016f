"""What a question is: what is to be learnt, how it becomes a plan, and what the crowd's integers say of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.results.estimate import Estimate
from sottovoce.schema import Schema


class Question(ABC):
    """What is to be learnt. A protocol implements three things: its cohorts, its estimate, its own description."""

    kind: ClassVar[str]
    resettles: ClassVar[bool] = True  # whether what is settled stays as it is if it is settled again

    def settled(self, schema: Schema, terms: Terms) -> Question:
        """The question with every choice made that a plan must hold; by default there are none."""
        return self

    def rounds(self, schema: Schema, terms: Terms) -> tuple[int, ...]:
        """The shares of people of its rounds, if what is asked next depends on what was heard; by default one round."""
        return (1,)

    @abstractmethod
    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        """Who is asked what."""

    @abstractmethod
    def estimate(self, aggregate: Aggregate, **options: Any) -> Estimate:
        """What the crowd's integers say."""

    @abstractmethod
    def explain(self, plan: Plan) -> list[str]:
        """Lines for a person who wants to know what will be asked and how well it will be known."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The question as JSON without floats; ``kind`` is added by the plan."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
