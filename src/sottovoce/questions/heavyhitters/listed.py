"""Values from a list: everybody tells a noisy hash of her value, and a list of candidates decodes
what was told.

Nothing is found that is not on the list; the list may be made after people were asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.ground.arguments import named_salt
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.oracles import CohortOracle, oracle
from sottovoce.oracles.cohorts import DECODERS, MOST_CANDIDATES
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from sottovoce.questions.decoded import marked
from sottovoce.questions.heavyhitters.method import HeavyHitterMethod
from sottovoce.results.findings import Findings
from sottovoce.schema import OPEN

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

UNBIASED = DECODERS[0]
SHAPE = ("cohorts", "buckets", "hashes", "salt", "alphabet")


class _Listed(HeavyHitterMethod):
    """One cohort, one ask, an oracle for open alphabets;
    ``estimate(candidates=[...])`` decodes it.
    """

    spells: ClassVar[bool] = False

    def settled(self, terms: Terms) -> Mapping[str, Any]:
        salt = str(self.given.get("salt", self._salt))
        return {**self.given, "salt": salt, "decoder": self.decoder}

    @property
    def decoder(self) -> str:
        decoder = self.given.get("decoder", UNBIASED)
        if decoder not in DECODERS:
            raise InvalidInput(f"decoder ({decoder}) must be one of {', '.join(DECODERS)}")
        return str(decoder)

    @property
    def _salt(self) -> str:
        """A salt that the attribute always gets again, and another one does not share."""
        attribute = self.target.attribute
        return named_salt(attribute.kind, attribute.options(), self.target.name)

    def cohorts(self, terms: Terms) -> Family:
        name, size = self.target.name, self.target.attribute.size
        if size > OPEN:
            raise InvalidInput(
                f"attribute {name!r} has codes of more than 64 bits, which {self.name} does not "
                "take"
            )
        options = {key: value for key, value in self.given.items() if key != "decoder"}
        shape = {"salt": self._salt, "people": terms.people, **options}
        source = oracle(self.name, size=size, epsilon=terms.epsilon, **shape)
        return Listed([Cohort((Ask(Cells((name,), (size,)), source),))])

    def threshold(self, plan: Plan, chance: float = 0.5) -> float | None:
        return None  # it depends on the list

    def explain(self, plan: Plan) -> list[str]:
        source = _source(plan)
        return [
            f"Hashes to {source.buckets:,} buckets in {source.cohorts:,} cohorts of hash "
            "functions, "
            f"{source.bits:,} bits per report",
            f"A list of up to {MOST_CANDIDATES:,} candidates is needed to estimate; of anything "
            "else only the sum is known",
        ]

    def find(
        self,
        aggregate: Aggregate,
        question: Question,
        candidates: Sequence[Any] | None,
        is_complete: bool = False,
    ) -> Findings:
        if candidates is None:
            raise InvalidInput(
                f"candidates are required for {self.name}: a list of the values that people may "
                "hold"
            )
        attribute = self.target.attribute
        try:
            listed = {
                attribute.spell(value): attribute.code(value) for value in candidates
            }  # what is cut may be equal
        except (ValueError, TypeError, KeyError):
            raise InvalidInput(f"candidates: {attribute.rule}") from None
        if not 2 <= len(listed) <= MOST_CANDIDATES:
            raise InvalidInput(
                f"candidates ({len(listed)}) must be 2 to {MOST_CANDIDATES} different values"
            )
        codes = np.array(list(listed.values()), np.uint64)
        people = aggregate.cohort_people(0)
        decoded = _source(aggregate.plan).decode(
            aggregate.state(0), people, codes, decoder=self.decoder, is_complete=is_complete
        )
        ndtr = imported("scipy.special").ndtr
        errors = np.sqrt(decoded.variances)
        chances = len(listed) * ndtr(-decoded.frequencies / errors)
        floor = float(decoded.variances.mean())
        notes = ["the candidates are taken to hold all that people say"] if is_complete else []
        found = self.findings(
            list(listed),
            decoded.frequencies,
            decoded.variances,
            chances,
            people,
            floor,
            notes=notes,
        )
        names, table = next(iter(found.tables.items()))
        return replace(found, tables={names: marked(table, decoded, self.decoder)})

    def find_all(
        self, aggregate: Aggregate, question: Question, candidates: Sequence[Any] | None
    ) -> Findings:
        return self.find(aggregate, question, candidates, is_complete=True)


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
    options: ClassVar[tuple[str, ...]] = (*SHAPE, "instantaneous", "decoder")


class HashedResponseList(_Listed):
    """O-RR: randomized response on hashes in cohorts, decoded over a list."""

    name: ClassVar[str] = "o-rr"
    about: ClassVar[str] = "randomized response on hashes in cohorts, for a list of candidates"
    options: ClassVar[tuple[str, ...]] = (*SHAPE, "decoder")
