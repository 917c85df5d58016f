"""CSV files as people have them: commas, semicolons or tabs, and the index that pandas writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.extras import imported

SEPARATORS = (",", ";", "\t")
LONGEST_HEADER = 1 << 20  # bytes that are looked at for the separator
_COMMA_NUMBER = r"^\s*([+-]?[0-9]+(,[0-9]+)?)?\s*$"
INDEX_NAMES = ("", "Unnamed: 0")  # of a first column that only numbers the rows


@dataclass(frozen=True)
class CsvLayout:
    """How a CSV file is read."""

    names: tuple[str, ...]  # of its columns
    separator: str

    @property
    def is_indexed(self) -> bool:
        """Whether the first column is an index, as pandas writes it."""
        return len(self.names) > 1 and self.names[0] in INDEX_NAMES

    @property
    def has_decimal_commas(self) -> bool:
        """Whether 12,5 may stand for 12.5: only where commas do not separate columns."""
        return self.separator != ","


def csv_layout(path: Path, separator: str | None = None) -> CsvLayout:
    """How a CSV file is to be read; without a separator, by the one that its header has most."""
    pa = imported("pyarrow")
    csv = imported("pyarrow.csv")

    if separator is not None and separator not in SEPARATORS:
        raise InvalidInput(
            f"separator ({separator!r}) must be a comma, a semicolon or a tab (written '\\t')"
        )
    found = separator or sniffed(path)
    with csv.open_csv(path, parse_options=_parsing(found)) as header:
        try:
            return CsvLayout(tuple(header.schema.names), found)
        except UnicodeDecodeError:
            raise pa.ArrowInvalid("a column's name is not UTF-8") from None


def sniffed(path: Path) -> str:
    """The separator that a file's first line has most outside of quotes; a comma if it has none."""
    with path.open("rb") as file:
        start = file.read(LONGEST_HEADER).decode("latin-1")
    counts = dict.fromkeys(SEPARATORS, 0)
    is_quoted = False
    for letter in start:
        if letter == '"':
            is_quoted = not is_quoted
        elif letter in "\r\n" and not is_quoted:
            break
        elif letter in counts and not is_quoted:
            counts[letter] += 1
    return max(counts, key=lambda each: counts[each])


def csv_pieces(path: Path, layout: CsvLayout, wanted: Sequence[str]) -> Iterator[Any]:
    """Some columns as text, in pieces: types guessed from the first would not fit the next."""
    pa = imported("pyarrow")
    csv = imported("pyarrow.csv")

    convert = csv.ConvertOptions(
        column_types={name: pa.string() for name in wanted},
        include_columns=list(wanted),
        strings_can_be_null=False,
    )
    with csv.open_csv(path, parse_options=_parsed(layout), convert_options=convert) as reader:
        yield from reader


def csv_table(path: Path, layout: CsvLayout, types: Mapping[str, Any] | None = None) -> Any:
    """A whole file but for its index, with the types that its columns have, or these."""
    pa = imported("pyarrow")
    csv = imported("pyarrow.csv")

    convert = csv.ConvertOptions(
        column_types=types, include_columns=list(layout.names[layout.is_indexed :])
    )
    table = csv.read_csv(path, parse_options=_parsed(layout), convert_options=convert)
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise pa.ArrowInvalid("a column's text is not UTF-8")  # Arrow takes it for bytes
    if types is not None or not layout.has_decimal_commas:
        return table
    for place, name in enumerate(table.column_names):
        table = table.set_column(place, name, _with_points(table.column(place)))
    return table


def _with_points(column: Any) -> Any:
    """A column of text as numbers, if all of it is numbers with decimal commas."""
    pa, compute = imported("pyarrow"), imported("pyarrow.compute")

    if not pa.types.is_string(column.type):
        return column
    if not compute.all(compute.match_substring_regex(column, _COMMA_NUMBER)).as_py():
        return column
    points = compute.replace_substring(compute.utf8_trim_whitespace(column), ",", ".")
    return compute.if_else(compute.equal(points, ""), None, points).cast(pa.float64())


def _parsing(separator: str) -> Any:
    return imported("pyarrow.csv").ParseOptions(delimiter=separator, newlines_in_values=True)


def _parsed(layout: CsvLayout) -> Any:
    parse = _parsing(layout.separator)
    # of one column a blank line is a person who says nothing
    parse.ignore_empty_lines = len(layout.names) > 1
    return parse
