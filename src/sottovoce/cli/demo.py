"""A whole private survey among people who do not exist, so that the truth can stand beside the estimates."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.files import replacing

if TYPE_CHECKING:
    from sottovoce.estimate import Floats, Table
    from sottovoce.front import Plan

PEOPLE = 60_000
POPULATION_SEED = 2718
FRUITS = (
    "apple", "apricot", "banana", "cherry", "fig", "grape", "lemon", "mango", "orange", "peach", "pear", "plum",
)  # fmt: skip
APPEAL = (18, 4, 16, 8, 3, 9, 2, 11, 12, 7, 6, 4)  # how often a fruit is somebody's favourite, in percent

SURVEY = f"""\
# {PEOPLE:,} made-up people answer one of three questions each.
epsilon = 1.0
people = {PEOPLE}

[schema.smoker]
kind = "boolean"

[schema.age]
kind = "ordinal"
low = 18
high = 97
bins = 16

[schema.fruit]
kind = "categorical"
values = [{", ".join(f'"{fruit}"' for fruit in FRUITS)}]

[question]
kind = "frequencies"
attributes = ["smoker", "age", "fruit"]
"""


@dataclass(frozen=True)
class Finding:
    """One attribute as the crowd whispered it, and as it is."""

    table: Table
    truth: Floats

    @property
    def held(self) -> int:
        """How many 95% intervals hold the truth."""
        low, high = self.table.interval()
        return int(((low <= self.truth) & (self.truth <= high)).sum())


def population() -> dict[str, list[Any]]:
    """The made-up people, the same ones every time: the young smoke more, the old do not care for mangoes."""
    draws = np.random.Generator(np.random.PCG64(POPULATION_SEED))
    age = (18 + 80 * draws.beta(2.0, 3.0, PEOPLE)).astype(np.int64)
    smoker = draws.random(PEOPLE) < np.interp(age, [18, 35, 60, 97], [0.30, 0.26, 0.17, 0.05])
    appeal = np.array(APPEAL, dtype=float)
    fruit = draws.choice(len(FRUITS), PEOPLE, p=appeal / appeal.sum())
    tired_of_mangoes = (fruit == FRUITS.index("mango")) & (age > 60)
    fruit[tired_of_mangoes] = FRUITS.index("pear")
    return {
        "smoker": smoker.tolist(),
        "age": age.tolist(),
        "fruit": [FRUITS[choice] for choice in fruit],
    }


def run_demo(output: Path, seed: int | None, quiet: bool) -> None:
    """Survey, plan, people, whispers, estimates and page, all in the folder ``output``."""
    from sottovoce.cli.commands import listen, write_plan, write_whispers
    from sottovoce.cli.page import write_page
    from sottovoce.cli.survey import read_survey
    from sottovoce.client import Client
    from sottovoce.entropy import Seeded

    start = perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    people = population()
    with replacing(output / "survey.toml") as draft:
        draft.write_text(SURVEY, encoding="utf-8")
    _write_csv(people, output / "people.csv")
    plan = read_survey(output / "survey.toml")
    write_plan(plan, output / "plan.json")
    write_whispers(plan, output / "people.csv", output / "reports.parquet", seed, quiet)
    found = listen(plan, output / "reports.parquet", quiet)
    findings = [Finding(_as_sample(table), _truth(plan, name, people[name])) for (name,), table in found.tables.items()]
    record = {name: column[0] for name, column in people.items()}
    report = Client(plan, entropy=None if seed is None else Seeded(seed)).report(record)
    write_page(output / "report.html", plan, findings, record, report)
    _print_findings(plan, findings, output, perf_counter() - start)


def _write_csv(people: dict[str, list[Any]], path: Path) -> None:
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(people)
        writer.writerows(zip(*people.values(), strict=True))


def _as_sample(table: Table) -> Table:
    """The table with f(1 - f)/n added to its variances: each cohort is a random sample of the people in the truth."""
    share = np.clip(table.values, 0, 1)
    return replace(table, variances=table.variances + share * (1 - share) / table.people)


def _truth(plan: Plan, name: str, column: list[Any]) -> Floats:
    codes = plan.schema.encode_table({name: column}, [name])[name]
    return np.bincount(codes.astype(np.int64), minlength=plan.schema[name].size) / len(column)


def _print_findings(plan: Plan, findings: list[Finding], output: Path, seconds: float) -> None:
    from rich.markup import escape

    from sottovoce.cli.tables import console, truth_table

    screen = console()
    screen.print()
    screen.print(escape(str(plan)))
    screen.print()
    for finding in findings:
        screen.print(truth_table(finding.table, finding.truth))
    held = sum(finding.held for finding in findings)
    total = sum(len(finding.truth) for finding in findings)
    screen.print(f"{held} of {total} intervals hold the truth (95% are expected to).")
    screen.print(f"The survey took {seconds:.1f} s.")
    screen.print(f"[bold]{escape(str(output / 'report.html'))}[/bold]", soft_wrap=True)
