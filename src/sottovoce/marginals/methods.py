"""The one explicit tuple of methods, and how one is found by its name."""

from __future__ import annotations

from sottovoce.errors import InvalidInput
from sottovoce.marginals.calm import Calm, CalmBinary, CalmPlus
from sottovoce.marginals.coefficients import InputHadamard
from sottovoce.marginals.efron_stein import EfronStein
from sottovoce.marginals.em import InputEM, SplitEM
from sottovoce.marginals.fourier import Fourier
from sottovoce.marginals.full import FULL
from sottovoce.marginals.joint import Joint
from sottovoce.marginals.latent import Latent
from sottovoce.marginals.method import Method
from sottovoce.marginals.subsets import PER_TABLE
from sottovoce.marginals.uniform import Uniform

AUTO = "auto"

# Every method there is. A new one is a class in a file of this folder and a line here.
METHODS: tuple[Method, ...] = (
    Uniform(),
    InputHadamard(),
    EfronStein(),
    InputEM(),
    SplitEM(),
    *FULL,
    *PER_TABLE,
    Latent(),
    Fourier(),
    Calm(),
    CalmPlus(),
    CalmBinary(),
    Joint(),
)
ALIASES = {"ft": "inp-ht"}


def method(name: str) -> Method:
    """A method by its name."""
    wanted = ALIASES.get(name, name)
    for each in METHODS:
        if each.name == wanted:
            return each
    raise InvalidInput(f"method ({name}) must be one of {', '.join([AUTO, *(each.name for each in METHODS)])}")
