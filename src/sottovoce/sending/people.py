"""Files of people: CSV or Parquet, read in batches, every row the record of one device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.device.columns import whisper_block
from sottovoce.device.simulation import BLOCK_PEOPLE, simulate_added, simulate_block
from sottovoce.ground.csv_files import INDEX_NAMES, csv_layout, csv_pieces
from sottovoce.ground.entropy import System
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import PARQUET_ENDINGS, reading_table
from sottovoce.protocol.fakes import added_fakes
from sottovoce.protocol.reports import STREAM_BATCH, Reports
from sottovoce.sending.cells import settled_column

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan
    from sottovoce.sending.rounds import SeriesMembership


INDEX_COLUMN = "__index_level_0__"  # what pandas writes into a Parquet file
EVERYTHING_ELSE = "*"  # of the columns to ignore: all that the plan does not have
MAX_NAMED_ROWS = 5  # in an error


@dataclass(frozen=True)
class PeopleFileOptions:
    """How a file of people is read.

    Args:
        separator: of a CSV file's columns; by default the one that its header has most.
        ignored: columns that the plan does not have and that are left alone; ``*`` for all of them.
    """

    separator: str | None = None
    ignored: tuple[str, ...] = ()


AS_IT_IS = PeopleFileOptions()


def whispers(
    plan: Plan,
    path: Path,
    seed: int | None,
    advance: Callable[[int], None],
    members: SeriesMembership | None = None,
    reading: PeopleFileOptions = AS_IT_IS,
) -> Iterator[Reports]:
    """The reports of everybody in a file, by the batch; of ``members`` those whose round it is.

    Without ``seed`` every row is a device that draws its coins from the operating system. With one
    the crowd is simulated, as :func:`sottovoce.simulate` does: equal rows in a CSV file, a Parquet
    file and a table then give equal reports, and a row has one round in all plans.

    The last batch of a shuffled plan is what its shufflers add, which estimates take out again.
    """
    done = 0
    tables = batches(path, plan, BLOCK_PEOPLE, reading)
    for number, table in enumerate(tables):
        mine = None if members is None else members.answering(done, table.num_rows)
        try:
            if seed is None:
                told = whisper_block(plan, table, mine)
            else:
                told = simulate_block(plan, table, seed, number)
        except InvalidInput:
            _refuse_rows(plan, path, chain([table], tables), done)
            raise
        yield told
        done += table.num_rows
        advance(done)
    if done and plan.shuffling is not None:
        yield added_fakes(plan, System()) if seed is None else simulate_added(plan, seed)


def _refuse_rows(plan: Plan, path: Path, tables: Iterable[Any], before: int) -> None:
    """Refuse the people of some tables who have no valid answer, if there are any."""
    bad, first = [], ""
    for table in tables:
        if not _is_valid(plan, table):
            for place, record in enumerate(table.to_pylist(), start=before + 1):
                try:
                    encoded(plan, record)
                except InvalidInput as wrong:
                    first = first or str(wrong)
                    bad.append(place)
        before += table.num_rows
    if bad:
        raise InvalidInput(f"people ({path}): {bad_rows(bad, first)}; nothing was written")


def _is_valid(plan: Plan, table: Any) -> bool:
    """Whether all of a table's people have valid answers."""
    try:
        plan.schema.encode_table(table, plan.cohorts.attributes, plan.cohorts.form)
        plan.public.read_table(plan.schema, table)
    except InvalidInput:
        return False
    return True


def bad_rows(rows: Sequence[int], first: str) -> str:
    """What is wrong with the first of the rows, and which and how many there are.

    >>> bad_rows([3], "no answer"), bad_rows([3, 8], "no answer")
    ('row 3: no answer', 'row 3: no answer; rows 3, 8 in all')
    """
    more = f"; {named_rows(rows)} in all" if len(rows) > 1 else ""
    return f"row {rows[0]}: {first}{more}"


def named_rows(rows: Sequence[int]) -> str:
    """row 3, or rows 3, 4, 8"""
    listed = sorted(set(rows))
    shown = ", ".join(map(str, listed[:MAX_NAMED_ROWS]))
    more = f" and {len(listed) - MAX_NAMED_ROWS:,} more" if len(listed) > MAX_NAMED_ROWS else ""
    return f"row{'s' if len(listed) > 1 else ''} {shown}{more}"


def batches(
    path: Path, plan: Plan, rows: int = STREAM_BATCH, reading: PeopleFileOptions = AS_IT_IS
) -> Iterator[Any]:
    """Arrow tables of so many rows and a shorter last one, with the columns that the plan asks
    for, whose cells are settled as :mod:`sottovoce.sending.cells` says.
    """
    if not path.is_file():
        raise InvalidInput(f"people ({path}) must be a file that exists")
    with reading_table("people", path):
        layout = None if is_parquet(path) else csv_layout(path, reading.separator)
        if layout is None:
            pieces = _parquet(path, plan, reading)
        else:
            wanted = _checked_columns(path, layout.names, plan, reading, layout.is_indexed)
            pieces = csv_pieces(path, layout, wanted)
        decimal_commas = layout is not None and layout.has_decimal_commas
        before = 0
        for table in _rebatched(pieces, rows):
            yield _whole(path, plan, table, before, decimal_commas)
            before += table.num_rows


