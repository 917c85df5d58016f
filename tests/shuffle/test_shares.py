"""Shares say nothing of a word, fakes are uniform whoever cheats, and reports come back whole."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.oracles import PureOracle
from sottovoce.protocol.plan import Plan
from sottovoce.shuffle.peos import ReportWords, split
from sottovoce.shuffle.peos.dgk import DgkPrivateKey
from sottovoce.shuffle.peos.oblivious import ObliviousShuffler
from sottovoce.shuffle.peos.run import without_fakes
from sottovoce.shuffle.peos.shares import Words, read_words, uniform_words, word_type
from tests.shuffle.in_process import shuffled
from tests.statistics import chi_limit, chi_squared

BYTES, UNIFORM = list(range(256)), np.full(256, 1 / 256)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("parties", [2, 3, 7])
def test_shares_add_up(bits: int, parties: int) -> None:
    words = uniform_words(50, bits, Seeded(1))
    shares = split(words, parties, Seeded(2))
    assert len(shares) == parties
    assert {share.dtype for share in shares} == {word_type(bits)}
    total = shares[0]
    for share in shares[1:]:
        total = total + share
    assert total.tolist() == words.tolist()
    assert words.tolist() == uniform_words(50, bits, Seeded(1)).tolist()  # left as they were


def low_and_high(words: Words) -> list[list[int]]:
    """The lowest and the highest byte of each word."""
    shift = words.dtype.type(8 * words.dtype.itemsize - 8)
    return [(words & words.dtype.type(255)).tolist(), (words >> shift).tolist()]


@pytest.mark.parametrize("bits", [32, 64])
def test_all_shares_but_one_are_uniform_whatever_the_word(bits: int) -> None:
    words = np.full(20_000, 3, word_type(bits))
    shares = split(words, 3, Seeded(1))
    limit = chi_limit(255, comparisons=24)
    for chosen in [*combinations(shares, 1), *combinations(shares, 2)]:
        for drawn in low_and_high(sum(chosen, np.zeros_like(words))):
            assert chi_squared(BYTES, UNIFORM, drawn)[0] < limit
    # a split without the last share's correction, and all shares together, are found out
    assert chi_squared(BYTES, UNIFORM, low_and_high(shares[0] | shares[1])[0])[0] > limit
    assert (
        chi_squared(BYTES, UNIFORM, low_and_high(sum(shares, np.zeros_like(words)))[0])[0] > limit
    )


class Constant(ObliviousShuffler):
    """Wants fakes to be 42."""

    def _fake_shares(self, count: int) -> Words:
        return np.full(count, 42, word_type(self.key.plaintext_bits))


@pytest.mark.parametrize("cheats", [{0}, {2}, {0, 1}, {1, 2}], ids=str)
def test_fakes_are_uniform_unless_all_parties_cheat(key: DgkPrivateKey, cheats: set[int]) -> None:
    nobody = np.zeros(1, np.uint64)
    kinds: dict[int, type[ObliviousShuffler]] = dict.fromkeys(cheats, Constant)
    found = shuffled(key, nobody, 3, seed=5, fakes=2800, kinds=kinds).words
    limit = chi_limit(255, comparisons=8)
    fakes = found[found != 0]
    assert len(fakes) == 2800
    for drawn in low_and_high(fakes):
        assert chi_squared(BYTES, UNIFORM, drawn)[0] < limit


def test_fakes_of_parties_that_all_cheat_are_found_out(key: DgkPrivateKey) -> None:
    """The test above can fail: as fakes would that one party makes alone."""
    kinds: dict[int, type[ObliviousShuffler]] = dict.fromkeys(range(3), Constant)
    found = shuffled(key, np.zeros(1, np.uint64), 3, seed=5, fakes=200, kinds=kinds).words
    assert sorted(found.tolist()) == [0] + [3 * 42] * 200


# -- reports as words


def plan_of(question: object, size: int = 8, **options: object) -> Plan:
    schema = sv.Schema(x=sv.Categorical(range(size)), y=sv.Categorical(range(size)))
    return sv.plan(schema, question, epsilon=1.0, people=400, **options)  # type: ignore[arg-type]


FITTING = {
    "grr": (lambda: plan_of(sv.Frequencies("x", oracle="grr")), 32, 3, 0),
    "rr": (lambda: plan_of(sv.Frequencies("x", oracle="rr"), 2), 32, 1, 0),
    "two cohorts": (lambda: plan_of(sv.Frequencies("x", "y", oracle="grr")), 32, 3, 1),
    "olh": (lambda: plan_of(sv.Frequencies("x", oracle="olh", hash_bits=2)), 32, 8, 0),
    "wide olh": (lambda: plan_of(sv.Frequencies("x", oracle="olh", hash_bits=5), 1024), 64, 55, 0),
    "blh": (lambda: plan_of(sv.Frequencies("x", oracle="blh"), 1024), 32, 11, 0),
    "pairs": (lambda: plan_of(sv.Marginals(up_to=2, method="marg-ps")), 32, 6, 0),
}


@pytest.mark.parametrize("name", FITTING)
def test_reports_come_back_from_their_words(name: str) -> None:
    make, word_bits, payload_bits, cohort_bits = FITTING[name]
    plan = make()
    form = ReportWords.of(plan)
    assert (form.word_bits, form.payload_bits, form.cohort_bits) == (
        word_bits,
        payload_bits,
        cohort_bits,
    )
    size = len(plan.schema["x"].labels())
    people = {name: np.arange(300) % size for name in ("x", "y")}
    reports = sv.simulate(plan, people, seed=1)
    words = form.words(reports, Seeded(2))
    assert words.dtype == word_type(word_bits)
    assert form.reports(words) == reports
    # every word is a report, so that a fake is one
    assert len(form.reports(uniform_words(500, word_bits, Seeded(3)))) == 500


def test_spare_bits_are_uniform() -> None:
    """Else the server would tell fakes from reports by them."""
    plan = plan_of(sv.Frequencies("x", oracle="grr"))
    form = ReportWords.of(plan)
    reports = sv.simulate(plan, {"x": np.zeros(20_000, int), "y": np.zeros(20_000, int)}, seed=1)
    spare = form.words(reports, Seeded(2)) >> np.uint32(3)
    limit = chi_limit(255, comparisons=3)
    for shift in (0, 8, 21):
        drawn = (spare >> np.uint32(shift) & np.uint32(255)).tolist()
        assert chi_squared(BYTES, UNIFORM, drawn)[0] < limit


REFUSED = {
    "grr has 6 values": lambda: plan_of(sv.Frequencies("x", oracle="grr"), 6),
    "no report of oue": lambda: plan_of(sv.Frequencies("x", oracle="oue")),
    "no report of olh-seeded": lambda: plan_of(sv.Frequencies("x", oracle="olh-seeded")),
    "must fit into 64 bits": lambda: plan_of(
        sv.Frequencies("x", oracle="olh", hash_bits=7), 1 << 10
    ),
    "assigned coins": lambda: plan_of(sv.Frequencies("x", oracle="grr"), coin="assigned"),
    "a power of two of them, not 3": lambda: sv.plan(
        sv.Schema(**{name: sv.Boolean() for name in "abc"}),
        sv.Frequencies("a", "b", "c", oracle="grr"),
        epsilon=1.0,
        people=100,
    ),
    r"one width, not \[1, 2\] bits": lambda: sv.plan(
        sv.Schema(a=sv.Boolean(), b=sv.Categorical(range(4))),
        sv.Frequencies("a", "b", oracle="grr"),
        epsilon=1.0,
        people=100,
    ),
    "in clear": lambda: sv.plan(
        sv.Schema(a=sv.Boolean(), b=sv.Boolean(sensitive=False)),
        sv.Frequencies("a", oracle="grr"),
        epsilon=1.0,
        people=100,
        public=["b"],
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_plans_that_cannot_have_uniform_fakes_are_refused(message: str) -> None:
    plan = REFUSED[message]()
    with pytest.raises(InvalidInput, match=message):
        ReportWords.of(plan)


def test_words_of_odd_bytes_are_refused() -> None:
    with pytest.raises(CorruptReport, match="8 bytes each"):
        read_words(bytes(9), 64)


# -- fakes in estimates


def expected(oracle: PureOracle, shares: list[Fraction], people: int, fakes: int) -> list[Fraction]:
    """The mean of the estimate from people and uniform fakes, over all ways it can go."""
    channel, outputs = oracle.exact_channel(), oracle.outputs()
    assert len(outputs) == 1 << oracle.layout.bits  # a fake is any of them
    support = [Fraction(0)] * len(shares)
    for output in outputs:
        law = sum(share * row.get(output, 0) for share, row in zip(shares, channel, strict=True))
        mean = people * law + Fraction(fakes, len(outputs))
        for value in range(len(shares)):
            support[value] += mean * oracle.supports(output, value)
    p, q = oracle.exact_p, oracle.exact_q
    return [(each / (people + fakes) - q) / (p - q) for each in support]


ENUMERATED: dict[str, Callable[[], PureOracle]] = {
    "grr": lambda: sv.oracle("grr", size=4, epsilon=1),
    "olh": lambda: sv.oracle("olh", size=4, epsilon=1, hash_bits=2),
}


@pytest.mark.parametrize("name", ENUMERATED)
def test_estimates_without_fakes_are_unbiased(name: str) -> None:
    """By enumeration; eq. (9.5) as printed is biased for local hashing: docs/errata, 6."""
    oracle = ENUMERATED[name]()
    people, fakes = 1000, 250
    shares = [Fraction(part, 10) for part in (5, 3, 2, 0)]
    found = np.array([float(each) for each in expected(oracle, shares, people, fakes)])
    truth = np.array([float(share) for share in shares])
    mine = without_fakes(oracle, found, people, people + fakes)
    assert mine == pytest.approx(truth, abs=1e-12)
    printed = found * (people + fakes) / people - fakes / (people * 4)
    wrong = {"grr": 0.0, "olh": -fakes / (people * 4)}[name]
    assert printed - truth == pytest.approx(np.full(4, wrong), abs=1e-12)
