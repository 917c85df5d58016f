"""What earlier rounds made public, as a plan holds it: candidates, sizes,
the items found so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from sottovoce.ground.arguments import whole
from sottovoce.protocol.encodings.sets import MAX_PADDED_LENGTH, Candidates
from sottovoce.questions.itemsets.sizes import SIZE_DIGITS, Sizes, finite


@dataclass(frozen=True)
class ItemsHeard:
    """A candidate's estimate in an earlier round: frequency, variance, expected false ones as
    strong.
    """

    candidate: tuple[int, ...]
    frequency: float
    variance: float
    chance: float

    def to_json(self) -> list[Any]:
        numbers = (self.frequency, self.variance, self.chance)
        return [list(self.candidate), *(f"{number:.{SIZE_DIGITS}g}" for number in numbers)]

    @classmethod
    def from_json(cls, data: Any) -> Self:
        candidate, *numbers = data
        frequency, variance, chance = (finite("estimates", number) for number in numbers)
        return cls(tuple(candidate), frequency, variance, chance)


@dataclass(frozen=True)
class Known:
    """What the rounds so far told everybody.

    ``candidates``: those that are still asked about; all items if there are none. ``sizes``: how
    many of them people hold, as heard; ``length``: how many of them a set is padded to. ``heard``:
    what is known of candidates already.
    """

    candidates: Candidates | None = None
    sizes: Sizes | None = None
    length: int | None = None
    heard: tuple[ItemsHeard, ...] = ()
    # what to multiply heard frequencies by, if they are to be combined with later ones
    factor: float | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "candidates": None
            if self.candidates is None
            else [list(each) for each in self.candidates],
            "sizes": None if self.sizes is None else self.sizes.to_json(),
            "length": self.length,
            "heard": [each.to_json() for each in self.heard],
            "factor": None if self.factor is None else f"{self.factor:.{SIZE_DIGITS}g}",
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        candidates, sizes = data["candidates"], data["sizes"]
        return cls(
            None if candidates is None else tuple(tuple(each) for each in candidates),
            None if sizes is None else Sizes.from_json(sizes),
            None
            if data["length"] is None
            else whole("plan: known length", data["length"], 1, MAX_PADDED_LENGTH),
            tuple(ItemsHeard.from_json(each) for each in data["heard"]),
            None if data["factor"] is None else finite("factor", data["factor"]),
            tuple(str(note) for note in data["notes"]),
        )
