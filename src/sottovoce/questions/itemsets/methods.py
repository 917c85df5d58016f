"""Every way to find popular items and itemsets, by name."""

from __future__ import annotations

from sottovoce.questions.itemsets.method import ItemMethod
from sottovoce.questions.itemsets.phases import LdpMiner, Svim, Svsm, Wheel
from sottovoce.questions.itemsets.psfo import PaddedSampling
from sottovoce.questions.method import AUTO, method_named

# A new method is a class in a file of this folder and a line here.
METHODS: tuple[ItemMethod, ...] = (PaddedSampling(), LdpMiner(), Svim(), Svsm(), Wheel())
DEFAULT = "wheel"  # what auto is


def method(name: str, *, of_sets: bool) -> ItemMethod:
    """A method by its name, of those that find items, or sets of them."""
    fitting = [each for each in METHODS if (each.for_sets if of_sets else each.for_items)]
    return method_named(fitting, DEFAULT if name == AUTO else name)
