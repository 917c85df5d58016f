"""What a method is: one way to answer a question. Marginals, heavy hitters and itemsets share it.

A folder of questions has one tuple ``METHODS``, from which a question takes the one that is named.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.results.estimate import Estimate
from sottovoce.schema import Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

AUTO = "auto"  # the name under which a question chooses its method itself
SPLITS = PEOPLE, BUDGET = ("people", "budget")  # what the parts of a question share out

Options = Mapping[str, Any]  # by name: what a person gave, or what a plan has settled
NO_OPTIONS: Options = MappingProxyType({})

T = TypeVar("T")  # what a question asks for: a workload of tables, values, items


@dataclass(frozen=True)
class RoundResult:
    """What the answers of one round say.

    ``known``: what the next round has to know, as its question holds it; None after the last round.
    """

    estimate: Estimate
    known: Any = None


class Method(ABC, Generic[T]):
    """One way to answer a question: who is asked what, and what the answers say.

    A method holds nothing. It is handed the ``target`` (what the question asks for) and ``options``
    by name, in the order of a survey: :meth:`refuse` and :meth:`settle` before there is a plan,
    :meth:`rounds` and :meth:`cohorts` for the plan, :meth:`predict` and :meth:`explain` for who
    reads it, :meth:`estimate` once people have answered. All but the first two are given the
    options as they were settled, which is how a plan holds them.
    """

    name: ClassVar[str]
    about: ClassVar[str]  # one line for tables
    source: ClassVar[str]  # a reference, or "ours"
    is_baseline: ClassVar[bool] = False  # whether it is here to be compared with, and never chosen
    options: ClassVar[tuple[str, ...]] = ()  # those that it takes; all others are refused
    package: ClassVar[str] = ""  # the other package that brings it, as plans name it

    # -- before there is a plan

    def refuse(self, target: T, terms: Terms) -> str | None:
        """Why this method cannot answer; None if it can."""
        return None

    def settle(self, target: T, terms: Terms, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """Every choice the plan must hold, as JSON without floats; by default there are none.

        Args:
            target: what the question asks for.
            terms: epsilon, and the people of all rounds.
            options: those that were given; the method chooses the others.
        """
        self.check_options(options)
        return {}

    def check_options(self, options: Options) -> None:
        """Refuse options that this method does not take."""
        for name in options:
            if name not in self.options:
                known = ", ".join(self.options) or "it has none"
                raise InvalidInput(f"option {name!r} is not one of {self.name}'s ({known})")

    # -- the plan

    def rounds(self, target: T, options: Options) -> tuple[int, ...]:
        """The shares of people of its rounds; by default there is one round."""
        return (1,)

    @abstractmethod
    def cohorts(self, schema: Schema, target: T, epsilon: Decimal, options: Options) -> Family:
        """Who is asked what, from the settled options alone."""

    # -- what is expected of it

    def predict(self, target: T, terms: Terms, options: Options) -> float | None:
        """The number by which plans are compared, less is better; None if it is not known
        beforehand. What it counts is the question's: see the subclass of its folder.
        """
        return None

    def reason(self, target: T, terms: Terms, options: Options) -> str:
        """A few words that say what the predicted error is made of."""
        return self.about

    def explain(self, target: T, plan: Plan, options: Options) -> list[str]:
        """Further lines for a person who wants to know what will be asked."""
        return []

    # -- once people have answered

    @abstractmethod
    def estimate(self, target: T, aggregate: Aggregate, options: Options) -> RoundResult:
        """What the crowd's integers say, and what a next round has to know of it."""


M = TypeVar("M", bound="Method[Any]")


def method_named(methods: Sequence[M], name: str, others: Sequence[str] = ()) -> M:
    """The method of a folder's tuple that has this name; ``others`` are those of other packages."""
    for method in methods:
        if method.name == name:
            return method
    names = ", ".join([AUTO, *(method.name for method in methods), *others])
    raise InvalidInput(f"method ({name}) must be one of {names}")


def given(**options: Any) -> dict[str, Any]:
    """The options that a person gave: None means that the method chooses.

    >>> given(width=4, salt=None)
    {'width': 4}
    """
    return {name: option for name, option in options.items() if option is not None}
