"""What shuffling makes of one oracle's reports, with every bound beside."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from sottovoce.accounting.gaussian import check_delta
from sottovoce.accounting.shuffling.bounds import ShuffledCrowd
from sottovoce.accounting.shuffling.lower import lower_epsilon
from sottovoce.accounting.shuffling.rounds import MAX_ROUNDS, rounds_epsilon
from sottovoce.accounting.shuffling.thesis import thesis_epsilon
from sottovoce.ground.arguments import whole
from sottovoce.oracles.base import Oracle


@dataclass(frozen=True)
class Amplified:
    """Epsilons of shuffled reports at one delta, for replace-one neighbours.

    Attributes:
        upper: what is surely promised against the analyst (eps_c).
        lower: below which no promise is true; 0 if none is known.
        thesis: what a closed form of wang2021thesis claims, None where none applies.
        local: against an analyst with all shufflers (eps_l), of all rounds.
        colluding: against an analyst with everybody else (eps_s), of all rounds.
        thesis_source: the theorem, or why none applies.

    >>> print(Amplified(0.1, 0.099, None, 4.0, 4.0, "no theorem"))
    Against the analyst:                     epsilon 0.1
      no promise is true below               epsilon 0.099
      closed form of the thesis:             none (no theorem)
    Against the analyst with everybody else: epsilon 4
    Against the analyst with all shufflers:  epsilon 4
    """

    upper: float
    lower: float
    thesis: float | None
    local: float
    colluding: float
    thesis_source: str

    def __str__(self) -> str:
        if self.thesis is None:
            thesis = f"none ({self.thesis_source})"
        else:
            thesis = f"epsilon {self.thesis:.4g} ({self.thesis_source})"
        upper, colluding, local = (
            _digits(epsilon, ROUND_CEILING) for epsilon in (self.upper, self.colluding, self.local)
        )
        lines = [
            f"Against the analyst:                     epsilon {upper}",
            f"  no promise is true below               epsilon {_digits(self.lower, ROUND_FLOOR)}",
            f"  closed form of the thesis:             {thesis}",
            f"Against the analyst with everybody else: epsilon {colluding}",
            f"Against the analyst with all shufflers:  epsilon {local}",
        ]
        return "\n".join(lines)


def _digits(epsilon: float, rounding: str) -> str:
    """Four digits, rounded to the side on which a bound is still one.

    >>> _digits(0.033411, ROUND_CEILING), _digits(0.033411, ROUND_FLOOR), _digits(4.0, ROUND_FLOOR)
    ('0.03342', '0.03341', '4')
    """
    short = Context(prec=4, rounding=rounding).plus(Decimal(repr(epsilon)))
    return f"{float(short):.4g}"


def amplified(
    oracle: Oracle,
    people: int,
    delta: float,
    fakes: int = 0,
    colluding: float = 0,
    rounds: int = 1,
) -> Amplified:
    """What the reports of an oracle promise once they are shuffled.

    Args:
        oracle: with its coins; see :func:`sottovoce.oracle`.
        people: how many reports are shuffled.
        delta: above 0 and below 1: well below one in the number of people.
        fakes: reports of the blanket, such as uniform ones of grr and olh, that shufflers add.
        colluding: the share of the other people who tell the analyst what they sent.
        rounds: how often the same people report, each time with fresh coins.

    >>> import sottovoce as sv
    >>> found = sv.amplified(sv.oracle("grr", size=16, epsilon=4), people=1_000_000, delta=1e-9)
    >>> round(found.upper, 3), round(found.lower, 3), round(found.thesis, 3), found.local
    (0.044, 0.044, 0.144, 4.0)
    """
    check_delta(delta)
    mixture = [(1, [oracle.blanket()])]
    crowd = ShuffledCrowd(mixture, people, fakes, colluding)
    rounds = whole("rounds", rounds, 1, MAX_ROUNDS)
    thesis, source = thesis_epsilon(oracle, crowd.honest + 1, delta, fakes)
    if rounds > 1:
        thesis, source = None, "the thesis has no theorem for several rounds"
    alone = ShuffledCrowd(mixture, 1, fakes)
    local = rounds * oracle.epsilon
    upper = min(rounds_epsilon(crowd, rounds, delta), local)
    lower = lower_epsilon(mixture, people, delta, fakes, colluding, rounds, upper)
    return Amplified(
        upper=upper,
        lower=min(lower, upper),
        thesis=thesis,
        local=local,
        colluding=min(rounds_epsilon(alone, rounds, delta), local),
        thesis_source=source,
    )
