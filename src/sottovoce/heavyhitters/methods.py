"""Every way to find heavy hitters, by name."""

from __future__ import annotations

from sottovoce.heavyhitters.listed import HashedResponseList, RapporList
from sottovoce.heavyhitters.method import Method
from sottovoce.heavyhitters.prefixes import BitByBit, PrefixExtending, TreeHistogram
from sottovoce.heavyhitters.segments import Channels, SegmentPairs
from sottovoce.heavyhitters.trie import PrivTrie
from sottovoce.heavyhitters.windows import Windows

__all__ = ["AUTO", "DEFAULT", "METHODS"]

# A new method is a class in a file of this folder and a line here.
METHODS: tuple[type[Method], ...] = (
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
AUTO = "auto"
DEFAULT = "windows"  # what auto is: no other finds more, at any epsilon measured
