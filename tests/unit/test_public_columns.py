"""Public columns: described by the plan, carried by every form of a report, and checked once."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.entropy import Tape
from sottovoce.protocol.column_types import PublicColumn
from sottovoce.protocol.report_files import stream, write_stream

SCHEMA = sv.Schema(
    smoker=sv.Boolean(),
    member=sv.Boolean(sensitive=False),
    state=sv.Categorical(["NY", "WA", "TX"], sensitive=False),
    year=sv.Categorical(range(2000, 2020), sensitive=False),
    age=sv.Ordinal(18, 97, bins=4, sensitive=False),
    zip=sv.Integer(bits=17, sensitive=False),
    note=sv.Text(bytes=12, sensitive=False),
    amount=sv.FixedPoint(-5, "999.99", sensitive=False),
)
NAMES = tuple(SCHEMA)[1:]
TABLE: dict[str, Any] = {
    "smoker": [True, False, True],
    "member": [True, False, False],
    "state": ["WA", "NY", "TX"],
    "year": [2000, 2019, 2007],
    "age": ["41", "18", "97"],
    "zip": [0, 131_071, 90_210],
    "note": ["", "è già", "a\0"],
    "amount": [Decimal("12.30"), Decimal("-5"), Decimal("999.99")],
}
FREQUENCIES = sv.Frequencies("smoker", oracle="rr")


def plan(*names: str, **options: Any) -> sv.Plan:
    return sv.plan(SCHEMA, FREQUENCIES, epsilon=1.0, people=1000, public=names, **options)


PLAN = plan(*NAMES)


def crowd() -> sv.Reports:
    return sv.simulate(PLAN, TABLE, seed=1)


def test_a_plan_without_public_columns_is_written_as_ever() -> None:
    assert "public" not in json.loads(plan().to_json())
    assert plan().columns == ()
    assert list(json.loads(PLAN.to_json()))[5:7] == ["coin", "public"]
    assert sv.Plan.from_json(PLAN.to_json(), id=PLAN.id).columns == NAMES
    assert "In clear: member, state" in str(PLAN)


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (["smoker"], "sensitive"),
        (["nobody"], "not in the schema"),
        (["state", "state"], "named once"),
        ("state", "list of names"),
    ],
)
def test_what_must_not_travel_in_clear_is_refused(names: Any, rule: str) -> None:
    with pytest.raises(sv.InvalidInput, match=rule):
        sv.plan(SCHEMA, FREQUENCIES, epsilon=1.0, people=1000, public=names)


def test_nobody_is_asked_about_a_fixed_point_number() -> None:
    with pytest.raises(sv.InvalidInput, match="sensitive"):
        sv.FixedPoint(0, 10)
    with pytest.raises(sv.InvalidInput, match="public"):
        sv.plan(SCHEMA, sv.Frequencies("amount"), epsilon=1.0, people=1000)
    assert (
        "amount"
        not in sv.plan(SCHEMA, sv.Marginals(up_to=1), epsilon=1.0, people=1000).cohorts.attributes
    )


@pytest.mark.parametrize(
    "value",
    ["1.005", "1e2", "", ".5", "1000", -5.01, 0.001, True, None, Decimal("NaN"), float("nan")],
)
def test_fixed_point_numbers_are_exact(value: Any) -> None:
    attribute = SCHEMA["amount"]
    assert isinstance(attribute, sv.FixedPoint)
    with pytest.raises((ValueError, TypeError)):
        attribute.scaled(value)
    assert [attribute.scaled(each) for each in (0.1, "0.10", 7, Decimal("-0.5"), " +1.500 ")] == [
        10,
        10,
        700,
        -50,
        150,
    ]


def test_a_report_carries_its_public_values_in_every_form() -> None:
    record = {name: column[1] for name, column in TABLE.items()}
    report = sv.Client(PLAN).report(record)
    assert report.public == (False, "NY", 2019, 18, 131_071, "è già", -500)
    assert sv.Report.from_bytes(report.to_bytes(), PLAN) == report
    assert sv.Report.from_json(report.to_json(), PLAN) == report
    assert json.loads(report.to_json())["public"]["amount"] == "-5.00"
    bare = sv.Client(plan()).report(record)
    assert len(report.to_bytes()) - len(bare.to_bytes()) == 1 + 1 + 1 + 1 + 3 + (1 + 7) + 3


def test_reports_are_real_columns(tmp_path: Path) -> None:
    reports = crowd()
    assert list(reports.public) == list(NAMES)
    assert reports.public["amount"] == PublicColumn(np.array([1230, -500, 99_999]), 2)
    assert sv.Reports(PLAN.id, reports.cohorts, reports.payload) != reports
    table = reports.to_arrow()
    assert [str(table.schema.field(name).type) for name in NAMES] == [
        "bool", "string", "int64", "int64", "int64", "string", "int64",
    ]  # fmt: skip
    assert table.column("note").to_pylist() == TABLE["note"]
    assert sv.Reports.from_arrow(table) == reports
    write_stream(tmp_path / "reports.parquet", [reports, reports[1:]])
    (found,) = stream(tmp_path / "reports.parquet")
    assert found == sv.Reports.concat([reports, reports[1:]])
    assert sv.Reports.collect(PLAN, reports.single(PLAN)) == reports
    assert sv.Reports.collect(PLAN, []) == sv.Reports.empty(PLAN)


def test_checking_gives_a_type_and_happens_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = crowd()
    checked = reports.checked(PLAN)
    assert type(reports) is sv.Reports
    assert (
        type(checked)
        is type(checked[:2])
        is type(sv.Reports.concat([checked, checked[1:]]))
        is sv.CheckedReports
    )
    assert type(sv.Reports.concat([checked, reports])) is sv.Reports
    assert checked == reports
    with pytest.raises(TypeError):
        sv.CheckedReports(PLAN.id, reports.cohorts, reports.payload, reports.public)
    monkeypatch.setattr(type(PLAN.cohorts), "batches", None)  # whoever looks again fails
    assert checked.checked(PLAN) is checked
    with pytest.raises(sv.PlanMismatch):
        checked.checked(plan())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("member", np.array([0, 1, 1])),
        ("state", np.array(["NY", "NY", "CA"], object)),
        ("state", np.array([0, 1, 2])),
        ("year", np.array([2000, 2000, 2020])),
        ("age", np.array([17, 18, 19])),
        ("zip", np.array([0, -1, 1])),
        ("note", np.array(["a", "b", "x" * 13], object)),
        ("amount", np.array([0, 0, 100_000])),
    ],
)
def test_columns_that_no_device_sent_are_refused(name: str, values: Any) -> None:
    reports = crowd()
    wrong = {**reports.public, name: PublicColumn(values, reports.public[name].decimals)}
    with pytest.raises(sv.CorruptReport, match=name):
        sv.Reports(PLAN.id, reports.cohorts, reports.payload, wrong).checked(PLAN)
    scaled = {**reports.public, "amount": PublicColumn(reports.public["amount"].values, 3)}
    with pytest.raises(sv.CorruptReport, match="amount"):
        sv.Reports(PLAN.id, reports.cohorts, reports.payload, scaled).checked(PLAN)
    with pytest.raises(sv.CorruptReport, match="public columns"):
        sv.Reports(PLAN.id, reports.cohorts, reports.payload).checked(PLAN)


@pytest.mark.parametrize("invalid", ["draw", "raise"])
def test_a_missing_public_value_costs_nothing_and_draws_nothing(invalid: str) -> None:
    state = sv.ClientState()
    record = {name: column[0] for name, column in TABLE.items()}
    device = sv.Client(plan("amount", rounds=(1, 1)), state, entropy=Tape(b""), invalid=invalid)
    for wrong in (
        {**record, "amount": "12.345"},
        {name: record[name] for name in record if name != "amount"},
    ):
        with pytest.raises(sv.InvalidInput, match="amount") as refused:
            device.report(wrong)
        assert "12.345" not in str(refused.value)
    assert json.loads(state.to_json()) == json.loads(sv.ClientState().to_json())


def test_a_device_that_answers_again_says_what_is_public_then() -> None:
    state = sv.ClientState()
    record = {name: column[0] for name, column in TABLE.items()}
    first = sv.Client(PLAN, state).report(record)
    again = sv.Client(PLAN, state).report({**record, "smoker": False, "state": "TX"})
    assert again.payload == first.payload
    assert (first.public[1], again.public[1]) == ("WA", "TX")


def test_rounds_keep_their_public_columns() -> None:
    schema = sv.Schema(
        basket=sv.Items(range(50)), state=sv.Categorical(["NY", "WA"], sensitive=False)
    )
    first = sv.plan(
        schema, sv.TopItems("basket", top=2), epsilon=4.0, people=2000, public=["state"]
    )
    people = {"basket": [[1, 2], [2, 3]] * 1000, "state": ["NY", "WA"] * 1000}
    estimate = sv.Aggregate(first).add(sv.simulate(first, people, seed=1)).estimate()
    second = sv.next_plan(first, estimate)
    assert second is not None
    assert second.columns == ("state",)
    assert sv.simulate_rounds(first, people, seed=1).table.labels[0] == 2


def test_an_audit_compares_records_with_equal_public_values() -> None:
    from sottovoce.audit import audit_plan

    assert audit_plan(plan("state", "amount"), draws=2000).passed


class Leaking(sv.Client):
    """A device that says in clear what it whispers."""

    def report(self, record: Any) -> sv.Report:
        return super().report({**record, "member": record["smoker"]})


def test_an_audit_finds_a_device_that_tells_by_a_public_column() -> None:
    from sottovoce.audit import audit_plan

    assert not audit_plan(plan("member"), draws=2000, device=Leaking).passed
