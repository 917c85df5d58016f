"""From a survey file to an estimate, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from tests.cli.helpers import COLOURS, Command, Files, write_csv

TRUTH = {"red": 0.5, "green": 0.3, "blue": 500 / 3000, "grey": 100 / 3000}


def estimated(outcome_text: str) -> dict[str, dict[str, float]]:
    (table,) = json.loads(outcome_text)["tables"]
    return {row["value"]: row for row in table["rows"]}


def near_truth(rows: dict[str, dict[str, float]]) -> bool:
    """Within five standard errors: a right command fails once in a million seeds, a broken one
    always.
    """
    return all(
        abs(rows[name]["frequency"] - share) < 5 * rows[name]["std_error"]
        for name, share in TRUTH.items()
    )


def test_plan_explains_itself_and_stores_its_own_bytes(sottovoce: Command, files: Files) -> None:
    outcome = sottovoce("plan", files.survey, "-o", files.plan)
    stored = sv.Plan.from_json(files.plan.read_bytes())
    assert outcome.code == 0
    assert stored.id in outcome.out
    assert "grr" in outcome.out
    assert "Guarantee" in outcome.out


def test_plan_json_is_all_there_is(sottovoce: Command, files: Files) -> None:
    outcome = sottovoce("plan", files.survey, "-o", files.plan, "--json")
    body = json.loads(outcome.out)
    assert body["id"] == sv.Plan.from_json(files.plan.read_bytes()).id
    assert body["guarantee"]["per_report"] <= 2.0
    assert body["asks"][0]["oracle"] == "grr"
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("epsilon", "oracle", "options"),
    [
        ("0.30000000000000000001", "grr", {}),
        ("0.3", "the", {"theta": "0.75"}),
        ("1", "ss", {"chosen": 1}),
    ],
)
def test_epsilon_keeps_its_digits_and_options_reach_the_oracle(
    sottovoce: Command, tmp_path: Path, epsilon: str, oracle: str, options: dict[str, Any]
) -> None:
    survey, plan = tmp_path / "survey.toml", tmp_path / "plan.json"
    written = "\n".join(f"{name} = {value}" for name, value in options.items())
    survey.write_text(
        f'epsilon = {epsilon}\npeople = 10\n[schema.x]\nkind = "boolean"\n'
        f'[question]\nkind = "frequencies"\nattributes = ["x"]\noracle = "{oracle}"\n{written}\n'
    )
    assert sottovoce("plan", survey, "-o", plan).code == 0
    (ask,) = sv.Plan.from_json(plan.read_bytes()).cohorts[0].asks
    assert str(ask.oracle.requested) == epsilon
    assert ask.oracle == sv.oracle(oracle, size=2, epsilon=epsilon, **options)


def test_real_devices_from_csv(sottovoce: Command, files: Files) -> None:
    outcome = sottovoce("whisper", files.plan, files.people, "-o", files.reports)
    assert outcome.code == 0
    assert "3,000 reports" in outcome.out
    assert outcome.err == ""
    rows = estimated(sottovoce("estimate", files.plan, files.reports, "--json").out)
    assert list(rows) == list(TRUTH)
    assert sum(row["frequency"] for row in rows.values()) == pytest.approx(1)


def test_seeded_csv_and_parquet_give_the_same_reports(sottovoce: Command, files: Files) -> None:
    people = files.folder / "people.parquet"
    pq.write_table(
        pa.table({"colour": pa.array(COLOURS).dictionary_encode()}), people, row_group_size=700
    )
    again = files.folder / "again.parquet"
    assert sottovoce("whisper", files.plan, people, "-o", again, "--seed", "7").code == 0
    assert sv.Reports.read(again) == sv.Reports.read(files.reports)
    assert sottovoce("whisper", files.plan, people, "-o", again, "--seed", "8").code == 0
    assert sv.Reports.read(again) != sv.Reports.read(files.reports)


def test_batches_do_not_depend_on_how_the_file_was_cut(
    sottovoce: Command, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.sending.people.BLOCK_PEOPLE", 1000)
    people = files.folder / "people.parquet"
    pq.write_table(pa.table({"colour": COLOURS}), people, row_group_size=700)
    outputs = [files.folder / "csv.parquet", files.folder / "parquet.parquet"]
    for source, output in zip((files.people, people), outputs, strict=True):
        assert sottovoce("whisper", files.plan, source, "-o", output, "--seed", "7").code == 0
    one, other = (sv.Reports.read(output) for output in outputs)
    assert one == other
    assert len(one) == 3000
    assert one[:500] != one[1000:1500]  # both all red: another batch has other coins


def test_estimate_is_near_the_truth_and_json_is_all_there_is(
    sottovoce: Command, files: Files
) -> None:
    outcome = sottovoce("estimate", files.plan, files.reports, "--json")
    assert outcome.code == 0
    assert outcome.err == ""
    assert near_truth(estimated(outcome.out))


def test_estimate_prints_a_table_with_the_level_asked_for(sottovoce: Command, files: Files) -> None:
    outcome = sottovoce("estimate", files.plan, files.reports, "--level", "0.8")
    assert "80% interval" in outcome.out
    assert "3,000 people, unbiased" in outcome.out
    wide = estimated(sottovoce("estimate", files.plan, files.reports, "--json").out)["red"]
    slim = estimated(
        sottovoce("estimate", files.plan, files.reports, "--json", "--level", "0.8").out
    )["red"]
    assert wide["low"] < slim["low"] < slim["high"] < wide["high"]


def test_estimate_repaired(sottovoce: Command, files: Files) -> None:
    outcome = sottovoce(
        "estimate", files.plan, files.reports, "--postprocess", "norm-sub", "--json"
    )
    (table,) = json.loads(outcome.out)["tables"]
    assert table["repair"] == "norm-sub"
    assert not table["is_unbiased"]
    assert min(row["frequency"] for row in table["rows"]) >= 0


@pytest.mark.parametrize("name", ["plot.svg", "plot.png"])
def test_plot_is_drawn(sottovoce: Command, files: Files, name: str) -> None:
    plot = files.folder / name
    assert sottovoce("estimate", files.plan, files.reports, "--plot", plot).code == 0
    assert plot.read_bytes()[:4] in (b"<svg", b"\x89PNG")


def test_open_alphabet_with_candidates(sottovoce: Command, tmp_path: Path) -> None:
    survey, plan, reports = (
        tmp_path / name for name in ("survey.toml", "plan.json", "reports.parquet")
    )
    survey.write_text(
        'epsilon = 3\npeople = 4000\n[schema.word]\nkind = "text"\nbytes = 20\n'
        '[question]\nkind = "frequencies"\nattributes = ["word"]\noracle = "olh-seeded"\n'
    )
    people = write_csv(
        tmp_path / "people.csv", word=["hello"] * 3000 + ['two\nlines, "quoted"'] * 1000
    )
    words = tmp_path / "words.txt"
    words.write_text("hello\n\nhello\nnobody\n", encoding="utf-8")
    assert sottovoce("plan", survey, "-o", plan).code == 0
    assert sottovoce("whisper", plan, people, "-o", reports, "--seed", "3").code == 0
    outcome = sottovoce("estimate", plan, reports, "--candidates", words, "--json")
    rows = estimated(outcome.out)
    assert list(rows) == ["hello", "nobody"]
    assert abs(rows["hello"]["frequency"] - 0.75) < 5 * rows["hello"]["std_error"]
    assert abs(rows["nobody"]["frequency"]) < 5 * rows["nobody"]["std_error"]


def test_a_list_may_be_declared_complete(sottovoce: Command, tmp_path: Path) -> None:
    survey, plan, reports = (
        tmp_path / name for name in ("survey.toml", "plan.json", "reports.parquet")
    )
    survey.write_text(
        'epsilon = 4\npeople = 4000\n[schema.word]\nkind = "text"\nbytes = 20\n'
        '[question]\nkind = "frequencies"\nattributes = ["word"]\noracle = "o-rr"\n'
    )
    others = [f"w{number}" for number in range(1000)]
    people = write_csv(tmp_path / "people.csv", word=["hello"] * 3000 + others)
    words = tmp_path / "words.txt"
    words.write_text("hello\nnobody\n", encoding="utf-8")
    assert sottovoce("plan", survey, "-o", plan).code == 0
    assert sottovoce("whisper", plan, people, "-o", reports, "--seed", "3").code == 0
    estimate = ("estimate", plan, reports, "--candidates", words)
    (table,) = json.loads(sottovoce(*estimate, "--json").out)["tables"]
    left = table["off_list"]
    assert abs(left["frequency"] - 0.25) < 5 * left["std_error"]
    said = " ".join(sottovoce(*estimate).out.split())
    assert f"anything off the list: {left['frequency']:.4f} ± {left['std_error']:.4f}" in said
    (table,) = json.loads(sottovoce(*estimate, "--complete", "--json").out)["tables"]
    assert table["off_list"] is None
    assert sum(row["frequency"] for row in table["rows"]) == pytest.approx(1)


def test_several_attributes_with_a_seed(sottovoce: Command, files: Files) -> None:
    files.survey.write_text(files.survey.read_text().replace('["colour"]', '["colour", "age"]'))
    assert sottovoce("plan", files.survey, "-o", files.plan).code == 0
    assert (
        sottovoce("whisper", files.plan, files.people, "-o", files.reports, "--seed", "7").code == 0
    )
    outcome = sottovoce(
        "estimate", files.plan, files.reports, "--json", "--plot", files.folder / "both.svg"
    )
    tables = json.loads(outcome.out)["tables"]
    assert [table["attributes"] for table in tables] == [["colour"], ["age"]]
    assert sum(table["people"] for table in tables) == 3000
