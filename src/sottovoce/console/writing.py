"""Files that commands write: plans, and the whispers of a file of people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.files import replacing
from sottovoce.protocol.texts import NO_TEXTS

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan
    from sottovoce.protocol.texts import Texts
    from sottovoce.sending.people import PeopleFileOptions


def texts_file(plan_file: Path) -> Path:
    """Where a plan's texts lie: beside it, since they are no part of it.

    >>> texts_file(Path("here/plan.json")).as_posix()
    'here/plan.texts.json'
    """
    return plan_file.with_name(f"{plan_file.stem}.texts.json")


def write_plan(made: Plan, output: Path, texts: Texts = NO_TEXTS) -> None:
    """The plan's own bytes, whole or not there; beside them what it says to people."""
    beside = texts_file(output)
    if texts:
        told = {"plan": made.id, **texts.to_json()}
        with replacing(beside) as draft:
            draft.write_text(json.dumps(told, ensure_ascii=False, indent=2) + "\n", "utf-8")
    with replacing(output) as draft:
        draft.write_bytes(made.to_json().encode())
    if not texts:
        beside.unlink(missing_ok=True)  # those of the plan that lay here before


def write_whispers(
    made: Plan,
    people: Path,
    output: Path,
    seed: int | None,
    quiet: bool,
    series: Path | None = None,
    reading: PeopleFileOptions | None = None,
) -> int:
    """Everybody's report into one Parquet file, whole or not there; returns how many."""
    from sottovoce.console.progress import progress
    from sottovoce.protocol.report_files import write_stream
    from sottovoce.sending.people import AS_IT_IS, row_count, whispers
    from sottovoce.sending.rounds import needed

    reading = reading or AS_IT_IS
    with (
        needed(made, series, seed) as members,
        progress("whispering", lambda: row_count(people, reading.separator), quiet) as advance,
    ):
        told = whispers(made, people, seed, advance, members, reading)
        return write_stream(output, told if members is None else members.recorded(told))


def check_crowd(seed: int | None, series: Path | None, engine: str) -> int:
    """The seed, before a cluster is asked: people whom an engine of this name draws are simulated,
    in rounds that the seed keeps.
    """
    if seed is None:
        raise InvalidInput(
            f"engine ({engine}) simulates, and needs --seed: coins of real people are drawn "
            "here, by the engine local"
        )
    if series is not None:
        raise InvalidInput("series is for the engine local: with --seed the seed keeps rounds")
    return seed
