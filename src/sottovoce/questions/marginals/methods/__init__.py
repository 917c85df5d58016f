"""The one explicit tuple of methods, and how one is found by its name."""

from __future__ import annotations

from sottovoce.questions.marginals.method import MarginalMethod
from sottovoce.questions.marginals.methods.bit_sets import FourierTransform
from sottovoce.questions.marginals.methods.calm import Calm, CalmPlus
from sottovoce.questions.marginals.methods.calm_binary import CalmBinary
from sottovoce.questions.marginals.methods.coefficients import InputHadamard
from sottovoce.questions.marginals.methods.efron_stein import EfronStein
from sottovoce.questions.marginals.methods.em import InputEM, SplitEM
from sottovoce.questions.marginals.methods.fourier import Fourier
from sottovoce.questions.marginals.methods.full import FULL
from sottovoce.questions.marginals.methods.joint import JointViews
from sottovoce.questions.marginals.methods.latent import Latent
from sottovoce.questions.marginals.methods.subsets import PER_TABLE
from sottovoce.questions.marginals.methods.uniform import Uniform
from sottovoce.questions.method import method_named

# Every method there is. A new one is a class in a file of this folder and a line here.
METHODS: tuple[MarginalMethod, ...] = (
    Uniform(),
    InputHadamard(),
    FourierTransform(),
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
    JointViews(),
)


def method(name: str) -> MarginalMethod:
    """A method by its name."""
    return method_named(METHODS, name)
