"""The one explicit tuple of methods, and how one is found by its name."""

from __future__ import annotations

from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.base import AUTO
from sottovoce.questions.marginals.method import Method
from sottovoce.questions.marginals.methods.calm import Calm, CalmBinary, CalmPlus
from sottovoce.questions.marginals.methods.coefficients import InputHadamard
from sottovoce.questions.marginals.methods.efron_stein import EfronStein
from sottovoce.questions.marginals.methods.em import InputEM, SplitEM
from sottovoce.questions.marginals.methods.fourier import Fourier
from sottovoce.questions.marginals.methods.full import FULL
from sottovoce.questions.marginals.methods.joint import Joint
from sottovoce.questions.marginals.methods.latent import Latent
from sottovoce.questions.marginals.methods.subsets import PER_TABLE
from sottovoce.questions.marginals.methods.uniform import Uniform

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
METHOD_ALIASES = {"ft": "inp-ht"}


def method(name: str) -> Method:
    """A method by its name."""
    wanted = METHOD_ALIASES.get(name, name)
    for each in METHODS:
        if each.name == wanted:
            return each
    raise InvalidInput(
        f"method ({name}) must be one of {', '.join([AUTO, *(each.name for each in METHODS)])}"
    )
