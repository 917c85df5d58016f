"""The one explicit tuple of methods, and how one is found by its name."""

from __future__ import annotations

from sottovoce.errors import InvalidInput
from sottovoce.marginals.method import Method
from sottovoce.marginals.uniform import Uniform

AUTO = "auto"

# Every method there is. A new one is a class in a file of this folder and a line here.
METHODS: tuple[Method, ...] = (Uniform(),)
ALIASES = {"ft": "inp-ht"}


def method(name: str) -> Method:
    """A method by its name."""
    wanted = ALIASES.get(name, name)
    for each in METHODS:
        if each.name == wanted:
            return each
    raise InvalidInput(f"method ({name}) must be one of {', '.join([AUTO, *(each.name for each in METHODS)])}")
