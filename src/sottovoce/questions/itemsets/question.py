"""The questions: the items, or the sets of items, that most people hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

import numpy as np

from sottovoce.ground.arguments import fraction, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import oracle
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask, Drawn, Held, Padded
from sottovoce.protocol.encodings.sets import Candidates
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import AUTO, Question, check_single
from sottovoce.questions.itemsets import readings
from sottovoce.questions.itemsets.combining import combined
from sottovoce.questions.itemsets.guesses import guessed_sets
from sottovoce.questions.itemsets.known import Known
from sottovoce.questions.itemsets.lengths import counting_length, finding_length
from sottovoce.questions.itemsets.methods import (
    ABOUT,
    BEST,
    CANDIDATES,
    COUNT,
    FIND,
    FROM_SIZES,
    LEAST_SIZES,
    MOST_SIZES,
    PERCENTILE,
    SIZES,
    RoundStep,
    Setting,
    settle,
    steps,
)
from sottovoce.questions.itemsets.padding import best_oracle, padded_ask
from sottovoce.questions.itemsets.prediction import HELD, least_frequency, rare_error
from sottovoce.questions.itemsets.sizes import Sizes
from sottovoce.questions.prediction import Figure, Prediction
from sottovoce.results.findings import SIGNIFICANT
from sottovoce.schema import Items, Label, Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate
    from sottovoce.results.findings import Findings

MAX_TOP_ITEMS = 1 << 15


class ItemOptions(TypedDict, total=False):
    """What a method of items may be told: see :class:`TopItems`. Each takes its own and refuses
    others.
    """

    length: int  # psfo: to pad sets to
    oracle: str  # psfo
    delta: Any  # psfo
    candidates: int  # of the methods of two phases: how many go on
    shares: Sequence[int]  # of the people, by round
    first_oracle: str
    first_length: int | str
    second_oracle: str
    second_length: int | str
    update: bool  # whether counts are corrected by the sizes heard
    combine: bool  # whether both rounds' evidence is used
    sizes_oracle: str
    split: str  # whether people or the budget are shared out


@dataclass(frozen=True, init=False)
class Popular(Question):
    """What most people hold of an attribute of sets. Rounds follow each other;
    nobody answers two.
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
        self, attribute: str, top: int, method: str = AUTO, **options: Unpack[ItemOptions]
    ) -> None:
        if not isinstance(attribute, str):
            raise InvalidInput("attribute must be the name of an attribute of sets")
        if not isinstance(method, str):
            raise InvalidInput(f"method ({method}) must be a name")
        self._set(attribute, whole("top", top, 1, MAX_TOP_ITEMS), method, options, 0, Known())

    def _set(self, *values: Any) -> None:
        for name, value in zip(
            ("attribute", "top", "method", "options", "round", "known"), values, strict=True
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_survey(cls, options: Mapping[str, Any]) -> Self:
        check_single(options)
        return super().from_survey(options)

    def attributes_in(self, schema: Schema) -> tuple[str, ...]:
        return (self.attribute,)

    def _setting(self, schema: Schema, terms: Terms) -> Setting:
        attribute = schema[self.attribute]
        if not isinstance(attribute, Items):
            raise InvalidInput(
                f"attribute {self.attribute!r} is no set of items; this question is about sets"
            )
        if not attribute.sensitive:
            raise InvalidInput(
                f"attribute {self.attribute!r} is public; only sensitive attributes are whispered"
            )
        return Setting(
            attribute.size, min(self.top, attribute.size), terms.epsilon, terms.people, self.sets
        )

    def settled(self, schema: Schema, terms: Terms) -> Self:
        setting = self._setting(schema, terms)
        method = self.method
        if method == AUTO:
            method = "wheel"
        options = settle(method, self.options, setting)
        made = self._with(method=method, options=options)
        planned = steps(method, options, setting)
        if not self._is_split(options) and terms.people < sum(step.share for step in planned):
            least = sum(step.share for step in planned)
            raise InvalidInput(
                f"people ({terms.people}) must be at least {least} for the {len(planned)} rounds "
                f"of {method}"
            )
        return made

    def _with(self, **changes: Any) -> Self:
        made = object.__new__(type(self))
        names = ("attribute", "top", "method", "options", "round", "known")
        made._set(*(changes.get(name, getattr(self, name)) for name in names))
        return made

    @staticmethod
    def _is_split(options: Mapping[str, Any]) -> bool:
        """Whether everybody answers both phases, each with half of epsilon."""
        return options.get("split") == "budget"

    def rounds(self, schema: Schema, terms: Terms) -> tuple[int, ...]:
        made = self.settled(schema, terms)
        if self._is_split(made.options):
            return (1,)
        return tuple(step.share for step in made.steps(schema, terms))

    def steps(self, schema: Schema, terms: Terms) -> tuple[RoundStep, ...]:
        """The rounds there are."""
        return steps(self.method, self.options, self._setting(schema, terms))

    def cohorts(self, schema: Schema, terms: Terms) -> Family:
        planned = self.steps(schema, terms)
        step = planned[whole("plan: round", self.round, 0, len(planned) - 1)]
        epsilon = shared(terms.epsilon, 2) if self._is_split(self.options) else terms.epsilon
        later = planned[self.round + 1].name if self.round + 1 < len(planned) else ""
        return Listed([Cohort((self._ask(step, later, schema[self.attribute].size, epsilon),))])

    def _wanted_length(self, later: str) -> Any:
        """What the round after a round of sizes takes for its length."""
        return self.options["first_length" if later == FIND else "second_length"]

    def _ask(self, step: RoundStep, later: str, items: int, epsilon: Decimal) -> Ask:
        candidates = self.known.candidates
        if self.method == "psfo":
            delta = self.options["delta"]
            exact = None if delta is None else fraction("delta", delta)
            length, name = self.options["length"], self.options["oracle"]
            return padded_ask(self.attribute, items, None, length, name, epsilon, exact)
        count = items if candidates is None else len(candidates)
        if step.name == SIZES:
            by_error = self._wanted_length(later) == BEST
            most = min(
                count, MOST_SIZES if by_error else max(self.options["candidates"], LEAST_SIZES)
            )
            held = Held(self.attribute, items, candidates, most)
            return Ask(held, oracle(self.options["sizes_oracle"], size=held.size, epsilon=epsilon))
        phase = "first" if step.name == FIND else "second"
        length = self.options[f"{phase}_length"]
        if length in FROM_SIZES:
            length = self.known.length
        elif length == CANDIDATES:
            length = count
        name = self.options[f"{phase}_oracle"]
        if name == BEST:
            name, _ = best_oracle(count, length, epsilon)
        return padded_ask(self.attribute, items, candidates, length, name, epsilon)

    def estimate(self, aggregate: Aggregate, **options: Any) -> Findings:
        """What this round says; ``next`` is the question of the round that follows, if there is
        one.
        """
        if options:
            raise InvalidInput(
                f"option {next(iter(options))!r} is not one of estimate's: this question has none"
            )
        aggregate.require_people()
        plan = aggregate.plan
        planned = self.steps(plan.schema, plan.terms)
        known, found = self._read(planned, aggregate)
        if known is None:
            return found
        return replace(found, next=self._with(round=self.round + 1, known=known))

    def _read(
        self, planned: Sequence[RoundStep], aggregate: Aggregate
    ) -> tuple[Known | None, Findings]:
        known, plan, step = self.known, aggregate.plan, planned[self.round]
        if step.name == SIZES:
            sizes = readings.read_sizes(aggregate)
            known = self._after_sizes(sizes, planned[self.round + 1], plan)
            return known, readings.sizes_found(self.attribute, sizes, aggregate, known.notes)
        is_last = self.round + 1 == len(planned)
        if step.name == FIND:
            best = readings.read_frequencies(aggregate).best(self.options["candidates"])
            heard, factor = (
                (best.heard(), self._factor()) if self.options["combine"] else ((), None)
            )
            known = Known(
                tuple(sorted(best.candidates)), heard=heard, factor=factor, notes=known.notes
            )
            return known, self._found(best, aggregate, known.notes)
        reading = readings.read_frequencies(
            aggregate, known.sizes if self.options.get("update") else None
        )
        if known.factor is not None:
            reading = combined(reading, known.heard, known.factor, plan.schema[self.attribute].size)
        elif is_last:
            reading = reading.with_heard(known.heard)
        best = reading.best(self.top)
        if is_last:
            return None, self._found(best, aggregate, (*known.notes, *self._shortfall(best)))
        guessed = self._guessed(best)
        if not guessed:
            return None, self._found(
                best, aggregate, (*known.notes, "Too few items were found to build sets of them.")
            )
        known = Known(guessed, heard=best.heard(), notes=known.notes)
        return known, self._found(best, aggregate, known.notes)

    def _guessed(self, singles: readings.Reading) -> Candidates:
        """The sets of these items that are likely frequent."""
        pairs = zip(singles.candidates, singles.values.tolist(), strict=True)
        return guessed_sets(
            {item: value for (item,), value in pairs}, self.top, self.options["candidates"]
        )

    def _factor(self) -> float:
        """What a first round's frequencies must be multiplied by, as far as sizes tell."""
        known = self.known
        return known.sizes.update_factor(known.length or 1) if known.sizes is not None else 1.0

    def _typical_square(self) -> float:
        """The mean square of the frequencies heard so far, of the most frequent; 0 if none were."""
        heard = sorted((each.frequency for each in self.known.heard), reverse=True)[: self.top]
        return float(np.mean(np.square(heard))) * (self.known.factor or 1.0) ** 2 if heard else 0.0

    def _after_sizes(self, sizes: Sizes, later: RoundStep, plan: Plan) -> Known:
        known = self.known
        if self._wanted_length(later.name) == PERCENTILE:
            kept = sizes.filtered()
            notes = known.notes
            if not kept.is_known:
                notes = (
                    *notes,
                    "No size of sets rose above the noise: they were taken to hold one candidate "
                    "at most.",
                )
            return replace(known, sizes=kept, length=kept.percentile(), notes=notes)
        # where items are sought a long tail matters; where they are counted, noise in it would
        # mislead the factor
        kept = sizes.projected() if later.name == FIND else sizes.filtered()
        count = (
            plan.schema[self.attribute].size if known.candidates is None else len(known.candidates)
        )
        if later.name == FIND:
            length = finding_length(kept, count, plan.epsilon)
        else:
            people = max(1, plan.people * later.share // sum(plan.series.shares))
            length = counting_length(kept, count, plan.terms.among(people), self._typical_square())
        return replace(known, sizes=kept, length=length)

    def _found(
        self, reading: readings.Reading, aggregate: Aggregate, notes: Sequence[str]
    ) -> Findings:
        labels = [self.label(aggregate.plan.schema, candidate) for candidate in reading.candidates]
        return readings.frequencies_found(self.attribute, reading, labels, aggregate, notes)

    def _shortfall(self, best: readings.Reading) -> list[str]:
        notes = []
        if len(best.candidates) < self.top:
            notes.append(
                f"Only {len(best.candidates)} of the {self.top} wanted: there were no more "
                "candidates."
            )
        weak = int((best.chance > SIGNIFICANT).sum())
        if weak:
            notes.append(
                f"{weak} of the {len(best.candidates)} are not significant: noise alone may have "
                "put them here."
            )
        return notes

    def label(self, schema: Schema, candidate: tuple[int, ...]) -> Label | tuple[Label, ...]:
        """How a candidate is called: an item by its value, a set by those of its items."""
        values = schema[self.attribute].labels()
        return tuple(values[item] for item in candidate) if self.sets else values[candidate[0]]

    def predict(self, schema: Schema, terms: Terms, series: Series | None = None) -> Prediction:
        """The error of one popular value; how frequent it must be to be found depends on how many
        items people hold.
        """
        made = self.plan(schema, terms, series)
        reason = (
            f"question ({self.kind}): what it needs depends on how many items people hold; see its "
            "plan"
        )
        figure = Figure(
            "a popular value", sqrt(made.cohorts[0].asks[0].oracle.variance(made.round_people))
        )
        return Prediction(nan, self.method, (figure,), is_share=True, unknown=reason)

    def explain(self, plan: Plan) -> list[str]:
        setting = self._setting(plan.schema, plan.terms)
        planned = steps(self.method, self.options, setting)
        about, source = ABOUT[self.method]
        what = "sets of items" if self.sets else "items"
        lines = [
            f"Question: the {self.top} {what} that most people hold, of {setting.items:,} items of "
            f"{self.attribute}",
            f"Method: {self.method} ({about}), {source}",
        ]
        if self._is_split(self.options):
            lines.append(
                f"Phases: two plans of half of epsilon; everybody answers both, at {plan.epsilon} "
                "in all"
            )
        elif len(planned) > 1:
            total = sum(step.share for step in planned)
            shares = ", ".join(f"{step.name} {step.share / total:.0%}" for step in planned)
            lines.append(
                f"Rounds: {shares} of the people; what a round asks follows from those before"
            )
        lines.append(self._explain_round(planned[self.round], plan))
        least = [
            least_frequency(self.attribute, planned, self.options, setting, held) for held in HELD
        ]
        told = ", ".join(
            f"{share:.2%} if they hold {held}" for share, held in zip(least, HELD, strict=True)
        )
        lines.append(f"Found with even chances: an item that this share of people holds: {told}")
        return lines

    def _explain_round(self, step: RoundStep, plan: Plan) -> str:
        ask, people = plan.cohorts[0].asks[0], plan.round_people
        encoding, chosen = ask.encoding, ask.oracle
        tail = (
            f"{chosen.names[0]} ({chosen.about}), {people:,} people, {chosen.bits:,} bits per "
            "report"
        )
        if isinstance(encoding, Held):
            return (
                f"Asked: how many of {encoding.count:,} candidates a set holds, up to "
                f"{encoding.most}; {tail}"
            )
        assert isinstance(encoding, Padded | Drawn)
        factor = (
            self.known.sizes.update_factor(encoding.length)
            if self.known.sizes and step.name == COUNT
            else 1.0
        )
        part = "one, after padding to" if isinstance(encoding, Padded) else "all, at most"
        error = rare_error(ask, people, factor)
        return (
            f"Asked: of {encoding.count:,} candidates that a set holds {part} {encoding.length}; "
            f"{tail}; "
            f"predicted standard error {error:.2g} for a rare one"
        )

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
        plain = cls(data["attribute"], data["top"], data["method"], **data["options"])
        return plain._with(
            round=whole("plan: round", data["round"], 0, MAX_TOP_ITEMS),
            known=Known.from_json(data["known"]),
        )


class TopItems(Popular):
    """The ``top`` items that most people hold, of an attribute of sets.

    ``method`` and its options:

    - ``auto``: the best there is, now ``wheel``: whole sets are whispered, of all items first, then
      of candidates.
    - ``psfo``: one round; ``length`` to pad sets to, ``oracle`` (adaptive, grr, olh, olh-seeded,
      ...), ``delta``.
    - ``ldpminer``, ``svim``: ``candidates`` (twice ``top``), ``shares`` of people by round,
      ``first_oracle``, ``first_length``, ``second_oracle``, ``second_length`` (a number, or
      "percentile" of the sizes heard, "best", "candidates"), ``update`` by the sizes,
      ``sizes_oracle``; ``split="budget"`` asks everybody both phases instead.

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


class TopItemsets(Popular):
    """The ``top`` sets of items that most people hold: single items too, as sets of one.

    ``method``: ``auto`` (now ``wheel``), ``svsm`` or ``ldpminer``, with the options of
    :class:`TopItems`. Items are found first, by half of the people; the others count the sets of
    them that are likely frequent.

    >>> TopItemsets("basket", top=8).top
    8
    """

    kind: ClassVar[str] = "top-itemsets"
    sets: ClassVar[bool] = True
