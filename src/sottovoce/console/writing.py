"""Files that commands write: plans, and the whispers of a file of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.files import replacing

if TYPE_CHECKING:
    from sottovoce.engine import TaskEngine
    from sottovoce.protocol.plan import Plan
    from sottovoce.sending.people import PeopleFileOptions


def write_plan(made: Plan, output: Path) -> None:
    """The plan's own bytes, whole or not there."""
    with replacing(output) as draft:
        draft.write_bytes(made.to_json().encode())


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


def write_crowd(
    made: Plan,
    people: Path,
    output: Path,
    seed: int | None,
    series: Path | None,
    reading: PeopleFileOptions,
    engine: TaskEngine,
) -> int:
    """The same by an engine's workers, into a new folder; of people who are simulated."""
    from sottovoce.sending.crowd_files import write_simulated

    if seed is None:
        raise InvalidInput(
            f"engine ({engine.name}) simulates, and needs --seed: coins of real people are drawn "
            "here, by the engine local"
        )
    if series is not None:
        raise InvalidInput("series is for the engine local: with --seed the seed keeps rounds")
    return write_simulated(engine, made, people, output, seed, reading)
