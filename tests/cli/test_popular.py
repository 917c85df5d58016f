"""What is popular, as a person types it: surveys, rounds in which nobody answers twice, marks."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.cli import run
from sottovoce.cli.finding import findings_table, tree_lines
from sottovoce.console.surveys import read_plan, read_texts
from sottovoce.console.tables import console
from sottovoce.console.writing import write_plan
from sottovoce.ground.labels import json_visible, written
from sottovoce.protocol.reports import Reports
from sottovoce.results.findings import Findings, PrefixStep
from sottovoce.store import open_store
from tests.cli.helpers import Command, refused, write_csv
from tests.service.collector import collecting

WORDS = ["tea"] * 2000 + ["milk"] * 1500 + ["j\x1b[m"] * 500
SURVEY = """\
epsilon = 4.0
people = 4000

[schema.word]
kind = "text"
bytes = 4
alphabet = "teamilkrc\\u001b[j"

[question]
kind = "heavy-hitters"
attribute = "word"
top = 5
method = "{method}"
"""
BASKETS = """\
epsilon = 4.0
people = 4000

[schema.basket]
kind = "items"
values = ["milk", "tea", "bread", "jam", "salt", "rice"]

[question]
kind = "{kind}"
attribute = "basket"
top = 2
method = "{method}"
"""
HOSTILE = "a\x1b[2J\u202eb\x9b\u2028\x00"


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey about words, answered."""
    folder = tmp_path_factory.mktemp("words")
    survey, plan, people = folder / "survey.toml", folder / "plan.json", folder / "people.csv"
    survey.write_text(SURVEY.format(method="windows"))
    words = np.random.default_rng(1).permutation(np.array(WORDS, object)).tolist()
    write_csv(people, word=words)
    assert run(["plan", str(survey), "-o", str(plan)]) == 0
    reports = folder / "reports.parquet"
    assert run(["whisper", str(plan), str(people), "-o", str(reports), "--seed", "3"]) == 0
    return folder


@pytest.fixture
def here(tmp_path: Path, answered: Path) -> Path:
    """The same in a folder of its own."""
    shutil.copytree(answered, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def baskets(tmp_path: Path) -> Path:
    draws = np.random.default_rng(2)
    names = ["milk", "tea", "bread", "jam", "salt", "rice"]
    held = draws.random((4000, 6)) < np.array([0.8, 0.6, 0.1, 0.1, 0.05, 0.05])
    rows = [
        ";".join(name for name, has in zip(names, row, strict=True) if has) for row in held.tolist()
    ]
    write_csv(tmp_path / "people.csv", basket=rows)
    return tmp_path


def made(folder: Path, sottovoce: Command, kind: str, method: str) -> Path:
    (folder / "survey.toml").write_text(BASKETS.format(kind=kind, method=method))
    outcome = sottovoce("plan", folder / "survey.toml", "-o", folder / "plan.json")
    assert outcome.code == 0, outcome.err
    return folder / "plan.json"


# -- plans


def test_a_plan_says_how_frequent_a_value_must_be(here: Path, sottovoce: Command) -> None:
    shown = sottovoce("plan", here / "survey.toml").out
    assert "the 5 most frequent values of word" in shown
    assert "found with about an even chance" in shown


def test_every_kind_of_question_has_a_survey(baskets: Path, sottovoce: Command) -> None:
    assert isinstance(
        read_plan(made(baskets, sottovoce, "top-items", "svim")).question, sv.TopItems
    )
    assert isinstance(
        read_plan(made(baskets, sottovoce, "top-itemsets", "svsm")).question, sv.TopItemsets
    )
    body = json.loads(sottovoce("plan", baskets / "survey.toml", "--json").out)
    assert body["guarantee"]["per_report"] <= 4.0
    assert all(ask["epsilon"] <= 4.0 for ask in body["asks"])


def test_integers_and_shares_in_a_survey(tmp_path: Path, sottovoce: Command) -> None:
    text = SURVEY.format(method="auto").replace(
        'kind = "text"\nbytes = 4', 'kind = "integer"\nbits = 64'
    )
    lines = [line for line in text.splitlines() if "alphabet" not in line]
    (tmp_path / "survey.toml").write_text("\n".join(lines).replace("top = 5", "above = 0.25"))
    assert "0.25" in sottovoce("plan", tmp_path / "survey.toml").out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('attribute = "word"\n', "", "attribute must be a name"),
        ('attribute = "word"', 'attribute = ["word"]', "attribute must be a name"),
        ('attribute = "word"', 'attribute = "wort"', "wort"),
        ("top = 5", "top = 0", "top"),
        ("top = 5", "", "top"),
        ("top = 5", "top = 5\nabove = 0.1", "not both"),
        ("top = 5", "top = 5\ncolour = 1", "colour"),
        ('method = "windows"', 'method = "magic"', "magic"),
        ('method = "windows"', "method = 7", "method must be a name"),
        ("bytes = 4", "bytes = 4\nother = 'x'", "other"),
    ],
)
def test_surveys_that_do_not_fit(
    here: Path, sottovoce: Command, old: str, new: str, words: str
) -> None:
    path = here / "survey.toml"
    path.write_text(path.read_text().replace(old, new))
    refused(sottovoce("plan", path), words)


