"""A survey in files, and what it means for a command line to be refused."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SURVEY = """\
epsilon = 2.0
people = 3000

[schema.colour]
kind = "categorical"
values = ["red", "green", "blue", "grey"]

[schema.age]
kind = "ordinal"
low = 18
high = 97
bins = 8

[question]
kind = "frequencies"
attributes = ["colour"]
oracle = "grr"
"""
COLOURS = ["red"] * 1500 + ["green"] * 900 + ["blue"] * 500 + ["grey"] * 100


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


def refused(outcome: Outcome, *words: str) -> None:
    """Bad input: exit code 2, nothing on standard output, one line that holds ``words``, no
    traceback.
    """
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


def write_csv(path: Path, **columns: Sequence[object]) -> Path:
    """A CSV of columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@dataclass(frozen=True)
class Files:
    """A folder with survey.toml, plan.json, people.csv and reports.parquet, all good."""

    folder: Path

    def __getattr__(self, name: str) -> Path:
        return (
            self.folder
            / {
                "survey": "survey.toml",
                "plan": "plan.json",
                "people": "people.csv",
                "reports": "reports.parquet",
            }[name]
        )
