"""What a way to find heavy hitters is: cohorts to ask, and a search in what they said."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Noise
from sottovoce.protocol.families import Family
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.terms import Terms
from sottovoce.questions.base import Question
from sottovoce.results.estimate import Table
from sottovoce.results.findings import Findings, PrefixStep
from sottovoce.schema import Attribute

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """What is looked for: the most frequent values of an attribute, ``top`` of them, or all
    ``above`` a frequency.
    """

    name: str
    attribute: Attribute
    top: int
    above: float | None

    @property
    def bits(self) -> int:
        """Bits of a spelling."""
        return self.attribute.spelling_bits


class HeavyHitterMethod(ABC):
    """One way to find heavy hitters, with its options settled."""

    name: ClassVar[str]
    about: ClassVar[str]  # one line for tables
    options: ClassVar[tuple[str, ...]] = ()  # that a question may name
    spells: ClassVar[bool] = True  # whether values are read back from what was said

    def __init__(self, target: Target, options: Mapping[str, Any]) -> None:
        self.target = target
        self.given = dict(options)

    def settled(self, terms: Terms) -> Mapping[str, Any]:
        """The options with every choice made that a plan must hold."""
        return self.given

    def rounds(self, terms: Terms) -> tuple[int, ...]:
        """The shares of people of its rounds."""
        return (1,)

    @abstractmethod
    def cohorts(self, terms: Terms) -> Family:
        """Who is asked what."""

    @abstractmethod
    def find(
        self, aggregate: Aggregate, question: Question, candidates: Sequence[Any] | None
    ) -> Findings:
        """What is popular, from the crowd's integers."""

    def find_all(
        self, aggregate: Aggregate, question: Question, candidates: Sequence[Any] | None
    ) -> Findings:
        """As :meth:`find`, for candidates that hold all that people say."""
        raise InvalidInput(f"complete is for methods rappor and o-rr, not for {self.name}")

    @abstractmethod
    def threshold(self, plan: Plan, chance: float = 0.5) -> float | None:
        """How frequent a value must be to be found with this chance; None if that is not known."""

    def explain(self, plan: Plan) -> list[str]:
        """Further lines for a person who wants to know what will be asked."""
        return []

    # -- what all of them do with what they found

    def no_candidates(self, candidates: Sequence[Any] | None) -> None:
        """Refuse a list of candidates."""
        if candidates is not None:
            raise InvalidInput(
                f"candidates are for methods windows, rappor and o-rr, not for {self.name}"
            )

    def findings(
        self,
        spellings: Sequence[int],
        frequencies: Floats,
        variances: Floats,
        chances: Floats,
        people: int,
        floor: float,
        *,
        heard: int | None = None,
        next: Question | None = None,
        steps: Sequence[PrefixStep] = (),
        notes: Sequence[str] = (),
    ) -> Findings:
        """The values with their estimates, the most frequent first; what cannot be spelled was
        never said.
        """
        target = self.target
        labels = [target.attribute.spelled(number) for number in spellings]
        order = [
            place
            for place in np.argsort(-frequencies, kind="stable").tolist()
            if labels[place] is not None
        ]
        if target.above is not None:
            order = [place for place in order if frequencies[place] >= target.above]
        order = order[: target.top]
        kept: list[Any] = [labels[place] for place in order]
        table = Table(
            (target.name,),
            kept,
            frequencies[order],
            variances[order],
            people,
            Noise(floor, 0.0),
            method=self.name,
            is_complete=False,
        )
        notes = [*notes, *_short(target, len(kept))]
        tables: dict[tuple[str, ...], Table] = {(target.name,): table}
        return Findings(
            tables, heard or people, chances[order], tuple(steps), tuple(notes), next=next
        )


def sampled_variances(noise: Noise, frequencies: Floats, people: int, everybody: int) -> Floats:
    """Variances of frequencies that some people's whispers say of everybody: theirs, and that of
    the sample.
    """
    share = np.clip(frequencies, 0, 1)
    # drawn without replacement, so that asking everybody leaves none
    return noise.variance(share) + share * (1 - share) * (1 / people - 1 / everybody)


def _short(target: Target, found: int) -> list[str]:
    if target.above is None and found < target.top:
        return [f"only {found} of the {target.top} values asked for were found"]
    return []
