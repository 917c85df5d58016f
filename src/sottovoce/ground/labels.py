"""Values as people read them. What was found under privacy may be noise, or a stranger's prank:
nothing of it reaches a terminal or a picture but characters that can be seen.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# joiners inside words and pictures: harmless, and needed to read them
_SEEN_TOGETHER = "\u200c\u200d"
# controls, formats, halves of pairs, private, unassigned, breaks
_HIDDEN = (
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
)
_PLAIN = re.compile(r"[ -~]*")


def written(label: Any) -> str:
    r"""A label, invisible characters written out; the parts of a tuple with commas between.

    >>> written("tea\x1b[2J\u202e"), written(("milk", 7)), written("")
    ('tea\\x1b[2J\\u202e', 'milk, 7', "''")
    """
    if isinstance(label, tuple):
        return ", ".join(map(written, label))
    return visible(str(label)) or "''"


def parts(label: object) -> tuple[str, ...]:
    """The labels of a cell's attributes, as people say them.

    >>> parts((True, "tea")), parts(7)
    (('yes', 'tea'), ('7',))
    """
    labels = label if isinstance(label, tuple) else (label,)
    return tuple(
        {True: "yes", False: "no"}[each] if isinstance(each, bool) else written(each)
        for each in labels
    )


def visible(text: str) -> str:
    """Text with every character that cannot be seen written out."""
    return (
        text
        if _PLAIN.fullmatch(text)
        else "".join(_escape(each) if _is_hidden(each) else each for each in text)
    )


def visible_lines(text: str) -> str:
    r"""The same for text of several lines, which stay lines.

    >>> visible_lines("two\nlines\x1b[2J")
    'two\nlines\\x1b[2J'
    """
    return "\n".join(map(visible, text.split("\n")))


# how a spreadsheet knows a formula
_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "＝",
    "＋",
    "－",
    "＠",
)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


def csv_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: text like one has an apostrophe before it.

    Numbers, and text that is one, stay as they are.

    >>> csv_cell("=HYPERLINK(A1)"), csv_cell("-5"), csv_cell(-0.01), csv_cell("tea")
    ("'=HYPERLINK(A1)", '-5', -0.01, 'tea')
    """
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return (
        f"'{value}" if value.startswith(_FORMULA) or value.lstrip().startswith(_FORMULA) else value
    )


def json_visible(text: str) -> str:
    r"""JSON text with the same characters as JSON escapes: the document stays what it was.

    >>> json_visible('"\x9b\u202e"')
    '"\\u009b\\u202e"'
    """
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        _json_escape(each) if _is_hidden(each) and each not in "\n\t" else each for each in text
    )


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _SEEN_TOGETHER


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
