"""Methods that find what is popular, compared on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.helpers import Command, refused, write_csv

ROW = ["method", "epsilon", "top", "f1", "ncr", "variance", "seconds"]


def test_compare_heavy_hitters(tmp_path: Path, sottovoce: Command) -> None:
    path = write_csv(
        tmp_path / "words.csv", word=["teapot", "teabag", "milk", "jam"], n=[300, 300, 300, 100]
    )
    arguments = (
        "compare",
        "heavyhitters",
        path,
        "--value",
        "word",
        "--count",
        "n",
        "--bytes",
        2,
        "--top",
        2,
    )
    outcome = sottovoce(
        *arguments, "--epsilon", "4", "--people", 2000, "--runs", 2, "--methods", "windows,genie"
    )
    assert outcome.code == 0, outcome.err
    assert "windows" in outcome.out
    assert "±" in outcome.out
    outcome = sottovoce(
        *arguments, "--epsilon", "2,4", "--runs", 1, "--alphabet", "abcdefgijklmopt", "--json"
    )
    assert outcome.err == ""
    rows = json.loads(outcome.out)
    assert [list(row)[:7] for row in rows] == [ROW, ROW]
    assert [row["people"] for row in rows] == [1000, 1000]
    assert rows[1]["found"] == 2.0
    assert len([line for line in outcome.out.splitlines() if line.startswith(" {")]) == 2


def test_compare_itemsets(tmp_path: Path, sottovoce: Command) -> None:
    path = tmp_path / "sets.parquet"
    pq.write_table(pa.table({"items": [[1, 2], [2], [2, 3], [4]] * 1000}), path)
    arguments = (
        "compare",
        "itemsets",
        path,
        "--column",
        "items",
        "--top",
        2,
        "--epsilon",
        4,
        "--runs",
        1,
    )
    rows = json.loads(sottovoce(*arguments, "--methods", "svim,psfo:length=2", "--json").out)
    assert [row["method"] for row in rows] == ["svim", "psfo:length=2"]
    assert list(rows[0])[:7] == ROW
    shown = sottovoce(*arguments, "--sets", "--methods", "svsm", "--people", 3000)
    assert "most frequent itemsets" in shown.out
    assert "3,000 people" in " ".join(shown.out.split())


def test_comparisons_that_cannot_be_made(tmp_path: Path, sottovoce: Command) -> None:
    path = write_csv(tmp_path / "words.csv", word=["tea", "milk"], n=[3, "x"])
    words = ("compare", "heavyhitters", path, "--value", "word", "--top", 2, "--epsilon", 1)
    refused(sottovoce(*words), "bytes for text or bits")
    refused(sottovoce(*words, "--bytes", 3, "--count", "n"), "column 'n'")
    refused(sottovoce(*words, "--bytes", 3, "--methods", "magic"), "magic")
    refused(sottovoce(*words, "--bytes", 3, "--runs", 0), "runs")
    refused(sottovoce(*words[:5], "--top", 2, "--epsilon", "x", "--bytes", 3), "epsilon")
    refused(
        sottovoce("compare", "itemsets", path, "--column", "none", "--top", 2, "--epsilon", 1),
        "none",
    )
    refused(
        sottovoce(
            "compare", "itemsets", tmp_path / "no.csv", "--column", "x", "--top", 2, "--epsilon", 1
        ),
        "no.csv",
    )
