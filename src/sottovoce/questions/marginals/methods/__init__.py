"""The one explicit tuple of methods, and how one is found by its name."""

from __future__ import annotations

from sottovoce.ground.errors import InvalidInput
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
from sottovoce.questions.marginals.methods.outside import BROUGHT_METHODS
from sottovoce.questions.marginals.methods.subsets import PER_TABLE
from sottovoce.questions.marginals.methods.uniform import Uniform
from sottovoce.questions.method import AUTO, method_named

# Every method of ours. A new one is a class in a file of this folder and a line here; other
# packages bring more (outside.py).
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


def _taken() -> frozenset[str]:
    """The names that methods of other packages cannot have."""
    return frozenset([AUTO, *(each.name for each in METHODS)])


def method(name: str) -> MarginalMethod:
    """A method by its name, of this package or of another one."""
    taken = _taken()
    if name in taken:
        return method_named(METHODS, name)
    brought = BROUGHT_METHODS.load(name, taken)
    if brought is not None:
        return brought
    return method_named(METHODS, name, tuple(BROUGHT_METHODS.entries(taken)))


def every_method() -> list[MarginalMethod]:
    """All methods there are: this package's, then those of others."""
    return [*METHODS, *BROUGHT_METHODS.every(_taken())]


def require_method(name: str, package: object) -> None:
    """Refuse a plan's method unless it is of the package that the plan names, or of ours if it
    names none.
    """
    if package is not None:
        BROUGHT_METHODS.require(name, package, _taken())
    elif name not in _taken():
        raise InvalidInput(f"plan: method ({name}) is none of sottovoce's, and names no package")
