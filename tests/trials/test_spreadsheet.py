"""docs/trials/spreadsheet.sh: a table as people have it becomes a report and an Excel file."""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
import sys
import tomllib
import zipfile
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sottovoce.cli import run

TRIALS = Path(__file__).parents[2] / "docs" / "trials"
SCRIPT = TRIALS / "spreadsheet.sh"
PEOPLE = 1200


def passengers() -> pd.DataFrame:
    """A table in the shape of the Titanic's passengers."""
    draw = np.random.default_rng(1)
    sex = draw.choice(["male", "female"], PEOPLE, p=[0.65, 0.35])
    ages = np.round(np.clip(draw.normal(30, 14, PEOPLE), 0.5, 80) * 2) / 2
    ports = draw.choice(["S", "C", "Q"], PEOPLE, p=[0.7, 0.2, 0.1])
    return pd.DataFrame(
        {
            "PassengerId": np.arange(1, PEOPLE + 1),
            "Survived": (draw.random(PEOPLE) < np.where(sex == "female", 0.74, 0.19)).astype(int),
            "Pclass": draw.choice([1, 2, 3], PEOPLE, p=[0.25, 0.2, 0.55]),
            "Name": [f'Doe; Mx. {number} "Secret"' for number in range(PEOPLE)],
            "Sex": sex,
            "Age": np.where(draw.random(PEOPLE) < 0.2, np.nan, ages),
            "Fare": np.round(draw.lognormal(2.9, 0.9, PEOPLE), 4),
            "Embarked": np.where(draw.random(PEOPLE) < 0.01, None, ports),
        }
    )


def adults() -> pd.DataFrame:
    """A table in the shape of Adult: whole numbers that pandas writes as 22.0, and many texts."""
    draw = np.random.default_rng(2)
    hours = draw.choice([20.0, 40.0, 45.0, 60.0], PEOPLE)
    works = draw.choice(["Private", "Self-emp-inc", "State-gov"], PEOPLE, p=[0.7, 0.2, 0.1])
    lands = np.array([f"Land {number}" for number in range(30)])
    ages = draw.integers(17, 91, PEOPLE)
    return pd.DataFrame(
        {
            "age": np.where(draw.random(PEOPLE) < 0.01, np.nan, ages.astype(float)),
            "workclass": np.where(draw.random(PEOPLE) < 0.06, None, works),
            "capital-gain": np.where(draw.random(PEOPLE) < 0.9, 0, draw.integers(1, 1e5, PEOPLE)),
            "hours-per-week": hours,
            "native-country": lands[np.minimum(draw.geometric(0.3, PEOPLE) - 1, 29)],
            "income": np.where(ages > 40, ">50K", "<=50K"),
        }
    )


def written(folder: Path, table: pd.DataFrame, decimal: str) -> None:
    """As pandas writes it for a spreadsheet: an index, semicolons, nothing where nothing is."""
    table.to_csv(folder / "people.csv", sep=";", decimal=decimal)


def commands() -> list[list[str]]:
    lines = SCRIPT.read_text().splitlines()
    return [shlex.split(line) for line in lines if line.startswith("sottovoce")]


def attributes(folder: Path) -> list[str]:
    return list(tomllib.loads((folder / "survey.toml").read_text())["schema"])


def all_is_there(folder: Path) -> None:
    """A report, and every table both as CSV and as a sheet."""
    page = (folder / "report.html").read_text()
    assert f"{PEOPLE:,}" in page
    pairs = list(combinations(attributes(folder), 2))
    found = set()
    for path in (folder / "tables").iterdir():
        with path.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        found.add((head[0], head[1]))
        assert sum(float(row[2]) for row in rows) == pytest.approx(1, abs=1e-6)
    assert found == set(pairs)
    with zipfile.ZipFile(folder / "tables.xlsx") as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/")]
    assert len(sheets) == len(pairs) + 1  # the first one says what they are


def test_it_is_five_commands_and_the_page_shows_them() -> None:
    assert len(commands()) == 5
    page = (TRIALS / "spreadsheet.md").read_text()
    for line in SCRIPT.read_text().splitlines():
        assert not line.startswith("sottovoce") or line in page


def test_passengers_with_missing_cells_and_points(tmp_path: Path) -> None:
    """The script itself, in a shell."""
    written(tmp_path, passengers(), decimal=".")
    bin_folder = Path(sys.executable).parent
    path = os.pathsep.join([str(bin_folder), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", SCRIPT],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert attributes(tmp_path) == ["Survived", "Pclass", "Sex", "Age", "Fare", "Embarked"]
    assert "Left out: PassengerId" in done.stdout
    assert "Left out: Name" in done.stdout
    assert "Secret" not in done.stdout + done.stderr + (tmp_path / "survey.toml").read_text()
    all_is_there(tmp_path)


def test_adults_with_missing_cells_and_decimal_commas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same commands, here."""
    written(tmp_path, adults(), decimal=",")
    monkeypatch.chdir(tmp_path)
    for command, *arguments in commands():
        assert command == "sottovoce"
        assert run(arguments) == 0, capsys.readouterr().err
    assert "The first 6 of 15 tables" in capsys.readouterr().out
    schema = tomllib.loads((tmp_path / "survey.toml").read_text())["schema"]
    assert len(schema) == 6
    assert schema["age"]["other"] == -1
    assert schema["workclass"]["other"] == "no answer"
    assert schema["hours-per-week"] == {"kind": "categorical", "values": [20, 40, 45, 60]}
    assert schema["native-country"]["other"] == "other"
    all_is_there(tmp_path)
