"""What analysts ask, with a token and not without."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.device.messages import BINARY, write_binary
from tests.service.collector import PLAN, SCHEMA, TABLES, Collector, collecting

MINUTE = new_id()[:6]  # of all ids


def fill(collector: Collector, plan: sv.Plan, count: int = 400) -> sv.Aggregate:
    """Reports of a crowd, through the front door; what they add up to."""
    draws = np.random.default_rng(5)
    crowd = {
        "colour": draws.choice(["red", "green", "blue", "grey"], count),
        "smoker": draws.random(count) < 0.4,
    }
    reports = sv.simulate(plan, crowd, seed=3)
    ids = [
        MINUTE + number.to_bytes(4, "big") + bytes.fromhex(plan.id)[:6] for number in range(count)
    ]
    assert collector.post(write_binary(ids, list(reports.single(plan))), BINARY).status == 200
    return sv.Aggregate(plan).add(reports)


@pytest.fixture(scope="module")
def filled(collector: Collector) -> tuple[Collector, sv.Aggregate, sv.Aggregate]:
    return collector, fill(collector, PLAN), fill(collector, TABLES)


Filled = tuple[Collector, sv.Aggregate, sv.Aggregate]


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer svt_wrong", "Basic abc", "svt_x"]
)
def test_a_wrong_token_is_refused(collector: Collector, header: str | None) -> None:
    for method, path in (
        ("GET", "/v1/surveys"),
        ("POST", "/v1/surveys"),
        ("GET", f"/v1/surveys/{PLAN.id}/export"),
    ):
        answer = collector.ask(
            method, path, **({} if header is None else {"Authorization": header})
        )
        assert (answer.status, answer.problem) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_the_store_holds_no_token(collector: Collector) -> None:
    path = Path(collector.service.store.url.removeprefix("sqlite:///"))
    for file in path.parent.iterdir():
        assert collector.token.encode() not in file.read_bytes()


def test_surveys_are_listed(filled: Filled) -> None:
    collector = filled[0]
    rows = {row["id"]: row for row in collector.analyst("GET", "/v1/surveys").json}
    assert rows[PLAN.id]["people"] == 400
    assert rows[TABLES.id]["question"] == "marginals"
    one = collector.analyst("GET", f"/v1/surveys/{PLAN.id[:12]}").json
    assert one == rows[PLAN.id]
    assert one["guarantee"]["per_report"] == pytest.approx(1.0)
    for unknown in ("00" * 32, "zz", PLAN.id[:4]):
        assert collector.analyst("GET", f"/v1/surveys/{unknown}").problem == "unknown-plan"


def test_estimates_are_those_of_the_reports(filled: Filled) -> None:
    collector, heard, tables = filled
    found = collector.patient(f"/v1/surveys/{PLAN.id}/estimates?level=0.9&order=schema").json
    assert found["people"] == 400
    assert found["tables"][0]["rows"] == heard.estimate().table.rows(0.9)
    page = f"/v1/surveys/{TABLES.id}/marginals?order=schema"
    pair = collector.patient(f"{page}&attributes=colour,smoker").json
    expected = tables.estimate().marginal("colour", "smoker")
    assert [row["frequency"] for row in pair["rows"]] == pytest.approx(expected.values.tolist())
    assert pair["rows"][1]["value"] == ["red", True]
    again = collector.patient(f"{page}&attributes=colour&attributes=smoker").json
    assert again == pair
    text = collector.patient(f"{page}&attributes=smoker&format=csv").data.decode()
    assert text.splitlines()[0] == '"smoker","frequency","std_error","low","high"'
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("marginals?attributes=height", "invalid-input"),
        ("marginals?attributes=", "invalid-input"),
        ("marginals", "invalid-input"),
        ("marginals?attributes=smoker&level=1", "invalid-input"),
        ("marginals?attributes=smoker&format=xml", "invalid-input"),
        ("estimates?level=nan", "invalid-input"),
        ("nothing", "not-found"),
    ],
)
def test_questions_that_break_a_rule(filled: Filled, query: str, problem: str) -> None:
    assert filled[0].patient(f"/v1/surveys/{TABLES.id}/{query}").problem == problem


def test_an_export_estimates_the_same(filled: Filled, tmp_path: Path) -> None:
    collector, heard, _ = filled
    data = collector.analyst("GET", f"/v1/surveys/{PLAN.id}/export").data
    assert pq.read_table(io.BytesIO(data)).column_names == ["id", "cohort", "payload"]
    assert pq.read_table(io.BytesIO(data)).num_rows == 400
    (tmp_path / "reports.parquet").write_bytes(data)
    assert sv.Aggregate(PLAN).add(sv.Reports.read(tmp_path / "reports.parquet")) == heard


def test_a_survey_is_made_answered_and_closed(tmp_path: Path) -> None:
    asked = {
        "title": "Colours",
        "texts": {"consent": "Nothing else is kept."},
        "epsilon": "1.5",
        "people": 500,
        "schema": SCHEMA.to_json(),
        "question": {"kind": "frequencies", "attributes": ["colour"]},
        "coin": "assigned",
    }
    with collecting(f"sqlite:///{tmp_path}/s.db", ()) as collector:
        made = collector.analyst("POST", "/v1/surveys", asked)
        assert made.status == 201
        assert (made.json["title"], made.json["epsilon"], made.json["coin"]) == (
            "Colours",
            "1.5",
            "assigned",
        )
        texts = {"title": "Colours", "consent": "Nothing else is kept."}
        assert made.json["texts"] == texts
        plan = collector.ask("GET", f"/v1/plans/{made.json['id']}")
        assert sv.Plan.from_json(plan.data, id=made.json["id"]).people == 500
        empty = collector.analyst("GET", f"/v1/surveys/{made.json['id']}/estimates")
        assert (empty.status, empty.problem) == (409, "no-reports")
        for change, words in (
            ({"epsilon": 0}, "epsilon"),
            ({"epsilon": "much"}, "epsilon"),
            ({"people": 0}, "people"),
            ({"people": True}, "people"),
            ({"people": "5"}, "people"),
            ({"coin": "mine"}, "coin"),
            ({"question": {"kind": "nothing"}}, "kind"),
            ({"schema": {}}, "schema"),
            ({"schema": {"x": {"kind": "ordinal", "low": 5, "high": 1}}}, "high"),
            ({"title": "x" * 300}, "title"),
            ({"texts": {"language": "la"}}, "language"),
            ({"more": 1}, "more"),
        ):
            wrong = collector.analyst("POST", "/v1/surveys", asked | change)
            assert wrong.problem == "invalid-input"
            assert words in wrong.json["detail"]
        assert len(collector.analyst("GET", "/v1/surveys").json) == 1
