"""What is known of pairs of attributes: ties, and the edges of a tree that are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

from sottovoce.analysis.dependence import TEST_LEVEL, adjusted, dependences
from sottovoce.questions.marginals.workload import Places
from sottovoce.results.joint import JointEstimate

Pair = tuple[str, str]


@dataclass(frozen=True)
class Tie:
    """What two attributes tell about each other, in nats, less what noise alone seems to tell.

    Pairs are compared by their ``excess``, which is below 0 where noise alone would tell more.
    """

    excess: float
    plain: float  # of the table as it is, noise included
    is_clear: bool  # whether the pair's test rejects independence, all pairs allowed for
    is_asked: bool = True  # whether any report tells of the two together
    heard: float = 1.0  # the share that reports tell of what was asked of the two
    low: float = nan  # the information at 95%: above 0 exactly if p_value is at most 0.05
    high: float = nan
    p_value: float = nan
    adjusted: float = nan  # the p-value corrected for all pairs of the tree

    @property
    def information(self) -> float:
        """What the two tell about each other: not below 0, and between ``low`` and ``high``."""
        return max(self.excess, 0.0)


UNASKED = Tie(0.0, 0.0, is_clear=False, is_asked=False, heard=0.0)


@dataclass(frozen=True)
class Edge:
    """A tie of the tree, from the attribute nearer the root to the other.

    ``is_clear`` says that ``adjusted`` is at most 0.05: the p-value of the pair's test of
    independence, which is that of :func:`associate`, corrected for all pairs. ``low`` and ``high``
    hold the information at 95%. One that was never asked only holds the tree together: of that tie
    nothing is known.
    """

    parent: str
    child: str
    information: float
    std_error: float
    plain: float
    is_clear: bool
    is_asked: bool = True
    heard: float = 1.0
    low: float = nan
    high: float = nan
    p_value: float = nan
    adjusted: float = nan

    @property
    def figure(self) -> str:
        """Its information in words."""
        if not self.is_asked:
            return "never asked together"
        partly = f" ({self.heard:.0%} heard)" if self.heard < 1 else ""
        return f"{self.information:.4f} ({self.low:.4f} to {self.high:.4f}){partly}"

    @property
    def told(self) -> str:
        """The same, with a word of doubt if noise alone may tell as much."""
        doubt = "  (may be noise)" if self.is_asked and not self.is_clear else ""
        return f"{self.figure}{doubt}"

    def to_json(self) -> dict[str, Any]:
        """The edge as JSON; without figures if it was never asked."""
        return {
            "parent": self.parent,
            "child": self.child,
            "is_asked": self.is_asked,
            "information": self.information if self.is_asked else None,
            "std_error": self.std_error if self.is_asked else None,
            "plain": self.plain if self.is_asked else None,
            "low": self.low if self.is_asked else None,
            "high": self.high if self.is_asked else None,
            "p_value": self.p_value if self.is_asked else None,
            "adjusted": self.adjusted if self.is_asked else None,
            "is_clear": self.is_clear,
            "heard": self.heard,
        }


def ties_of(estimate: JointEstimate, places: Mapping[Pair, Places]) -> dict[Pair, Tie]:
    """What is known of each pair: the tests of :func:`associate`."""
    asked = [pair for pair in places if estimate.is_asked(*pair)]
    tests = dependences(estimate, [places[pair] for pair in asked])
    corrected = adjusted([test.p_value for test in tests])
    ties = dict.fromkeys(places, UNASKED)
    for pair, test, both in zip(asked, tests, corrected, strict=True):
        ties[pair] = Tie(
            test.excess,
            test.plain,
            both <= TEST_LEVEL,
            heard=estimate.heard_share(*pair),
            low=test.information_low,
            high=test.information_high,
            p_value=test.p_value,
            adjusted=both,
        )
    return ties
