"""A Parquet file of people as a crowd by blocks, which an engine's workers read block by block."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from sottovoce.device.simulation import BLOCK_PEOPLE
from sottovoce.engine.tasks import plan_of
from sottovoce.ground.errors import InvalidInput
from sottovoce.sending.people import (
    AS_IT_IS,
    PeopleFileOptions,
    is_parquet,
    parquet_rows,
    row_count,
)

if TYPE_CHECKING:
    from sottovoce.engine import TaskEngine
    from sottovoce.protocol.plan import Plan


@dataclass(frozen=True)
class FileCrowd:
    """The people of a block: a slice of a file that every worker reads by the same path."""

    path: str
    plan_text: str
    plan_id: str
    reading: PeopleFileOptions = AS_IT_IS

    def __call__(self, block: int, rows: int) -> Any:
        plan = plan_of(self.plan_text, self.plan_id)
        return parquet_rows(Path(self.path), plan, block * BLOCK_PEOPLE, rows, self.reading)


def write_simulated(
    engine: TaskEngine,
    plan: Plan,
    people: Path,
    output: Path,
    seed: int,
    reading: PeopleFileOptions = AS_IT_IS,
) -> int:
    """The simulated reports of a file of people, in a new folder of files, whole or not there; how
    many they are. They are those of :func:`sottovoce.simulate`.

    Args:
        engine: whose workers read the people, and write the reports.
        plan: what they answer.
        people: a Parquet file, best in row groups of 2^17 rows.
        output: the folder, which must not be there yet.
        seed: of the crowd.
        reading: how columns are read.
    """
    if not people.is_file():
        raise InvalidInput(f"people ({people}) must be a file that exists")
    if not is_parquet(people):
        raise InvalidInput(
            f"people ({people}) must be Parquet, which workers read in parts; the engine local "
            "reads CSV, too"
        )
    parquet_rows(people, plan, 0, 1, reading)  # a bad column is refused before a cluster is asked
    rows = row_count(people) or 0
    crowd = FileCrowd(str(people.absolute()), plan.to_json(), plan.id, reading)
    with _new_folder(output) as draft:
        return engine.simulate(plan, crowd, rows, seed, draft)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder that gets its name when all is in it."""
    if path.exists():
        raise InvalidInput(f"output ({path}) must be a new folder: workers write files into it")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"output ({path}) must lie in a folder that exists")
    draft = path.with_name(f".{path.name}.{token_hex(4)}")
    draft.mkdir()
    try:
        yield draft
        draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
