"""Spark Connect, which is all that hosted services offer: the same integers, the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.engine import TaskEngine, open_engine
from sottovoce.ground.errors import ClusterError, CorruptReport
from tests.engine import work
from tests.engine.cluster import connect_server, needs_connect
from tests.engine.plans import PLANS, plan_of, reports_of, write_files

pytestmark = needs_connect


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskEngine]:
    with (
        connect_server(tmp_path_factory.mktemp("connect")) as address,
        open_engine(address) as opened,
    ):
        yield opened


@pytest.mark.parametrize("name", PLANS)
def test_every_aggregate_is_that_of_threads(name: str, engine: TaskEngine, tmp_path: Path) -> None:
    plan = plan_of(name)
    reports = reports_of(plan)
    write_files(tmp_path, plan, reports)
    assert engine.fold(plan, tmp_path) == sv.Aggregate(plan).add(reports)


def test_errors_are_told_once(engine: TaskEngine, tmp_path: Path) -> None:
    plan = plan_of("joint")
    write_files(tmp_path, plan, reports_of(plan))
    spoilt = sorted(tmp_path.glob("*.parquet"))[1]
    data = bytearray(spoilt.read_bytes())
    data[pq.read_metadata(spoilt).row_group(1).column(1).data_page_offset + 40] ^= 1
    spoilt.write_bytes(data)
    with pytest.raises(CorruptReport, match=f"{spoilt.name}.* cut or damaged"):
        engine.fold(plan, tmp_path)
    assert list(engine.each(len, ["abc", ""])) == [3, 0]
    with pytest.raises(ClusterError, match="a worker failed with ZeroDivisionError"):
        list(engine.each(work.divide, [1, 0]))
