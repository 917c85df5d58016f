"""The vectors of sealed reports: exact onions from fixed coins, each opened hop by hop; and plans
that promise what shuffling cannot keep, refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.sealing import open_layer, read_content, seal
from sottovoce.ground.entropy import Tape
from sottovoce.protocol.plan import Plan
from tests.vectors.onions import PATH, vectors

VECTORS: dict[str, Any] = json.loads(PATH.read_text())
PLANS = {entry["name"]: entry for entry in VECTORS["plans"]}


@pytest.mark.parametrize("name", [name for name in PLANS if PLANS[name]["keys"]])
def test_fixed_coins_give_exact_onions(name: str) -> None:
    entry = PLANS[name]
    plan = Plan.from_json(entry["plan"], id=entry["id"])
    for row in entry["good"]:
        source = Tape(bytes.fromhex(row["entropy"]))
        report = sv.Client(plan, entropy=source).report(row["record"])
        assert report.to_bytes().hex() == row["report"]
        onion = seal(report, plan, source)
        assert onion.hex() == row["onion"]
        assert source.position == len(row["entropy"]) // 2
        for hop, key in enumerate(entry["keys"]):
            onion = open_layer(onion, bytes.fromhex(key), plan.id, hop)
        assert read_content(onion, plan)[1] == report


def test_onions_of_a_plan_have_one_size() -> None:
    rows = PLANS["three shufflers"]["good"]
    assert len({len(row["onion"]) for row in rows}) == 1
    assert len({len(row["report"]) for row in rows}) > 1


def test_plans_that_shuffling_cannot_keep_are_refused() -> None:
    for row in VECTORS["bad_plans"]:
        with pytest.raises(getattr(sv, row["error"])):
            print(row["why"], Plan.from_json(row["plan"], id=row["id"]).id)


def test_the_file_is_what_it_is_made_of() -> None:
    assert json.loads(json.dumps(vectors())) == VECTORS
