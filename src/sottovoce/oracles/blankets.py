"""Privacy blankets: the part of a report that is the same whatever the value.

With chance gamma a report is drawn from the blanket, a law that no value changes, and with chance
1 - gamma from a law that its value decides. Among shuffled reports those of the blanket hide a
person (balle2019blanket).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sottovoce.ground.errors import InvalidInput


@dataclass(frozen=True)
class Blanket:
    """How the law of a report on x depends on x: under w, the law of the blanket,

        P(y | x) = gamma w(y) E   if y supports x,  and  gamma w(y)  if it does not.

    So the law is gamma w(y) + (1 - gamma) t(y | x), where t is w given that x is supported.

    Attributes:
        ratio: E, what a report that supports x is more likely for.
        gamma: the chance of the blanket, 1/(1 + q (E - 1)).
        q: the chance that a report of the blanket supports x, the same for every x.
        both: at most the chance that it supports two values x and x'. Less of it never hides more
            (supermodularity), so that 0 is right for any hash function.
        pair: that chance exactly, of some two values, for lower bounds; None if it is not known.
        triple: the same for some three values; None also if there are only two values.

    >>> grr = Blanket.of(Fraction(3), Fraction(1, 4), Fraction(0))
    >>> grr.gamma, grr.both
    (Fraction(2, 3), Fraction(0, 1))
    """

    ratio: Fraction
    gamma: Fraction
    q: Fraction
    both: Fraction
    pair: Fraction | None = None
    triple: Fraction | None = None

    @classmethod
    def of(
        cls,
        ratio: Fraction,
        q: Fraction,
        both: Fraction,
        pair: Fraction | None = None,
        triple: Fraction | None = None,
    ) -> Blanket:
        """The blanket with this ratio and support; its chance follows from them.

        ``both`` is raised to 2q - 1, the least that two events of chance q have in common.
        """
        # sum over y of P(y | x) = gamma (1 - q) + gamma q E = 1
        gamma = 1 / (1 + q * (ratio - 1))
        return cls(ratio, gamma, q, max(both, 2 * q - 1), pair, triple)


def no_blanket(name: str, reason: str) -> InvalidInput:
    """The error of an oracle whose shuffled reports are not claimed to hide anybody."""
    return InvalidInput(f"{name} has no privacy blanket: {reason}")
