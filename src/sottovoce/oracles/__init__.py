"""Frequency oracles, one file per family: a randomizer, its counter, its estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.base import Noise, Oracle, PureOracle, SummedOracle
from sottovoce.oracles.bloom import OpenRappor, Rappor
from sottovoce.oracles.buckets import OpenRandomizedResponse
from sottovoce.oracles.cohorts import CohortOracle
from sottovoce.oracles.direct import GeneralizedRandomizedResponse, RandomizedResponse
from sottovoce.oracles.field_hashing import FieldLocalHashing
from sottovoce.oracles.hadamard import HadamardRandomizedResponse, HadamardResponse
from sottovoce.oracles.hashing import (
    BinaryLocalHashing,
    LocalHashing,
    SeededLocalHashing,
    WideLocalHashing,
)
from sottovoce.oracles.histogram import SummedHistogramEncoding, ThresholdedHistogramEncoding
from sottovoce.oracles.sets import SetLocalHashing
from sottovoce.oracles.sketch import CountMeanSketch, HadamardCountMeanSketch
from sottovoce.oracles.subset import SubsetSelection
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.oracles.unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding
from sottovoce.oracles.wave import SquareWave
from sottovoce.schema import MOST_SPELLED

if TYPE_CHECKING:
    from sottovoce.ground.packages import Brought

__all__ = [
    "ORACLES",
    "CohortOracle",
    "Noise",
    "Oracle",
    "PureOracle",
    "SummedOracle",
    "built_of",
    "every_oracle",
    "find",
    "from_json",
    "options_of",
    "oracle",
    "oracle_with",
    "plain_name",
]

# Every oracle of ours. A new one is a class in a file of this folder and a line here; other
# packages bring more (outside.py).
ORACLES: tuple[type[Oracle], ...] = (
    RandomizedResponse,
    GeneralizedRandomizedResponse,
    SummedHistogramEncoding,
    ThresholdedHistogramEncoding,
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    SubsetSelection,
    BinaryLocalHashing,
    LocalHashing,
    FieldLocalHashing,
    SeededLocalHashing,
    WideLocalHashing,
    SetLocalHashing,
    HadamardResponse,
    HadamardRandomizedResponse,
    CountMeanSketch,
    HadamardCountMeanSketch,
    Rappor,
    OpenRandomizedResponse,
    OpenRappor,
    SquareWave,
)

ADAPTIVE = "adaptive"
TARGETS = ("cell", "half-sum")
DEFAULT_BYTES = 64  # what an adaptive report may weigh unless told otherwise


def _taken() -> frozenset[str]:
    """The names that oracles of other packages cannot have."""
    return frozenset([ADAPTIVE, *(name for kind in ORACLES for name in kind.names)])


def _brought() -> Brought[type[Oracle]]:
    """The oracles of other packages; a device that has none of them need not load this."""
    from sottovoce.oracles.outside import BROUGHT_ORACLES

    return BROUGHT_ORACLES


def find(name: str) -> type[Oracle]:
    """The class of an oracle by name or alias, of this package or of another one."""
    for kind in ORACLES:
        if name in kind.names:
            return kind
    found = _brought().load(name, _taken())
    if found is not None:
        return found
    others = _brought().entries(_taken())
    known = ", ".join([*(kind.names[0] for kind in ORACLES), *others, ADAPTIVE])
    raise InvalidInput(f"oracle ({name}) must be one of {known}")


def every_oracle() -> list[type[Oracle]]:
    """The classes of all oracles there are: this package's, then those of others."""
    return [*ORACLES, *_brought().every(_taken())]


def plain_name(name: str) -> str:
    """The name of an oracle in plans, for an alias of it; what is neither stays as it is.

    >>> plain_name("k-rr"), plain_name("adaptive")
    ('grr', 'adaptive')
    """
    return next((kind.names[0] for kind in ORACLES if name in kind.names), name)


