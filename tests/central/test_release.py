"""A release is whole or not there, tells only what was released, and its ledger was there first."""

from __future__ import annotations

import csv
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.accounting import Ledger
from sottovoce.central import storage
from sottovoce.central.choice import PublicFacts, choose
from sottovoce.central.method import CentralTable, ReleasedCounts, ReleaseTerms
from sottovoce.central.release import parse_terms
from sottovoce.central.result import public_part
from sottovoce.central.tables import read_table
from sottovoce.ground.entropy import Seeded, System
from sottovoce.questions.method import AUTO
from tests.central.methods import NoisyValues

PEOPLE: dict[str, list[Any]] = {
    "tea": ["green", "black", "withheld", ""] * 500,
    "cups": [2, 10, 1, 2] * 500,
}
FILES = ["release.json", "summary.html", "tuples-1.csv", "tuples-1.parquet"]

pytestmark = pytest.mark.usefixtures("only_noisy_values")


def released(folder: Path | None = None, table: Any = PEOPLE, **given: Any) -> sv.Release:
    terms = {"epsilon": 1, "delta": 1e-6, "up_to": 1, "output": folder, **given}
    return sv.release(table, **terms)


def test_the_folder_holds_the_release(tmp_path: Path) -> None:
    folder = tmp_path / "teas"
    told = released(folder)
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["teas", "teas.ledger.json"]
    rows = told.rows(1)
    assert [row["tuple"] for row in rows] == [
        {"tea": "black"}, {"tea": "green"}, {"cups": 1}, {"cups": 2}, {"cups": 10},
    ]  # fmt: skip
    tidy = pq.read_table(folder / "tuples-1.parquet").to_pylist()
    pairs = [(row["attribute_1"], row["value_1"]) for row in tidy]
    assert pairs[2:4] == [("cups", "1"), ("cups", "2")]
    assert [row["count"] for row in tidy] == [row["count"] for row in rows]
    with open(folder / "tuples-1.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["value_1"] for line in lines] == [row["value_1"] for row in tidy]
    assert [float(line["high"]) for line in lines] == [row["high"] for row in rows]
    for row in rows:
        assert row["high"] - row["count"] == pytest.approx(1.959964 * row["std_error"])


def test_the_json_holds_guarantee_ledger_and_versions(tmp_path: Path) -> None:
    folder = tmp_path / "teas"
    released(folder, neighbours="replace-one")
    body = json.loads((folder / "release.json").read_text())
    assert body["guarantee"]["neighbours"] == "replace-one"
    assert "(1, 0.000001)-differential privacy" in body["guarantee"]["text"]
    assert set(body["versions"]) == {"sottovoce", "python", "numpy", "pyarrow"}
    lines = (tmp_path / "teas.ledger.json").read_text().splitlines()
    assert [json.loads(line) for line in lines[1:]] == body["ledger"]["steps"]
    ledger = Ledger.from_json(body["ledger"])
    assert 0 < ledger.delta_at(1.0) <= 1e-6
    assert body["choice"]["why"] == "the only method"


def test_a_release_is_read_back(tmp_path: Path) -> None:
    told = released(tmp_path / "teas")
    again = sv.load_release(tmp_path / "teas")
    assert again.rows(1) == told.rows(1)
    assert (again.guarantee, again.method, again.notes) == (told.guarantee, told.method, told.notes)
    assert again.columns == ("tea", "cups")
    assert str(again) == str(told)


def test_what_was_not_released_is_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "teas"
    told = released(folder)
    for path in [*folder.iterdir(), tmp_path / "teas.ledger.json"]:
        assert b"withheld" not in path.read_bytes(), path.name
    assert b"green" in (folder / "tuples-1.parquet").read_bytes()  # it is looked for as it stands
    assert b"withheld" not in pickle.dumps(told)
    words = re.findall(r"[\w.]+", (folder / "release.json").read_text())
    assert "2000" not in words  # how many people there are


def test_the_order_of_tuples_does_not_depend_on_the_rows() -> None:
    backwards = {name: values[::-1] for name, values in PEOPLE.items()}
    assert released().labels(1) == released(table=backwards).labels(1)


def test_items_are_ordered_inside_a_tuple_and_typed(tmp_path: Path) -> None:
    baskets = {"items": [[7, 30, 5]] * 300}
    released(tmp_path / "items", baskets, items="items")
    tidy = pq.read_table(tmp_path / "items" / "tuples-1.parquet")
    assert tidy["item_1"].to_pylist() == [5, 7, 30]
    assert sv.load_release(tmp_path / "items").labels(1)[0] == (("items", 5),)


def test_the_ledger_of_a_crashed_release_shows_the_spend(tmp_path: Path) -> None:
    folder = tmp_path / "teas"
    with pytest.raises(RuntimeError, match="the machine stops here"):
        released(folder, fails=True)
    assert [path.name for path in tmp_path.iterdir()] == ["teas.ledger.json"]
    with Ledger(epsilon=1, delta="0.000001", path=tmp_path / "teas.ledger.json") as ledger:
        assert [step.name for step in ledger.steps] == ["values"]
    with pytest.raises(sv.BudgetExceeded, match="shows what a release spent that is not there"):
        released(folder)
    released(tmp_path / "again")


def test_the_ledger_survives_a_release_that_was_killed(tmp_path: Path) -> None:
    code = (
        "import sys; import sottovoce as sv; from sottovoce.central import release; "
        "from tests.central.methods import NoisyValues; release.METHODS = (NoisyValues(),); "
        "sv.release({'tea': ['a', 'b'] * 50}, 1, 1e-6, 1, output=sys.argv[1], fails='killed')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "teas")],
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["teas.ledger.json"]
    with Ledger(epsilon=1, delta="0.000001", path=tmp_path / "teas.ledger.json") as ledger:
        assert [step.name for step in ledger.steps] == ["values"]


def test_a_release_that_cannot_be_written_leaves_its_ledger_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(release: sv.Release) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "summary_html", no_room)
    with pytest.raises(OSError, match="No space"):
        released(tmp_path / "teas")
    assert [path.name for path in tmp_path.iterdir()] == ["teas.ledger.json"]
    assert len((tmp_path / "teas.ledger.json").read_text().splitlines()) == 2


def test_a_release_that_fails_before_it_spends_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise sv.InvalidInput("nothing was drawn")

    monkeypatch.setattr(NoisyValues, "release", refuse)
    with pytest.raises(sv.InvalidInput):
        released(tmp_path / "teas")
    assert not list(tmp_path.iterdir())


def test_no_seed_makes_a_release() -> None:
    with pytest.raises(sv.InvalidInput, match="option 'seed' is not one"):
        released(method="noisy-values", seed=1)


def test_noise_is_drawn_anew_and_as_large_as_it_says() -> None:
    counts = np.array([[row["count"] for row in released().rows(1)] for _ in range(30)])
    errors = (counts - [500, 500, 500, 1000, 500]) / released().rows(1)[0]["std_error"]
    # 150 squared standard normal errors: chi-squared, both tails at 1e-6
    square = float((errors**2).sum())
    assert 84 < square < 249
    assert not 84 < square / 4 < 249  # half the noise is seen


BAD: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0}, "epsilon .0. must be finite and greater than 0"),
    ({"epsilon": "much"}, "epsilon .much. must be a number"),
    ({"delta": "x"}, "delta .x. must be a number"),
    ({"delta": -1}, "delta .-1. must be finite and at least 0"),
    ({"delta": 0.5}, "delta .0.5. must be at most 0.01: with that chance"),
    ({"delta": "1e-99"}, "delta .1e-99. must be 0 or at least"),
    ({"up_to": 0}, "up_to .0. must lie between 1 and 16"),
    ({"up_to": 3}, "up_to .3. must be at most the number of attributes .2."),
    ({"up_to": 2}, "none fits .noisy-values: it knows single values only"),
    ({"up_to": 2, "method": "noisy-values"}, "method .noisy-values.: it knows single values only"),
    ({"method": "magic"}, "method .magic. must be one of auto, noisy-values"),
    ({"neighbours": "friends"}, "neighbours .friends. must be one of add-remove, replace-one"),
    ({"table": {"tea": []}}, "table must have at least one row"),
    ({"table": {"id": list(range(50))}}, "column 'id': nearly every row has a value of its own"),
    ({"table": {"a": [1, "b"] * 9}}, "column 'a': values must be of one kind"),
    ({"user": "nobody"}, "user .nobody. must be a column"),
    ({"empty": "none"}, "empty .none. must be a list of texts, not one text"),
    ({"force": "tea"}, "force .tea. must be a list of texts"),
    ({"columns": "tea"}, "columns .tea. must be a list of texts"),
    ({"may_be_empty": "tea"}, "may_be_empty .tea. must be a list of texts"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "rule"), BAD, ids=[rule for _, rule in BAD])
