"""What runs in a worker before anything else. It travels as it is, by value: there the package may
be another one, or missing. So nothing of it is imported before the worker has looked.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

COLUMNS = "piece long, body binary"  # in Spark's words
BATCH_BYTES = 1 << 22  # of bodies in one Arrow batch

Row = tuple[int, bytes]  # a piece's number and body; or an error, whose number is negative


def job_runner(version: str, task: bytes, jobs: list[bytes]) -> Callable[[Any], Iterator[Any]]:
    """A function of Arrow batches of jobs' numbers: it does them, and gives rows of their pieces.

    An error of ours comes back as a row, so that no engine tries again what must fail again.

    Args:
        version: of the package at the driver; a worker with another one refuses.
        task: pickled.
        jobs: pickled, each by itself.
    """

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        numbers = (number for batch in batches for number in batch.column("id").to_pylist())
        yield from in_batches(row for number in numbers for row in rows_of(number))

    def rows_of(number: int) -> Iterator[Row]:
        return done_rows(version, number, lambda: pickle.loads(task)(pickle.loads(jobs[number])))

    return run


def frame_runner(version: str, task: bytes, make: bytes) -> Callable[[Any], Iterator[Any]]:
    """A function of the Arrow batches of a partition of reports: it does the one job that they are.

    Args:
        version: as of :func:`job_runner`.
        task: pickled.
        make: pickled; it makes a job of the batches.
    """

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        yield from in_batches(
            done_rows(version, 0, lambda: pickle.loads(task)(pickle.loads(make)(batches)))
        )

    return run


def done_rows(version: str, job: int, work: Callable[[], Iterable[Any]]) -> Iterator[Row]:
    """The rows of a job's pieces, or of what went wrong."""
    os.environ["SOTTOVOCE_THREADS"] = "1"  # the cluster shares out the cores
    found = found_version()
    if found != version:
        words = f"the workers must have sottovoce {version}, as the driver; found: {found}"
        yield error_row(job, "ClusterError", words)
        return
    from sottovoce.ground.errors import SottovoceError

    try:
        for piece in work():
            yield piece.number, piece.body
    except SottovoceError as wrong:
        yield error_row(job, type(wrong).__name__, str(wrong))
    except MemoryError:
        yield error_row(job, "ClusterError", "a worker has too little memory for its part")


def sum_rows(batches: Iterable[Any]) -> Iterator[Any]:
    """Of Arrow batches of rows in order of their numbers, one row for each number; errors as they
    are.
    """
    yield from in_batches(summed(batches))


def summed(batches: Iterable[Any]) -> Iterator[Row]:
    """See :func:`sum_rows`; it holds one sum at a time."""
    for number, rows in groupby(rows_in(batches), key=lambda row: row[0]):
        if number < 0:
            yield from rows
            continue
        from sottovoce.aggregation.pieces import sum_pieces
        from sottovoce.ground.errors import SottovoceError

        try:
            yield number, sum_pieces(number, (body for _, body in rows))
        except SottovoceError as wrong:
            yield error_row(number, type(wrong).__name__, str(wrong))


def found_version() -> str:
    """The version of the package that this worker has."""
    try:
        from sottovoce import __version__ as version
    except ImportError:
        return "none"
    return version


def error_row(job: int, name: str, words: str) -> Row:
    """What went wrong in a job, under a number that no piece has."""
    return -1 - job, pickle.dumps((name, words))


def rows_in(batches: Iterable[Any]) -> Iterator[Row]:
    """The rows of Arrow batches."""
    for batch in batches:
        for number, body in zip(batch.column("piece"), batch.column("body"), strict=True):
            yield number.as_py(), body.as_py()


def in_batches(rows: Iterable[Row]) -> Iterator[Any]:
    """Rows as Arrow batches of about ``BATCH_BYTES``."""
    held: list[Row] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[1])
        if size >= BATCH_BYTES:
            yield arrow_batch(held)
            held, size = [], 0
    if held:
        yield arrow_batch(held)


def arrow_batch(rows: list[Row]) -> Any:
    """Rows as one Arrow batch, of the types that Spark takes."""
    import pyarrow as pa

    numbers = pa.array([number for number, _ in rows], pa.int64())
    bodies = pa.array([body for _, body in rows], pa.binary())
    return pa.RecordBatch.from_arrays([numbers, bodies], ["piece", "body"])