def test_what_a_value_needs_to_be_found(here: Path, sottovoce: Command) -> None:
    shown = sottovoce("advise", here / "survey.toml", "--share", "0.02")
    assert shown.code == 0, shown.err
    assert "To find a value that 0.02 of people hold" in shown.out
    body = json.loads(sottovoce("advise", here / "survey.toml", "--share", "0.02", "--json").out)
    enough = sv.plan(
        read_plan(here / "plan.json").schema,
        sv.HeavyHitters("word", top=5),
        epsilon=4.0,
        people=int(body["people"]["needed"]),
    )
    found = re.search(r"even chance if ([\d.]+)% of people", str(enough))
    assert found
    assert float(found[1]) == pytest.approx(2.0, abs=0.02)
    refused(sottovoce("advise", here / "survey.toml", "--error", "0.02"), "--share")
    refused(sottovoce("advise", here / "survey.toml"), "--share")
    refused(sottovoce("advise", here / "survey.toml", "--share", "2"), "between 0 and 1")


# -- estimates


def test_a_table_with_marks(here: Path, sottovoce: Command) -> None:
    outcome = sottovoce("estimate", here / "plan.json", here / "reports.parquet")
    lines = [line.split() for line in outcome.out.splitlines() if line.strip()]
    rows = {line[0]: line[1] for line in lines if line[0] in ("tea", "milk", "j\\x1b[m")}
    assert rows == dict.fromkeys(["tea", "milk", "j\\x1b[m"], "*")
    assert "expected false" in outcome.out
    assert "\x1b" not in outcome.out


def test_the_same_as_json(here: Path, sottovoce: Command) -> None:
    outcome = sottovoce("estimate", here / "plan.json", here / "reports.parquet", "--json")
    body = json.loads(outcome.out)
    (table,) = body["tables"]
    assert [row["value"] for row in table["rows"][:3]] == ["tea", "milk", "j\x1b[m"]
    assert all(row["significant"] and row["expected_false"] < 0.05 for row in table["rows"][:3])
    assert all(
        row["expected_false"] > table["rows"][2]["expected_false"] for row in table["rows"][3:]
    )
    assert body["notes"] == []
    assert (body["steps"], body["next"], body["has_next"]) == ([], None, False)
    assert "\\u001b" in outcome.out


def test_candidates_that_come_afterwards(here: Path, sottovoce: Command) -> None:
    (here / "words.txt").write_text("tea\nmilk\nrice\n")
    arguments = ("estimate", here / "plan.json", here / "reports.parquet", "--json")
    listed = json.loads(sottovoce(*arguments, "--candidates", here / "words.txt").out)["tables"][0][
        "rows"
    ]
    assert [row["value"] for row in listed[:2]] == ["tea", "milk"]
    (here / "words.txt").write_text("much too long\n")
    refused(sottovoce(*arguments, "--candidates", here / "words.txt"), "candidates")


