"""The command that audits a plan: three devices that are not private must fail it."""

from __future__ import annotations

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
