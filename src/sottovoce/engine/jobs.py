"""Jobs: files of reports listed once and cut into parts, so that a part that is read again is the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Protocol

from sottovoce.device.simulation import BLOCK_PEOPLE, MAX_BLOCKS
from sottovoce.ground.arguments import whole
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_files import ReportFile, report_paths
from sottovoce.protocol.report_places import ReportPlace, place_of, shown
from sottovoce.protocol.reports import Reports

MIN_JOB_REPORTS = 1 << 20  # fewer, and what a job costs by itself counts
MAX_JOB_REPORTS = 50_000_000  # more, and a worker that dies loses much
JOBS_PER_SLOT = 2  # so that the slower ones are made up for


class ReportPart(Protocol):
    """Reports that a worker can read."""

    def stream(self) -> Iterator[Reports]:
        """They, in batches."""


class ReportsJob(Protocol):
    """Parts, one after another."""

    @property
    def parts(self) -> Sequence[ReportPart]: ...


@dataclass(frozen=True)
class FilePart:
    """Some row groups of a file, and how many reports it had in each when it was listed."""

    path: str
    groups: tuple[int, ...]
    rows: tuple[int, ...]

    def stream(self) -> Iterator[Reports]:
        """Its reports, in batches."""
        return self.opened().stream(self.groups, threads=False)

    def opened(self) -> ReportFile:
        """The file, if it is still the one that was listed."""
        place = place_of(self.path)
        file = ReportFile(place)
        rows = file.group_rows
        if any(
            rows[group : group + 1] != [count]
            for group, count in zip(self.groups, self.rows, strict=True)
        ):
            raise InvalidInput(f"reports ({shown(place)}) must not change while they are read")
        return file


@dataclass(frozen=True)
class FilesJob:
    """Parts of files, one after another."""

    parts: tuple[FilePart, ...]


@dataclass(frozen=True)
class BlocksJob:
    """Blocks of simulated people, from the first one on, below the end."""

    first: int
    end: int
    people: int  # of the whole crowd

    def blocks(self) -> Iterator[tuple[int, int]]:
        """(number, rows) of each."""
        for block in range(self.first, self.end):
            yield block, min(BLOCK_PEOPLE, self.people - block * BLOCK_PEOPLE)


def crowd_jobs(people: int, slots: int) -> list[BlocksJob]:
    """The blocks of so many people, in jobs of about equal size."""
    count = -(-whole("people", people, 1, MAX_BLOCKS * BLOCK_PEOPLE) // BLOCK_PEOPLE)
    size = -(-count // (JOBS_PER_SLOT * slots))
    size = max(1, min(size, MAX_JOB_REPORTS // BLOCK_PEOPLE))
    return [BlocksJob(first, min(first + size, count), people) for first in range(0, count, size)]


def fold_jobs(plan: Plan, path: str | PathLike[str], slots: int) -> list[FilesJob]:
    """All row groups of a plan's files, in jobs of about equal size; refused if a file is another
    plan's.
    """
    listed = [_listed(plan, place) for place in report_paths(path, plan.id)]
    total = sum(sum(part.rows) for part in listed)
    size = min(MAX_JOB_REPORTS, max(MIN_JOB_REPORTS, -(-total // (JOBS_PER_SLOT * slots))))
    jobs = [FilesJob(tuple(parts)) for parts in _cut(listed, size)]
    return jobs or [FilesJob(())]


def _listed(plan: Plan, place: ReportPlace) -> FilePart:
    file = ReportFile(place)
    if file.plan_id != plan.id:
        raise PlanMismatch(f"reports ({shown(place)}): they belong to another plan")
    rows = tuple(file.group_rows)
    path = str(place.absolute() if isinstance(place, Path) else place)
    return FilePart(path, tuple(range(len(rows))), rows)


def _cut(listed: list[FilePart], size: int) -> Iterator[list[FilePart]]:
    """Lists of parts with at least ``size`` reports each, but for the last."""
    parts: list[FilePart] = []
    held = 0
    for file in listed:
        start = 0
        for end, rows in enumerate(file.rows, start=1):
            held += rows
            if held >= size:
                yield [*parts, _slice(file, start, end)]
                parts, held, start = [], 0, end
        if start < len(file.rows):
            parts.append(_slice(file, start, len(file.rows)))
    if parts:
        yield parts


def _slice(file: FilePart, start: int, end: int) -> FilePart:
    return FilePart(file.path, file.groups[start:end], file.rows[start:end])