def parquet_rows(
    path: Path, plan: Plan, first: int, rows: int, reading: PeopleFileOptions = AS_IT_IS
) -> Any:
    """So many rows of a Parquet file from one on, as :func:`batches` gives them; of other row
    groups nothing is read.
    """
    pa = imported("pyarrow")
    pq = imported("pyarrow.parquet")

    with reading_table("people", path), pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        wanted = _checked_columns(path, names, plan, reading, INDEX_COLUMN in names)
        groups: list[int] = []
        start = before = 0
        for group in range(file.metadata.num_row_groups):
            end = before + file.metadata.row_group(group).num_rows
            if end > first and before < first + rows:
                start = start if groups else before
                groups.append(group)
            before = end
        parts = file.iter_batches(
            batch_size=STREAM_BATCH, row_groups=groups, columns=wanted, use_threads=False
        )
        kept = [
            part.slice(max(0, first - place), first + rows - max(first, place))
            for place, part in _placed(parts, start, first + rows)
            if place + part.num_rows > first
        ]
        schema = pa.schema([file.schema_arrow.field(name) for name in wanted])
        table = pa.Table.from_batches(kept) if kept else schema.empty_table()
        return _whole(path, plan, table, first, decimal_commas=False)


def _placed(parts: Iterable[Any], start: int, end: int) -> Iterator[tuple[int, Any]]:
    """Batches with the row at which each begins, up to a row."""
    for part in parts:
        if start >= end:
            return
        yield start, part
        start += part.num_rows


def row_count(path: Path, separator: str | None = None) -> int | None:
    """How many rows a file has: what a Parquet file says, or a first look through a CSV file.

    None if it cannot be read; whoever reads it then says why.
    """
    pa = imported("pyarrow")
    pq = imported("pyarrow.parquet")

    try:
        if is_parquet(path):
            return int(pq.read_metadata(path).num_rows)
        layout = csv_layout(path, separator)
        return sum(int(piece.num_rows) for piece in csv_pieces(path, layout, layout.names[-1:]))
    except (pa.ArrowException, OSError):
        return None


def is_parquet(path: Path) -> bool:
    """Whether a file is read as Parquet; every other one is CSV."""
    return path.suffix.lower() in PARQUET_ENDINGS


def _parquet(path: Path, plan: Plan, reading: PeopleFileOptions) -> Iterator[Any]:
    pq = imported("pyarrow.parquet")

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        wanted = _checked_columns(path, names, plan, reading, INDEX_COLUMN in names)
        yield from file.iter_batches(batch_size=STREAM_BATCH, columns=wanted)


def _checked_columns(
    path: Path, names: Sequence[str], plan: Plan, reading: PeopleFileOptions, is_indexed: bool
) -> list[str]:
    """The columns to read. Unknown ones are refused by place: a name could be a person's value."""
    schema = plan.schema
    known = ", ".join(schema)
    for name in reading.ignored:
        if name not in (EVERYTHING_ELSE, *names):
            raise InvalidInput(f"ignore ({name}) must be a column of the file")
    index = (INDEX_COLUMN, *INDEX_NAMES) if is_indexed else ()
    for place, name in enumerate(names, start=1):
        if name in schema:
            if name in names[: place - 1]:
                raise InvalidInput(f"people ({path}): column {name!r} occurs twice")
            continue
        if {name, EVERYTHING_ELSE} & set(reading.ignored) or name in index:
            continue
        raise InvalidInput(
            f"people ({path}): column {place} is not an attribute of the plan (it has: {known}); "
            "--ignore '*' leaves alone what it does not have"
        )
    wanted = list(dict.fromkeys((*plan.cohorts.attributes, *plan.columns)))
    for name in wanted:
        if name not in names:
            raise InvalidInput(f"people ({path}): column {name!r} is missing")
    return wanted


def encoded(plan: Plan, record: Mapping[str, Any]) -> dict[str, Any]:
    """What a report is drawn from: what the asks read, and what travels in clear; refused if a
    value is not valid.
    """
    codes = plan.schema.encode(record, plan.cohorts.attributes, plan.cohorts.form)
    if not plan.columns:
        return codes
    return {
        **codes,
        " public": plan.public.to_json(plan.public.read(record)),
    }  # a name that no attribute has


def _rebatched(pieces: Iterable[Any], rows: int) -> Iterator[Any]:
    """Tables of ``rows`` rows each and a shorter last one, however the file was cut."""
    pa = imported("pyarrow")

    held: list[Any] = []
    count = 0
    for piece in pieces:
        held.append(piece)
        count += piece.num_rows
        if count >= rows:
            table = pa.Table.from_batches(held)
            while table.num_rows >= rows:
                yield table.slice(0, rows)
                table = table.slice(rows)
            held, count = table.to_batches(), table.num_rows
    if count:
        yield pa.Table.from_batches(held)


def _whole(path: Path, plan: Plan, table: Any, before: int, decimal_commas: bool) -> Any:
    """The table with plain columns (a category is its value) of settled cells, if no value is
    missing.
    """
    pa, compute = imported("pyarrow"), imported("pyarrow.compute")

    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type)
        column = settled_column(
            plan.schema[field.name],
            column,
            decimal_commas=decimal_commas,
            takes_other=field.name not in plan.columns,
        )
        if column.null_count:
            missing = compute.indices_nonzero(compute.is_null(column)).to_numpy() + before + 1
            raise InvalidInput(
                f"people ({path}): column {field.name!r} must have no missing values "
                f"({named_rows(missing.tolist())}); an attribute with `other` takes them"
            )
        table = table.set_column(place, field.name, column)
    return table
