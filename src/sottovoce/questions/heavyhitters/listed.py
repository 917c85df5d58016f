"""Values from a list: everybody tells a noisy hash of her value, and a list of candidates decodes
what was told.

Nothing is found that is not on the list; the list may be made after people were asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import named_salt
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.oracles import CohortOracle, oracle_with
from sottovoce.oracles.cohorts import DECODERS, MAX_DECODED_CANDIDATES
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.decoded import marked
from sottovoce.questions.heavyhitters.method import HeavyHitterMethod, Ranked, SearchTarget
from sottovoce.questions.method import NO_OPTIONS, Options, RoundResult
from sottovoce.results.findings import SIGNIFICANT, Findings
from sottovoce.results.words import CLOSED_FORM
from sottovoce.schema import OPEN, Schema

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

UNBIASED = DECODERS[0]
SHAPE = ("cohorts", "buckets", "hashes", "salt", "alphabet")


class _Listed(HeavyHitterMethod):
    """One cohort, one ask, an oracle for open alphabets;
    ``estimate(candidates=[...])`` decodes it.
    """

    spells: ClassVar[bool] = False
    takes_candidates: ClassVar[bool] = True

    def refuse(self, target: SearchTarget, terms: Terms) -> str | None:
        if target.attribute.size > OPEN:
            return (
                f"attribute {target.name!r} has codes of more than 64 bits, which {self.name} does "
                "not take"
            )
        return None

    def settle(
        self, target: SearchTarget, terms: Terms, options: Options = NO_OPTIONS
    ) -> dict[str, Any]:
        self.check_options(options)
        decoder = options.get("decoder", UNBIASED)
        if decoder not in DECODERS:
            raise InvalidInput(f"decoder ({decoder}) must be one of {', '.join(DECODERS)}")
        shape = {key: option for key, option in options.items() if key != "decoder"}
        shape["salt"] = str(shape.get("salt", _salt(target)))
        # the best shape of a large alphabet has more cohorts the more people answer
        best = self._oracle(target, terms.epsilon, shape, terms.people)
        if best != self._oracle(target, terms.epsilon, shape):
            shape.update(cohorts=best.cohorts, buckets=best.buckets)
        return {**shape, "decoder": decoder}

    def _oracle(
        self, target: SearchTarget, epsilon: Decimal, shape: Options, people: int = 1
    ) -> CohortOracle:
        """The oracle of this shape; what is left open is chosen for so many people."""
        crowd = {**shape, "people": people}
        source = oracle_with(self.name, target.attribute.size, epsilon, crowd)
        assert isinstance(source, CohortOracle)
        return source

    def cohorts(
        self, schema: Schema, target: SearchTarget, epsilon: Decimal, options: Options
    ) -> Family:
        name, size = target.name, target.attribute.size
        shape = {key: option for key, option in options.items() if key != "decoder"}
        source = self._oracle(target, epsilon, shape)
        return Listed([Cohort((Ask(Cells((name,), (size,)), source),))])

    def explain(self, target: SearchTarget, plan: Plan, options: Options) -> list[str]:
        source = _source(plan)
        return [
            f"Hashes to {source.buckets:,} buckets in {source.cohorts:,} cohorts of hash "
            "functions, "
            f"{source.bits:,} bits per report",
            f"A list of up to {MAX_DECODED_CANDIDATES:,} candidates is needed to estimate; of "
            "anything else only the sum is known",
        ]

    def estimate(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        return RoundResult(self._decoded(target, aggregate, options, candidates))

    def estimate_complete(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        found = self._decoded(target, aggregate, options, candidates, is_complete=True)
        return RoundResult(found)

    def _decoded(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None,
        is_complete: bool = False,
    ) -> Findings:
        """The most frequent candidates; ``is_complete``: they hold all that people say."""
        if candidates is None:
            raise InvalidInput(
                f"candidates are required for {self.name}: a list of the values that people may "
                "hold"
            )
        codes = _codes(target, candidates)
        column = np.array(list(codes.values()), np.uint64)
        people, state = aggregate.cohort_people(0), aggregate.state(0)
        decoder = options["decoder"]
        decoded = _source(aggregate.plan).decode(
            state, people, column, decoder=decoder, is_complete=is_complete
        )
        # expected false: as many as are listed, times the chance of a normal error so large
        special = imported("scipy.special")
        std_errors = np.sqrt(decoded.variances)
        chances = len(codes) * special.ndtr(-decoded.frequencies / std_errors)
        starred = -special.ndtri(min(SIGNIFICANT / len(codes), 0.5)) * std_errors
        floor = float(decoded.variances.mean())
        listed = np.full(len(codes), -np.inf)  # nothing was chosen before
        ranked = Ranked(
            list(codes),
            decoded.frequencies,
            decoded.variances,
            chances,
            people,
            floor,
            listed,
            starred,
        )
        notes = ["the candidates are taken to hold all that people say"] if is_complete else []
        found = ranked.findings(target, self.name, people, notes=notes)
        names, table = next(iter(found.tables.items()))
        if len(table) == len(codes) or decoder != UNBIASED:
            # nothing was chosen; or it was repaired, and what that does to a choice is not known
            table = replace(table, spread=None, errors=CLOSED_FORM)
        return replace(found, tables={names: marked(table, decoded, decoder)})


def _salt(target: SearchTarget) -> str:
    """A salt that the attribute always gets again, and another one does not share."""
    attribute = target.attribute
    return named_salt(attribute.kind, attribute.options(), target.name)


def _codes(target: SearchTarget, candidates: Sequence[Any]) -> dict[int, int]:
    """The code of each candidate, by its spelling: what is cut may be equal."""
    attribute = target.attribute
    try:
        codes = {attribute.spell(value): attribute.code(value) for value in candidates}
    except (ValueError, TypeError, KeyError):
        raise InvalidInput(f"candidates: {attribute.rule}") from None
    if not 2 <= len(codes) <= MAX_DECODED_CANDIDATES:
        raise InvalidInput(
            f"candidates ({len(codes)}) must be 2 to {MAX_DECODED_CANDIDATES} different values"
        )
    return codes


def _source(plan: Plan) -> CohortOracle:
    source = plan.cohorts[0].asks[0].oracle
    assert isinstance(source, CohortOracle)
    return source


class RapporList(_Listed):
    """RAPPOR: Bloom filters in cohorts, a permanent and an instantaneous response, decoded over a
    list.
    """

    name: ClassVar[str] = "rappor"
    about: ClassVar[str] = "Bloom filters in cohorts, for a list of candidates"
    source: ClassVar[str] = "erlingsson2014rappor; kairouz2016discrete, section 5"
    options: ClassVar[tuple[str, ...]] = (*SHAPE, "instantaneous", "decoder")


class HashedResponseList(_Listed):
    """O-RR: randomized response on hashes in cohorts, decoded over a list."""

    name: ClassVar[str] = "o-rr"
    about: ClassVar[str] = "randomized response on hashes in cohorts, for a list of candidates"
    source: ClassVar[str] = "kairouz2016discrete, section 5"
    options: ClassVar[tuple[str, ...]] = (*SHAPE, "decoder")
