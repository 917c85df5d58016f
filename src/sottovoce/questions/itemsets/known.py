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
    strong; and what it was chosen by, as :class:`ChosenBy` has it.
    """

    candidate: tuple[int, ...]
    frequency: float
    variance: float
    chance: float
    star: float = 0.0
    floor: float = 0.0
    doubt: float = 0.0
    earlier: float = 0.0
    earlier_error: float = 0.0

    def to_json(self) -> list[Any]:
        estimate = (self.frequency, self.variance, self.chance)
        chosen_by = (self.star, self.floor, self.doubt, self.earlier, self.earlier_error)
        numbers = (*estimate, *chosen_by)
        texts = [f"{number:.{SIZE_DIGITS}g}" for number in numbers]
        return [list(self.candidate), *texts]

    @classmethod
    def from_json(cls, data: Any) -> Self:
        candidate, *numbers = data
        return cls(tuple(candidate), *(finite("estimates", number) for number in numbers))


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
        """Every part, with numbers as decimal strings; None for what is not known."""
        candidates = sizes = factor = None
        if self.candidates is not None:
            candidates = [list(candidate) for candidate in self.candidates]
        if self.sizes is not None:
            sizes = self.sizes.to_json()
        if self.factor is not None:
            factor = f"{self.factor:.{SIZE_DIGITS}g}"
        return {
            "candidates": candidates,
            "sizes": sizes,
            "length": self.length,
            "heard": [item.to_json() for item in self.heard],
            "factor": factor,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
        candidates = sizes = length = factor = None
        if data["candidates"] is not None:
            candidates = tuple(tuple(candidate) for candidate in data["candidates"])
        if data["sizes"] is not None:
            sizes = Sizes.from_json(data["sizes"])
        if data["length"] is not None:
            length = whole("plan: known length", data["length"], 1, MAX_PADDED_LENGTH)
        if data["factor"] is not None:
            factor = finite("factor", data["factor"])
        heard = tuple(ItemsHeard.from_json(item) for item in data["heard"])
        notes = tuple(str(note) for note in data["notes"])
        return cls(candidates, sizes, length, heard, factor, notes)
