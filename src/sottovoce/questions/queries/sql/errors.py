"""Refusals of a query: what is wrong, where in the text, and what to write instead."""

from __future__ import annotations

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.labels import visible

MAX_SHOWN_LINE = 160  # characters of the query's line that are shown


class SqlError(InvalidInput):
    """A query that cannot be answered, with the clause underlined.

    >>> print(SqlError("people have no column 'agee'", "SELECT agee", (7, 11), "did you mean age?"))
    people have no column 'agee'
      SELECT agee
             ^^^^
      did you mean age?
    """

    def __init__(
        self,
        problem: str,
        text: str = "",
        span: tuple[int, int] | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.text = text
        self.span = span  # where the clause begins and ends, end excluded
        self.hint = hint
        super().__init__(self._message())

    def _message(self) -> str:
        lines = [self.problem]
        if self.span is not None:
            lines += underlined(self.text, self.span)
        if self.hint is not None:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


def underlined(text: str, span: tuple[int, int]) -> list[str]:
    """The line of a text that holds a clause, and a line of carets below the clause.

    >>> underlined("SELECT a\\nFROM b", (14, 15))
    ['  FROM b', '       ^']
    """
    start, end = span
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    end = min(max(end, start + 1), max(line_end, start + 1))
    # a long line is cut around the clause
    first = max(line_start, min(start, end - MAX_SHOWN_LINE // 2) - MAX_SHOWN_LINE // 4)
    first = line_start if line_end - line_start <= MAX_SHOWN_LINE else first
    last = min(line_end, first + MAX_SHOWN_LINE)
    end = min(end, max(last, start + 1))
    before = visible(text[first:start].replace("\t", " "))
    clause = visible(text[start:end].replace("\t", " "))
    after = visible(text[end:last].replace("\t", " "))
    carets = "^" * max(1, len(clause))
    return [f"  {before}{clause}{after}", f"  {' ' * len(before)}{carets}"]
