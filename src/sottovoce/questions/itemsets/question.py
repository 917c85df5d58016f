"""The questions: the items, or the sets of items, that most people hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question, ShuffledChoice, check_single
from sottovoce.questions.itemsets import methods
from sottovoce.questions.itemsets.known import Known
from sottovoce.questions.itemsets.method import ItemMethod
from sottovoce.questions.itemsets.target import ItemTarget
from sottovoce.questions.method import AUTO, BUDGET, PEOPLE, given
from sottovoce.questions.prediction import Figure, Prediction
from sottovoce.schema import Items, Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.results.findings import Findings

MAX_TOP_ITEMS = 1 << 15
PARTS = ("attribute", "top", "method", "options", "round", "known")


@dataclass(frozen=True, init=False)
class Popular(Question):
    """What most people hold of an attribute of sets. Rounds follow each other;
    nobody answers two.

    Args:
        attribute: its name.
        top: how many.
        method: its name, or ``auto``.
        candidates: how many items go on to be counted.
        shares: whole numbers that share out the people, by round.
        first_oracle: through which candidates are found.
        first_length: to which sets are padded meanwhile.
        second_oracle: through which candidates are counted.
        second_length: to which sets are padded meanwhile.
        sizes_oracle: through which sizes are told.
        update: whether counts are corrected by the sizes heard.
        combine: whether both phases' evidence is used.
        split: ``people``, or ``budget`` to ask everybody twice.
    """

    finds: ClassVar[bool] = True
    sets: ClassVar[bool]
    attribute: str
    top: int
    method: str
    options: Mapping[str, Any] = field(hash=False)
    round: int  # the place of this question's round
    known: Known = field(hash=False)

    def __init__(
        self,
        attribute: str,
        top: int,
        method: str = AUTO,
        *,
        candidates: int | None = None,
        shares: Sequence[int] | None = None,
        first_oracle: str | None = None,
        first_length: int | str | None = None,
        second_oracle: str | None = None,
        second_length: int | str | None = None,
        sizes_oracle: str | None = None,
        update: bool | None = None,
        combine: bool | None = None,
        split: str | None = None,
    ) -> None:
        if not isinstance(attribute, str):
            raise InvalidInput("attribute must be the name of an attribute of sets")
        if not isinstance(method, str):
            raise InvalidInput(f"method ({method}) must be a name")
        options = given(
            candidates=candidates,
            shares=shares,
            first_oracle=first_oracle,
            first_length=first_length,
            second_oracle=second_oracle,
            second_length=second_length,
            sizes_oracle=sizes_oracle,
            update=update,
            combine=combine,
            split=split,
        )
        self._set(attribute, whole("top", top, 1, MAX_TOP_ITEMS), method, options, 0, Known())

    def _set(self, *values: Any) -> None:
        for name, value in zip(PARTS, values, strict=True):
            object.__setattr__(self, name, value)

    def _with(self, **changes: Any) -> Self:
        """The same question with some parts changed: settled options, or another round."""
        made = object.__new__(type(self))
        made._set(*(changes.get(name, getattr(self, name)) for name in PARTS))
        return made

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        check_single(options)
        return super().from_survey(options)

    def attributes_in(self, schema: Schema) -> tuple[str, ...]:
        return (self.attribute,)

    @property
    def _chosen(self) -> ItemMethod:
        return methods.method(self.method, of_sets=self.sets)

    def target(self, schema: Schema) -> ItemTarget:
        """What is looked for; refused of attributes that are no sensitive sets."""
        attribute = schema[self.attribute]
        if not isinstance(attribute, Items):
            raise InvalidInput(
                f"attribute {self.attribute!r} is no set of items; this question is about sets"
            )
        if not attribute.sensitive:
            raise InvalidInput(
                f"attribute {self.attribute!r} is public; only sensitive attributes are whispered"
            )
        return ItemTarget(
            self.attribute, attribute.size, self.top, self.sets, self.round, self.known
        )

    # -- from a survey to a plan

    def settled(self, schema: Schema, terms: Terms) -> Self:
        target, chosen = self.target(schema), self._chosen
        options = chosen.settle(target, terms, self.options)
        shares = chosen.rounds(target, options)
        if terms.people < sum(shares):
            raise InvalidInput(
                f"people ({terms.people}) must be at least {sum(shares)} for the {len(shares)} "
                f"rounds of {chosen.name}"
            )
        return self._with(method=chosen.name, options=options)

    def rounds(self, schema: Schema) -> tuple[int, ...]:
        return self._chosen.rounds(self.target(schema), self.options)

    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        return self._chosen.cohorts(schema, self.target(schema), terms.epsilon, self.options)

    def shuffled_choices(
        self, schema: Schema, epsilon: float, delta: float, people: int, fakes: int
    ) -> Sequence[ShuffledChoice]:
        if self.options.get("split") == BUDGET:
            raise InvalidInput(
                f"split ({BUDGET}) must be {PEOPLE} in a shuffled plan: what two shuffled reports "
                "of one person tell together is not counted"
            )
        return super().shuffled_choices(schema, epsilon, delta, people, fakes)

    # -- what was learnt

    def estimate(self, aggregate: Aggregate) -> Findings:
        """What this round says; ``next`` is the question of the round that follows, if there is
        one.
        """
        aggregate.require_people()
        target = self.target(aggregate.plan.schema)
        result = self._chosen.estimate(target, aggregate, self.options)
        found = cast("Findings", result.estimate)
        if result.known is None:
            return found
        return replace(found, next=self._with(round=self.round + 1, known=result.known))

    # -- what is expected of it

    def predict(self, schema: Schema, terms: Terms, series: Series | None = None) -> Prediction:
        """The error of one popular value; how frequent it must be to be found depends on how many
        items people hold.
        """
        made = self.plan(schema, terms, series)
        reason = (
            f"question ({self.kind}): what it needs depends on how many items people hold; see its "
            "plan"
        )
        error = sqrt(made.cohorts[0].asks[0].oracle.variance(made.round_people))
        figure = Figure("a popular value", error)
        return Prediction(nan, self.method, (figure,), is_share=True, unknown=reason)

    def explain(self, plan: Plan) -> list[str]:
        target, chosen = self.target(plan.schema), self._chosen
        what = "sets of items" if self.sets else "items"
        return [
            f"Question: the {self.top} {what} that most people hold, of {target.items:,} items of "
            f"{self.attribute}",
            f"Method: {chosen.name} ({chosen.about}), {chosen.source}",
            *chosen.explain(target, plan, self.options),
        ]

    # -- in a plan

    def to_json(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute,
            "top": self.top,
            "method": self.method,
            "options": dict(sorted(self.options.items())),
            "round": self.round,
            "known": self.known.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        plain = cls(data["attribute"], data["top"], data["method"])
        return plain._with(
            options=dict(data["options"]),
            round=whole("plan: round", data["round"], 0, MAX_TOP_ITEMS),
            known=Known.from_json(data["known"]),
        )


class TopItems(Popular):
    """The ``top`` items that most people hold, of an attribute of sets.

    What is not given, the method chooses; an option that it does not take is refused.

    Args:
        attribute: its name.
        top: how many items.
        method: ``auto``, the best there is (now ``wheel``: whole sets are whispered, of all items
            first, then of candidates), or one of psfo, ldpminer, svim, wheel.
        length: psfo, which needs it: to which sets are padded; of longer ones a part is cut off.
        oracle: psfo: adaptive, grr, olh, olh-seeded, olh-sets, ...
        delta: psfo: for (epsilon, delta)-privacy, a small chance as a number or a fraction.
        candidates: ldpminer, svim, wheel: how many items go on, by default twice ``top``.
        shares: of the same: whole numbers that share out the people, by round.
        first_oracle: of the same: through which candidates are found, or ``best``.
        first_length: of the same: to which sets are padded meanwhile; or ``percentile`` of the
            sizes heard, or ``best``.
        second_oracle: of the same: through which candidates are counted.
        second_length: of the same: as of the first phase, or ``candidates`` for all of them.
        sizes_oracle: of the same: through which sizes are told.
        update: of the same: whether counts are corrected by the sizes heard.
        combine: of the same: whether both phases' evidence is used.
        split: of the same: ``people``, or ``budget`` to ask everybody both phases.

    >>> import sottovoce as sv
    >>> schema = sv.Schema(basket=sv.Items(["milk", "bread", "tea"]))
    >>> question = TopItems("basket", top=2, method="psfo", length=2)
    >>> plan = sv.plan(schema, question, epsilon=2.0, people=4000)
    >>> reports = sv.simulate(plan, {"basket": [["milk", "tea"], ["milk"]] * 2000}, seed=1)
    >>> sv.Aggregate(plan).add(reports).estimate().table.labels
    ['milk', 'tea']
    """

    kind: ClassVar[str] = "top-items"
    sets: ClassVar[bool] = False

    def __init__(
        self,
        attribute: str,
        top: int,
        method: str = AUTO,
        *,
        length: int | None = None,
        oracle: str | None = None,
        delta: Any = None,
        candidates: int | None = None,
        shares: Sequence[int] | None = None,
        first_oracle: str | None = None,
        first_length: int | str | None = None,
        second_oracle: str | None = None,
        second_length: int | str | None = None,
        sizes_oracle: str | None = None,
        update: bool | None = None,
        combine: bool | None = None,
        split: str | None = None,
    ) -> None:
        super().__init__(
            attribute,
            top,
            method,
            candidates=candidates,
            shares=shares,
            first_oracle=first_oracle,
            first_length=first_length,
            second_oracle=second_oracle,
            second_length=second_length,
            sizes_oracle=sizes_oracle,
            update=update,
            combine=combine,
            split=split,
        )
        of_one_round = given(length=length, oracle=oracle, delta=delta)
        object.__setattr__(self, "options", {**of_one_round, **self.options})


class TopItemsets(Popular):
    """The ``top`` sets of items that most people hold: single items too, as sets of one.

    Items are found first, by half of the people; the others count the sets of them that are likely
    frequent. What is not given, the method chooses.

    Args:
        attribute: its name.
        top: how many sets.
        method: ``auto`` (now ``wheel``), or one of ldpminer, svsm, wheel.
        candidates: how many items, and how many sets, go on, by default twice ``top``.
        shares: whole numbers that share out the people, by round.
        first_oracle: through which candidates are found, or ``best``.
        first_length: to which sets are padded meanwhile; or ``percentile`` of the sizes heard, or
            ``best``.
        second_oracle: through which candidates are counted.
        second_length: as of the first phase, or ``candidates`` for all of them.
        sizes_oracle: through which sizes are told.
        update: whether counts are corrected by the sizes heard.
        combine: whether both phases' evidence is used.
        split: ``people``; the budget is shared out for items only.

    >>> TopItemsets("basket", top=8).top
    8
    """

    kind: ClassVar[str] = "top-itemsets"
    sets: ClassVar[bool] = True
