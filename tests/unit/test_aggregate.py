"""Aggregates merge by addition, survive bytes, stream, and refuse what is not theirs; bad batches
change nothing.
"""

from __future__ import annotations

import resource
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.protocol.report_files import stream, write_stream
from tests.oracles import NAMES

SCHEMA = sv.Schema(x=sv.Categorical(range(8)), y=sv.Boolean())


def make(oracle: str = "grr") -> sv.Plan:
    return sv.plan(
        SCHEMA,
        sv.Frequencies("y" if oracle == "rr" else "x", oracle=oracle),
        epsilon=1.0,
        people=1000,
    )


def crowd(plan: sv.Plan, people: int = 600, seed: int = 1) -> sv.Reports:
    return sv.simulate(plan, {"x": np.arange(people) % 8, "y": np.arange(people) % 2}, seed=seed)


@pytest.mark.parametrize("name", NAMES)
def test_any_split_and_order_gives_the_same_bytes(name: str) -> None:
    plan = make(name)
    reports = crowd(plan)
    whole = sv.Aggregate(plan).add(reports)
    parts = [sv.Aggregate(plan).add(reports[start : start + 200]) for start in (400, 0, 200)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert merged == whole
    assert merged.to_bytes() == whole.to_bytes()
    assert whole.merge(sv.Aggregate(plan)) == whole
    assert sv.Aggregate.from_bytes(plan, whole.to_bytes()) == whole
    one_by_one = sv.Aggregate(plan)
    for report in list(reports[:50].single(plan)):
        one_by_one.add(report)
    assert one_by_one == sv.Aggregate(plan).add(reports[:50])
    again = sv.Aggregate.from_bytes(plan, whole.to_bytes()).add(crowd(plan, seed=2))
    assert again.people == 1200


def test_merging_leaves_both_as_they_were() -> None:
    plan = make()
    one, two = (sv.Aggregate(plan).add(crowd(plan, seed=seed)) for seed in (1, 2))
    before = one.to_bytes(), two.to_bytes()
    one.merge(two).add(crowd(plan, seed=3))
    assert (one.to_bytes(), two.to_bytes()) == before


def test_other_plans_are_refused() -> None:
    plan, other = make("grr"), make("oue")
    total = sv.Aggregate(plan).add(crowd(plan))
    with pytest.raises(sv.PlanMismatch):
        total.add(crowd(other))
    with pytest.raises(sv.PlanMismatch):
        total.merge(sv.Aggregate(other))
    with pytest.raises(sv.PlanMismatch):
        sv.Aggregate.from_bytes(other, total.to_bytes())
    with pytest.raises(sv.PlanMismatch):
        sv.Reports.concat([crowd(plan), crowd(other)])


def test_damaged_bytes_are_refused() -> None:
    plan = make()
    data = sv.Aggregate(plan).add(crowd(plan)).to_bytes()
    for wrong in (b"", b"nonsense" * 10, data[:-1], data[:50] + bytes([data[50] ^ 1]) + data[51:]):
        with pytest.raises(sv.CorruptReport):
            sv.Aggregate.from_bytes(plan, wrong)


def test_forged_bytes_with_a_good_checksum_are_refused() -> None:
    """Three thousand mutants: none is used, none raises anything but our own errors."""
    plan = make()
    data = sv.Aggregate(plan).add(crowd(plan)).to_bytes()
    head, body = data[:36], bytearray(zlib.decompress(data[36:-4]))
    draw = np.random.default_rng(1)
    start = 8 + int.from_bytes(body[:8], "little")
    for _ in range(3000):
        wrong = bytearray(body)
        for place in draw.integers(0, start, draw.integers(1, 4)):
            wrong[place] = draw.integers(256)
        if draw.random() < 0.2:
            wrong += bytes(3)
        if wrong == body:
            continue
        forged = head + zlib.compress(bytes(wrong))
        forged += zlib.crc32(forged).to_bytes(4, "little")
        try:
            read = sv.Aggregate.from_bytes(plan, forged)
        except sv.SottovoceError:
            continue
        # only the number of people can have changed, to another whole number
        assert read.people >= 0
        read.merge(read)


def test_a_table_stays_as_it_was_when_its_aggregate_grows() -> None:
    for oracle in ("grr", "oue", "ss", "hr", "hrr", "olh"):
        plan = make(oracle)
        total = sv.Aggregate(plan).add(crowd(plan))
        table = total.estimate().marginal("x")
        assert table.law is not None
        before = table.law.support.copy(), table.values.copy()
        total.add(crowd(plan, seed=9))
        assert np.array_equal(table.law.support, before[0])
        assert np.array_equal(table.values, before[1])


def test_single_reports_are_checked_too() -> None:
    plan = make()
    good = next(crowd(plan, 1).single(plan))
    for wrong in (
        sv.Report(plan.id, 0, b""),
        sv.Report(plan.id, 1 << 40, b"\0"),
        sv.Report(plan.id, -1, good.payload),
    ):
        with pytest.raises(sv.CorruptReport):
            sv.Aggregate(plan).add(wrong)
        with pytest.raises(sv.CorruptReport):
            sv.Reports.collect(plan, [good, wrong])
    with pytest.raises(sv.CorruptReport):
        sv.Reports(plan.id, np.array([-1]), np.zeros((1, 1), np.uint8))  # type: ignore[arg-type]


def test_a_bad_batch_changes_nothing() -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x", "y", oracle="grr"), epsilon=1.0, people=1000)
    good = crowd(plan)
    total = sv.Aggregate(plan).add(good)
    before = total.to_bytes()
    far = sv.Reports(plan.id, good.cohorts + np.uint32(5), good.payload)
    loud = sv.Reports(plan.id, good.cohorts, good.payload | np.uint8(0x80))
    wide = sv.Reports(plan.id, good.cohorts, np.zeros((len(good), 9), np.uint8))
    for wrong in (far, loud, wide):
        with pytest.raises(sv.CorruptReport):
            total.add(wrong)
        assert total.to_bytes() == before


def test_nothing_heard_is_said_clearly() -> None:
    with pytest.raises(sv.InvalidInput, match="no reports yet"):
        sv.Aggregate(make()).estimate()


def test_files_round_trip_and_stream_in_constant_memory(tmp_path: Path) -> None:
    plan = sv.plan(SCHEMA, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=1000)
    batch = crowd(plan, 500_000)
    path = tmp_path / "reports.parquet"
    assert write_stream(path, (batch for _ in range(8))) == 4_000_000
    sv.Aggregate(plan).add(stream(path))  # everything is compiled and warm
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = sv.Aggregate(plan).add(stream(path))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert total.people == 4_000_000
    assert grown < 40  # MiB
    assert sv.Aggregate(plan).add(batch).merge(sv.Aggregate(plan).add(batch)).people == 1_000_000


def test_damaged_files_are_refused_and_good_ones_survive_failures(tmp_path: Path) -> None:
    plan = make()
    path = tmp_path / "reports.parquet"
    crowd(plan).write(path)
    data = path.read_bytes()

    def failing():  # type: ignore[no-untyped-def]
        yield crowd(plan, seed=2)  # not what the file holds
        raise sv.InvalidInput("the source broke")

    with pytest.raises(sv.InvalidInput, match="broke"):
        write_stream(path, failing())
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / "cut.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(sv.CorruptReport, match="cut or damaged"):
        sv.Reports.read(tmp_path / "cut.parquet")
    with pytest.raises(sv.InvalidInput, match="exists"):
        sv.Reports.read(tmp_path / "absent.parquet")
    empty = tmp_path / "empty.parquet"
    sv.Reports.empty(plan).write(empty)
    assert len(sv.Reports.read(empty)) == 0


def test_reports_of_an_arrow_table_that_is_not_ours() -> None:
    import pyarrow as pa

    table = crowd(make()).to_arrow()
    assert table.schema.metadata == {b"sottovoce.plan": make().id.encode()}
    assert sv.Reports.from_arrow(table) == crowd(make())
    assert sv.Reports.from_arrow(table.slice(100, 50)) == crowd(make())[100:150]
    for wrong in (
        pa.table({"a": [1]}),
        table.replace_schema_metadata({}),
        table.drop(["cohort"]),
        pa.table({"cohort": ["x"], "payload": ["y"]}).replace_schema_metadata(
            table.schema.metadata
        ),
    ):
        with pytest.raises(sv.CorruptReport):
            sv.Reports.from_arrow(wrong)


def bomb_of(plan: sv.Plan, body: bytes) -> bytes:
    forged = sv.Aggregate(plan).to_bytes()[:36] + zlib.compress(body, 9)
    return forged + zlib.crc32(forged).to_bytes(4, "little")


MANY_COHORTS = sv.Schema(**{f"x{place}": sv.Boolean() for place in range(12)})
BOMBED = {
    "a table": make(),
    "kept reports": make("olh-seeded"),
    "a tally": sv.plan(
        MANY_COHORTS, sv.Marginals(up_to=2, method="inp-ht"), epsilon=1.0, people=1000
    ),
    "joint": sv.plan(
        MANY_COHORTS, sv.Marginals(up_to=2, method="inp-em"), epsilon=1.0, people=1000
    ),
}


@pytest.mark.parametrize("name", BOMBED)
def test_an_aggregate_inflates_no_further_than_its_plan_allows(name: str) -> None:
    """64 MiB of zeros in 64 kB: refused before they are in memory."""
    plan = BOMBED[name]
    bomb = bomb_of(plan, bytes(1 << 26))
    assert len(bomb) < 1 << 17
    tracemalloc.start()
    try:
        with pytest.raises(sv.CorruptReport, match="plan allows"):
            sv.Aggregate.from_bytes(plan, bomb)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_equal_reports_are_read_back_if_they_are_known_to_be_that_many() -> None:
    """Whoever sends one report over and over does not make a collector's own aggregate
    unreadable.
    """
    plan = make("olh-seeded")
    one = crowd(plan, 1)
    total = sv.Aggregate(plan).add(sv.Reports.concat([one] * 40_000))
    assert sv.Aggregate.from_bytes(plan, total.to_bytes(), reports=40_000) == total
    with pytest.raises(sv.CorruptReport, match="plan allows"):
        sv.Aggregate.from_bytes(plan, total.to_bytes())


def test_what_follows_the_compressed_bytes_is_refused() -> None:
    plan = make()
    data = sv.Aggregate(plan).add(crowd(plan)).to_bytes()
    for body in (data[36:-4] + b"more", data[36:-12]):
        forged = data[:36] + body
        with pytest.raises(sv.CorruptReport, match="malformed"):
            sv.Aggregate.from_bytes(plan, forged + zlib.crc32(forged).to_bytes(4, "little"))