def test_bad_input_writes_nothing(given: dict[str, Any], rule: str, tmp_path: Path) -> None:
    with pytest.raises(sv.InvalidInput, match=rule):
        released(tmp_path / "teas", **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("there", ["a file", "a folder", "a broken link", "no parent"])
def test_an_output_that_cannot_be_is_refused_before_the_table_is_read(
    there: str, tmp_path: Path
) -> None:
    folder = tmp_path / "teas"
    if there == "a file":
        folder.write_text("mine")
    elif there == "a folder":
        folder.mkdir()
    elif there == "a broken link":
        folder.symlink_to(tmp_path / "nowhere")
    else:
        folder = tmp_path / "no" / "teas"
    before = sorted(tmp_path.iterdir())
    rule = "must lie in a folder that exists" if there == "no parent" else "must not exist yet"
    with pytest.raises(sv.InvalidInput, match=rule):
        released(folder, table="not even a table")
    assert sorted(tmp_path.iterdir()) == before


def test_a_large_delta_is_warned_about() -> None:
    with pytest.warns(sv.PrivacyWarning, match="above one in the number of users"):
        released(delta=0.001)


def test_only_public_facts_choose() -> None:
    seen: list[CentralTable] = []

    class Curious(NoisyValues):
        def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
            seen.append(table)
            return 1.0

    held = read_table(PEOPLE, schema=sv.Schema(cups=sv.Ordinal(0, 10)), columns=["tea", "cups"])
    for neighbours in ("add-remove", "replace-one"):
        terms = parse_terms(1, 1e-6, 1, neighbours, {})  # type: ignore[arg-type]
        choose(AUTO, [Curious()], held, terms)
    facts = seen[0]
    assert isinstance(facts, PublicFacts)
    assert facts.values == ((), tuple(range(11)))
    with pytest.raises(sv.InvalidInput):
        next(facts.batches())
    assert (facts.people, facts.rows) == (0, 0)
    assert seen[1].people == 2000  # which neighbours that replace one share


def test_auto_takes_the_least_predicted_error_and_says_why() -> None:
    class Worse(NoisyValues):
        name = "worse"

        def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
            return 1e9

    class Blind(NoisyValues):
        name = "blind"

        def predict(self, table: CentralTable, terms: ReleaseTerms) -> float | None:
            return None

    class Unfit(NoisyValues):
        name = "unfit"

        def refuse(self, table: CentralTable, terms: ReleaseTerms) -> str | None:
            return "it never fits"

    held = read_table(PEOPLE)
    terms = parse_terms(1, 1e-6, 1, "add-remove", {})
    methods = [Blind(), Worse(), NoisyValues(), Unfit()]
    choice = choose(AUTO, methods, held, terms)
    assert choice.method.name == "noisy-values"
    assert "the least predicted error of a count" in choice.why
    assert "worse 3.16e+04, blind, not known beforehand" in choice.why
    assert "unfit does not fit: it never fits" in choice.why
    blind = choose(AUTO, [Blind(), Unfit()], held, terms)
    assert blind.why == "the only method that fits; unfit does not fit: it never fits"
    first = choose(AUTO, [Blind(), type("B2", (Blind,), {"name": "b2"})()], held, terms)
    assert (first.method.name, first.why.startswith("the first that fits")) == ("blind", True)


def test_strange_labels_harm_nobody(tmp_path: Path) -> None:
    strange = ["<script>alert(1)</script>", "=cmd()", "a\x1b[2J\u202eb", 'q"uote, d']
    released(tmp_path / "x", {"tea": strange * 300})
    page = (tmp_path / "x" / "summary.html").read_text()
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "http" not in page.replace("http-equiv", "")  # it loads nothing
    with open(tmp_path / "x" / "tuples-1.csv", encoding="utf-8", newline="") as file:
        assert "'=cmd()" in [line["value_1"] for line in csv.DictReader(file)]
    again = sv.load_release(tmp_path / "x")
    assert sorted(value for ((_, value),) in again.labels(1)) == sorted(strange)


def test_damaged_releases_are_refused(tmp_path: Path) -> None:
    released(tmp_path / "x")
    with pytest.raises(sv.InvalidInput, match="must be a folder that sottovoce release wrote"):
        sv.load_release(tmp_path)
    (tmp_path / "x" / "tuples-1.parquet").write_bytes(b"PAR1")
    with pytest.raises(sv.InvalidInput):
        sv.load_release(tmp_path / "x")
    (tmp_path / "x" / "release.json").write_text("{}")
    with pytest.raises(sv.InvalidInput, match="is damaged"):
        sv.load_release(tmp_path / "x")


def test_the_noise_of_a_release_is_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[type] = []
    plain = NoisyValues.release

    def watched(self: NoisyValues, *given: Any) -> Any:
        seen.append(type(given[-1]))
        return plain(self, *given)

    monkeypatch.setattr(NoisyValues, "release", watched)
    released()
    assert seen == [System]


def test_the_type_of_a_column_does_not_tell_of_one_row(tmp_path: Path) -> None:
    for name, last in (("whole", 3), ("broken", 3.5)):
        table = {"cups": [1, 2] * 100, "tea": ["a"] * 200}
        table["cups"][-1] = last  # type: ignore[index]
        held = read_table(table)
        counts = NoisyValues().release(
            held, parse_terms(1, 1e-6, 1, "add-remove", {}), Ledger(), Seeded(1)
        )
        told = counts.tuples[1]
        pairs = zip(told.attributes[:, 0], told.codes[:, 0], strict=True)
        kept = [held.values[place][code] not in (3, 3.5) for place, code in pairs]
        rest = ReleasedCounts({1: told.at(np.flatnonzero(kept))})
        attributes, _ = public_part(held, rest)
        texts = (repr(attributes), [str(type(value)) for value in attributes[0].values])
        (tmp_path / name).write_text(repr(texts))
    assert (tmp_path / "whole").read_text() == (tmp_path / "broken").read_text()
