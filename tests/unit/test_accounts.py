"""A device's account: what all plans together tell of an attribute, and the cap that they may not
pass.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.account import Spent, cost_of
from sottovoce.device.client import Membership
from sottovoce.ground.entropy import System, Tape

SCHEMA = sv.Schema(x=sv.Categorical(range(8)), y=sv.Boolean(), basket=sv.Items(range(20)))
RECORD = {"x": 1, "y": True, "basket": [3]}
NO_COINS = Tape(b"")  # a draw from it raises


def plan(*names: str, people: int = 1000, epsilon: Any = "1.5", **options: Any) -> sv.Plan:
    return sv.plan(
        SCHEMA, sv.Frequencies(*(names or ("x",)), **options), epsilon=epsilon, people=people
    )


def test_a_hundred_and_one_plans_tell_no_more_than_the_cap() -> None:
    state = sv.ClientState()
    answered, refused = [], set()
    for extra in range(101):
        try:
            answered.append(sv.Client(plan(people=1000 + extra), state).report(RECORD))
        except sv.BudgetExceeded as wrong:
            refused.add(str(wrong))
    assert len(answered) == 6
    assert refused == {"attribute 'x': epsilon 9 was spent and 1.5 more would pass the cap of 10"}
    assert state.account.spent == {"x": Spent(9_000_000_000, 0)}
    restored = sv.ClientState.from_json(state.to_json())
    with pytest.raises(sv.BudgetExceeded):
        sv.Client(plan(people=5000), restored, NO_COINS).report(RECORD)
    # from the memo, which costs nothing
    assert sv.Client(plan(), restored).report(RECORD) == answered[0]
    assert restored.to_json() == state.to_json()
    sv.Client(plan("y"), restored).report(RECORD)  # another attribute has an account of its own
    sv.Client(plan(people=5000, epsilon=1), restored).report(RECORD)
    assert restored.account.spent == {"x": Spent(10_000_000_000), "y": Spent(1_500_000_000)}


def test_every_attribute_of_a_plan_is_charged_or_none() -> None:
    state = sv.ClientState(cap=2)
    sv.Client(plan("y"), state).report(RECORD)
    for split in ("people", "budget"):
        with pytest.raises(sv.BudgetExceeded, match="attribute 'y'"):
            sv.Client(plan("x", "y", split=split), state, NO_COINS).report(RECORD)
    assert state.account.spent == {"y": Spent(1_500_000_000)}
    assert not any(key != plan("y").id for key in state.memos)
    sv.Client(plan("x"), state).report(RECORD)


def test_costs_are_the_largest_of_the_cohorts_and_rounded_up() -> None:
    assert cost_of(plan("x", "y", epsilon=1).cohorts) == Spent(1_000_000_000)
    # each to nine digits: not more than the plan says
    assert cost_of(thirds()) == Spent(999_999_999)
    assert cost_of(plan(epsilon="0.0000000001").cohorts) == Spent(1)  # a tenth of a billionth
    assert cost_of(plan(epsilon="1.0000000001").cohorts) == Spent(1_000_000_001)


def thirds() -> Any:
    schema = sv.Schema(**{name: sv.Boolean() for name in "abc"})
    return sv.plan(
        schema, sv.Frequencies("a", "b", "c", split="budget"), epsilon=1, people=1000
    ).cohorts


def test_deltas_add_up_and_have_a_cap() -> None:
    question = sv.TopItems(
        "basket", top=2, method="psfo", length=4, oracle="olh-seeded", delta="1/2000"
    )
    made = [sv.plan(SCHEMA, question, epsilon="0.1", people=1000 + extra) for extra in range(3)]
    assert cost_of(made[0].cohorts) == Spent(100_000_000, 500_000)
    state = sv.ClientState(delta_cap="1/1000")
    for one in made[:2]:
        sv.Client(one, state).report(RECORD)
    with pytest.raises(
        sv.BudgetExceeded,
        match=r"delta 0\.001 was spent and 0\.0005 more would pass the cap of 0\.001",
    ):
        sv.Client(made[2], state, NO_COINS).report(RECORD)


def test_a_round_is_charged_when_it_is_answered() -> None:
    first = sv.plan(SCHEMA, sv.Frequencies("x"), epsilon=1, people=1000, rounds=(1, 1))
    state = sv.ClientState()
    state.rounds[first.id] = Membership((1, 1), 1)
    with pytest.raises(sv.NotInThisRound):
        sv.Client(first, state).report(RECORD)
    assert state.account.spent == {}
    second = sv.plan(SCHEMA, sv.Frequencies("x"), epsilon=1, people=1000, after=first)
    for _ in range(2):
        sv.Client(second, state).report(RECORD)
    assert state.account.spent == {"x": Spent(1_000_000_000)}


@pytest.mark.parametrize("cap", [-1, "much", float("nan"), float("inf"), None, True, 1e10])
def test_bad_caps_are_refused(cap: Any) -> None:
    with pytest.raises(sv.InvalidInput, match=r"^cap "):
        sv.ClientState(cap=cap)
    with pytest.raises(sv.InvalidInput, match=r"^delta_cap "):
        sv.ClientState(delta_cap=cap)


def test_damaged_accounts_and_states_without_one_are_refused() -> None:
    state = sv.ClientState(cap="2.5")
    sv.Client(plan(), state).report(RECORD)
    good = json.loads(state.to_json())
    assert good["account"]["cap"] == {"epsilon": 2_500_000_000, "delta": 10_000_000}
    assert sv.ClientState.from_json(json.dumps(good)).account == state.account
    for account in (
        None,
        {},
        {"cap": good["account"]["cap"]},
        {**good["account"], "cap": {"epsilon": 5}},
        {**good["account"], "spent": {"x": {"epsilon": -1, "delta": 0}}},
        {**good["account"], "spent": {"x": {"epsilon": 0.5, "delta": 0}}},
        {**good["account"], "spent": {"x": {"epsilon": True, "delta": 0}}},
        {**good["account"], "spent": {"x": {"epsilon": 1, "delta": 0, "more": 1}}},
    ):
        with pytest.raises(sv.InvalidInput, match="client state"):
            sv.ClientState.from_json(json.dumps({**good, "account": account}))
    with pytest.raises(sv.InvalidInput, match="client state"):
        # nobody knows what its plans cost
        sv.ClientState.from_json(json.dumps({"rounds": {}, "memos": {}}))


class Yielding(System):
    """The system's coins, from a device that lets others go first before each draw."""

    def bits(self, count: int) -> int:
        sleep(0)
        return super().bits(count)


def test_threads_that_share_a_state_answer_once() -> None:
    made = plan(oracle="oue")
    for _ in range(10):
        state, start = sv.ClientState(), Barrier(8)

        def answer(state: sv.ClientState = state, start: Barrier = start) -> bytes:
            device = sv.Client(made, state, Yielding())
            start.wait()
            return device.report(RECORD).payload

        with ThreadPoolExecutor(8) as threads:
            told = {each.result() for each in [threads.submit(answer) for _ in range(8)]}
        assert len(told) == 1
        assert state.account.spent == {"x": Spent(1_500_000_000, 0)}
