"""The bench of releases makes the tables that it says, and measures a small one of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import release_speed
from bench.data import VARIABLE
from bench.release_speed import CENSUS, CLICKS, STREAM_SIZES, WEIGHT, Shape

SHAPE = Shape(clicks=2000, census=1500, stream=3000, draws=1000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Small tables under the names of the public ones."""
    draws = np.random.default_rng(1)
    sets = [draws.choice(20, 3, replace=False).tolist() for _ in range(50)]
    pq.write_table(pa.table({"items": sets}), tmp_path / f"{CLICKS}.parquet")
    columns = {name: draws.integers(0, 3, 2000) for name in ("class", "age", "sex", WEIGHT)}
    pq.write_table(pa.table(columns), tmp_path / f"{CENSUS}.parquet")
    labels = ["Private", " Not in universe", "Federal"]
    attributes: list[dict[str, Any]] = [{"name": name} for name in columns]
    attributes[0]["labels"] = labels
    (tmp_path / f"{CENSUS}.json").write_text(json.dumps({"attributes": attributes}))
    return tmp_path


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def child(module: str, *arguments: str, timeout: float = 0) -> dict[str, Any]:
        assert module == "bench.release_speed"
        return release_speed.main(list(arguments))

    monkeypatch.setattr(release_speed, "child", child)
    monkeypatch.setattr(release_speed, "STREAM_PART", 1000)


@pytest.mark.usefixtures("one_process")
def test_every_case_has_seconds_and_memory(folder: Path) -> None:
    rows = list(release_speed.releases(None, {}, SHAPE, str(folder)))
    assert {found.group for found in rows} == {"releases"}
    assert [found.unit for found in rows] == ["s", *["s", "s", "MiB"] * 3]
    assert [found.limit for found in rows] == [
        pytest.approx(0.002),  # 1000 draws at 2 us
        60.0,
        None,
        None,
        60.0,
        None,
        4096.0,
        None,
        None,
        1024.0,
    ]
    assert all(found.measured.best > 0 for found in rows)
    assert f"{sum(STREAM_SIZES)} of 1" in rows[7].note


@pytest.mark.usefixtures("one_process")
def test_without_public_tables_the_stream_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    rows = list(release_speed.releases(None, {}, SHAPE))
    assert len(rows) == 4
    assert VARIABLE in capsys.readouterr().err


def test_click_sets_are_users_drawn_again(folder: Path) -> None:
    sets = release_speed.click_sets(folder, 500)["items"].to_pylist()
    known = pq.read_table(folder / f"{CLICKS}.parquet")["items"].to_pylist()
    assert len(sets) == 500
    assert all(items in known for items in sets)


def test_the_census_has_labels_and_says_nothing_where_they_do(folder: Path) -> None:
    people = release_speed.census_people(folder, 100)
    codes = pq.read_table(folder / f"{CENSUS}.parquet")["class"].to_pylist()[:100]
    assert people.column_names == ["class", "age", "sex"]
    assert people["class"].to_pylist() == [("Private", None, "Federal")[code] for code in codes]


@pytest.mark.usefixtures("one_process")
def test_rows_that_stream_lie_in_several_files(tmp_path: Path) -> None:
    release_speed.make("stream", 2500, "", tmp_path / "table")
    files = sorted((tmp_path / "table").iterdir())
    assert [pq.read_metadata(file).num_rows for file in files] == [1000, 1000, 500]
    read = pq.read_table(files[0])
    assert read.schema.types == [pa.int8()] * len(STREAM_SIZES)
    assert [max(column.to_pylist()) + 1 for column in read.columns] == list(STREAM_SIZES)
