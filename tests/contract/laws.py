"""The laws that every oracle obeys. A new oracle passes them all: call :func:`check` on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.aggregation.sum_counts import part_of
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.oracles import Oracle, SummedOracle
from sottovoce.oracles.counter import MANY, Counter
from tests.statistics import chi_limit

PEOPLE = 3000


def crowd(oracle: Oracle, people: int = PEOPLE, seed: int = 1) -> np.ndarray:
    """Values that lean to the small ones."""
    share = np.random.default_rng(seed).random(people) ** 3
    return (share * min(oracle.size, 64)).astype(np.int64)


def held(oracle: Oracle, payload: np.ndarray, weights: np.ndarray | None = None) -> CohortPart:
    """What an aggregate keeps of reports: their sums, or the rows where they cannot be summed."""
    part = part_of(oracle, MANY)
    part.add(payload, weights, MANY)
    return part


def merged(oracle: Oracle, *parts: CohortPart) -> CohortPart:
    whole = part_of(oracle, MANY)
    for part in parts:
        whole.absorb(part, MANY)
    return whole


def same(one: CohortPart, other: CohortPart) -> bool:
    return np.array_equal(one.content(), other.content())


def nobody_changes_nothing(oracle: Oracle) -> None:
    whole = held(oracle, oracle.simulate(crowd(oracle), seed=2))
    nobody = part_of(oracle, MANY)
    assert nobody.is_nothing
    assert not whole.is_nothing
    assert same(merged(oracle, whole, nobody), whole)
    assert same(merged(oracle, nobody, whole), whole)
    nothing = oracle.simulate(np.zeros(0, int), seed=2)
    assert nothing.shape == (0, oracle.layout.bytes)
    assert same(held(oracle, nothing), nobody)


def merging_commutes_and_associates(oracle: Oracle) -> None:
    payload = oracle.simulate(crowd(oracle), seed=3)
    a, b, c = (held(oracle, payload[start::3]) for start in range(3))
    before = [part.content().copy() for part in (a, b, c)]
    left = merged(oracle, merged(oracle, a, b), c)
    right = merged(oracle, a, merged(oracle, c, b))
    assert same(left, right)
    assert same(left, held(oracle, payload))
    assert all(np.array_equal(x.content(), y) for x, y in zip((a, b, c), before, strict=True))


def a_batch_equals_one_by_one(oracle: Oracle) -> None:
    payload = oracle.simulate(crowd(oracle, 40), seed=4)
    single = part_of(oracle, MANY)
    for row in payload:
        single.add(row[None, :], None, MANY)
    assert same(single, held(oracle, payload))


def content_survives_and_fits(oracle: Oracle) -> None:
    """What is kept is read back from its integers, with weights of any sign too."""
    payload = oracle.simulate(crowd(oracle, 60), seed=13)
    signed = np.arange(60) % 7 - 3
    for weights in (None, signed + 4, signed):
        whole = held(oracle, payload, weights)
        content, again = whole.content(), part_of(oracle, MANY)
        assert again.fits(content.shape)
        assert not again.fits((*content.shape, 1))
        again.read(content.astype(np.int64), len(payload) if weights is None else weights.sum())
        assert same(again, whole)
        asked = np.arange(min(oracle.size, 16))
        assert np.array_equal(again.support(0, asked), whole.support(0, asked))


def summed_reports_have_a_state(oracle: Oracle) -> None:
    """Only an oracle that sums has the role of a counter; its states merge as they are kept."""
    payload = oracle.simulate(crowd(oracle, 200), seed=14)
    if not isinstance(oracle, SummedOracle):
        assert not isinstance(oracle, Counter)
        assert not hasattr(oracle, "accumulate")
        _refused(lambda: held(oracle, payload).state(0), InvalidInput)
        return
    one, other = (oracle.accumulate(oracle.empty(), part) for part in (payload[:70], payload[70:]))
    state = oracle.merge(one, other)
    assert state.shape == oracle.state_shape
    assert np.array_equal(state, held(oracle, payload).state(0))
    assert np.array_equal(oracle.merge(state, oracle.empty()), state)
    assert np.array_equal(oracle.absorb(one, other), state)
    found, variances = oracle.estimate(state, len(payload), [1, 0])
    straight, errors = oracle.estimate_reports(payload, [1, 0])
    assert np.array_equal(found, straight)
    assert np.array_equal(variances, errors)
    weights = np.arange(200)
    for wrong in (weights[1:], weights / 2, np.full(len(payload), oracle.most_weight)):
        _refused(
            lambda wrong=wrong: oracle.accumulate(oracle.empty(), payload, wrong),  # type: ignore[misc]
            InvalidInput,
        )


def a_weight_repeats_its_report(oracle: Oracle) -> None:
    """Brute force: what is kept of weighted reports is that of each repeated so often; what is
    taken away is gone.
    """
    payload = oracle.simulate(crowd(oracle, 200), seed=12)
    weights = np.random.default_rng(12).integers(0, 5, len(payload))
    weighted = held(oracle, payload, weights)
    repeated = held(oracle, np.repeat(payload, weights, axis=0))
    assert same(weighted, repeated)
    asked = np.arange(min(oracle.size, 16), dtype=np.uint64)
    expected = repeated.support(0, asked)
    assert np.array_equal(weighted.support(0, asked), expected)
    # 3 w of every report, then 2 w taken away, in two batches: w is left
    taken = held(oracle, payload, 3 * weights)
    taken.add(payload[:70], -2 * weights[:70], MANY)
    taken.absorb(held(oracle, payload[70:], -2 * weights[70:]), MANY)
    assert same(taken, repeated)
    assert np.array_equal(taken.support(0, asked), expected)
    assert not taken.is_signed
    negative = held(oracle, payload, -weights)
    assert np.array_equal(negative.support(0, asked), -expected)
    negative.absorb(weighted, MANY)
    assert negative.is_nothing


def reports_survive_packing(oracle: Oracle) -> None:
    entropy = Seeded(5)
    for value in crowd(oracle, 50).tolist():
        output = oracle.randomize(value, entropy)
        data = oracle.pack(output)
        assert len(data) == oracle.layout.bytes == (oracle.bits + 7) // 8
        assert oracle.unpack(data) == output
        assert (
            oracle.recall(oracle.unpack(oracle.pack(oracle.memorize(value, entropy))), entropy)
            is not None
        )
    for row in oracle.simulate(crowd(oracle, 50), seed=5):
        assert oracle.pack(oracle.unpack(row.tobytes())) == row.tobytes()


def support_is_brute_force(oracle: Oracle) -> None:
    """Counting report by report gives the same integers, bit for bit (summed or Bloom cells count
    by weight).
    """
    if oracle.names[0] in ("she", "rappor", "o-rappor"):
        return
    payload = oracle.simulate(crowd(oracle, 300), seed=6)
    asked = np.arange(min(oracle.size, 16))
    outputs = [oracle.unpack(row.tobytes()) for row in payload]
    brute = [sum(oracle.supports(output, int(value)) for output in outputs) for value in asked]
    assert oracle.support(payload, asked).tolist() == brute
    assert oracle.support(outputs, asked).tolist() == brute


def asking_some_values_is_asking_all(oracle: Oracle) -> None:
    payload = oracle.simulate(crowd(oracle), seed=7)
    everything, _ = oracle.estimate_reports(payload)
    some, _ = oracle.estimate_reports(payload, np.array([1, 0]))
    assert np.array_equal(some, everything[[1, 0]])


def share_of_support(oracle: Oracle, packed: np.ndarray) -> np.ndarray:
    """How many reports support each of a few values, counted report by report."""
    outputs = [oracle.unpack(row.tobytes()) for row in packed]
    return np.array(
        [
            sum(oracle.supports(out, value) for out in outputs)
            for value in range(min(oracle.size, 4))
        ]
    )


def device_and_simulation_share_one_law(oracle: Oracle) -> None:
    """Everybody holds value 0; the shares of devices and of simulated ones that support a value
    differ by chance.

    Power: with 4000 of each, shares that differ by 0.08 are told apart at five standard errors.
    """
    people = 4000 if oracle.size < 1 << 32 else 1000
    entropy = Seeded(9)
    rows = [
        np.frombuffer(oracle.pack(oracle.randomize(0, entropy)), np.uint8) for _ in range(people)
    ]
    device = share_of_support(oracle, np.stack(rows)) / people
    simulated = share_of_support(oracle, oracle.simulate(np.zeros(people, int), seed=10)) / people
    pooled = (device + simulated) / 2
    squares = (device - simulated) ** 2 / np.maximum(
        2 * pooled * (1 - pooled) / people, 1 / people**2
    )
    assert squares.max() < chi_limit(1, 16 * len(squares))


def impossible_reports_are_refused(oracle: Oracle) -> None:
    width = oracle.layout.bytes
    for wrong in (
        np.zeros((2, width + 1), np.uint8),
        np.zeros((2, width), np.uint16),
        np.zeros(width, np.uint8),
    ):
        _refused(lambda wrong=wrong: oracle.support(wrong, [0]), CorruptReport)  # type: ignore[misc]
    _refused(lambda: oracle.unpack(bytes(width + 1)), CorruptReport)
    spare = width * 8 - oracle.bits
    if spare:
        payload = oracle.simulate(crowd(oracle, 3), seed=1)
        payload[1, -1] |= 0x80
        _refused(lambda: oracle.support(payload, [0]), CorruptReport)
        _refused(lambda: oracle.unpack(payload[1].tobytes()), CorruptReport)


def values_outside_are_refused_without_an_echo(oracle: Oracle) -> None:
    if oracle.size >= 1 << 64:
        return
    for value in (-1, oracle.size):
        message = _refused(lambda value=value: oracle.randomize(value, Seeded(1)), InvalidInput)  # type: ignore[misc]
        assert "range" in message
    _refused(lambda: oracle.simulate(np.array([oracle.size]), seed=1), InvalidInput)
    _refused(lambda: oracle.simulate(np.array([0.5]), seed=1), InvalidInput)


def a_seed_means_the_same_twice(oracle: Oracle) -> None:
    values = crowd(oracle)
    assert np.array_equal(oracle.simulate(values, seed=11), oracle.simulate(values, seed=11))
    assert not np.array_equal(oracle.simulate(values, seed=11), oracle.simulate(values, seed=12))


LAWS: tuple[Callable[[Oracle], None], ...] = (
    nobody_changes_nothing,
    merging_commutes_and_associates,
    a_batch_equals_one_by_one,
    content_survives_and_fits,
    summed_reports_have_a_state,
    a_weight_repeats_its_report,
    reports_survive_packing,
    support_is_brute_force,
    asking_some_values_is_asking_all,
    device_and_simulation_share_one_law,
    impossible_reports_are_refused,
    values_outside_are_refused_without_an_echo,
    a_seed_means_the_same_twice,
)


def check(oracle: Oracle) -> None:
    """All laws."""
    for law in LAWS:
        law(oracle)


def _refused(call: Callable[[], object], kind: type[Exception]) -> str:
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("it was not refused")
