"""Files of people: CSV or Parquet, read in batches, every row the record of one device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.device.columns import whisper_block
from sottovoce.device.simulation import BLOCK_PEOPLE, simulate_added, simulate_block
from sottovoce.ground.entropy import System
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported
from sottovoce.ground.files import PARQUET_ENDINGS, reading_table
from sottovoce.protocol.fakes import added_fakes
from sottovoce.protocol.reports import STREAM_BATCH, Reports

if TYPE_CHECKING:
    from sottovoce.protocol.plan import Plan
    from sottovoce.sending.rounds import SeriesMembership


def whispers(
    plan: Plan,
    path: Path,
    seed: int | None,
    advance: Callable[[int], None],
    members: SeriesMembership | None = None,
) -> Iterator[Reports]:
    """The reports of everybody in a file, by the batch; of ``members`` those whose round it is.

    Without ``seed`` every row is a device that draws its coins from the operating system. With one
    the crowd is simulated, as :func:`sottovoce.simulate` does: equal rows in a CSV file, a Parquet
    file and a table then give equal reports, and a row has one round in all plans.

    The last batch of a shuffled plan is what its shufflers add, which estimates take out again.
    """
    done = 0
    for number, table in enumerate(batches(path, plan, BLOCK_PEOPLE)):
        mine = None if members is None else members.answering(done, table.num_rows)
        try:
            if seed is None:
                told = whisper_block(plan, table, mine)
            else:
                told = simulate_block(plan, table, seed, number)
        except InvalidInput:
            _name_row(plan, path, table, done)
            raise
        yield told
        done += table.num_rows
        advance(done)
    if done and plan.shuffling is not None:
        yield added_fakes(plan, System()) if seed is None else simulate_added(plan, seed)


def _name_row(plan: Plan, path: Path, table: Any, before: int) -> None:
    """Refuse a table with the row of the first person who has no valid answer, if there is one."""
    for place, record in enumerate(table.to_pylist(), start=before + 1):
        try:
            encoded(plan, record)
        except InvalidInput as wrong:
            raise InvalidInput(f"people ({path}): row {place}: {wrong}") from None


def batches(path: Path, plan: Plan, rows: int = STREAM_BATCH) -> Iterator[Any]:
    """Arrow tables of so many rows and a shorter last one, with the columns that the plan asks
    for.
    """
    if not path.is_file():
        raise InvalidInput(f"people ({path}) must be a file that exists")
    read = _parquet if path.suffix.lower() in PARQUET_ENDINGS else _csv
    with reading_table("people", path):
        for table in _rebatched(read(path, plan), rows):
            yield _whole(path, table)


def row_count(path: Path) -> int | None:
    """How many rows a file has: what a Parquet file says, or a first look through a CSV file.

    None if it cannot be read; whoever reads it then says why.
    """
    pa = imported("pyarrow")
    pq = imported("pyarrow.parquet")

    try:
        if path.suffix.lower() in PARQUET_ENDINGS:
            return int(pq.read_metadata(path).num_rows)
        names, parse = _csv_header(path)
        return sum(int(piece.num_rows) for piece in _csv_pieces(path, parse, names[:1]))
    except (pa.ArrowException, OSError):
        return None


def _csv_header(path: Path) -> tuple[list[str], Any]:
    """The names of a CSV file's columns, and how it is to be parsed."""
    csv = imported("pyarrow.csv")

    parse = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse) as header:
        names = header.schema.names
    # of one column a blank line is a person who says nothing
    parse.ignore_empty_lines = len(names) > 1
    return names, parse


def _csv_pieces(path: Path, parse: Any, wanted: Sequence[str]) -> Iterator[Any]:
    """Some columns as text: types guessed from the first block would not fit the next."""
    pa = imported("pyarrow")
    csv = imported("pyarrow.csv")

    convert = csv.ConvertOptions(
        column_types={name: pa.string() for name in wanted},
        include_columns=list(wanted),
        strings_can_be_null=False,
    )
    with csv.open_csv(path, parse_options=parse, convert_options=convert) as reader:
        yield from reader


def _csv(path: Path, plan: Plan) -> Iterator[Any]:
    names, parse = _csv_header(path)
    yield from _csv_pieces(path, parse, _checked_columns(path, names, plan))


def _parquet(path: Path, plan: Plan) -> Iterator[Any]:
    pq = imported("pyarrow.parquet")

    with pq.ParquetFile(path) as file:
        wanted = _checked_columns(path, file.schema_arrow.names, plan)
        yield from file.iter_batches(batch_size=STREAM_BATCH, columns=wanted)


def _checked_columns(path: Path, names: Sequence[str], plan: Plan) -> list[str]:
    """The columns to read. Unknown ones are refused by place: a name could be a person's value."""
    schema = plan.schema
    known = ", ".join(schema)
    for place, name in enumerate(names, start=1):
        if name not in schema:
            raise InvalidInput(
                f"people ({path}): column {place} is not an attribute of the plan (it has: {known})"
            )
        if name in names[: place - 1]:
            raise InvalidInput(f"people ({path}): column {name!r} occurs twice")
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


def _whole(path: Path, table: Any) -> Any:
    """The table with plain columns (a category is its value), if no value is missing."""
    pa = imported("pyarrow")

    for place, field in enumerate(table.schema):
        if table.column(place).null_count:
            raise InvalidInput(
                f"people ({path}): column {field.name!r} must have no missing values"
            )
        if pa.types.is_dictionary(field.type):
            plain = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.name, plain)
    return table
