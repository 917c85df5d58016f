"""Reports folded into a file of their total, which every command reads in their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.aggregation.totals import read_total
from sottovoce.console.reading import _settled
from sottovoce.store import open_store
from tests.cli.helpers import Command, Files, refused


def test_a_total_says_what_its_reports_say(sottovoce: Command, files: Files) -> None:
    total = files.folder / "total.sva"
    told = sottovoce("fold", files.plan, files.reports, "-o", total)
    assert (told.code, told.err) == (0, "")
    assert told.out == f"3,000 reports folded into {total}\n"
    assert sottovoce("estimate", files.plan, total) == sottovoce(
        "estimate", files.plan, files.reports
    )
    found = json.loads(sottovoce("fold", files.plan, files.reports, "-o", total, "--json").out)
    plan = sv.Plan.from_json(files.plan.read_text())
    size = total.stat().st_size
    assert found == {
        "plan": plan.id,
        "engine": "local",
        "people": 3000,
        "digest": read_total(plan, total).digest,
        "bytes": size,
        "output": str(total),
    }


def test_a_file_has_a_url(sottovoce: Command, files: Files) -> None:
    by_path, by_url = (
        sottovoce("estimate", files.plan, source, "--json")
        for source in (files.reports, files.reports.as_uri())
    )
    assert by_path == by_url


def test_totals_add_up_with_reports_and_stores(sottovoce: Command, files: Files) -> None:
    plan = sv.Plan.from_json(files.plan.read_text())
    reports = sv.Reports.read(files.reports)
    one, both = files.folder / "one.sva", files.folder / "both.sva"
    sottovoce("fold", files.plan, files.reports, "-o", one)
    address = f"sqlite:///{files.folder / 'survey.db'}"
    with open_store(address) as store:
        store.add_plan(plan)
    told = sottovoce("fold", files.plan, one, files.reports, address, "-o", both)
    assert told.code == 0, told.err
    assert read_total(plan, both) == sv.Aggregate(plan).add([reports, reports])


def test_bad_input(sottovoce: Command, files: Files, tmp_path: Path) -> None:
    total = tmp_path / "total.sva"
    fold = ("fold", files.plan, files.reports)
    refused(sottovoce(*fold, "-o", tmp_path / "no" / "total.sva"), "output", "folder")
    again = files.folder / ".." / files.folder.name / files.reports.name
    for same in (files.reports, again, files.reports.as_uri()):
        refused(sottovoce(*fold, same, "-o", total), "given once")
    refused(sottovoce(*fold, "-o", tmp_path), f"output ({tmp_path}) must be a file")
    refused(sottovoce(*fold, "-o", total, "--engine", "flink"), "engine (flink)", "local")
    refused(sottovoce(*fold, "-o", total, "--master", "spark://host"), "master", "spark")
    refused(sottovoce("fold", files.plan, tmp_path / "no", "-o", total), "no", "exists")
    refused(sottovoce("fold", files.plan, "ftp://x/y", "-o", total), "ftp://x/y", "s3://")
    store = f"sqlite:///{tmp_path / 'survey.db'}"
    refused(sottovoce("fold", files.plan, store, "-o", total, "--engine", "spark"), "export")
    for sources, engine in (
        (["s3://a:hidden@b/c"] * 2, "local"),
        (["postgresql://a:hidden@b"], "spark"),
    ):
        told = sottovoce("fold", files.plan, *sources, "-o", total, "--engine", engine)
        refused(told, "://b")
        assert "hidden" not in told.err
    refused(sottovoce("fold", files.plan, "s3://[x", "-o", total), "s3://", "URL")
    assert not total.exists()


def test_a_file_counts_once_however_it_is_given(sottovoce: Command, files: Files) -> None:
    folder, total = files.folder / "reports", files.folder / "total.sva"
    (folder / "day=1").mkdir(parents=True)
    one, two = folder / "one.parquet", folder / "day=1" / "two.parquet"
    one.write_bytes(files.reports.read_bytes())
    two.write_bytes(files.reports.read_bytes())
    link = files.folder / "link.parquet"
    link.symlink_to(two)
    for sources in (
        (folder, one),
        (two, folder),
        (folder, folder / "day=1"),
        (folder, two.as_uri()),
        (folder, link),
        (folder.as_uri(), one),
    ):
        told = sottovoce("fold", files.plan, *sources, "-o", total)
        refused(told, "given once, by ", "count twice", ".parquet")
    assert not total.exists()
    assert sottovoce("fold", files.plan, one, two, "-o", total).code == 0
    assert read_total(sv.Plan.from_json(files.plan.read_text()), total).people == 6000
    (folder / "again.parquet").symlink_to(one)
    refused(sottovoce("fold", files.plan, folder, "-o", total), "one.parquet", "given once")


def test_a_store_counts_once_however_its_path_is_written(
    sottovoce: Command, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files.folder)
    (files.folder / "link.db").symlink_to(files.folder / "survey.db")
    relative = "sqlite:///survey.db"
    for same in (f"sqlite:///{files.folder}/survey.db", "sqlite:///link.db"):
        told = sottovoce("fold", files.plan, relative, same, "-o", "total.sva")
        refused(told, "given once", "count twice")


def test_a_url_is_known_by_its_server_and_path_and_not_by_who_asks() -> None:
    one = _settled("s3://a:b@bucket/x%20y?endpoint_override=one:9000")
    assert one == _settled("s3://c:d@bucket/x y?endpoint_override=one:9000&region=eu")
    assert one != _settled("s3://a:b@bucket/x%20y?endpoint_override=two:9000")


def test_a_spoilt_total_is_refused_by_name(sottovoce: Command, files: Files) -> None:
    total = files.folder / "total.sva"
    sottovoce("fold", files.plan, files.reports, "-o", total)
    data = total.read_bytes()
    total.write_bytes(data[:-1])
    refused(sottovoce("estimate", files.plan, total), "total.sva", "checksum")
    survey = files.survey.read_text().replace("epsilon = 2.0", "epsilon = 1.0")
    files.survey.write_text(survey)
    other = files.folder / "other.json"
    sottovoce("plan", files.survey, "-o", other)
    total.write_bytes(data)
    refused(sottovoce("estimate", other, total), "total.sva", "another plan")


@pytest.mark.parametrize("name", ["fold", "estimate"])
def test_help_names_the_engines(sottovoce: Command, name: str) -> None:
    shown = sottovoce(name, "--help").out
    assert "--engine" in shown
    assert "sc://host" in shown
