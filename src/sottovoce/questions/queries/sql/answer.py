"""The answer to a query: a table whose every number has its standard error and interval."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from math import isfinite, isinf, isnan
from typing import Any

from sottovoce.ground.extras import imported
from sottovoce.ground.labels import visible, written
from sottovoce.questions.queries.sql.explain import Explanation
from sottovoce.questions.queries.sql.measures import EstimatedNumber

MAX_PRINTED_ROWS = 64
MAX_DRAWN_BARS = 64


class BinLabel(str):
    """The label of a bin; it stands where its values do, not where its text would."""

    place: int

    def __new__(cls, text: str, place: int) -> BinLabel:
        made = super().__new__(cls, text)
        made.place = place
        return made


@dataclass(frozen=True)
class AnswerRow:
    """One group: its keys, and a number for each aggregate."""

    keys: tuple[Any, ...]
    cells: tuple[EstimatedNumber, ...]


@dataclass(frozen=True, eq=False)
class QueryAnswer:
    """What a query was answered.

    ``columns``: the names of the keys. ``aggregates``: those of the numbers, as they were
    selected. ``calls``: the aggregates themselves, without their aliases.
    """

    sql: str
    columns: tuple[str, ...]
    aggregates: tuple[str, ...]
    calls: tuple[str, ...]
    rows: tuple[AnswerRow, ...]
    level: float
    explanation: Explanation

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the answer: clipped ranges, bins that were cut, rows that were chosen."""
        return tuple(self.explanation.notes)

    @property
    def value(self) -> float:
        """The only number of an answer of one row and one aggregate."""
        (row,) = self.rows
        (cell,) = row.cells
        return cell.value

    def explain(self) -> str:
        """What ran in clear, what was whispered, by which method, and what to know of it."""
        return str(self.explanation)

    # -- other forms

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for each group and aggregate, as JSON has them."""
        found = []
        for row in self.rows:
            names = _different(self.columns)
            keys = {name: _plain(key) for name, key in zip(names, row.keys, strict=True)}
            for name, cell in zip(self.calls, row.cells, strict=True):
                one: dict[str, Any] = {
                    "columns": keys,
                    "aggregate": name,
                    "value": _finite(cell.value),
                    "std_error": _finite(cell.std_error),
                    "low": _finite(cell.low),
                    "high": _finite(cell.high),
                }
                found.append(one | ({"mark": cell.mark} if cell.mark else {}))
        return found

    def to_json(self) -> str:
        """A JSON list of rows; what has no end, or was not answered, is null."""
        return json.dumps(self.to_rows(), ensure_ascii=False, allow_nan=False)

    def _columns(self) -> dict[str, list[Any]]:
        """By name: keys, and four columns for each aggregate."""
        table: dict[str, list[Any]] = {}
        for place, name in enumerate(_different(self.columns)):
            table[name] = [row.keys[place] for row in self.rows]
        for place, selected in enumerate(self.aggregates):
            name = _free(selected, table)
            cells = [row.cells[place] for row in self.rows]
            table[name] = [cell.value for cell in cells]
            table[f"{name}_std_error"] = [cell.std_error for cell in cells]
            table[f"{name}_low"] = [cell.low for cell in cells]
            table[f"{name}_high"] = [cell.high for cell in cells]
        return table

    def to_arrow(self) -> Any:
        """An Arrow table: keys, and for each aggregate its value, std_error, low and high."""
        return imported("pyarrow").table(self._columns())

    def to_pandas(self) -> Any:
        """The same as a data frame."""
        return imported("pandas").DataFrame(self._columns())

    # -- for people

    def plot(self, path: str | None = None) -> Any:
        """Bars with intervals, one picture below the other for each aggregate."""
        alt = imported("altair")
        from sottovoce.results.plots import save

        charts = [self._chart(alt, place) for place in range(len(self.aggregates))]
        chart = charts[0] if len(charts) == 1 else alt.vconcat(*charts)
        if path is not None:
            save(chart, path)
        return chart

    def _chart(self, alt: Any, place: int) -> Any:
        name = self.aggregates[place]
        data = []
        for number, row in enumerate(self.rows[:MAX_DRAWN_BARS]):
            cell = row.cells[place]
            label = ", ".join(_label(key) for key in row.keys) or name
            data.append(
                {
                    "group": label,
                    "place": number,
                    "value": _finite(cell.value),
                    "low": _finite(cell.low),
                    "high": _finite(cell.high),
                }
            )
        title = ", ".join(self.columns)
        across = alt.X("group:N", sort=alt.SortField("place"), title=title)
        base = alt.Chart(alt.Data(values=data)).encode(x=across)
        bar = base.mark_bar(color="#7aa6c2").encode(y=alt.Y("value:Q", title=name))
        known = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        whisker = known.mark_rule(color="#1f3b4d", strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
        note = f"bars: estimate, lines: {self.level:.0%} interval"
        if len(self.rows) > MAX_DRAWN_BARS:
            note += f"; the first {MAX_DRAWN_BARS} of {len(self.rows):,}"
        width = max(120, min(900, 22 * len(data)))
        return (bar + whisker).properties(
            width=width, height=240, title={"text": name, "subtitle": note}
        )

    def as_text(self, most: int = MAX_PRINTED_ROWS) -> tuple[list[str], list[list[str]]]:
        """(heads, rows): every cell as people read it, of at most so many rows."""
        heads = list(self.columns)
        for name in self.aggregates:
            heads += [name, "std error", f"{100 * self.level:.4g}% interval"]
        lines = []
        for row in self.rows[:most]:
            line = [_label(key) for key in row.keys]
            for cell in row.cells:
                mark = f" {cell.mark}" if cell.mark else ""
                line += [
                    _number(cell.value) + mark,
                    _number(cell.std_error),
                    f"[{_number(cell.low)}, {_number(cell.high)}]",
                ]
            lines.append(line)
        return [visible(head) for head in heads], lines

    def __str__(self) -> str:
        heads, lines = self.as_text()
        widths = [
            max([len(head), *(len(line[place]) for line in lines)])
            for place, head in enumerate(heads)
        ]
        out = [_aligned(heads, widths, len(self.columns))]
        out.append("  ".join("-" * width for width in widths))
        out += [_aligned(line, widths, len(self.columns)) for line in lines]
        if len(self.rows) > MAX_PRINTED_ROWS:
            out.append(f"the first {MAX_PRINTED_ROWS} of {len(self.rows):,} rows")
        out += [f"Note: {visible(note)}" for note in self.notes]
        return "\n".join(out)

    def _repr_html_(self) -> str:
        heads, lines = self.as_text()
        head = "".join(f"<th>{escape(each)}</th>" for each in heads)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>"
            for line in lines
        )
        notes = "".join(f"<p>{escape(visible(note))}</p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


_PARTS = ("", "_std_error", "_low", "_high")  # of the names of an aggregate's four columns


def _different(names: Sequence[str]) -> list[str]:
    """Names that differ: a second one of the same name has a number behind it."""
    found: list[str] = []
    for name in names:
        other, number = name, 2
        while other in found:
            other, number = f"{name}_{number}", number + 1
        found.append(other)
    return found


def _free(name: str, taken: Container[str]) -> str:
    """A name of which no part is taken; with a number behind it if it needs one."""
    other, number = name, 2
    while any(other + part in taken for part in _PARTS):
        other, number = f"{name}_{number}", number + 1
    return other


def _aligned(cells: Sequence[str], widths: Sequence[int], keys: int) -> str:
    """Keys to the left, numbers to the right."""
    parts = [
        cell.ljust(width) if place < keys else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(parts).rstrip()


def _label(key: Any) -> str:
    return "NULL" if key is None else written(key)


def _number(value: float) -> str:
    if isnan(value):
        return "-"
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    if value and abs(value) < 0.01:
        return f"{value:.3g}"
    digits = 0 if abs(value) >= 10_000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:,.{digits}f}"


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _plain(key: Any) -> Any:
    """A key as JSON has it."""
    if isinstance(key, Decimal):
        return float(key)
    if isinstance(key, float):
        return key if isfinite(key) else str(key)
    return key if key is None or isinstance(key, str | int | bool) else str(key)
