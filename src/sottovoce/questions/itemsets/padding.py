"""Padding and sampling before a frequency oracle: the ask, and what its answers say of each
candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles import ADAPTIVE, Noise, PureOracle, oracle
from sottovoce.oracles.base import Integers
from sottovoce.oracles.sets import least_variance
from sottovoce.oracles.thresholds import exp
from sottovoce.protocol.encodings import Ask, Drawn, Padded
from sottovoce.protocol.encodings.sets import Candidates
from sottovoce.questions.itemsets.size_law import OwnFactor

Floats = NDArray[np.float64]
WHOLE_SETS = "olh-sets"  # which whispers a set as a whole, without padding
PLAIN = ("olh", "blh", "oue", "sue", "ss", "olh-seeded")  # which sampling does not amplify


def prefers_grr(count: int, length: int, epsilon: Decimal) -> bool:
    """Whether amplified randomized response beats local hashing for one of ``count`` candidates.

    >>> prefers_grr(128, 4, Decimal(2)), prefers_grr(128, 1, Decimal(2))
    (True, False)
    """
    # d < l (4l - 1) e^eps + 1                                            wang2021thesis, eq. (5.3)
    return count < length * (4 * length - 1) * exp(epsilon) + 1


def padded_ask(
    attribute: str,
    items: int,
    candidates: Candidates | None,
    length: int,
    name: str,
    epsilon: Decimal,
    delta: Fraction | None = None,
) -> Ask:
    """One candidate of a set padded to ``length``, through the oracle called ``name``.

    ``adaptive`` takes the better of amplified randomized response and local hashing. ``grr`` is
    amplified, and ``olh-seeded`` is if there is a ``delta``; all other oracles spend ``epsilon``
    itself. ``olh-sets`` takes the set as a whole, or ``length`` of its candidates if it has more.
    """
    if name == WHOLE_SETS:
        drawn = Drawn(attribute, items, candidates, length)
        return Ask(drawn, oracle(WHOLE_SETS, size=drawn.size, epsilon=epsilon, length=length))
    plain = Padded(attribute, items, candidates, length)
    if name == ADAPTIVE:
        name = "grr" if prefers_grr(plain.count, length, epsilon) else "olh"
    if delta is not None and name != "olh-seeded":
        raise InvalidInput(
            f"delta is for the oracle olh-seeded, not for {name}: other hashes do not keep it"
        )
    if name == "grr" or delta is not None:
        encoding = Padded(attribute, items, candidates, length, epsilon, delta)
        return Ask(encoding, encoding.oracle(epsilon))
    if name not in PLAIN:
        raise InvalidInput(
            f"oracle ({name}) must be one of {', '.join((ADAPTIVE, 'grr', WHOLE_SETS, *PLAIN))}"
        )
    return Ask(plain, oracle(name, size=plain.size, epsilon=epsilon))


def padded_noise(source: PureOracle, length: int, people: int, factor: float = 1.0) -> Noise:
    """The law of the error of an estimate that was multiplied by ``length`` and ``factor``.

    Its floor is that of (5.1) and (5.2). A holder's report supports the item with chance a = q + (p
    - q)/l only, since sampling may pass it over: the slope holds that too.
    """
    # l^2/(n (p - q)^2) [f a(1 - a) + (1 - f) q(1 - q)],  a = p/l + q(l - 1)/l
    #     wang2021thesis, theorem 5.2.4
    p, q, gap = source.p, source.q, source.gap
    scale = (length * factor) ** 2 / (people * gap**2)
    joined = p / length + q * (length - 1) / length
    slope = joined * (1 - joined) - q * (1 - q)
    return Noise(scale * q * (1 - q), scale * slope)


@dataclass(frozen=True, eq=False)
class Counted:
    """The frequency of each candidate of a padded ask, with the variance of its error."""

    values: Floats  # (candidates,)
    variances: Floats  # (candidates,)
    doubt: Floats  # (candidates,): the part of the variances that the factor has
    noise: Noise


def counted(ask: Ask, support: Integers, people: int, factor: OwnFactor) -> Counted:
    """What an ask about candidates says of each.

    Args:
        ask: a padded or a whole set of candidates.
        support: of each candidate among the reports, (candidates,).
        people: how many reports there are.
        factor: the update factor, with all that is not known of it.
    """
    encoding, source = ask.encoding, ask.oracle
    assert isinstance(encoding, Padded | Drawn)
    assert isinstance(source, PureOracle)
    times = encoding.length if isinstance(encoding, Padded) else 1  # one of l is told, or all
    # f(x) = l u' c(x)/n   wang2021thesis, definition 5.2.2, eq. (5.5)
    plain = times * source.from_support(support, people)
    noise = padded_noise(source, times, people, factor.value)
    values = factor.value * plain
    of_noise = noise.variance(np.clip(values, 0, 1))
    of_factor = np.clip(plain, 0, 1) ** 2 * factor.variance
    return Counted(values, of_noise + of_factor, of_factor, noise)


def best_oracle(count: int, length: int, epsilon: Decimal) -> tuple[str, float]:
    """(the oracle with the least error for candidates that nobody holds, that variance times the
    people).

    >>> [best_oracle(count, 4, Decimal(2))[0] for count in (128, 20_000, 5)]
    ['olh-sets', 'olh-sets', 'grr']
    """
    odds = float(exp(epsilon))
    # (e^eps l + d - 1)/(e^eps - 1)^2   wang2021thesis, eq. (5.1)
    direct = (odds * length + count - 1) / (odds - 1) ** 2
    hashed = least_variance(length, odds)
    return ("grr", direct) if direct < hashed else (WHOLE_SETS, hashed)
