"""Small things of the waist that nothing else would notice: each test kills a mutant that once
survived.
"""

from __future__ import annotations

import zlib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.device.columns import Purpose
from sottovoce.ground.entropy import System
from sottovoce.ground.seeds import draws
from sottovoce.oracles import oracle
from sottovoce.oracles.histogram import MAX_NOISY_CELL
from sottovoce.oracles.thresholds import shared
from sottovoce.protocol.encodings import Ask, Cells
from sottovoce.protocol.families import Listed
from sottovoce.protocol.families.base import Cohort
from tests.statistics import NO_COINS

SCHEMA = sv.Schema(x=sv.Categorical(range(5)), y=sv.Boolean(), z=sv.Categorical(range(40)))


def made(*attributes: str, **options: object) -> sv.Plan:
    return sv.plan(SCHEMA, sv.Frequencies(*attributes, **options), epsilon=1.0, people=900)  # type: ignore[arg-type]


def crowd(plan: sv.Plan, people: int = 300) -> sv.Reports:
    rows = np.arange(people)
    return sv.simulate(plan, {"x": rows % 5, "y": rows % 2, "z": rows % 40}, seed=1)


def test_a_device_uses_the_systems_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = System.bits
    monkeypatch.setattr(
        System, "bits", lambda self, count: asked.append(count) or real(self, count)
    )
    sv.Client(made("x", oracle="oue")).report({"x": 1})
    assert asked


def test_asks_and_cohorts_of_a_simulation_draw_apart() -> None:
    """Two asks about equal columns, or two cohorts, must not share their coins."""
    schema = sv.Schema(a=sv.Categorical(range(5)), b=sv.Categorical(range(5)))
    values = np.arange(2000) % 5
    split = sv.plan(
        schema, sv.Frequencies("a", "b", oracle="grr", split="budget"), epsilon=1.0, people=2000
    )
    both = sv.simulate(split, {"a": values, "b": values}, seed=1).payload
    assert 0.1 < (both[:, 0] == both[:, 1]).mean() < 0.5
    apart = sv.plan(schema, sv.Frequencies("a", "b", oracle="grr"), epsilon=1.0, people=2000)
    reports = sv.simulate(apart, {"a": np.zeros(2000, int), "b": np.zeros(2000, int)}, seed=1)
    one, two = (reports.payload[reports.cohorts == index, 0][:900] for index in (0, 1))
    assert not np.array_equal(one, two)


def test_rounds_and_cohorts_are_drawn_apart() -> None:
    """People of one round fall into both cohorts alike."""
    plan = sv.plan(SCHEMA, sv.Frequencies("x", "y"), epsilon=1.0, people=4000, rounds=(1, 1))
    cohorts = crowd(plan, 4000).cohorts
    stream = draws(1, Purpose.ROUNDS).integers(0, 2, 4000)  # what the rounds were drawn from
    assert not np.array_equal(cohorts, stream[: len(cohorts)])
    assert abs(cohorts.mean() - 0.5) < 6 * np.sqrt(0.25 / len(cohorts))
    assert plan.round_people == 2000
    assert plan.cohort_people(0) == 1000


def test_the_dearest_cohort_counts_wherever_it_stands() -> None:
    cheap, dear = (
        Cohort((Ask(Cells.of(SCHEMA, "x"), oracle("grr", size=5, epsilon=epsilon)),))
        for epsilon in ("0.5", "2")
    )
    for order in ((cheap, dear), (dear, cheap)):
        assert Listed(order).guarantee.per_report == pytest.approx(2.0)


def test_cells_of_several_attributes_are_numbered_in_mixed_radix() -> None:
    cells = Cells.of(SCHEMA, "x", "y", "z")
    assert cells.size == 5 * 2 * 40
    codes = {"x": 3, "y": 1, "z": 17}
    assert cells.encode(codes, NO_COINS) == (3 * 2 + 1) * 40 + 17
    columns = {name: np.array([code], np.uint64) for name, code in codes.items()}
    assert cells.encode_columns(columns, 0).tolist() == [cells.encode(codes, NO_COINS)]


def test_a_bad_second_cohort_leaves_the_first_untouched() -> None:
    plan = made("x", "z", oracle="grr")
    good = crowd(plan)
    total = sv.Aggregate(plan)
    payload = good.payload.copy()
    payload[good.cohorts == 1, 0] = 63  # no code of 40 values
    with pytest.raises(sv.CorruptReport):
        total.add(sv.Reports(plan.id, good.cohorts, payload))
    assert total.people == 0


def test_padding_to_the_widest_cohort_must_be_zero() -> None:
    plan = made("y", "z", oracle="oue")
    good = crowd(plan)
    assert plan.cohorts.bytes > plan.cohorts[0].bytes
    payload = good.payload.copy()
    payload[good.cohorts == 0, -1] = 1
    with pytest.raises(sv.CorruptReport, match="padding"):
        sv.Aggregate(plan).add(sv.Reports(plan.id, good.cohorts, payload))


def test_the_first_unknown_cohort_is_refused() -> None:
    plan = made("x", "y", oracle="grr")
    good = crowd(plan)
    with pytest.raises(sv.CorruptReport, match="cohort"):
        sv.Aggregate(plan).add(sv.Reports(plan.id, np.full_like(good.cohorts, 2), good.payload))


