"""What a method of items is handed: what is looked for, what earlier rounds told, and what a round
can be for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sottovoce.questions.itemsets.known import Known

FIND, SIZES, COUNT = "find", "sizes", "count"  # what a round is for
# lengths that follow from what was heard: the 90th percentile of sizes, the least predicted error,
# all candidates
PERCENTILE, BEST, CANDIDATES = "percentile", "best", "candidates"
FROM_SIZES = (PERCENTILE, BEST)


@dataclass(frozen=True)
class RoundStep:
    """One round: what it is for, and its share of the people."""

    name: str
    share: int


@dataclass(frozen=True)
class ItemTarget:
    """What is looked for: the ``top`` of the ``items`` of an attribute of sets, or of the sets of
    them.
    """

    name: str  # of the attribute
    items: int
    top: int
    sets: bool  # whether itemsets are wanted, or items
    round: int = 0  # the place of this round
    known: Known = field(default_factory=Known)  # what the rounds before told

    @property
    def candidates(self) -> int:
        """How many candidates this round is about: all items until some were found."""
        known = self.known.candidates
        return self.items if known is None else len(known)
