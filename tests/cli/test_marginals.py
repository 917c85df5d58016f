"""Marginals as a person types them: plan with a ranking, tables by name, methods compared on a
table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.questions.marginals.methods import METHODS
from tests.cli.helpers import Command, refused, write_csv

SURVEY = """\
epsilon = 2.0
people = 4000

[schema.smoker]
kind = "boolean"

[schema.region]
kind = "categorical"
values = ["N", "S", "W"]

[schema.drinker]
kind = "boolean"

[question]
kind = "marginals"
up_to = 2
method = "marg-ps"
"""
FIRST_KEYS = ["method", "epsilon", "k", "sse", "sse_std", "tvd", "tvd_std", "seconds"]


class Folder:
    """A survey about marginals in files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        draws = np.random.default_rng(2)
        smoker = draws.random(4000) < 0.3
        region = np.array(["N", "S", "W"])[draws.choice(3, 4000, p=[0.5, 0.3, 0.2])]
        drinker = draws.random(4000) < np.where(smoker, 0.8, 0.3)
        self.columns = {"smoker": smoker, "region": region, "drinker": drinker}
        write_csv(
            self["people.csv"], **{name: column.tolist() for name, column in self.columns.items()}
        )
        self["survey.toml"].write_text(SURVEY)

    def __getitem__(self, name: str) -> Path:
        return self.path / name


