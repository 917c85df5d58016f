"""Rows of a DataFrame as a worker gets them, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.engine.frames import FramePart
from sottovoce.ground.errors import PlanMismatch


def test_a_batch_without_rows_is_of_no_plan() -> None:
    schema, asked = sv.Schema(x=sv.Boolean()), sv.Frequencies("x")
    plan = sv.plan(schema, asked, epsilon=1.0, people=1000)
    reports = sv.simulate(plan, {"x": [True] * 3}, seed=1)
    table = reports.to_arrow().append_column("plan", [[plan.id] * 3])
    (full,) = table.to_batches()
    for batches in ([full, full.slice(0, 0)], [full.slice(0, 0), full]):
        assert [len(part) for part in FramePart(plan, batches).stream()] == [3]
    assert list(FramePart(plan, [full.slice(0, 0)]).stream()) == []
    other = table.set_column(table.column_names.index("plan"), "plan", pa.array(["x"] * 3))
    with pytest.raises(PlanMismatch, match="another plan"):
        list(FramePart(plan, other.to_batches()).stream())
