"""Padding and sampling before a frequency oracle: one round, in which everybody tells one item."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from sottovoce.ground.arguments import fraction, share, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import ADAPTIVE
from sottovoce.protocol.encodings import Ask
from sottovoce.protocol.terms import Terms
from sottovoce.questions.itemsets.method import (
    MAX_ITEM_CANDIDATES,
    ItemMethod,
    checked_oracle,
    shortfall,
)
from sottovoce.questions.itemsets.padding import padded_ask
from sottovoce.questions.itemsets.readings import read_frequencies
from sottovoce.questions.itemsets.target import COUNT, ItemTarget, RoundStep
from sottovoce.questions.method import NO_OPTIONS, Options, RoundResult

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate


class PaddedSampling(ItemMethod):
    """Everybody pads her set to ``length``, draws one item and whispers it.

    With a ``delta``, hashing is amplified by the sampling, in (epsilon, delta)-privacy.
    """

    name: ClassVar[str] = "psfo"
    about: ClassVar[str] = "padding and sampling, one round"
    source: ClassVar[str] = "wang2021thesis, section 5.2"
    options: ClassVar[tuple[str, ...]] = ("length", "oracle", "delta")
    for_sets: ClassVar[bool] = False

    def settle(
        self, target: ItemTarget, terms: Terms, options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        self.check_options(options)
        if "length" not in options:
            raise InvalidInput(
                "length must be given for psfo: how many items the largest sets hold; of longer "
                "ones a part is cut off"
            )
        delta = options.get("delta")
        usual = ADAPTIVE if delta is None else "olh-seeded"
        return {
            "length": whole("length", options["length"], 1, MAX_ITEM_CANDIDATES),
            "oracle": checked_oracle("oracle", {"oracle": usual, **options}),
            "delta": None if delta is None else str(share("delta", delta)),
        }

    def steps(self, target: ItemTarget, options: Options) -> tuple[RoundStep, ...]:
        return (RoundStep(COUNT, 1),)

    def ask(self, target: ItemTarget, epsilon: Decimal, options: Options) -> Ask:
        self.step(target, options)
        delta = None if options["delta"] is None else fraction("delta", options["delta"])
        length, oracle = options["length"], options["oracle"]
        return padded_ask(target.name, target.items, None, length, oracle, epsilon, delta)

    def estimate(self, target: ItemTarget, aggregate: Aggregate, options: Options) -> RoundResult:
        best = read_frequencies(aggregate).best(target.top)
        found = self.findings(target, aggregate, best, shortfall(target, best))
        return RoundResult(found)
