"""Terms: on what conditions people are asked, before anybody knows what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sottovoce.ground.arguments import LARGEST_INTEGER, share, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.thresholds import parse_epsilon

LOCAL = "local"  # nobody is trusted: every device randomises what leaves it
SHUFFLED = "shuffled"  # somebody mixes the reports before anybody opens them
TRUSTS = (LOCAL, SHUFFLED)


@dataclass(frozen=True)
class Terms:
    """What a person is promised, how many are expected, and whom they must trust.

    ``epsilon`` bounds what one person's report may cost, ``delta`` the chance that this bound
    fails, ``people`` is how many answer, and ``trust`` names the model: ``local`` means that a
    person need trust nobody but her own device; ``shuffled`` that what an analyst is kept from
    learning rests on shufflers, too, while ``epsilon`` stays what her device alone promises.
    ``fakes`` is how many reports of nobody these add.

    >>> Terms.of(1, 20_000)
    Terms(epsilon=Decimal('1'), people=20000, delta=Fraction(0, 1), trust='local', fakes=0)
    """

    epsilon: Decimal
    people: int
    delta: Fraction = Fraction(0)
    trust: str = LOCAL
    fakes: int = 0

    @classmethod
    def of(
        cls, epsilon: Any, people: Any, delta: Any = 0, trust: str = LOCAL, fakes: Any = 0
    ) -> Terms:
        """Terms as a caller or a file gives them; anything else is refused."""
        if trust not in TRUSTS:
            raise InvalidInput(f"trust ({trust}) must be one of {', '.join(TRUSTS)}")
        return cls(
            parse_epsilon(epsilon),
            whole("people", people, 1, LARGEST_INTEGER),
            share("delta", delta),
            trust,
            whole("fakes", fakes, 0, LARGEST_INTEGER),
        )

    @property
    def fake_share(self) -> Fraction:
        """How many of the reports are fakes."""
        return Fraction(self.fakes, self.people + self.fakes)

    def costing(self, epsilon: Decimal) -> Terms:
        """The same at another epsilon."""
        return replace(self, epsilon=epsilon)

    def among(self, people: int) -> Terms:
        """The same for another number of people, such as those of one round."""
        return replace(self, people=people)