def test_pictures_hold_only_what_can_be_seen(here: Path, sottovoce: Command) -> None:
    picture = here / "bars.svg"
    assert (
        "Drawn"
        in sottovoce(
            "estimate", here / "plan.json", here / "reports.parquet", "--plot", picture
        ).out
    )
    text = picture.read_text()
    ElementTree.fromstring(text)  # control characters would not be XML
    assert "3. j\\x1b[m" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--tree",), "keeps no prefixes"),
        (("--next", "x.json"), "no further round"),
        (("--postprocess", "norm-sub"), "whole tables"),
        (("--marginal", "word"), "whole tables"),
        (("--k", 1), "whole tables"),
    ],
)
def test_what_popular_values_do_not_have(
    here: Path, sottovoce: Command, options: tuple[object, ...], words: str
) -> None:
    refused(sottovoce("estimate", here / "plan.json", here / "reports.parquet", *options), words)


def test_trees_and_rounds_are_for_popular_values(sottovoce: Command, files: object) -> None:
    refused(sottovoce("estimate", files.plan, files.reports, "--tree"), "popular")  # type: ignore[attr-defined]


# -- the tree of prefixes


def found_with_steps() -> Findings:
    plan = sv.plan(
        sv.Schema(x=sv.Integer(8)), sv.HeavyHitters("x", top=1), epsilon=4.0, people=1000
    )
    plain = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [7] * 1000}, seed=1)).estimate()
    assert isinstance(plain, Findings)
    steps = (
        PrefixStep(4, "t…", None, 0.5, 0.01),
        PrefixStep(8, "te", 0, 0.2, 0.01),
        PrefixStep(8, HOSTILE, 0, 0.3, 0.01),
        PrefixStep(4, "x…", None, 0.6, 0.01),
    )
    return Findings(plain.tables, 1000, plain.chance, steps)


def test_the_tree_reads_from_the_most_frequent_down() -> None:
    assert tree_lines(found_with_steps()) == [
        "x…  600 ± 10",
        "t…  500 ± 10",
        f"├─ {written(HOSTILE)}  300 ± 10",
        "└─ te  200 ± 10",
    ]


def test_the_tree_is_drawn(tmp_path: Path) -> None:
    from sottovoce.results.plots import save

    save(found_with_steps().chart(with_prefixes=True), str(tmp_path / "tree.svg"))
    text = (tmp_path / "tree.svg").read_text()
    ElementTree.fromstring(text)
    assert "prefixes on the way" in text
    assert "x…" in text


def test_pem_tells_its_prefixes(here: Path, sottovoce: Command) -> None:
    (here / "pem.toml").write_text(SURVEY.format(method="pem") + "queries = 4096\n")
    assert sottovoce("plan", here / "pem.toml", "-o", here / "pem.json").code == 0
    told = (
        "whisper",
        here / "pem.json",
        here / "people.csv",
        "-o",
        here / "pem.parquet",
        "--seed",
        3,
    )
    assert sottovoce(*told).code == 0
    outcome = sottovoce("estimate", here / "pem.json", here / "pem.parquet", "--tree")
    assert "Prefixes on the way" in outcome.out
    assert "─ tea " in outcome.out
    body = json.loads(sottovoce("estimate", here / "pem.json", here / "pem.parquet", "--json").out)
    assert {step["parent"] is None for step in body["steps"]} == {True, False}


# -- nothing hostile reaches a terminal


