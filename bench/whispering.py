"""What a file of people costs: `sottovoce whisper` from CSV to Parquet, with coins of the system or
of a seed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import sottovoce as sv
from bench.rows import Row
from bench.timing import measure
from sottovoce.console.writing import write_whispers

PEOPLE = 3_000_000
SECONDS = 15.0  # a file; from the operating system's coins as from a seed's
SEED = 1
REPEATS = 3
STATES, LOW, HIGH = 50, 18, 97


def _plans(people: int) -> Mapping[str, sv.Plan]:
    schema = sv.Schema(
        smoker=sv.Boolean(), age=sv.Ordinal(LOW, HIGH, bins=16), state=sv.Categorical(range(STATES))
    )
    asked = {
        "one attribute, grr": sv.Frequencies("smoker", oracle="grr"),
        "one attribute, oue": sv.Frequencies("state", oracle="oue"),
        "three attributes, marginals of two": sv.Marginals(up_to=2),
    }
    return {what: sv.plan(schema, each, epsilon=1.0, people=people) for what, each in asked.items()}


def _write_people(path: Path, people: int) -> None:
    draws = np.random.default_rng(SEED)
    columns = {
        "smoker": draws.integers(0, 2, people),
        "age": draws.integers(LOW, HIGH + 1, people),
        "state": draws.integers(0, STATES, people),
    }
    csv.write_csv(pa.table(columns), path)


def whispering(
    _size: Any = None, _others: Any = None, people: int = PEOPLE, repeats: int = REPEATS
) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        source, reports = Path(folder) / "people.csv", Path(folder) / "reports.parquet"
        _write_people(source, people)
        for what, plan in _plans(people).items():
            for seed, coins in ((None, "the system's coins"), (SEED, "with a seed")):
                work: Callable[[], Any] = partial(
                    write_whispers, plan, source, reports, seed, quiet=True
                )
                yield Row(
                    "whispering", f"{what}, {coins}", "s", measure(work, repeats), limit=SECONDS
                )
