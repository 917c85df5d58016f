"""The laws that every oracle obeys: reports, what is kept of them, and devices beside simulation.

A law raises :class:`LawBroken`, which says what does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.aggregation.cohort_part import CohortPart
from sottovoce.aggregation.sum_counts import part_of
from sottovoce.ground.entropy import Seeded
from sottovoce.ground.errors import CorruptReport, InvalidInput, SottovoceError
from sottovoce.ground.extras import imported
from sottovoce.oracles import Oracle, SummedOracle
from sottovoce.oracles.counter import MANY, Counter, Integers
from sottovoce.oracles.layout import Payload

LAW_PEOPLE = 3000
FALSE_ALARM = (
    1e-6  # chance that the law about devices and simulation rejects an oracle that is right
)
OPEN_SIZE = 1 << 64  # every number of 64 bits is a value

Law = Callable[[Oracle], None]


class LawBroken(SottovoceError):
    """An oracle does not do what every oracle does."""


def must(holds: object, what: str) -> None:
    """Go on if it holds; :class:`LawBroken` otherwise, since an assert may be switched off."""
    if not holds:
        raise LawBroken(what)


def alike(one: Any, other: Any, what: str) -> None:
    """Go on if two arrays are equal, bit for bit."""
    must(np.array_equal(one, other), what)


def crowd(oracle: Oracle, people: int = LAW_PEOPLE, seed: int = 1) -> Integers:
    """Values that lean to the small ones."""
    share = np.random.default_rng(seed).random(people) ** 3
    return (share * min(oracle.size, 64)).astype(np.int64)


def held(oracle: Oracle, payload: Payload, weights: Integers | None = None) -> CohortPart:
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
    """Whether two crowds left the same."""
    return np.array_equal(one.content(), other.content())


def few(oracle: Oracle) -> NDArray[np.uint64]:
    """The first values, to ask for."""
    return np.arange(min(oracle.size, 16), dtype=np.uint64)


def nobody_changes_nothing(oracle: Oracle) -> None:
    whole = held(oracle, oracle.simulate(crowd(oracle), seed=2))
    nobody = part_of(oracle, MANY)
    must(nobody.is_nothing, "an empty state is not nothing")
    must(not whole.is_nothing, "the state of many reports is nothing")
    must(same(merged(oracle, whole, nobody), whole), "a state changes when an empty one is added")
    must(same(merged(oracle, nobody, whole), whole), "an empty state and a state are not the state")
    nothing = oracle.simulate(np.zeros(0, int), seed=2)
    must(nothing.shape == (0, oracle.layout.bytes), "no people send something")
    must(same(held(oracle, nothing), nobody), "no reports change a state")


def merging_commutes_and_associates(oracle: Oracle) -> None:
    payload = oracle.simulate(crowd(oracle), seed=3)
    a, b, c = (held(oracle, payload[start::3]) for start in range(3))
    before = [part.content().copy() for part in (a, b, c)]
    left = merged(oracle, merged(oracle, a, b), c)
    right = merged(oracle, a, merged(oracle, c, b))
    must(same(left, right), "the order of merging changes the state")
    must(same(left, held(oracle, payload)), "merged parts are not the state of all reports")
    for part, content in zip((a, b, c), before, strict=True):
        alike(part.content(), content, "merging changes what was merged")


def a_batch_equals_one_by_one(oracle: Oracle) -> None:
    payload = oracle.simulate(crowd(oracle, 40), seed=4)
    single = part_of(oracle, MANY)
    for row in payload:
        single.add(row[None, :], None, MANY)
    must(same(single, held(oracle, payload)), "reports one by one add up to another state")


def content_survives_and_fits(oracle: Oracle) -> None:
    """What is kept is read back from its integers, with weights of any sign too."""
    payload = oracle.simulate(crowd(oracle, 60), seed=13)
    signed = np.arange(60) % 7 - 3
    for weights in (None, signed + 4, signed):
        whole = held(oracle, payload, weights)
        content, again = whole.content(), part_of(oracle, MANY)
        must(again.fits(content.shape), "a state does not fit its own shape")
        must(not again.fits((*content.shape, 1)), "a state fits another shape")
        people = len(payload) if weights is None else int(weights.sum())
        again.read(content.astype(np.int64), people)
        must(same(again, whole), "a state is not what was kept of it")
        alike(
            again.support(0, few(oracle)), whole.support(0, few(oracle)), "support is another one"
        )


def summed_reports_have_a_state(oracle: Oracle) -> None:
    """Only an oracle that sums has the role of a counter; its states merge as they are kept."""
    payload = oracle.simulate(crowd(oracle, 200), seed=14)
    if not isinstance(oracle, SummedOracle):
        must(not isinstance(oracle, Counter), "it counts, and is no SummedOracle")
        must(not hasattr(oracle, "accumulate"), "it accumulates, and is no SummedOracle")
        _refused(lambda: held(oracle, payload).state(0), InvalidInput)
        return
    one, other = (oracle.accumulate(oracle.empty(), part) for part in (payload[:70], payload[70:]))
    state = oracle.merge(one, other)
    must(state.shape == oracle.state_shape, "a state has another shape than state_shape")
    alike(state, held(oracle, payload).state(0), "merged states are not the state of all reports")
    alike(oracle.merge(state, oracle.empty()), state, "an empty state changes another one")
    alike(oracle.absorb(one, other), state, "absorb and merge differ")
    found, variances = oracle.estimate(state, len(payload), [1, 0])
    straight, errors = oracle.estimate_reports(payload, [1, 0])
    alike(found, straight, "estimates of a state and of its reports differ")
    alike(variances, errors, "variances of a state and of its reports differ")
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
    must(same(weighted, repeated), "a weight is not its report repeated")
    asked = few(oracle)
    expected = repeated.support(0, asked)
    alike(weighted.support(0, asked), expected, "the support of a weight is not that of repeats")
    # 3 w of every report, then 2 w taken away, in two batches: w is left
    taken = held(oracle, payload, 3 * weights)
    taken.add(payload[:70], -2 * weights[:70], MANY)
    taken.absorb(held(oracle, payload[70:], -2 * weights[70:]), MANY)
    must(same(taken, repeated), "what is taken away is not gone")
    alike(taken.support(0, asked), expected, "what is taken away still has support")
    must(not taken.is_signed, "what is taken away leaves a sign")
    negative = held(oracle, payload, -weights)
    alike(negative.support(0, asked), -expected, "a negative weight has another support")
    negative.absorb(weighted, MANY)
    must(negative.is_nothing, "weights and their negatives leave something")


def reports_survive_packing(oracle: Oracle) -> None:
    entropy = Seeded(5)
    for value in crowd(oracle, 50).tolist():
        output = oracle.randomize(value, entropy)
        data = oracle.pack(output)
        width = oracle.layout.bytes
        must(len(data) == width == (oracle.bits + 7) // 8, "a packed report has another length")
        must(oracle.unpack(data) == output, "a report is another one when it is unpacked")
        memo = oracle.unpack(oracle.pack(oracle.memorize(value, entropy)))
        must(oracle.recall(memo, entropy) is not None, "a kept memo gives no report")
    for row in oracle.simulate(crowd(oracle, 50), seed=5):
        again = oracle.pack(oracle.unpack(row.tobytes()))
        must(again == row.tobytes(), "a simulated report is another one when it is packed again")


def support_is_brute_force(oracle: Oracle) -> None:
    """Counting report by report gives the same integers, bit for bit."""
    if not oracle.counts_reports:
        return
    payload = oracle.simulate(crowd(oracle, 300), seed=6)
    asked = few(oracle)
    outputs = [oracle.unpack(row.tobytes()) for row in payload]
    brute = [sum(oracle.supports(output, int(value)) for output in outputs) for value in asked]
    for reports in (payload, outputs):
        alike(oracle.support(reports, asked), brute, "support is not what supports() says")


def asking_some_values_is_asking_all(oracle: Oracle) -> None:
    if oracle.size >= OPEN_SIZE:  # nobody can ask for all of them
        return
    payload = oracle.simulate(crowd(oracle), seed=7)
    everything, _ = oracle.estimate_reports(payload)
    some, _ = oracle.estimate_reports(payload, np.array([1, 0]))
    alike(some, everything[[1, 0]], "some values have other estimates than among all")


def share_of_support(oracle: Oracle, packed: Payload) -> Integers:
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
    limit = imported("scipy.special").chdtri(1, FALSE_ALARM / (16 * len(squares)))
    must(squares.max() < limit, "simulated reports have another law than those of devices")


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
    if oracle.size >= OPEN_SIZE:
        return
    for value in (-1, oracle.size):
        message = _refused(lambda value=value: oracle.randomize(value, Seeded(1)), InvalidInput)  # type: ignore[misc]
        must("range" in message, "the error of a value outside does not name the range")
    _refused(lambda: oracle.simulate(np.array([oracle.size]), seed=1), InvalidInput)
    _refused(lambda: oracle.simulate(np.array([0.5]), seed=1), InvalidInput)


def a_seed_means_the_same_twice(oracle: Oracle) -> None:
    values = crowd(oracle)
    first = oracle.simulate(values, seed=11)
    alike(first, oracle.simulate(values, seed=11), "one seed means two simulations")
    is_same = np.array_equal(first, oracle.simulate(values, seed=12))
    must(not is_same, "two seeds mean one simulation")


LAWS: tuple[Law, ...] = (
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


def _refused(call: Callable[[], object], kind: type[Exception]) -> str:
    try:
        call()
    except kind as error:
        return str(error)
    raise LawBroken("what is impossible is not refused")
