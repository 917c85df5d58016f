"""The ledger: what was spent is on the disk before the noise, adds up exactly, and has a limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from sottovoce.accounting import (
    ExponentialStep,
    GaussianStep,
    LaplaceStep,
    Ledger,
    PureStep,
    Step,
    ThresholdStep,
    delta_of,
    epsilon_of,
    replaced,
    threshold_delta,
)
from sottovoce.accounting.steps import STEP_KINDS, step_from_json
from sottovoce.accounting.totals import total_delta, total_epsilon
from sottovoce.ground.errors import BudgetExceeded, InvalidInput

COUNTS = GaussianStep.of_counts("1-tuples", "counts of values", 20, Fraction(800))
ITEMS = ThresholdStep("items", "which exist", 20, "counts", Fraction(800), Fraction(160))
EVERY: list[Step] = [
    COUNTS,
    ITEMS,
    LaplaceStep("views", "seven views", Fraction(7), Fraction(21, 2)),
    ExponentialStep("limit", "a percentile", Fraction(1, 10)),
    PureStep("votes", "whispered votes", Fraction(1, 3)),
]


def test_gaussian_steps_add_up_to_one() -> None:
    ledger = Ledger()
    for _ in range(3):
        ledger.spend(COUNTS)
    loss = 3 / 800
    mu = (3 * 20 / 800) ** 0.5
    assert ledger.delta_at(1.0) == pytest.approx(delta_of(1.0 - loss, mu), rel=1e-9)
    assert ledger.epsilon_at(1e-6) == pytest.approx(epsilon_of(1e-6, mu) + loss, rel=1e-8)
    assert ledger.delta_at(ledger.epsilon_at(1e-6)) <= 1e-6


def test_real_noise_has_no_lattice_to_pay_for() -> None:
    real = GaussianStep("sum", "a sum", Fraction(20), Fraction(800), Fraction(0))
    unknown = GaussianStep("sum", "a sum", Fraction(20), Fraction(800))
    assert total_delta([real], "add-remove", 1.0) == pytest.approx(delta_of(1.0, 0.025**0.5))
    costs = [total_epsilon([step], "add-remove", 1e-6) for step in (real, COUNTS, unknown)]
    assert costs[0] < costs[1] < costs[2]
    assert costs[2] == pytest.approx(costs[0] + 0.025, rel=1e-6)


def test_a_replaced_person_costs_more() -> None:
    one = GaussianStep.of_counts("1-tuples", "counts", 20, Fraction(800), "add-remove")
    two = GaussianStep.of_counts("1-tuples", "counts", 20, Fraction(800), "replace-one")
    assert two.squared_sensitivity == replaced(one.squared_sensitivity, is_nonnegative=True) == 40
    ledger = Ledger("replace-one")
    ledger.spend(two)
    assert ledger.epsilon_at(1e-6) > total_epsilon([one], "add-remove", 1e-6)


def test_a_threshold_counts_with_what_it_lets_through() -> None:
    spent = total_delta([ITEMS, COUNTS], "add-remove", 1.0)
    stated = threshold_delta(
        1.0,
        ITEMS.threshold,
        ITEMS.variance,
        20,
        lattice_loss=2 / 800,
        other_squared_mu=20 / 800,
    )
    assert spent == pytest.approx(stated, rel=1e-9)
    without = GaussianStep.of_counts("items", "a known domain", 20, Fraction(800))
    # so high a threshold costs nothing: whoever has no new item is told apart best
    assert spent == pytest.approx(total_delta([without, COUNTS], "add-remove", 1.0), rel=1e-9)
    lower = ThresholdStep("items", "which exist", 20, "counts", Fraction(800), Fraction(80))
    assert total_delta([lower, COUNTS], "add-remove", 1.0) > 10 * spent


def test_two_thresholds_are_bounded_by_their_sum_and_by_each() -> None:
    both = total_delta([ITEMS, ITEMS], "add-remove", 1.0)
    seen = total_delta([ITEMS], "add-remove", 50.0)  # all but what is seen is private by then
    smooth = GaussianStep.of_counts("items", "a known domain", 20, Fraction(800))
    known = total_delta([smooth, smooth], "add-remove", 1.0)
    assert max(known, seen) < both < 1.001 * known + 2 * seen + 1e-12


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_steps_of_all_kinds_have_one_total(neighbours) -> None:
    total = total_epsilon(EVERY, neighbours, 1e-6)
    assert total_delta(EVERY, neighbours, total) <= 1e-6
    for missing in range(len(EVERY)):
        fewer = [*EVERY[:missing], *EVERY[missing + 1 :]]
        assert total_epsilon(fewer, neighbours, 1e-6) < total
    assert total_epsilon(EVERY, "replace-one", 1e-6) >= total


def test_pure_steps_add_up_without_any_delta() -> None:
    ledger = Ledger(epsilon="0.3", delta=0)
    ledger.spend(PureStep("one", "votes", Fraction(1, 10)))
    ledger.spend(LaplaceStep("two", "views", Fraction(2), Fraction(10)))  # 1/10 + 2/10 = 3/10
    assert ledger.delta_at(0.3) < 1e-15  # the double 0.3 is a little less than 3/10
    assert ledger.epsilon_at(0) == pytest.approx(0.3)
    with pytest.raises(BudgetExceeded, match="'three'"):
        ledger.spend(PureStep("three", "votes", Fraction(1, 10**9)))
    with pytest.raises(BudgetExceeded):
        Ledger(epsilon=1, delta=0).spend(COUNTS)
    assert ledger.epsilon_at(1e-6) < 0.3


def test_a_budget_is_kept_and_a_refused_step_is_not_spent() -> None:
    ledger = Ledger(epsilon=1, delta="1e-6")
    ledger.spend(COUNTS)
    ledger.spend(COUNTS)
    assert ledger.delta_at(1.0) <= 1e-6
    assert total_delta([COUNTS] * 3, "add-remove", 1.0) > 1e-6
    with pytest.raises(BudgetExceeded, match="'1-tuples' would raise delta at epsilon 1 to"):
        ledger.spend(COUNTS)
    assert ledger.steps == (COUNTS, COUNTS)


def test_json_holds_all_of_it() -> None:
    ledger = Ledger("replace-one", epsilon="20", delta="1e-6")
    for step in EVERY:
        ledger.spend(step)
    text = json.dumps(ledger.to_json())
    again = Ledger.from_json(json.loads(text))
    assert again.steps == ledger.steps == tuple(EVERY)
    assert (again.neighbours, again.epsilon, again.delta) == (
        "replace-one",
        Fraction(20),
        Fraction(1, 10**6),
    )
    assert json.dumps(again.to_json()) == text
    assert {type(step) for step in EVERY} == set(STEP_KINDS)
    with pytest.raises(InvalidInput, match="format"):
        Ledger.from_json({"ledger": 2})


def test_a_step_is_on_the_disk_when_spend_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.jsonl"
    synced: list[int] = []
    sync = os.fsync
    with Ledger(path=path) as ledger:
        monkeypatch.setattr(os, "fsync", lambda file: (synced.append(_size(file)), sync(file)))
        ledger.spend(COUNTS)
        assert synced == [path.stat().st_size]  # synced once, after all was written
        assert json.loads(path.read_text().splitlines()[-1])["name"] == "1-tuples"


def _size(file: int) -> int:
    return os.fstat(file).st_size


def test_a_step_that_cannot_be_written_is_not_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "ledger.jsonl"
    with Ledger(path=path) as ledger:
        before = path.read_bytes()
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                ledger.spend(COUNTS)
        assert ledger.steps == ()
        assert path.read_bytes() == before
        ledger.spend(ITEMS)
    with Ledger(path=path) as ledger:
        assert ledger.steps == (ITEMS,)


CRASH = """
import os, sys
from fractions import Fraction
from sottovoce.accounting import GaussianStep, Ledger
ledger = Ledger(epsilon=1, delta="1e-6", path=sys.argv[1])
ledger.spend(GaussianStep.of_counts("1-tuples", "counts of values", 20, Fraction(800)))
os._exit(9)  # the noise was never drawn
"""


def test_a_crashed_release_shows_its_spend(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for spent in (1, 2):
        crashed = subprocess.run([sys.executable, "-c", CRASH, str(path)], check=False)
        assert crashed.returncode == 9
        with Ledger(epsilon=1, delta="1e-6", path=path) as ledger:
            assert ledger.steps == (COUNTS,) * spent
    with pytest.raises(BudgetExceeded), Ledger(epsilon=1, delta="1e-6", path=path) as ledger:
        ledger.spend(COUNTS)


def test_a_line_that_was_never_finished_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path=path) as ledger:
        ledger.spend(COUNTS)
    whole = path.read_bytes()
    for torn in (b'{"mechanism": "gau', b""):
        path.write_bytes(whole + torn)
        with Ledger(path=path) as ledger:
            assert ledger.steps == (COUNTS,)
            ledger.spend(COUNTS)
        assert path.read_bytes() == whole + whole.splitlines(keepends=True)[1]
    path.write_bytes(b'{"ledger": 1')
    with Ledger(path=path) as ledger:
        assert ledger.steps == ()


def test_a_file_of_another_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(epsilon=1, delta="1e-6", path=path).close()
    with pytest.raises(InvalidInput, match="another budget"):
        Ledger(epsilon=2, delta="1e-6", path=path)
    with pytest.raises(InvalidInput, match="another budget"):
        Ledger("replace-one", epsilon=1, delta="1e-6", path=path)
    with Ledger(epsilon=1, delta="1e-6", path=path), pytest.raises(InvalidInput, match="in use"):
        Ledger(epsilon=1, delta="1e-6", path=path)
    for text in ("[1]\n", "not json\n", '{"a": 1}\n'):
        path.write_text(text)
        with pytest.raises(InvalidInput, match="ledger"):
            Ledger(epsilon=1, delta="1e-6", path=path)
    with pytest.raises(InvalidInput, match="folder"):
        Ledger(path=tmp_path / "none" / "ledger.jsonl")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Ledger("swap"), "neighbours"),
        (lambda: Ledger(epsilon=1), "together"),
        (lambda: Ledger(epsilon=-1, delta=0.1), "epsilon"),
        (lambda: Ledger(epsilon=1, delta=1), "delta"),
        (lambda: GaussianStep("a", "b", Fraction(1), 0.5), "exact"),
        (lambda: GaussianStep("a", "b", Fraction(1), Fraction(0)), "greater"),
        (lambda: GaussianStep("a", "b", Fraction(1), Fraction(1), Fraction(-1)), "at least 0"),
        (lambda: PureStep("a", "b", "much"), "number"),
        (lambda: ThresholdStep("a", "b", 0, "counts", Fraction(1), Fraction(1)), "limit"),
        (lambda: ThresholdStep("a", "b", 1, "heavy", Fraction(1), Fraction(1)), "weights"),
        (lambda: step_from_json({"mechanism": "magic"}), "mechanism"),
        (lambda: total_delta([COUNTS], "add-remove", -1.0), "epsilon"),
        (lambda: total_epsilon([COUNTS], "add-remove", 1.5), "delta"),
        (lambda: total_epsilon([ITEMS], "add-remove", 1e-300), "delta"),
    ],
)
def test_bad_arguments_are_named(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()