def test_nobody_added_is_nobody() -> None:
    plan = made("x")
    assert sv.Aggregate(plan).add(sv.Reports.empty(plan)) == sv.Aggregate(plan)


def test_aggregates_with_bytes_to_spare_are_refused() -> None:
    plan = made("x")
    data = sv.Aggregate(plan).add(crowd(plan)).to_bytes()
    forged = data[:36] + zlib.compress(zlib.decompress(data[36:-4]) + bytes(8))
    with pytest.raises(sv.CorruptReport, match="spare"):
        sv.Aggregate.from_bytes(plan, forged + zlib.crc32(forged).to_bytes(4, "little"))


def test_equality_is_that_of_the_integers_and_not_of_what_compresses_them() -> None:
    """Libraries that compress differ: other bytes may hold the same integers."""
    plan = made("x")
    whole = sv.Aggregate(plan).add(crowd(plan))
    data = whole.to_bytes()
    other = data[:36] + zlib.compress(zlib.decompress(data[36:-4]), 0)
    other += zlib.crc32(other).to_bytes(4, "little")
    assert other != data
    assert sv.Aggregate.from_bytes(plan, other) == whole


def test_cohorts_have_a_dictionary_and_payloads_have_none(tmp_path: Path) -> None:
    plan = made("z", oracle="olh")
    path = tmp_path / "reports.parquet"
    crowd(plan, 3000).write(path)
    group = pq.read_metadata(path).row_group(0)
    kept = {group.column(k).path_in_schema: group.column(k) for k in range(group.num_columns)}
    assert kept["cohort"].has_dictionary_page
    assert not kept["payload"].has_dictionary_page


def test_a_slice_of_a_record_batch_is_read_where_it_lies() -> None:
    reports = crowd(made("x"))
    batch = reports.to_arrow().to_batches()[0]
    assert sv.Reports.from_arrow(batch.slice(100, 50)) == reports[100:150]


def test_missing_reports_are_refused() -> None:
    table = crowd(made("x")).to_arrow()
    hole = pa.array([None, *table["payload"].to_pylist()[1:]], table["payload"].type)
    holed = pa.table({"cohort": table["cohort"], "payload": hole}).replace_schema_metadata(
        table.schema.metadata
    )
    with pytest.raises(sv.CorruptReport, match="missing"):
        sv.Reports.from_arrow(holed)


def test_a_byte_changed_in_a_file_is_noticed(tmp_path: Path) -> None:
    """Whatever byte of the data pages: the reports are refused, or they are what was written."""
    plan = made("z", oracle="oue")
    reports = crowd(plan, 3000)
    path = tmp_path / "reports.parquet"
    reports.write(path)
    data = path.read_bytes()
    draw = np.random.default_rng(1)
    for place in draw.integers(100, 12_000, 150):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        try:
            read = sv.Reports.read(path)
        except sv.CorruptReport:
            continue
        assert read == reports, place


def test_errors_below_zero_are_those_of_a_rare_value() -> None:
    source = oracle("grr", size=8, epsilon=3.0)
    state = source.accumulate(source.empty(), source.simulate(np.zeros(500, int), seed=1))
    frequencies, variances = source.estimate(state, 500)
    assert (frequencies < 0).any()
    assert np.allclose(variances[frequencies < 0], source.variance(500))
    assert variances[0] == pytest.approx(source.variance(500, min(1.0, frequencies[0])))


@pytest.mark.parametrize("parts", [2, 3, 7, 11])
def test_parts_of_a_budget_never_exceed_it(parts: int) -> None:
    for text in ("1", "0.7", "2", "0.0001"):
        share = Fraction(shared(Decimal(text), parts))
        assert share * parts <= Fraction(text)
        assert share * parts > Fraction(text) * (1 - Fraction(1, 10**7))


@pytest.mark.parametrize(
    ("name", "size", "limit"), [("grr", 5, 5), ("grr", 37, 37), ("olh-seeded", 5, 3)]
)
def test_the_first_code_beyond_the_last_is_refused(name: str, size: int, limit: int) -> None:
    options = {"hash_size": 3} if name == "olh-seeded" else {}
    source = oracle(name, size=size, epsilon=1.0, **options)
    field = source.layout.fields[-1]
    assert field.limit == limit
    outside = source.layout.pack((0, limit) if name == "olh-seeded" else limit)
    with pytest.raises(sv.CorruptReport, match="below"):
        source.unpack(outside)
    with pytest.raises(sv.CorruptReport, match="below"):
        source.support(np.frombuffer(outside, np.uint8)[None, :], [0])


@pytest.mark.parametrize("change", [-1, 1])
def test_subsets_of_another_size_are_refused(change: int) -> None:
    source = oracle("ss", size=12, epsilon=1.0)
    wrong = source.pack((1 << (source.chosen + change)) - 1)  # type: ignore[attr-defined]
    with pytest.raises(sv.CorruptReport, match="exactly"):
        source.unpack(wrong)
    with pytest.raises(sv.CorruptReport, match="exactly"):
        source.accumulate(source.empty(), np.frombuffer(wrong, np.uint8)[None, :])


@pytest.mark.parametrize("cell", [MAX_NOISY_CELL + 1, -MAX_NOISY_CELL - 1])
def test_cells_beyond_the_limit_are_refused(cell: int) -> None:
    source = oracle("she", size=2, epsilon=1.0)
    with pytest.raises(sv.CorruptReport, match="cell"):
        source.unpack(source.pack((cell, 0)))