def test_hostile_labels_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert written(HOSTILE) == "a\\x1b[2J\\u202eb\\x9b\\u2028\\x00"
    assert written("naïve 日本 👩\u200d🚀") == "naïve 日本 👩\u200d🚀"
    assert written("\ud800") == "\\ud800"
    document = json_visible(json.dumps({"x": HOSTILE + "\ud800😀"}, ensure_ascii=False))
    assert json.loads(document) == {"x": HOSTILE + "\ud800😀"}
    assert not set(document) & set("\x1b\u202e\x9b\u2028\x00\ud800")
    found = found_with_steps()
    hostile = sv.Schema(x=sv.Categorical([HOSTILE, "[bold]b[/bold]"]))
    plan = sv.plan(hostile, sv.Frequencies("x"), epsilon=4.0, people=100)
    table = (
        sv.Aggregate(plan).add(sv.simulate(plan, {"x": [HOSTILE] * 100}, seed=1)).estimate().table
    )
    marked = Findings({("x",): table}, 100, np.array([0.0, 1.0]), found.steps)
    for text in (str(table), str(marked)):
        assert "\\x1b" in text
        assert not set(text) & set(HOSTILE[1:2] + "\u202e\x9b\u2028\x00")
    console().print(findings_table(marked, 0.95))
    printed = capsys.readouterr().out
    assert "a\\x1b[2J" in printed
    assert "[bold]b[/bold]" in printed
    assert not set(printed) & set("\u202e\x9b\u2028\x00")


# -- rounds


def rounds(folder: Path, sottovoce: Command, *options: object) -> list[int]:
    """Whisper and estimate all rounds; how many answered each."""
    plan, counts = folder / "plan.json", []
    for number in range(10):
        reports, following = folder / f"round{number}.parquet", folder / f"plan{number}.json"
        outcome = sottovoce("whisper", plan, folder / "people.csv", "-o", reports, *options)
        assert outcome.code == 0, outcome.err
        counts.append(len(Reports.read(reports)))
        shown = sottovoce("estimate", plan, reports)
        assert shown.code == 0, shown.err
        if "follows: --next" not in shown.out:
            break
        written_next = sottovoce("estimate", plan, reports, "--next", following)
        assert "Next round's plan" in written_next.out
        plan = following
    return counts


def test_every_row_answers_one_round_and_no_other(baskets: Path, sottovoce: Command) -> None:
    plan = made(baskets, sottovoce, "top-items", "svim")
    write_plan(read_plan(plan), plan, sv.Texts("Baskets", consent="Yes?"))
    kept = baskets / "rounds.parquet"
    counts = rounds(baskets, sottovoce, "--series", kept)
    assert len(counts) == 3
    last = baskets / "plan1.json"  # its texts went along
    assert read_texts(last, read_plan(last)) == sv.Texts("Baskets (round 3)", consent="Yes?")
    assert sum(counts) == 4000
    table = pq.read_table(kept)
    assert table["answered"].to_pylist() == [True] * 4000
    assert np.bincount(table["round"].to_numpy()).tolist() == counts
    again = sottovoce(
        "whisper",
        baskets / "plan.json",
        baskets / "people.csv",
        "-o",
        baskets / "x.parquet",
        "--series",
        kept,
    )
    refused(again, "nobody answers")
    assert not (baskets / "x.parquet").exists()


def test_a_seed_keeps_everybodys_round(baskets: Path, sottovoce: Command) -> None:
    made(baskets, sottovoce, "top-items", "svim")
    counts = rounds(baskets, sottovoce, "--seed", 5)
    assert sum(counts) == 4000


def test_what_a_series_needs(here: Path, baskets: Path, sottovoce: Command) -> None:
    write_csv(baskets / "words.csv", word=["tea"])
    single = ("whisper", here / "plan.json", baskets / "words.csv", "-o", baskets / "x.parquet")
    refused(sottovoce(*single, "--series", baskets / "r.parquet"), "single round")
    plan = made(baskets, sottovoce, "top-items", "svim")
    whisper = ("whisper", plan, baskets / "people.csv", "-o", baskets / "x.parquet")
    refused(sottovoce(*whisper), "--series FILE")
    refused(sottovoce(*whisper, "--series", baskets / "r.parquet", "--seed", 1), "give one")
    (baskets / "r.parquet").write_text("not a table")
    refused(sottovoce(*whisper, "--series", baskets / "r.parquet"), "an earlier round wrote")
    (baskets / "r.parquet").unlink()
    assert sottovoce(*whisper, "--series", baskets / "r.parquet").code == 0
    (baskets / "survey.toml").write_text(
        BASKETS.format(kind="top-items", method="svim").replace("top = 2", "top = 3")
    )
    assert sottovoce("plan", baskets / "survey.toml", "-o", plan).code == 0
    refused(sottovoce(*whisper, "--series", baskets / "r.parquet"), "another series")
    refused(
        sottovoce("send", plan, baskets / "people.csv", "--to", "http://127.0.0.1:1"),
        "--series FILE",
    )


