"""What a plan says of shuffling: who mixes reports before anybody opens them, and what that
promises beside the device's own coins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

from sottovoce.ground.arguments import LARGEST_INTEGER, fraction, whole
from sottovoce.ground.errors import InvalidInput
from sottovoce.oracles.thresholds import parse_epsilon
from sottovoce.protocol.guarantee import Guarantee, Promise, at_most, at_most_percent

MAX_HOPS = 16
_KEY = re.compile("[0-9a-f]{64}")
# of Curve25519 (RFC 7748): its field, and the points with which every secret is zero
_FIELD = 2**255 - 19
_LOW_ORDER = (
    0,
    1,
    _FIELD - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)


@dataclass(frozen=True)
class Shuffling:
    """How the reports of a plan are mixed, and what an analyst who sees only the mix can learn.

    ``epsilon`` and ``delta`` bound what the analyst learns of one person, if at least ``least``
    people report; the plan's own epsilon is what each report costs against whoever can link it to
    its sender. ``fakes`` are reports of nobody that the shufflers add; with them ``colluding`` is
    the epsilon against an analyst to whom everybody else tells her report (without them it is the
    plan's own). ``cap`` is what the plan's own epsilon was allowed to be. ``hops`` are public keys
    (X25519, in hexadecimal digits): those of the shufflers in turn, and the collector's last.

    >>> part = Shuffling(Decimal(1), Fraction(1, 10**9), least=10_000)
    >>> Shuffling.from_json(part.to_json()) == part
    True
    """

    epsilon: Decimal
    delta: Fraction
    least: int
    cap: Decimal = Decimal(8)
    fakes: int = 0
    colluding: Decimal | None = None
    hops: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole("plan: least", self.least, 2, LARGEST_INTEGER)
        whole("plan: fakes", self.fakes, 0, LARGEST_INTEGER)
        if (self.colluding is None) != (self.fakes == 0):
            raise InvalidInput("plan: colluding belongs to a plan with fakes, and to no other")
        if not 0 < self.delta < 1:
            raise InvalidInput(f"delta ({self.delta}) must lie between 0 and 1")
        check_hops(self.hops)

    @property
    def shufflers(self) -> int:
        """How many shufflers a report passes before the collector opens it."""
        return max(0, len(self.hops) - 1)

    def fakes_of(self, hop: int) -> int:
        """How many of the fakes one shuffler adds: an equal share, the first ones one more."""
        share, rest = divmod(self.fakes, self.shufflers)
        return share + (hop < rest)

    def to_json(self) -> dict[str, Any]:
        return {
            "epsilon": str(self.epsilon),
            "delta": f"{self.delta.numerator}/{self.delta.denominator}",
            "least": self.least,
            "cap": str(self.cap),
            "fakes": self.fakes,
            "colluding": None if self.colluding is None else str(self.colluding),
            "hops": list(self.hops),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        colluding = data["colluding"]
        return cls(
            parse_epsilon(data["epsilon"]),
            fraction("plan: delta", data["delta"]),
            data["least"],
            parse_epsilon(data["cap"]),
            data["fakes"],
            None if colluding is None else parse_epsilon(colluding),
            tuple(data["hops"]),
        )


def check_hops(hops: Any) -> None:
    """Refuse what is no list of public keys: none, or a shuffler's and the collector's at least."""
    is_list = isinstance(hops, tuple) and all(isinstance(key, str) for key in hops)
    if not is_list or not all(_KEY.fullmatch(key) for key in hops):
        raise InvalidInput("hops must be public keys, each of 64 lower-case hexadecimal digits")
    if len(hops) == 1 or len(hops) > MAX_HOPS:
        raise InvalidInput(
            f"hops ({len(hops)}) must be those of 1 to {MAX_HOPS - 1} shufflers and the collector's"
        )
    if len(set(hops)) < len(hops):
        raise InvalidInput("hops must be different keys: one who holds two mixes nothing between")
    if not all(map(_is_point, hops)):
        # found here, since a device that met it while it seals would have spent epsilon before
        raise InvalidInput("hops must be public keys of X25519, as `sottovoce key` prints them")


def _is_point(key: str) -> bool:
    """Whether a key is written in its one way, and no point of low order."""
    u = int.from_bytes(bytes.fromhex(key), "little")
    return u < _FIELD and u not in _LOW_ORDER


@dataclass(frozen=True)
class ShuffledGuarantee(Guarantee):
    """What is promised against three adversaries, always told together.

    ``per_report`` and ``lifetime`` hold against whoever can link a report to its sender: the
    analyst with all shufflers. ``analyst`` (with ``chance``, its delta) holds against whoever sees
    a shuffled batch of at least ``least`` people; ``colluding`` if all of these others tell that
    analyst their reports.

    >>> local = Guarantee(4.0, 4.0)
    >>> part = Shuffling(Decimal("0.5"), Fraction(1, 10**9), least=1000)
    >>> print(ShuffledGuarantee.of(local, part))  # doctest: +ELLIPSIS
    against the analyst: (0.5, 1e-9), from 1,000 people on (... rises to at most 62.3%)
    against the analyst with everybody else: epsilon 4, that of a report by itself
    against the analyst with all shufflers: 4-LDP per report, 4 over a lifetime (...)
    """

    analyst: float = 0.0
    chance: float = 0.0
    colluding: float = 0.0
    least: int = 0

    @classmethod
    def of(cls, local: Guarantee, part: Shuffling) -> Self:
        colluding = local.lifetime
        if part.colluding is not None:
            colluding = min(colluding, float(part.colluding))
        # whoever sees the batch alone learns no more than with what everybody else tells
        analyst = min(float(part.epsilon), colluding)
        return cls(
            local.per_report,
            local.lifetime,
            local.delta,
            analyst,
            float(part.delta),
            colluding,
            part.least,
        )

    @property
    def promises(self) -> list[Promise]:
        shuffled = [
            ("the analyst", self.analyst, self.chance),
            ("the analyst with everybody else", self.colluding, self._colluding_chance),
            ("the analyst with all shufflers", self.lifetime, self.delta),
        ]
        return [
            Promise(who, epsilon, delta, Guarantee(epsilon, epsilon, delta).best_guess(0.5))
            for who, epsilon, delta in shuffled
        ]

    def __str__(self) -> str:
        guess = self.promises[0].guess
        return "\n".join(
            [
                f"against the analyst: ({at_most(self.analyst)}, {at_most(self.chance)}), "
                f"from {self.least:,} people on "
                f"(a 50% guess about a person rises to at most {at_most_percent(guess)})",
                f"against the analyst with everybody else: {self._colluding}",
                f"against the analyst with all shufflers: {super().__str__()}",
            ]
        )

    @property
    def _colluding_chance(self) -> float:
        return self.chance if self.colluding < self.lifetime else self.delta

    @property
    def _colluding(self) -> str:
        if self.colluding >= self.lifetime:
            return f"epsilon {at_most(self.colluding)}, that of a report by itself"
        return f"({at_most(self.colluding)}, {at_most(self.chance)})"