@pytest.fixture
def here(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def heard(here: Folder, sottovoce: Command) -> Folder:
    assert sottovoce("plan", here["survey.toml"], "-o", here["plan.json"]).code == 0
    whisper = (
        "whisper",
        here["plan.json"],
        here["people.csv"],
        "-o",
        here["reports.parquet"],
        "--seed",
        3,
    )
    assert sottovoce(*whisper).code == 0
    return here


# -- plan


def test_a_plan_of_marginals_prints_the_ranking(here: Folder, sottovoce: Command) -> None:
    text = sottovoce("plan", here["survey.toml"]).out
    assert "Methods by predicted error" in text
    assert "marg-ps *" in text
    body = json.loads(sottovoce("plan", here["survey.toml"], "--json").out)
    ranks = body["ranking"]
    assert {rank["method"] for rank in ranks} == {method.name for method in METHODS}
    assert [rank["method"] for rank in ranks if rank["chosen"]] == ["marg-ps"]
    fitting = [rank for rank in ranks if rank["predicted_sse"] is not None]
    assert [rank["predicted_sse"] for rank in fitting] == sorted(
        rank["predicted_sse"] for rank in fitting
    )
    assert fitting[0]["ratio"] == 1
    assert all(rank["reason"] for rank in ranks)


def test_auto_takes_the_first_of_the_ranking(here: Folder, sottovoce: Command) -> None:
    here["survey.toml"].write_text(SURVEY.replace('method = "marg-ps"\n', ""))
    (best, *others) = json.loads(sottovoce("plan", here["survey.toml"], "--json").out)["ranking"]
    assert best["chosen"]
    assert not any(rank["chosen"] for rank in others)


def test_a_plan_says_what_it_never_asks(here: Folder, sottovoce: Command) -> None:
    few = SURVEY.replace("people = 4000", "people = 400").replace('"marg-ps"', '"calm"')
    here["survey.toml"].write_text(few)
    assert "Never asked: " in sottovoce("plan", here["survey.toml"]).out
    body = json.loads(sottovoce("plan", here["survey.toml"], "--json").out)
    assert len(body["never_asked"]) == 1
    assert next(rank for rank in body["ranking"] if rank["chosen"])["never_asked"] == 1
    here["survey.toml"].write_text(few.replace('method = "calm"\n', ""))
    body = json.loads(sottovoce("plan", here["survey.toml"], "--json").out)
    assert body["never_asked"] == []


def test_a_plan_says_what_lies_outside_its_tables(here: Folder, sottovoce: Command) -> None:
    here["survey.toml"].write_text(SURVEY.replace("up_to = 2", "up_to = 1"))
    assert "Outside the tables: " in sottovoce("plan", here["survey.toml"]).out
    body = json.loads(sottovoce("plan", here["survey.toml"], "--json").out)
    assert body["never_asked"] == []
    assert body["outside_tables"]
    here["survey.toml"].write_text(SURVEY)
    assert json.loads(sottovoce("plan", here["survey.toml"], "--json").out)["outside_tables"] == []


def test_methods_that_do_not_fit_say_why(here: Folder, sottovoce: Command) -> None:
    here["survey.toml"].write_text(SURVEY.replace("up_to = 2", "up_to = 3"))
    body = json.loads(sottovoce("plan", here["survey.toml"], "--json").out)
    last = next(rank for rank in body["ranking"] if rank["method"] == "inp-em")
    assert last["predicted_sse"] is last["ratio"] is None
    assert "does not fit" in sottovoce("plan", here["survey.toml"]).out


def test_surveys_of_marginals(here: Folder, sottovoce: Command) -> None:
    good = SURVEY.replace(
        "up_to = 2", 'up_to = 2\nattributes = ["smoker", "drinker"]\nworkload = [["smoker"]]'
    )
    here["survey.toml"].write_text(good)
    assert sottovoce("plan", here["survey.toml"], "-o", here["plan.json"]).code == 0
    question = sv.Plan.from_json(here["plan.json"].read_bytes()).question
    assert isinstance(question, sv.Marginals)
    assert (question.attributes, question.workload) == (("smoker", "drinker"), (("smoker",),))
    for before, after, word in (
        ("up_to = 2\n", "", "up_to is missing"),
        ("up_to = 2", "up_to = 4", "up_to (4)"),
        ("up_to = 2", 'up_to = "two"', "up_to"),
        ("up_to = 2", 'up_to = 2\nworkload = ["smoker"]', "workload"),
        ("up_to = 2", 'up_to = 2\nworkload = [["wish"]]', "'wish'"),
        ("up_to = 2", 'up_to = 2\nattributes = "smoker"', "attributes"),
        ("up_to = 2", 'up_to = 2\nattributes = ["wish"]', "'wish'"),
        ('"marg-ps"', '"wish"', "method (wish)"),
        ('"marg-ps"', "7", "method"),
        ('"marg-ps"', '"marg-ps"\nnonsense = 1', "nonsense"),
    ):
        assert before in SURVEY
        here["survey.toml"].write_text(SURVEY.replace(before, after))
        refused(sottovoce("plan", here["survey.toml"]), word)


def test_a_frequencies_plan_has_no_ranking(here: Folder, sottovoce: Command) -> None:
    text = (
        SURVEY.partition("[question]")[0]
        + '[question]\nkind = "frequencies"\nattributes = ["smoker"]\n'
    )
    here["survey.toml"].write_text(text)
    assert "ranking" not in json.loads(sottovoce("plan", here["survey.toml"], "--json").out)


def test_families_are_described_by_their_kinds_and_some_cohorts_audited(
    tmp_path: Path, sottovoce: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty attributes three at a time are 4,060 cohorts, and one oracle."""
    schema = "\n".join(f'[schema.x{place}]\nkind = "boolean"' for place in range(30))
    question = '[question]\nkind = "marginals"\nup_to = 3\nmethod = "marg-ps"\n'
    (tmp_path / "s.toml").write_text(f"epsilon = 1\npeople = 100000\n{schema}\n{question}")
    body = json.loads(
        sottovoce("plan", tmp_path / "s.toml", "--json", "-o", tmp_path / "plan.json").out
    )
    assert (body["cohorts"], len(body["asks"])) == (4060, 1)
    assert (body["asks"][0]["people"], body["asks"][0]["size"]) == (100_000 // 4060, 8)
    monkeypatch.setattr("sottovoce.audit.plans.MAX_WAYS", 1 << 12)
    audit = json.loads(sottovoce("audit", tmp_path / "plan.json", "--draws", 1000, "--json").out)
    assert audit["passed"]
    assert audit["plan"]["kind"] == "exact given sampled public coins"
    assert audit["plan"]["cohorts_in_plan"] == 4060
    assert 10 < audit["plan"]["cohorts"] <= audit["plan"]["public_samples"]


def test_many_asks_with_one_oracle_are_audited_once_where_reports_are_sampled(
    tmp_path: Path, sottovoce: Command
) -> None:
    names = [f"x{place}" for place in range(20)]
    schema = "\n".join(f'[schema.{name}]\nkind = "ordinal"\nlow = 1\nhigh = 40' for name in names)
    listed = ", ".join(f'"{name}"' for name in names)
    question = f'[question]\nkind = "frequencies"\nattributes = [{listed}]\noracle = "oue"\n'
    (tmp_path / "s.toml").write_text(f"epsilon = 1\npeople = 100000\n{schema}\n{question}")
    assert sottovoce("plan", tmp_path / "s.toml", "-o", tmp_path / "plan.json").code == 0
    arguments = ("audit", tmp_path / "plan.json", "--draws", 1000)
    out = sottovoce(*arguments).out
    assert out.startswith("PASS plan")
    assert ": sampled\n" in out
    assert "\nx0 and 19 more asks: PASS" in out
    (audit,) = json.loads(sottovoce(*arguments, "--json").out)["audits"]
    assert audit["asks"] == 20


# -- estimate


def test_marginals_by_name_are_near_the_truth(heard: Folder, sottovoce: Command) -> None:
    estimate = ("estimate", heard["plan.json"], heard["reports.parquet"])
    outcome = sottovoce(*estimate, "--marginal", "drinker,smoker", "--marginal", "region", "--json")
    assert outcome.err == ""
    pair, single = json.loads(outcome.out)["tables"]
    assert (pair["attributes"], single["attributes"]) == (["drinker", "smoker"], ["region"])
    assert (pair["is_reconstructed"], pair["is_unbiased"], pair["method"]) == (
        False,
        True,
        "marg-ps",
    )
    assert pair["errors"].startswith("closed form")
    smoker, drinker = heard.columns["smoker"], heard.columns["drinker"]
    for row in pair["rows"]:
        truth = float(((drinker == row["value"][0]) & (smoker == row["value"][1])).mean())
        assert abs(row["frequency"] - truth) < 5 * row["std_error"]
    for row in single["rows"]:
        assert (
            abs(row["frequency"] - float((heard.columns["region"] == row["value"]).mean()))
            < 5 * row["std_error"]
        )


def test_marginals_are_printed_with_their_marks(heard: Folder, sottovoce: Command) -> None:
    estimate = ("estimate", heard["plan.json"], heard["reports.parquet"])
    text = sottovoce(*estimate, "--marginal", "smoker,region,drinker").out
    assert "smoker, region, drinker: 4,000 people" in text
    assert ", reconstructed" in text
    assert "was never asked for" in text
    assert "standard errors:" in text
    plain = sottovoce(*estimate, "--marginal", "smoker,drinker").out
    assert "unbiased, by marg-ps" in plain
    assert ", reconstructed" not in plain
    assert "was never asked for" not in plain
    assert "standard errors: closed form" in plain
    (table,) = json.loads(
        sottovoce(*estimate, "--marginal", "smoker,region,drinker", "--json").out
    )["tables"]
    assert table["is_reconstructed"]


def test_all_tables_of_a_size(heard: Folder, sottovoce: Command) -> None:
    estimate = ("estimate", heard["plan.json"], heard["reports.parquet"])
    pairs = json.loads(sottovoce(*estimate, "--k", 2, "--json").out)["tables"]
    assert [table["attributes"] for table in pairs] == [
        ["smoker", "region"], ["smoker", "drinker"], ["region", "drinker"],
    ]  # fmt: skip
    default = json.loads(sottovoce(*estimate, "--json").out)["tables"]
    assert [table["attributes"] for table in default] == [["smoker"], ["region"], ["drinker"]]
    both = json.loads(sottovoce(*estimate, "--k", 1, "--marginal", "smoker,region", "--json").out)[
        "tables"
    ]
    assert len(both) == 4


def test_tables_are_repaired_and_drawn(heard: Folder, sottovoce: Command) -> None:
    estimate = ("estimate", heard["plan.json"], heard["reports.parquet"], "--k", 2)
    outcome = sottovoce(
        *estimate, "--postprocess", "norm-sub", "--json", "--plot", heard["plot.svg"]
    )
    for table in json.loads(outcome.out)["tables"]:
        assert (table["method"], table["repair"]) == ("marg-ps", "norm-sub")
        assert sum(row["frequency"] for row in table["rows"]) == pytest.approx(1)
    assert heard["plot.svg"].read_text().startswith("<svg")


def test_marginals_that_are_not_there(heard: Folder, sottovoce: Command) -> None:
    estimate = ("estimate", heard["plan.json"], heard["reports.parquet"])
    refused(sottovoce(*estimate, "--marginal", "smoker,wish"), "'wish' is not in the plan")
    refused(sottovoce(*estimate, "--marginal", "smoker,smoker"), "different")
    refused(sottovoce(*estimate, "--k", 4), "k (4)")
    refused(sottovoce(*estimate, "--k", 0), "--k")


def test_a_frequencies_plan_has_tables_by_name(here: Folder, sottovoce: Command) -> None:
    text = (
        SURVEY.partition("[question]")[0]
        + '[question]\nkind = "frequencies"\nattributes = ["smoker", "region"]\n'
    )
    here["survey.toml"].write_text(text)
    assert sottovoce("plan", here["survey.toml"], "-o", here["plan.json"]).code == 0
    assert (
        sottovoce(
            "whisper", here["plan.json"], here["people.csv"], "-o", here["r.parquet"], "--seed", 3
        ).code
        == 0
    )
    estimate = ("estimate", here["plan.json"], here["r.parquet"])
    (table,) = json.loads(sottovoce(*estimate, "--marginal", "region", "--json").out)["tables"]
    assert table["attributes"] == ["region"]
    refused(sottovoce(*estimate, "--marginal", "smoker,region"), "was not asked for")
    refused(sottovoce(*estimate, "--k", 1), "k (1) is for a plan whose question is marginals")


# -- compare marginals


def compared(sottovoce: Command, table: Path, *more: Any) -> list[dict[str, Any]]:
    arguments = (
        "--k",
        2,
        "--epsilon",
        "1",
        "--people",
        1000,
        "--queries",
        5,
        "--runs",
        2,
        *more,
        "--json",
    )
    outcome = sottovoce("compare", "marginals", table, *arguments)
    assert outcome.err == ""
    rows: list[dict[str, Any]] = json.loads(outcome.out)
    return rows


def test_compare_prints_a_row_per_epsilon_and_method(here: Folder, sottovoce: Command) -> None:
    arguments = (
        "--k",
        2,
        "--epsilon",
        "0.5,2",
        "--people",
        1000,
        "--runs",
        2,
        "--methods",
        "auto,uniform,inp-em",
    )
    rows = json.loads(
        sottovoce("compare", "marginals", here["people.csv"], *arguments, "--json").out
    )
    assert [list(row)[:8] for row in rows] == [FIRST_KEYS] * 6
    assert [(row["epsilon"], row["method"]) for row in rows][:3] == [
        (0.5, "auto"),
        (0.5, "uniform"),
        (0.5, "inp-em"),
    ]
    assert all(row["k"] == 2 for row in rows)
    assert rows[1]["sse"] == rows[4]["sse"]
    again = json.loads(
        sottovoce("compare", "marginals", here["people.csv"], *arguments, "--json").out
    )
    assert [row["sse"] for row in again] == [row["sse"] for row in rows]
    printed = sottovoce("compare", "marginals", here["people.csv"], *arguments).out
    assert "squared error" in printed
    assert "chose" in printed
    assert "1,000 people, 2 runs of 3 random tables" in printed


def test_compare_says_why_a_method_does_not_fit(here: Folder, sottovoce: Command) -> None:
    arguments = ("--methods", "inp-em,uniform", "--k", 3)
    first, second = compared(sottovoce, here["people.csv"], *arguments)
    assert first["sse"] is first["tvd"] is first["seconds"] is None
    assert "does not fit" in first["reason"]
    assert second["sse"] > 0
    text = sottovoce(
        "compare", "marginals", here["people.csv"], "--epsilon", 1, "--runs", 1, *arguments
    ).out
    assert "does not fit" in text.replace("\n", " ")


def test_compare_takes_a_schema_and_attributes(here: Folder, sottovoce: Command) -> None:
    options = ("--methods", "uniform", "--schema", here["survey.toml"])
    (row,) = compared(sottovoce, here["people.csv"], *options)
    assert row["queries"] == 3
    (row,) = compared(sottovoce, here["people.csv"], *options, "--attributes", "smoker, drinker")
    assert row["queries"] == 1
    here["other.toml"].write_text("epsilon = 1\n")
    compare = ("compare", "marginals", here["people.csv"], "--k", 2, "--epsilon", 1)
    refused(sottovoce(*compare, "--schema", here["other.toml"]), "[schema.NAME]")
    refused(sottovoce(*compare, "--attributes", "smoker,wish"), "'wish' is not in the table")
    refused(
        sottovoce(*compare, "--schema", here["survey.toml"], "--attributes", "wish,smoker"),
        "'wish'",
    )


def test_compare_bins_and_merges_many_numbers(tmp_path: Path, sottovoce: Command) -> None:
    draws = np.random.default_rng(4)
    table = write_csv(
        tmp_path / "t.csv",
        money=draws.integers(0, 10_000, 500).tolist(),
        town=[f"t{place}" for place in draws.integers(0, 9, 500)],
    )
    compare = ("compare", "marginals", table, "--k", 2, "--epsilon", 1)
    refused(sottovoce(*compare), "'money' has", "--bins")
    (row,) = compared(sottovoce, table, "--methods", "fc", "--bins", 8)
    assert row["view_cells"] == 8 * 9
    (row,) = compared(sottovoce, table, "--methods", "fc", "--merge", 3)
    assert row["view_cells"] == 3 * 3
    refused(sottovoce(*compare, "--merge", 1), "merge (1)")
    refused(sottovoce(*compare, "--bins", 1), "bins (1)")


def test_compare_takes_the_top_items(tmp_path: Path, sottovoce: Command) -> None:
    draws = np.random.default_rng(4)
    baskets = [draws.geometric(0.3, draws.integers(0, 6)).tolist() for _ in range(800)]
    pq.write_table(pa.table({"items": baskets}), tmp_path / "t.parquet")
    (row,) = compared(sottovoce, tmp_path / "t.parquet", "--methods", "fc", "--top", 4)
    assert (row["view_cells"], row["queries"]) == (16, 5)
    compare = ("compare", "marginals", tmp_path / "t.parquet", "--k", 2, "--epsilon", 1)
    refused(sottovoce(*compare), "--top")
    refused(sottovoce(*compare, "--top", 1000), "top (1000)")
    refused(sottovoce(*compare, "--top", 0), "top (0)")


def test_compare_counts_intervals(here: Folder, sottovoce: Command) -> None:
    (row,) = compared(sottovoce, here["people.csv"], "--methods", "marg-ps", "--coverage")
    assert 0.5 < row["coverage"] <= 1
    options = (
        "--k",
        2,
        "--epsilon",
        1,
        "--people",
        500,
        "--runs",
        1,
        "--methods",
        "marg-ps",
        "--coverage",
    )
    assert "95% holds" in sottovoce("compare", "marginals", here["people.csv"], *options).out


def test_compare_takes_options_of_methods_other_plans_and_a_repair(
    here: Folder, sottovoce: Command
) -> None:
    more = ("--methods", "calm:theta=0.01,marg-ps", "--planned-for", 3, "--postprocess", "norm-sub")
    calm, pairs = compared(sottovoce, here["people.csv"], *more)
    assert (calm["method"], calm["postprocess"], calm["planned_for"]) == (
        "calm:theta=0.01", None, 3,
    )  # fmt: skip
    assert (pairs["k"], pairs["view_size"], pairs["postprocess"]) == (2, 3, "norm-sub")
    options = ("--k", 2, "--epsilon", 1, "--people", 500, "--runs", 1, *more)
    printed = sottovoce("compare", "marginals", here["people.csv"], *options).out
    assert "calm:theta=0.01" in printed
    assert "after norm-sub" in printed
    assert "by plans for tables of 3" in printed.replace("\n", " ")
    compare = ("compare", "marginals", here["people.csv"], "--k", 2, "--epsilon", 1)
    refused(sottovoce(*compare, "--postprocess", "wish"), "method (wish)", "norm-sub")
    refused(sottovoce(*compare, "--planned-for", 9), "planned_for (9)")
    refused(sottovoce(*compare, "--methods", "calm:wish=1"), "'wish'", "theta")


def test_compare_refuses_bad_options(here: Folder, sottovoce: Command) -> None:
    compare = ("compare", "marginals", here["people.csv"], "--epsilon", "1")
    refused(sottovoce(*compare, "--k", 9), "k (9)", "(3)")
    refused(sottovoce(*compare, "--k", 2, "--methods", "wish"), "method (wish)")
    refused(sottovoce(*compare, "--k", 2, "--runs", 0), "runs (0)")
    refused(sottovoce(*compare, "--k", 2, "--seed", -1), "--seed")
    refused(
        sottovoce("compare", "marginals", here["people.csv"], "--k", 2, "--epsilon", "1,"),
        "epsilon",
    )
    refused(
        sottovoce("compare", "marginals", here["none.csv"], "--k", 2, "--epsilon", "1"), "none.csv"
    )


@pytest.mark.parametrize("name", ["compare marginals", "advise"])
def test_commands_show_an_example(sottovoce: Command, name: str) -> None:
    assert f"sottovoce {name}" in sottovoce(*name.split(), "--help").out
    assert f"sottovoce {name}" in sottovoce("--help").out