def oracle(
    name: str,
    *,
    size: int,
    epsilon: Any,
    bytes: int | None = None,
    target: str | None = None,
    theta: Any = None,
    chosen: int | None = None,
    hash_bits: int | None = None,
    hash_size: int | None = None,
    length: int | None = None,
    hashes: int | None = None,
    width: int | None = None,
    salt: int | str | None = None,
    cohorts: int | None = None,
    buckets: int | None = None,
    alphabet: str | None = None,
    people: int | None = None,
    instantaneous: Sequence[Any] | None = None,
    half_width: int | None = None,
) -> Oracle:
    """The oracle called ``name`` for ``range(size)`` at ``epsilon``.

    ``adaptive`` chooses the one with the least variance for (size, epsilon). What is not given, the
    oracle chooses; an option that it does not take is refused.

    Args:
        name: any name or alias, or ``adaptive``.
        size: how many values there are.
        epsilon: what one report may cost: a number, or a decimal as text.
        bytes: adaptive: that a report may weigh.
        target: adaptive: what should vary least, one ``cell`` or a ``half-sum`` of cells.
        theta: the: the threshold, between 0 and 1.
        chosen: ss: how many values a report names.
        hash_bits: blh, olh, olh-wide: bits of a hashed value.
        hash_size: olh-field, olh-seeded, olh-sets: how many values are hashed to.
        length: olh-sets: how many items a set has at most.
        hashes: cms, hcms, rappor, o-rr, o-rappor: how many hash functions.
        width: cms, hcms: how many values each of them has.
        salt: of the same hash functions.
        cohorts: rappor, o-rr, o-rappor: how many families of hash functions.
        buckets: rappor, o-rr, o-rappor: how many values are hashed to.
        alphabet: rappor, o-rr, o-rappor: ``open``, or ``closed`` if all values are known.
        people: rappor, o-rr, o-rappor: how many the cohorts are chosen for, 100,000 by default.
        instantaneous: rappor: the chances that a kept 1 and a kept 0 are reported as 1.
        half_width: square-wave: how many places to either side of a value are near.

    >>> grr = oracle("grr", size=8, epsilon=1.0)
    >>> round(grr.p, 4), round(grr.q, 4), grr.bits
    (0.2797, 0.1029, 3)
    >>> oracle("adaptive", size=1024, epsilon=1.0).names[0]
    'olh'
    """
    options = {
        "bytes": bytes,
        "target": target,
        "theta": theta,
        "chosen": chosen,
        "hash_bits": hash_bits,
        "hash_size": hash_size,
        "length": length,
        "hashes": hashes,
        "width": width,
        "salt": salt,
        "cohorts": cohorts,
        "buckets": buckets,
        "alphabet": alphabet,
        "people": people,
        "instantaneous": instantaneous,
        "half_width": half_width,
    }
    given = {key: option for key, option in options.items() if option is not None}
    return oracle_with(name, size, epsilon, given)


def oracle_with(name: str, size: int, epsilon: Any, options: Mapping[str, Any]) -> Oracle:
    """The same with its options by name, as plans and questions hold them."""
    exact = parse_epsilon(epsilon)
    size = whole("size", size, 2, 1 << MOST_SPELLED)
    allowed = options_of(name)
    for key in options:
        if key not in allowed:
            raise InvalidInput(
                f"option {key!r} is not one of {name}'s ({', '.join(allowed) or 'it has none'})"
            )
    if name == ADAPTIVE:
        return _best(size, exact, **options)
    return built_of(find(name), size, exact, options)


def built_of(
    kind: type[Oracle], size: int, epsilon: Any, options: Mapping[str, Any] | None = None
) -> Oracle:
    """The same of a class, which need not be found by name.

    >>> built_of(SubsetSelection, 8, 1, {"chosen": 2}).to_json()["options"]
    {'chosen': 2}
    """
    if size > kind.largest:
        raise InvalidInput(f"size ({size}) must be at most {kind.largest} for {kind.names[0]}")
    return kind.build(whole("size", size, 2, kind.largest), parse_epsilon(epsilon), **options or {})


@cache
def options_of(name: str) -> tuple[str, ...]:
    """The options that an oracle takes beside size and epsilon."""
    build = _best if name == ADAPTIVE else find(name).build
    return tuple(
        key for key in inspect.signature(build).parameters if key not in ("size", "epsilon")
    )


def _best(size: int, epsilon: Decimal, bytes: int = DEFAULT_BYTES, target: str = "cell") -> Oracle:
    bytes = whole("bytes", bytes, 1, 1 << 30)
    if target not in TARGETS:
        raise InvalidInput(f"target ({target}) must be one of {', '.join(TARGETS)}")
    choices = []
    for name in ("grr", "ss", "oue", "olh", "hr", "hrr", "olh-seeded"):
        kind = find(name)
        if size <= kind.largest:
            choice = kind.build(size, epsilon)
            if choice.layout.bytes <= bytes:
                choices.append(choice)
    if not choices:
        raise InvalidInput(
            f"bytes ({bytes}) leaves no oracle for size {size}; hashing needs at most 10"
        )
    # rounded, so that a tie goes to the simpler one, which stands first
    return min(choices, key=lambda choice: float(f"{_error(choice, target):.9g}"))


def _error(choice: Oracle, target: str) -> float:
    return choice.variance(1) if target == "cell" else choice.sum_variance(1, choice.size // 2)


def from_json(data: Mapping[str, Any]) -> Oracle:
    """The oracle that a plan describes; refused unless its epsilon gives its thresholds."""
    try:
        size, options = int(data["size"]), dict(data["options"])
        if "package" in data:
            _brought().require(data["name"], data["package"], _taken())
        built = oracle_with(data["name"], size, data["epsilon"], options)
    except (KeyError, TypeError, ValueError) as wrong:
        if isinstance(wrong, InvalidInput):
            raise
        raise InvalidInput("plan: an oracle must have name, size, epsilon and options") from None
    if built.to_json() != dict(data):
        raise InvalidInput(
            f"plan: the thresholds of oracle {built.names[0]!r} are not those of its epsilon"
        )
    return built
