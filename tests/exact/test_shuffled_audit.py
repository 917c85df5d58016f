"""The audit of shuffled plans: tiny crowds mixed along every way, and the numbers counted again.
Fakes, devices, shufflers and accountants that are wrong must fail it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.accounting.shuffling import Mixture, shuffled_delta
from sottovoce.audit import CrowdAudit, CrowdParts, audit_plan
from sottovoce.audit.crowds import Pile, audit_crowds, for_any_hashes
from sottovoce.device.client import Client
from sottovoce.ground.entropy import Entropy, Seeded
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.promises import recount
from sottovoce.protocol.reports import Report
from sottovoce.protocol.series import Series
from sottovoce.protocol.shuffling import Shuffling
from sottovoce.protocol.terms import SHUFFLED, Terms

WAYS = 1 << 11
THREE = sv.Schema(x=sv.Categorical(range(3)), y=sv.Boolean())
BASKETS = sv.Schema(x=sv.Items(range(3)))
WORDS = sv.Schema(x=sv.Text(bytes=2, alphabet="ab"))


def made(
    question: sv.Question, schema: sv.Schema = THREE, fakes: int = 0, local: Any = 2
) -> sv.Plan:
    """A plan whose promise nobody solved for: crowds are compared with what is counted for them."""
    terms = Terms.of(local, 1000, trust=SHUFFLED, fakes=fakes)
    part = Shuffling(
        Decimal("0.5"),
        Fraction(1, 10**6),
        least=2,
        fakes=fakes,
        colluding=Decimal(1) if fakes else None,
    )
    settled = question.settled(schema, terms)
    return settled.plan(schema, terms, Series(settled.rounds(schema)), "device", (), part)


def crowds(plan: sv.Plan, device: Any = Client, **parts: Any) -> CrowdAudit:
    return audit_crowds(plan, device, b"fixed", WAYS, CrowdParts(**parts))


def values(oracle: str, **options: Any) -> sv.Question:
    return sv.Frequencies("x", oracle=oracle, **options)


ONE = made(values("grr"))
AMONG_FAKES = made(values("grr"), fakes=2)
BITS = made(values("sue"))
TWO_COHORTS = made(sv.Frequencies("x", "y", oracle="grr"))

# (plan, the most people, how near the bound is, whether hashes are sampled)
HONEST: dict[str, tuple[sv.Plan, int, float, bool]] = {
    "one value": (ONE, 5, 0.9999, False),
    "among fakes": (AMONG_FAKES, 5, 0.9999, False),
    "two cohorts": (TWO_COHORTS, 3, 0.98, False),
    "cohorts among fakes": (made(sv.Frequencies("x", "y", oracle="grr"), fakes=9), 3, 0.98, False),
    "two asks": (
        made(sv.Frequencies("x", "y", oracle="grr", split="budget"), fakes=2),
        3,
        0.98,
        False,
    ),
    "bits": (BITS, 5, 0.9, False),
    "thresholds": (made(values("the"), fakes=1), 5, 0.9, False),
    "subsets": (made(values("ss"), local=1, fakes=1), 5, 0.98, False),
    "coefficients": (made(values("hrr"), fakes=1), 5, 0.98, False),
    "columns": (made(values("hr"), fakes=1), 5, 0.98, False),
    "sketches": (made(values("hcms", width=4, hashes=2)), 5, 0.5, False),
    "waves": (made(values("square-wave")), 5, 0.9, False),
    "seeded hashes": (made(values("olh-seeded", hash_size=3), fakes=1), 5, 0.6, True),
    "wide hashes": (made(values("olh-wide"), fakes=1), 5, 0.9, True),
    "signs": (made(sv.Marginals(up_to=2, method="inp-ht")), 2, 0.5, False),
    "tables": (made(sv.Marginals(up_to=2, method="marg-ps")), 4, 0.98, False),
    "padded sets": (made(sv.TopItems("x", top=1, method="psfo", length=2), BASKETS), 5, 0.5, False),
    "a round": (made(sv.TopItems("x", top=1, method="svim"), BASKETS), 4, 0.5, False),
    "groups": (made(sv.HeavyHitters("x", top=1, method="tree-hist"), WORDS), 3, 0.5, True),
}


@pytest.mark.parametrize("name", HONEST)
def test_mixed_reports_never_tell_more_than_is_counted(name: str) -> None:
    plan, people, near, is_sampled = HONEST[name]
    found = crowds(plan)
    assert not found.faults, str(found)
    assert found.is_sampled == is_sampled
    assert max(case.people for case in found.cases) >= people, str(found)
    # and hardly less, somewhere: the comparison is not an empty one
    best = found.nearest
    assert near <= float(best.delta) / best.bound <= 1, str(found)
    assert json.loads(json.dumps(found.to_json()))["cases"]
    part = plan.shuffling
    assert part is not None
    assert any(case.fakes for case in found.cases) == bool(part.fakes)


def test_the_exact_delta_is_that_of_every_sequence_sorted() -> None:
    """Without types of reports, without sums: every data set and sequence of a crowd."""
    laws = ONE.cohorts[0].asks[0].oracle.exact_channel()
    case = next(each for each in crowds(ONE).cases if each.people == 3 and each.epsilon == 0.5)
    odds = Fraction(math.exp(0.5))
    worst = Fraction(0)
    for others in combinations_with_replacement(range(3), 2):
        seen = []
        for own in range(3):
            law: dict[Pile, Fraction] = {}
            for told in product(range(3), repeat=3):
                people = (own, *others)
                chance = math.prod(
                    (laws[value][answer] for value, answer in zip(people, told, strict=True)),
                    start=Fraction(1),
                )
                pile = tuple(sorted(told))
                law[pile] = law.get(pile, Fraction(0)) + chance
            seen.append(law)
        for one, other in product(seen, repeat=2):
            over = (max(Fraction(0), one[pile] - odds * other[pile]) for pile in one)
            worst = max(worst, sum(over, Fraction(0)))
    assert float(case.delta) == pytest.approx(float(worst), rel=1e-12)


# -- the mutants


def constant(plan: Plan, entropy: Entropy) -> Report:
    """A fake that everybody knows."""
    return Report(plan.id, 0, bytes(plan.cohorts[0].bytes))


def honest_looking(plan: Plan, entropy: Entropy) -> Report:
    """A fake that is a report of the first value."""
    return Client(plan, entropy=entropy).report({"x": 0, "y": False})


class CohortIsAnswer(Client):
    """The cohort tells the answer."""

    def report(self, record: Mapping[str, Any]) -> Any:
        told = super().report(record)
        return replace(told, cohort=int(record["y"])) if told.cohort else told


def in_order(pile: Pile, report: int) -> Pile:
    """A shuffler that leaves reports where they were."""
    return (*pile, report)


def lowered(mixture: Mixture, epsilon: float, people: int, fakes: int = 0) -> float:
    """An accountant who counts on three fakes where there are two."""
    return shuffled_delta(mixture, epsilon, people, fakes + (fakes == 2))


def hash_of_others(mixture: Mixture, epsilon: float, people: int, fakes: int = 0) -> float:
    """An accountant who lets bits be hidden as if each supported many values."""
    more = [
        (weight, [replace(ask, both=ask.q) for ask in asks])
        for weight, asks in for_any_hashes(mixture)
    ]
    return shuffled_delta(more, epsilon, people, fakes)


def by_column(mixture: Mixture, epsilon: float, people: int, fakes: int = 0) -> float:
    """wang2021thesis, theorem 9.3.1, as exact as can be: of each value only how many bits are 1."""
    oracle = BITS.cohorts[0].asks[0].oracle
    assert isinstance(oracle, sv.oracles.PureOracle)
    p, q = oracle.p, oracle.q
    worst = 0.0
    for others in combinations_with_replacement(range(3), people - 1):
        laws = []
        for own in (0, 1):
            told = [*others, own]
            columns = []
            for value in (0, 1):
                law = [1.0]
                for each in told:
                    chance = p if each == value else q
                    law = [
                        (law[ones] if ones < len(law) else 0) * (1 - chance)
                        + (law[ones - 1] if ones else 0) * chance
                        for ones in range(len(law) + 1)
                    ]
                columns.append(law)
            laws.append([one * other for one in columns[0] for other in columns[1]])
        for one, other in (laws, laws[::-1]):
            over = (max(0.0, a - math.exp(epsilon) * b) for a, b in zip(one, other, strict=True))
            worst = max(worst, sum(over))
    return worst


@pytest.mark.parametrize(
    ("plan", "parts", "fault"),
    [
        (AMONG_FAKES, {"fake": constant}, "one person among 1 fakes"),
        (AMONG_FAKES, {"fake": honest_looking}, "one person among 1 fakes"),
        (TWO_COHORTS, {"device": CohortIsAnswer}, "2 people"),
        (ONE, {"mix": in_order}, "2 people"),
        (AMONG_FAKES, {"bound": lowered}, "one person among 2 fakes"),
        (BITS, {"bound": hash_of_others}, "2 people"),
        (BITS, {"bound": by_column}, "2 people"),
    ],
)
def test_a_mutant_is_convicted(plan: sv.Plan, parts: dict[str, Any], fault: str) -> None:
    assert not crowds(plan).faults
    found = crowds(plan, **parts)
    assert any(f"mixed reports ({fault})" in each for each in found.faults), str(found.faults)


# -- the numbers of a plan, counted again

PEOPLE = 20_000
PLAN = sv.plan(
    THREE,
    values("sh"),
    epsilon=1,
    delta="1e-6",
    people=PEOPLE,
    trust="shuffled",
    cap=5,
    fakes=40,
)


def changed(plan: sv.Plan, **parts: Any) -> sv.Plan:
    body = json.loads(plan.to_json())
    body["shuffle"] |= parts
    return sv.Plan.from_json(json.dumps(body, indent=1, ensure_ascii=False) + "\n")


def test_what_was_solved_for_is_kept() -> None:
    found = audit_plan(PLAN, 1000, entropy=Seeded(5), seed=b"fixed", limit=WAYS)
    assert found.passed, str(found)
    assert found.recount is not None
    assert found.recount.delta is not None
    assert found.recount.delta <= found.recount.stated
    assert "counted again" in str(found)
    assert "up to 5 people, and up to 2 fakes" in str(found)
    assert found.to_json()["shuffled"]["delta_counted"] == found.recount.delta


def least_of(plan: sv.Plan) -> int:
    assert plan.shuffling is not None
    return plan.shuffling.least


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ({"least": least_of(PLAN) // 10}, "least"),
        ({"epsilon": "0.8"}, "least"),
        ({"delta": "1/100000000"}, "least"),
        ({"colluding": "0.5"}, "fakes"),
        ({"fakes": 20}, "fakes"),
    ],
)
def test_a_plan_that_promises_more_than_it_keeps_is_found(parts: Any, fault: str) -> None:
    more = changed(PLAN, **parts)  # a device reads it: what a crowd hides is not for it to count
    with pytest.raises(sv.InvalidInput, match=r"promises more than it keeps: (least|fakes) \("):
        _ = more.question
    with pytest.raises(sv.InvalidInput, match="promises more"):
        sv.Aggregate(more).estimate()
    found = audit_plan(more, 1000, entropy=Seeded(5), seed=b"fixed", limit=WAYS)
    assert not found.passed
    assert any(each.startswith(f"{fault} (") for each in found.faults)
    assert str(found).startswith("FAIL")


def test_a_plan_whose_numbers_nobody_solved_for_is_refused_where_it_is_made() -> None:
    with pytest.raises(sv.InvalidInput, match="promises more than it keeps"):
        sv.Aggregate(ONE).estimate()


def test_whole_bit_vectors_by_the_columns_of_the_thesis_are_refused() -> None:
    """docs/errata, 2: theorem 9.3.1 is for columns that are shuffled apart."""
    plan = sv.plan(
        THREE,
        values("rap"),
        epsilon="0.3",
        delta="1e-9",
        people=3_000_000,
        trust="shuffled",
        cap=12,
    )
    # eps_c = 2 sqrt(14 ln(4/delta) (e^(eps_l/2) + 1)/(n - 1))   wang2021thesis, theorem 9.3.1
    claimed = 1 + 56 * math.log(4e9) * (math.exp(float(plan.epsilon) / 2) + 1) / 0.3**2
    assert claimed < 0.6 * least_of(plan)
    assert plan.question
    with pytest.raises(sv.InvalidInput, match="promises more than it keeps: least"):
        _ = changed(plan, least=math.ceil(claimed)).question


def test_a_plan_is_counted_once() -> None:
    before = recount.cache_info()
    text = PLAN.to_json()
    for _ in range(3):
        assert sv.Plan.from_json(text).question
    after = recount.cache_info()
    assert after.misses - before.misses <= 1
    assert after.hits - before.hits >= 2


@pytest.mark.parametrize("oracle", ["o-rr", "o-rappor", "square-wave"])
def test_fakes_that_nobody_can_make_are_not_planned(oracle: str) -> None:
    with pytest.raises(sv.InvalidInput, match=f"{oracle} has no fakes"):
        made(values(oracle), fakes=1)


def test_fakes_that_estimates_take_for_people_are_refused() -> None:
    plan = made(sv.Marginals(up_to=2, method="marg-ps"), fakes=2)
    with pytest.raises(sv.InvalidInput, match="estimates of marginals do not take out fakes"):
        _ = plan.question


def test_of_a_plan_that_is_not_shuffled_nothing_is_counted() -> None:
    plan = sv.plan(THREE, values("grr"), epsilon=1, people=100)
    with pytest.raises(sv.InvalidInput, match="not shuffled"):
        recount(plan)
    found = audit_plan(plan, 1000, entropy=Seeded(5), seed=b"fixed", limit=WAYS)
    assert found.crowds is None
    assert "shuffled" not in found.to_json()
