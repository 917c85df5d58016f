"""Every way to find heavy hitters, by name."""

from __future__ import annotations

from sottovoce.questions.heavyhitters.listed import HashedResponseList, RapporList
from sottovoce.questions.heavyhitters.method import HeavyHitterMethod
from sottovoce.questions.heavyhitters.prefixes import BitByBit, PrefixExtending, TreeHistogram
from sottovoce.questions.heavyhitters.segments import Channels, SegmentPairs
from sottovoce.questions.heavyhitters.trie import PrivTrie
from sottovoce.questions.heavyhitters.windows import Windows

__all__ = ["DEFAULT", "METHODS"]

# A new method is a class in a file of this folder and a line here.
METHODS: tuple[type[HeavyHitterMethod], ...] = (
    Windows,
    PrefixExtending,
    BitByBit,
    TreeHistogram,
    SegmentPairs,
    Channels,
    PrivTrie,
    RapporList,
    HashedResponseList,
)
DEFAULT = "windows"  # what auto is: no other finds more, at any epsilon measured
