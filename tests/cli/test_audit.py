"""The command that audits a plan: three devices that are not private must fail it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.client import Client
from sottovoce.ground.entropy import Entropy, System
from sottovoce.protocol.encodings import Padded
from tests.cli.helpers import Command

Patch = pytest.MonkeyPatch
TWO_COHORTS = sv.Schema(a=sv.Boolean(), b=sv.Boolean()), sv.Frequencies("a", "b")
BASKETS = (
    sv.Schema(x=sv.Items(range(4))),
    sv.TopItems("x", top=2, method="psfo", length=2, oracle="grr"),
)


def cohort_is_answer(patch: Patch) -> None:
    honest = Client.report

    def report(self: Client, record: Mapping[str, Any]) -> Any:
        return replace(honest(self, record), cohort=int(record.get("a", 0)))

    patch.setattr(Client, "report", report)


def coin_is_always_0(patch: Patch) -> None:
    patch.setattr(Entropy, "coin", lambda self, threshold: False)


def bits_are_always_0(patch: Patch) -> None:
    patch.setattr(System, "bits", lambda self, count: 0)


def padding_takes_the_first(patch: Patch) -> None:
    def first(self: Padded, codes: Mapping[str, Any], entropy: Entropy) -> int:
        held = self.held(codes[self.attribute])
        return held[0] if held else self.count + entropy.below(self.length)

    patch.setattr(Padded, "encode", first)


@pytest.mark.parametrize(
    ("parts", "mutate", "fault"),
    [
        (TWO_COHORTS, cohort_is_answer, "the cohort depends on the record"),
        (TWO_COHORTS, coin_is_always_0, "lands heads with chance 0"),
        (TWO_COHORTS, bits_are_always_0, "sampled reports show that one costs at least"),
        (BASKETS, padding_takes_the_first, "one report costs"),
    ],
)
def test_a_mutant_is_exit_code_one(
    parts: Any,
    mutate: Callable[[Patch], None],
    fault: str,
    tmp_path: Path,
    sottovoce: Command,
    monkeypatch: Patch,
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(sv.plan(*parts, epsilon=1, people=1000).to_json())
    arguments = ("audit", path, "--draws", 2000)
    honest = sottovoce(*arguments)
    assert honest.code == 0
    assert "PASS" in honest.out
    mutate(monkeypatch)
    outcome = sottovoce(*arguments)
    assert outcome.code == 1
    assert outcome.out.startswith("FAIL plan")
    assert fault in outcome.out


def test_a_shuffled_plan_that_promises_more_than_it_keeps_is_exit_code_one(
    tmp_path: Path, sottovoce: Command
) -> None:
    plan = sv.plan(
        TWO_COHORTS[0],
        sv.Frequencies("a", oracle="sh"),
        epsilon=1,
        delta="1e-6",
        people=20_000,
        trust="shuffled",
        cap=5,
    )
    assert plan.shuffling is not None
    path, more = tmp_path / "plan.json", tmp_path / "more.json"
    path.write_text(plan.to_json())
    honest = sottovoce("audit", path, "--draws", 1000)
    assert honest.code == 0
    assert "shuffled crowds: up to 5 people" in honest.out
    body = json.loads(plan.to_json())
    body["shuffle"]["least"] //= 10
    more.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    outcome = sottovoce("audit", more, "--draws", 1000, "--json")
    assert outcome.code == 1
    told = json.loads(outcome.out)["plan"]
    assert not told["passed"]
    assert told["faults"][0].startswith("least (")
    assert told["shuffled"]["delta_counted"] > told["shuffled"]["delta_stated"]
    people = tmp_path / "people.csv"
    people.write_text("a,b\ntrue,false\n")
    refused = sottovoce("whisper", more, people, "-o", tmp_path / "reports")
    assert refused.code == 2
    assert "promises more than it keeps" in refused.err
