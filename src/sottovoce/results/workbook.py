"""Tables as an Excel workbook: a sheet for each, written without any library.

Words are inline strings, which no spreadsheet takes for formulas; those that look like one are also
marked as text, so that they stay text when somebody edits the cell.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from sottovoce.ground.arguments import LARGEST_INTEGER
from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.files import replacing
from sottovoce.ground.labels import csv_cell, visible
from sottovoce.results.cells import Mark
from sottovoce.results.estimate import Table
from sottovoce.results.spreadsheets import AS_IN_SCHEMA, FIGURES, heads, row_blocks

MAX_SHEET_ROWS = 1 << 20  # that Excel opens
MAX_SHEET_NAME = 31
MAX_CELL = 32_767  # letters
PLAIN_CELL, HEAD_CELL, SHARE_CELL, TEXT_CELL = range(4)  # styles, in the order of _STYLES
MADE = (1980, 1, 1, 0, 0, 0)  # of every part: the same tables give the same file

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_STYLES = (
    f'{_XML}<styleSheet xmlns="{_MAIN}">'
    '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="4">'
    '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>'
    '<xf numFmtId="10" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1" '
    'applyNumberFormat="1"/>'
    '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
    "</styleSheet>"
)


@dataclass(frozen=True)
class Sheet:
    """Rows under heads; ``shares`` names the columns that are shown in percent."""

    name: str
    heads: Sequence[str]
    rows: Iterable[Sequence[Any]]
    shares: Sequence[str] = ()


def write_workbook(
    tables: Sequence[Table],
    path: Path,
    level: float,
    about: Sequence[tuple[str, str]],
    marks: Sequence[Mark] | None = None,
) -> None:
    """Tables as an Excel file: a sheet that says what they are, then one for each.

    Args:
        tables: what is written, all rows of each.
        path: the file, which must end in .xlsx.
        level: of the intervals.
        about: what the first sheet says, a name and its value in a row.
        marks: of popular values, one for each row of the only table.
    """
    if path.suffix.lower() != ".xlsx":
        raise InvalidInput(f"xlsx ({path}) must end in .xlsx")
    for table in tables:
        if len(table) >= MAX_SHEET_ROWS:
            raise InvalidInput(
                f"xlsx: a sheet holds {MAX_SHEET_ROWS - 1:,} values, and a table has "
                f"{len(table):,}; --csv takes any number"
            )
    sheets = [Sheet("About", ("what", "value"), [*about, *_notes(tables, level)])]
    for table in tables:
        blocks = row_blocks(table, level, AS_IN_SCHEMA, marks)
        rows = (row for block in blocks for row in block)
        sheets.append(Sheet(", ".join(table.attributes), heads(table, marks), rows, FIGURES))
    with replacing(path) as draft:
        write_sheets(sheets, draft)


def _notes(tables: Sequence[Table], level: float) -> Iterator[tuple[str, str]]:
    """How many people each table tells of, and where its figures come from."""
    yield "intervals", f"{100 * level:.4g}%, of the people who answered"
    for table in tables:
        yield ", ".join(table.attributes), ", ".join(table.notes)


def write_sheets(sheets: Sequence[Sheet], path: Path) -> None:
    """Sheets as one Excel file."""
    names = sheet_names([sheet.name for sheet in sheets])
    numbers = range(1, len(sheets) + 1)
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" '
        f'ContentType="{_TYPE}.worksheet+xml"/>'
        for number in numbers
    )
    listed = "".join(
        f'<sheet name="{_attribute(name)}" sheetId="{number}" r:id="rId{number}"/>'
        for name, number in zip(names, numbers, strict=True)
    )
    links = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/worksheet" '
        f'Target="worksheets/sheet{number}.xml"/>'
        for number in numbers
    )
    parts = {
        "[Content_Types].xml": (
            f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
            f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>'
            f"{kinds}</Types>"
        ),
        "_rels/.rels": (
            f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ),
        "xl/workbook.xml": (
            f'{_XML}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets>'
            "</workbook>"
        ),
        "xl/_rels/workbook.xml.rels": (
            f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{links}'
            f'<Relationship Id="rId{len(sheets) + 1}" Type="{_OFFICE}/styles" '
            'Target="styles.xml"/></Relationships>'
        ),
        "xl/styles.xml": _STYLES,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(_part(name), text)
        for sheet, number in zip(sheets, numbers, strict=True):
            part = _part(f"xl/worksheets/sheet{number}.xml")
            with archive.open(part, "w", force_zip64=True) as file:
                file.writelines(text.encode() for text in _sheet_parts(sheet))


def _part(name: str) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name, MADE)
    made.compress_type = zipfile.ZIP_DEFLATED
    return made


def _sheet_parts(sheet: Sheet) -> Iterator[str]:
    """A sheet's XML, a row at a time."""
    widths = "".join(
        f'<col min="{place}" max="{place}" width="{max(14, min(60, len(head) + 4))}" '
        'customWidth="1"/>'
        for place, head in enumerate(sheet.heads, 1)
    )
    yield (
        f'{_XML}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">'
        '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
        f"</sheetView></sheetViews><cols>{widths}</cols><sheetData>"
    )
    yield _row(1, sheet.heads, [HEAD_CELL] * len(sheet.heads))
    styles = [SHARE_CELL if head in sheet.shares else PLAIN_CELL for head in sheet.heads]
    # an attribute may be called like a figure: figures are the last of that name
    for place, head in enumerate(sheet.heads):
        if head in list(sheet.heads)[place + 1 :]:
            styles[place] = PLAIN_CELL
    for number, row in enumerate(sheet.rows, 2):
        yield _row(number, row, styles)
    yield "</sheetData></worksheet>"


def _row(number: int, cells: Sequence[Any], styles: Sequence[int]) -> str:
    inside = "".join(
        _cell(f"{_column(place)}{number}", cell, style)
        for place, (cell, style) in enumerate(zip(cells, styles, strict=True))
    )
    return f'<row r="{number}">{inside}</row>'


def _cell(place: str, value: Any, style: int) -> str:
    """A number, a truth value, or text: nothing else is ever written."""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        value = str(value)  # a spreadsheet would round it
    if isinstance(value, int | float):
        if not isfinite(value):
            return f'<c r="{place}"/>'
        return f'<c r="{place}" s="{style}"><v>{value!r}</v></c>'
    text = visible(str(value))[:MAX_CELL]
    if csv_cell(text) != text:
        style = TEXT_CELL
    return (
        f'<c r="{place}" s="{style}" t="inlineStr"><is><t xml:space="preserve">{escape(text)}'
        "</t></is></c>"
    )


def _column(place: int) -> str:
    """A, B, ..., Z, AA, ...

    >>> [_column(place) for place in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    letters = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def sheet_names(names: Sequence[str]) -> list[str]:
    """Names that Excel takes: short, without its signs, no two alike.

    >>> sheet_names(["About", "a/b: [c]", "a?b: (c)", "about", "x" * 40])
    ['About', 'a b  (c)', 'a b  (c) 2', 'about 2', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx']
    """
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[:\\/?*]", " ", visible(name).replace("[", "(").replace("]", ")"))
        stem = plain.strip().strip("'") or "table"
        taken = {each.lower() for each in found} | {"history"}  # which Excel keeps for itself
        tried = stem[:MAX_SHEET_NAME]
        number = 1
        while tried.lower() in taken:
            number += 1
            tried = f"{stem[: MAX_SHEET_NAME - len(str(number)) - 1]} {number}"
        found.append(tried)
    return found


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