def test_a_later_round_needs_the_file_of_the_first(baskets: Path, sottovoce: Command) -> None:
    made(baskets, sottovoce, "top-items", "svim")
    rounds(baskets, sottovoce, "--seed", 5)
    whisper = (
        "whisper",
        baskets / "plan0.json",
        baskets / "people.csv",
        "-o",
        baskets / "x.parquet",
    )
    refused(sottovoce(*whisper, "--series", baskets / "new.parquet"), "the first round wrote")


def test_a_bad_row_leaves_no_trace(baskets: Path, sottovoce: Command) -> None:
    plan = made(baskets, sottovoce, "top-items", "svim")
    write_csv(baskets / "bad.csv", basket=["milk"] * 50 + ["gold"] * 50)
    outcome = sottovoce(
        "whisper",
        plan,
        baskets / "bad.csv",
        "-o",
        baskets / "x.parquet",
        "--series",
        baskets / "r.parquet",
    )
    refused(outcome, "row ")
    assert "gold" not in outcome.err
    assert not (baskets / "r.parquet").exists()
    assert not (baskets / "x.parquet").exists()


def test_sending_keeps_rounds_too(baskets: Path, sottovoce: Command) -> None:
    plan = made(baskets, sottovoce, "top-items", "svim")
    write_csv(baskets / "few.csv", basket=["milk;tea"] * 60)
    kept = baskets / "rounds.parquet"
    with collecting(f"sqlite:///{baskets}/survey.db", (read_plan(plan),)) as collector:
        send = (
            "send",
            plan,
            baskets / "few.csv",
            "--to",
            collector.url,
            "--batch",
            10,
            "--series",
            kept,
        )
        first = sottovoce(*send)
        assert first.code == 0, first.err
        mine = np.sum(pq.read_table(kept)["round"].to_numpy() == 0)
        assert first.out == f"{mine} reports acknowledged\n"
        assert 0 < mine < 60
        assert sottovoce(*send).out == f"0 reports acknowledged, {mine} before\n"
        assert collector.service.survey(read_plan(plan).id).people == mine


# -- whose reports


def test_a_store_of_a_series_estimates_too(here: Path, sottovoce: Command) -> None:
    url = f"sqlite:///{here}/survey.db"
    plan = read_plan(here / "plan.json")
    reports = Reports.read(here / "reports.parquet")
    ids = np.random.default_rng(1).integers(0, 256, (len(reports), 16), np.uint8)
    with open_store(url) as opened:
        opened.add_plan(plan, sv.Texts("Words"))
        opened.append(plan, ids, reports)
    expected = sottovoce("estimate", here / "plan.json", here / "reports.parquet", "--json").out
    assert sottovoce("estimate", here / "plan.json", url, "--json").out == expected


def test_people_with_nothing_to_say_answer_too(tmp_path: Path, sottovoce: Command) -> None:
    """A blank line is a person whose set is empty: who answers must not depend on the answer."""
    survey = BASKETS.format(kind="top-items", method="psfo")
    (tmp_path / "survey.toml").write_text(survey + "length = 2\n")
    assert sottovoce("plan", tmp_path / "survey.toml", "-o", tmp_path / "plan.json").code == 0
    (tmp_path / "people.csv").write_text("basket\n" + "\nmilk;tea\n" * 200)
    whisper = (
        "whisper",
        tmp_path / "plan.json",
        tmp_path / "people.csv",
        "-o",
        tmp_path / "reports.parquet",
    )
    assert "400 reports" in sottovoce(*whisper, "--seed", "1").out
