"""Parquet files from a store estimate the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.ground.errors import CorruptReport, InvalidInput
from sottovoce.protocol.report_files import stream
from sottovoce.protocol.reports import Reports
from sottovoce.store import Store, export, exports
from tests.store.crowds import ids, marginals, plan, reports


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(exports, "PARTITION", 250)
    monkeypatch.setattr(exports, "STREAM_BATCH", 100)
    for of in (marginals(), plan()):
        store.add_plan(of)
        for seed in range(7):
            store.append(of, ids(100, seed, minute=of is plan()), reports(100, seed, of))
    return store


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_partitions_estimate_the_same_bits(filled: Store, tmp_path: Path) -> None:
    of, seen = marginals(), list[int]()
    assert export(filled, of, tmp_path / "reports", seen.append) == 700
    assert seen == [100, 200, 300, 400, 500, 600, 700]
    assert names(tmp_path / "reports") == [
        f"{of.id[:16]}-{number:05}.parquet" for number in range(3)
    ]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    again = sv.Aggregate(of).add(stream(tmp_path / "reports"))
    assert again.to_bytes() == filled.aggregate(of).to_bytes()
    one, two = (each.estimate().marginal("a", "c").values for each in (again, filled.aggregate(of)))
    assert one.tobytes() == two.tobytes()


def test_files_hold_ids_and_name_their_plan(filled: Store, tmp_path: Path) -> None:
    export(filled, plan(), tmp_path)
    file = tmp_path / f"{plan().id[:16]}-00000.parquet"
    table = pq.read_table(file)
    assert table.schema.names == ["id", "cohort", "payload"]
    assert table.schema.field("id").type == pa.binary(16)
    assert table.schema.metadata == {b"sottovoce.plan": plan().id.encode()}
    group = pq.ParquetFile(file).metadata.row_group(0)
    assert group.column(0).compression == "ZSTD"
    assert [group.column(k).has_dictionary_page for k in range(3)] == [False, True, False]
    own = np.frombuffer(b"".join(table.column("id").to_pylist()), np.uint8).reshape(-1, 16)
    assert np.array_equal(own, np.concatenate([ids(100, seed, minute=1) for seed in range(3)]))
    assert Reports.from_arrow(table) == Reports.concat(reports(100, seed) for seed in range(3))
    assert Reports.read(file) == Reports.from_arrow(table)


def test_plans_share_a_folder_and_a_new_export_replaces_the_old(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(filled, plan(), tmp_path)
    export(filled, marginals(), tmp_path)
    monkeypatch.setattr(exports, "PARTITION", 10_000)
    export(filled, plan(), tmp_path)
    assert len(names(tmp_path)) == 4 + (tmp_path / "survey.db").exists() * 3
    assert sum(map(len, stream(tmp_path, plan_id=plan().id))) == 700
    assert sv.Aggregate(marginals()).add(stream(tmp_path, plan_id=marginals().id)).people == 700
    with pytest.raises(sv.PlanMismatch):
        sv.Aggregate(plan()).add(stream(tmp_path))
    with pytest.raises(InvalidInput, match="must be a folder that holds Parquet files of the plan"):
        next(stream(tmp_path, plan_id=plan("y").id))


def test_an_export_that_fails_leaves_nothing(filled: Store, tmp_path: Path) -> None:
    def stop(done: int) -> None:
        if done == 600:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(filled, plan(), tmp_path / "reports", stop)
    assert not (tmp_path / "reports").exists()
    assert [name for name in names(tmp_path) if not name.startswith("survey.db")] == []


def test_a_survey_without_reports_is_an_empty_file(store: Store, tmp_path: Path) -> None:
    store.add_plan(plan())
    assert export(store, plan(), tmp_path / "reports") == 0
    assert sv.Aggregate(plan()).add(stream(tmp_path / "reports")).people == 0


def test_bad_folders(filled: Store, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for wrong in (tmp_path / "file", tmp_path / "no" / "reports"):
        with pytest.raises(InvalidInput, match="must be a folder, or lie in one that exists"):
            export(filled, plan(), wrong)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="must be a folder that holds Parquet files"):
        next(stream(tmp_path / "empty"))
    (tmp_path / "empty" / "x.parquet").write_bytes(b"PAR1")
    for plan_id in (None, plan().id):
        with pytest.raises(CorruptReport, match="must be a whole Parquet file"):
            next(stream(tmp_path / "empty", plan_id=plan_id))
