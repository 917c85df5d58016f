"""Small shuffled plans, and people who answer them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import sottovoce as sv
from sottovoce.device.sealing import PrivateKey
from sottovoce.ground.entropy import Seeded
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Report
from sottovoce.protocol.shuffling import Shuffling
from sottovoce.protocol.terms import Terms

SCHEMA = sv.Schema(drinks=sv.Categorical(["never", "monthly", "weekly", "daily"]))


def keys(shufflers: int = 3, seed: int = 1) -> list[PrivateKey]:
    """The private keys of some shufflers, and the collector's last."""
    entropy = Seeded(seed)
    return [PrivateKey.generate(entropy) for _ in range(shufflers + 1)]


def shuffled_plan(
    hops: list[PrivateKey], people: int = 300, least: int = 200, fakes: int = 0
) -> Plan:
    """One question with four answers."""
    part = Shuffling(
        Decimal(2),  # a report keeps that by itself, however few there are
        Fraction(1, 10**6),
        least,
        fakes=fakes,
        colluding=Decimal(2) if fakes else None,
        hops=tuple(key.public for key in hops),
    )
    question = sv.Frequencies("drinks", oracle="grr")
    return question.plan(SCHEMA, Terms.of(2, people, trust="shuffled"), shuffling=part)


def reports(plan: Plan, count: int, seed: int = 1) -> list[Report]:
    """The reports of a crowd."""
    answers = ["never", "weekly", "daily"]
    entropy = Seeded(seed)
    return [
        sv.Client(plan, entropy=entropy).report({"drinks": answers[row % 3]})
        for row in range(count)
    ]
