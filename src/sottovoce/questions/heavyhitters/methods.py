"""Every way to find heavy hitters, by name."""

from __future__ import annotations

from sottovoce.questions.heavyhitters.channels import Channels
from sottovoce.questions.heavyhitters.listed import HashedResponseList, RapporList
from sottovoce.questions.heavyhitters.method import HeavyHitterMethod
from sottovoce.questions.heavyhitters.prefixes import BitByBit, PrefixExtending, TreeHistogram
from sottovoce.questions.heavyhitters.segments import SegmentPairs
from sottovoce.questions.heavyhitters.trie import PrivTrie
from sottovoce.questions.heavyhitters.windows import Windows
from sottovoce.questions.method import AUTO, method_named

# A new method is a class in a file of this folder and a line here.
METHODS: tuple[HeavyHitterMethod, ...] = (
    Windows(),
    PrefixExtending(),
    BitByBit(),
    TreeHistogram(),
    SegmentPairs(),
    Channels(),
    PrivTrie(),
    RapporList(),
    HashedResponseList(),
)
DEFAULT = "windows"  # what auto is: no other finds more, at any epsilon measured


def method(name: str) -> HeavyHitterMethod:
    """A method by its name."""
    return method_named(METHODS, DEFAULT if name == AUTO else name)
