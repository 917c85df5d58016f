"""Reports that are equal add up to the integers they always added up to, under plans of every
family and oracle.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.protocol.families import FAMILIES
from tests.vectors.aggregates import PATH, entry, plans

WRITTEN: list[dict[str, Any]] = json.loads(PATH.read_text())
CASES = list(plans())


def test_every_family_is_written() -> None:
    assert {each["family"] for each in WRITTEN} == set(FAMILIES)
    assert [each["name"] for each in WRITTEN] == [name for name, _, _ in CASES]


@pytest.mark.parametrize("case", range(len(WRITTEN)), ids=[each["name"] for each in WRITTEN])
def test_equal_reports_add_up_to_the_same_integers(case: int) -> None:
    name, plan, columns = CASES[case]
    reports = sv.simulate(plan, columns, seed=5)
    assert entry(name, plan, reports) == WRITTEN[case]
    fewer = entry(name, plan, reports[:-1])
    assert fewer["integers"] != WRITTEN[case]["integers"]
    order = np.random.default_rng(1).permutation(len(reports))
    mixed = sv.Reports(plan.id, reports.cohorts[order], reports.payload[order])
    assert entry(name, plan, mixed)["integers"] == WRITTEN[case]["integers"]
