"""The device: it answers once, keeps a memo and never the answer,
and stays silent in other rounds.
"""

from __future__ import annotations

import json
import threading
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.client import Membership
from sottovoce.ground.entropy import Seeded
from sottovoce.protocol.families import Listed
from tests.statistics import z_limit

SCHEMA = sv.Schema(x=sv.Categorical(range(8)), y=sv.Boolean())


def plan(oracle: str = "grr", **changes: Any) -> sv.Plan:
    asked: dict[str, Any] = {"epsilon": 1.0, "people": 1000, **changes}
    return sv.plan(SCHEMA, sv.Frequencies("x", oracle=oracle), **asked)


def test_with_a_state_answering_again_sends_the_same_report() -> None:
    state = sv.ClientState()
    client = sv.Client(plan("oue"), state)
    first = client.report({"x": 3})
    assert all(client.report({"x": value % 8}) == first for value in range(20))
    restored = sv.ClientState.from_json(state.to_json())
    assert sv.Client(plan("oue"), restored).report({"x": 5}) == first


def test_nobody_answers_while_a_state_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first part that is read to the last, so that no memo is kept without its cost."""
    state = sv.ClientState()
    sv.Client(plan(), state).report({"x": 3})
    free: list[bool] = []

    def try_lock() -> None:
        free.append(state.lock.acquire(blocking=False))
        if free[-1]:
            state.lock.release()

    def from_another_thread() -> None:
        thread = threading.Thread(target=try_lock)
        thread.start()
        thread.join()

    class Watched(dict[str, Membership]):
        def items(self) -> Any:
            from_another_thread()
            return super().items()

    real = json.dumps

    def dumps(*arguments: Any, **options: Any) -> str:
        from_another_thread()
        return real(*arguments, **options)

    state.rounds = Watched()
    monkeypatch.setattr("sottovoce.device.client.json.dumps", dumps)
    state.to_json()
    assert free == [False, False]
    from_another_thread()
    assert free[-1]


def test_rappor_draws_fresh_noise_on_a_kept_memo() -> None:
    state = sv.ClientState()
    made = plan("rappor", epsilon=4)
    client = sv.Client(made, state, Seeded(1))
    reports = [client.report({"x": 3}) for _ in range(400)]
    assert len({report.payload for report in reports}) > 100
    oracle = made.cohorts[0].asks[0].oracle
    kept, cohort = oracle.unpack(bytes.fromhex(state.memos[made.id][1][0]))
    seen = [oracle.unpack(report.payload) for report in reports]
    assert {where for _, where in seen} == {cohort}
    ones = np.array([sum(bits >> place & 1 for bits, _ in seen) for place in range(oracle.buckets)])
    expected = np.array([0.75 if kept >> place & 1 else 0.25 for place in range(oracle.buckets)])
    errors = (ones - 400 * expected) / np.sqrt(400 * expected * (1 - expected))
    assert np.abs(errors).max() < z_limit(oracle.buckets)
    mutant = (ones - 400 * (1 - expected)) / np.sqrt(400 * expected * (1 - expected))
    assert np.abs(mutant).max() > z_limit(oracle.buckets)


def test_the_state_never_holds_the_answer() -> None:
    """States after two different answers and the same coins differ only in what the oracle sent."""
    states = []
    for value in (0, 7):
        state = sv.ClientState()
        sv.Client(plan(epsilon="0.01"), state, Seeded(4)).report({"x": value})
        states.append(json.loads(state.to_json()))
    assert set(states[0]) == {"rounds", "memos", "account"}
    assert (
        states[0]["account"]["spent"]
        == states[1]["account"]["spent"]
        == {"x": {"epsilon": 10_000_000, "delta": 0}}
    )
    memo = next(iter(states[0]["memos"].values()))
    assert memo == next(iter(states[1]["memos"].values()))  # at epsilon 0.01 these coins hide both


def _written(body: object) -> str:
    """As plans are written."""
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def test_a_device_answers_in_one_round_only() -> None:
    first = plan(rounds=(1, 1))
    second = sv.plan(SCHEMA, sv.Frequencies("y"), epsilon=1.0, people=1000, after=first)
    answered = {0: 0, 1: 0, 2: 0}
    for seed in range(400):
        state = sv.ClientState()
        count = 0
        for made, record in ((first, {"x": 1}), (second, {"y": True})):
            try:
                sv.Client(made, state, Seeded(seed)).report(record)
                count += 1
            except sv.NotInThisRound:
                pass
        answered[count] += 1
    assert answered == {0: 0, 1: 400, 2: 0}
    with pytest.raises(sv.InvalidInput, match="state is required"):
        sv.Client(first).report({"x": 1})


def test_a_series_gets_one_answer_of_a_device_however_many_plans_it_has() -> None:
    """Twenty second rounds of one series, other shares, a first round that names an origin: one
    answer in all.
    """
    first = plan(rounds=(1, 1))
    seconds = [plan(after=first, people=1000 + extra) for extra in range(20)]
    state = sv.ClientState()
    sv.Client(first, sv.ClientState(), Seeded(0))
    state.rounds[first.id] = Membership((1, 1), 1)
    answers = 0
    for made in seconds:
        try:
            sv.Client(made, state, Seeded(1)).report({"x": 1})
            answers += 1
        except sv.NotInThisRound:
            pass
    assert answers == 1
    restored = sv.ClientState.from_json(state.to_json())
    with pytest.raises(sv.NotInThisRound, match="another plan"):
        sv.Client(seconds[1], restored).report({"x": 1})
    body = json.loads(seconds[0].to_json())
    for change in (
        {"shares": [1], "round": 0, "parent": None},
        {"round": 0},
        {"origin": "x"},
        {"parent": None},
    ):
        with pytest.raises(sv.InvalidInput):
            sv.Plan.from_json(_written({**body, "series": {**body["series"], **change}}))
    other = _written({**body, "series": {**body["series"], "shares": [1, 2]}})
    with pytest.raises(sv.NotInThisRound, match="shares"):
        sv.Client(sv.Plan.from_json(other), restored).report({"x": 1})


def test_a_bad_record_does_not_bind_a_device_to_a_plan() -> None:
    first = plan(rounds=(1, 1))
    one, two = (plan(after=first, people=1000 + extra) for extra in range(2))
    state = sv.ClientState()
    state.rounds[first.id] = Membership((1, 1), 1)
    with pytest.raises(sv.InvalidInput):
        sv.Client(one, state, invalid="raise").report({"x": "banana"})
    assert state.account.spent == {}
    sv.Client(two, state).report({"x": 1})
    with pytest.raises(sv.NotInThisRound):
        sv.Client(one, state).report({"x": 1})


def test_a_second_report_without_a_state_warns() -> None:
    client = sv.Client(plan())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.report({"x": 1})
    with pytest.warns(sv.PrivacyWarning, match="epsilon again"):
        client.report({"x": 1})
    kept = sv.Client(plan(), sv.ClientState())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.report({"x": 1})
        kept.report({"x": 1})


def test_devices_join_cohorts_by_their_weights() -> None:
    """A plan whose cohorts weigh 1 and 3, on devices and in simulation."""
    made = sv.plan(SCHEMA, sv.Frequencies("x", "y", oracle="grr"), epsilon=1.0, people=1000)
    one, two = made.cohorts
    uneven = replace(made, cohorts=Listed([one, replace(two, weight=3)]))
    entropy = Seeded(2)
    devices = [
        sv.Client(uneven, entropy=entropy).report({"x": 1, "y": True}).cohort for _ in range(4000)
    ]
    crowd = sv.simulate(uneven, {"x": [1] * 4000, "y": [True] * 4000}, seed=3).cohorts
    for drawn in (np.array(devices), crowd):
        error = (drawn.mean() - 0.75) / np.sqrt(0.75 * 0.25 / 4000)
        assert abs(error) < z_limit(2)
        assert abs((drawn.mean() - 0.5) / np.sqrt(0.25 / 4000)) > z_limit(2)


@pytest.mark.filterwarnings("ignore::sottovoce.device.client.PrivacyWarning")
def test_records_are_checked_whatever_the_cohort() -> None:
    both = sv.plan(SCHEMA, sv.Frequencies("x", "y"), epsilon=1.0, people=1000)
    client = sv.Client(both, invalid="raise")
    for _ in range(20):
        with pytest.raises(sv.InvalidInput, match="'y' is missing"):
            client.report({"x": 3})
        with pytest.raises(sv.InvalidInput, match="attribute 'x'"):
            client.report({"x": 8, "y": True})


def test_several_asks_and_several_cohorts_estimate_what_they_should() -> None:
    people = 60_000
    table = {"x": np.arange(people) % 4, "y": np.arange(people) % 3 == 0}
    for split in ("people", "budget"):
        made = sv.plan(SCHEMA, sv.Frequencies("x", "y", split=split), epsilon=2.0, people=people)
        estimate = sv.Aggregate(made).add(sv.simulate(made, table, seed=3)).estimate()
        for name, truth in (("x", [0.25] * 4 + [0.0] * 4), ("y", [2 / 3, 1 / 3])):
            found = estimate.marginal(name)
            share = found.people / people
            assert share == (1 if split == "budget" else pytest.approx(0.5, abs=0.02))
            # a cohort is a sample of the crowd, so its own sampling counts too
            spread = np.sqrt(
                found.variances + np.array(truth) * (1 - np.array(truth)) / found.people
            )
            assert np.abs((found.values - truth) / spread).max() < z_limit(20)


@pytest.mark.filterwarnings("ignore::sottovoce.device.client.PrivacyWarning")
def test_device_reports_estimate_like_simulated_ones() -> None:
    made = plan("olh", epsilon=3)
    client = sv.Client(made, entropy=Seeded(8))
    reports = sv.Reports.collect(made, (client.report({"x": value % 3}) for value in range(6000)))
    found = sv.Aggregate(made).add(reports).estimate().marginal("x")
    truth = np.array([1 / 3] * 3 + [0] * 5)
    assert np.abs((found.values - truth) / found.std_error).max() < z_limit(8)


def test_damaged_states_are_refused() -> None:
    deep = "[" * 100_000
    for text in (
        "",
        "{}",
        "[1]",
        '{"rounds": 3, "memos": {}}',
        '{"rounds": {}, "memos": {"a": [0, ["zz"]]}}',
        deep,
    ):
        with pytest.raises(sv.InvalidInput, match="client state"):
            sv.ClientState.from_json(text)
    for memo in ((99, ["00"]), (0, []), (-1, ["00"])):
        state = sv.ClientState()
        state.memos[plan().id] = memo
        with pytest.raises(sv.InvalidInput, match="client state"):
            sv.Client(plan(), state).report({"x": 1})


def test_bad_seeds_are_refused() -> None:
    for seed in (-1, 1.5, True, "x"):
        with pytest.raises(sv.InvalidInput, match="seed"):
            sv.simulate(plan(), {"x": [1]}, seed=seed)  # type: ignore[arg-type]


def test_every_round_of_a_series_has_coins_of_its_own() -> None:
    """Cohorts and answers of a later round are not those of the one before: what rounds add up to
    errs less.
    """
    schema = sv.Schema(x=sv.Boolean(), y=sv.Boolean())
    question = sv.Frequencies("x", "y", oracle="rr")
    first = sv.plan(schema, question, epsilon=1.0, people=4000, rounds=(1, 1))
    second = sv.plan(schema, question, epsilon=1.0, people=4000, after=first)
    table = {"x": [True] * 4000, "y": [True] * 4000}
    one, two = (sv.simulate(plan, table, seed=5) for plan in (first, second))
    count = min(len(one), len(two))
    for part in ("cohorts", "payload"):
        same = np.mean(getattr(one, part)[:count].ravel() == getattr(two, part)[:count].ravel())
        assert abs(same - 0.5) < 0.1 if part == "cohorts" else same < 0.75
