"""What a way to find heavy hitters is: a method whose estimate is a search in what people said."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import Noise, Oracle
from sottovoce.protocol.encodings import Ask
from sottovoce.protocol.terms import Terms
from sottovoce.questions.heavyhitters.found import FOUND_ERRORS, FoundSpread
from sottovoce.questions.method import Method, Options, RoundResult
from sottovoce.results.estimate import Table
from sottovoce.results.findings import SIGNIFICANT, Findings, PrefixStep
from sottovoce.schema import MOST_SPELLED, Attribute

if TYPE_CHECKING:
    from sottovoce.aggregation.aggregate import Aggregate

Floats = NDArray[np.float64]
Kind = TypeVar("Kind", bound=Oracle)


def oracle_of(ask: Ask, kind: type[Kind]) -> Kind:
    """The oracle of an ask, which is of this kind."""
    source = ask.oracle
    assert isinstance(source, kind)
    return source


@dataclass(frozen=True)
class SearchTarget:
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


class HeavyHitterMethod(Method[SearchTarget]):
    """A way to find heavy hitters.

    Beside what every method has: :meth:`threshold` says how frequent a value must be to be found,
    and the estimate may take a list of candidates.
    """

    spells: ClassVar[bool] = True  # whether values are read back from what was said
    takes_candidates: ClassVar[bool] = False  # whether a list of likely values helps

    def refuse(self, target: SearchTarget, terms: Terms) -> str | None:
        if self.spells and target.bits > MOST_SPELLED:
            return (
                f"attribute {target.name!r} has {target.bits} bits; values of at most "
                f"{MOST_SPELLED} bits are found"
            )
        return None

    @abstractmethod
    def estimate(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        """What is popular, from the crowd's integers.

        Args:
            target: what is looked for.
            aggregate: what the crowd said.
            options: as they were settled.
            candidates: values that are likely, for a method that takes them.
        """

    def estimate_complete(
        self,
        target: SearchTarget,
        aggregate: Aggregate,
        options: Options,
        candidates: Sequence[Any] | None = None,
    ) -> RoundResult:
        """As :meth:`estimate`, for candidates that are declared to be all that people say."""
        raise InvalidInput(f"complete is for methods rappor and o-rr, not for {self.name}")

    def predict(self, target: SearchTarget, terms: Terms, options: Options) -> float | None:
        """The share of people who must hold a value for an even chance that it is found."""
        return self.threshold(target, terms, options, chance=0.5)

    def threshold(
        self, target: SearchTarget, terms: Terms, options: Options, chance: float
    ) -> float | None:
        """How frequent a value must be to be found with this chance; None if that is not known."""
        return None


@dataclass(frozen=True, eq=False)
class Ranked:
    """Values that a search came up with, by the numbers of their spellings, and their estimates."""

    spellings: Sequence[int]
    frequencies: Floats  # (values,)
    variances: Floats  # (values,)
    chances: Floats  # (values,): how many values that nobody holds look as frequent
    people: int  # whose answers the frequencies come from
    floor: float  # the variance of a value that nobody holds
    limits: Floats  # (values,): the frequency from which the search finds each, given all else
    starred_from: Floats  # (values,): the frequency from which each gets a star

    def findings(
        self,
        target: SearchTarget,
        method: str,
        everybody: int,
        steps: Sequence[PrefixStep] = (),
        notes: Sequence[str] = (),
    ) -> Findings:
        """The most frequent ones that can be spelled: what cannot was never said.

        Args:
            target: what is looked for.
            method: the name of the method that found them.
            everybody: all who answered, of whom ``people`` may be a part.
            steps: the prefixes on the way, if there were any.
            notes: what a reader should know.
        """
        labels = [target.attribute.spelled(number) for number in self.spellings]
        order: list[int] = []
        for place in np.argsort(-self.frequencies, kind="stable").tolist():
            is_rare = target.above is not None and self.frequencies[place] < target.above
            if labels[place] is not None and not is_rare:
                order.append(place)
        left_out = order[target.top :]
        order = order[: target.top]
        kept: list[Any] = [labels[place] for place in order]
        table = Table(
            (target.name,),
            kept,
            self.frequencies[order],
            self.variances[order],
            self.people,
            Noise(self.floor, 0.0),
            method=method,
            is_complete=False,
            errors=FOUND_ERRORS,
            spread=self._spread(target, order, left_out),
        )
        every_note = [*notes, *_shortfall(target, len(kept))]
        tables: dict[tuple[str, ...], Table] = {(target.name,): table}
        return Findings(tables, everybody, self.chances[order], tuple(steps), tuple(every_note))

    def _spread(
        self, target: SearchTarget, order: Sequence[int], left_out: Sequence[int]
    ) -> FoundSpread:
        """The errors of the values at ``order``, given that they passed; ``left_out`` did not."""
        places = list(order)
        passed = self.limits[places]
        if target.above is not None:
            passed = np.maximum(passed, target.above)
        if left_out:
            # they are the largest of all, of which the next one was the limit
            passed = np.maximum(passed, self.frequencies[left_out[0]])
        is_starred = self.chances[places] <= SIGNIFICANT
        passed = np.where(is_starred, np.maximum(passed, self.starred_from[places]), passed)
        values, errors = self.frequencies[places], np.sqrt(self.variances[places])
        return FoundSpread(values, errors, passed, is_starred)


def _shortfall(target: SearchTarget, found: int) -> list[str]:
    """A note if fewer values were found than were asked for."""
    if target.above is None and found < target.top:
        return [f"only {found} of the {target.top} values asked for were found"]
    return []


def sampled_variances(noise: Noise, frequencies: Floats, people: int, everybody: int) -> Floats:
    """Variances of frequencies that some people's whispers say of everybody: theirs, and that of
    the sample.

    Args:
        noise: of the whispers.
        frequencies: as estimated, (values,).
        people: who whispered.
        everybody: of whom they are a sample.
    """
    share = np.clip(frequencies, 0, 1)
    # f(1 - f)(1/n - 1/N): drawn without replacement, so that asking everybody leaves none
    unasked = 1 / people - 1 / everybody
    sampling = share * (1 - share) * unasked
    return noise.variance(share) + sampling
