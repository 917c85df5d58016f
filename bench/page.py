"""Sections of a document that a program writes: between two marks, with pictures in a folder
beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def marks(name: str) -> tuple[str, str]:
    """The marks of a section."""
    return f"<!-- {name}: start -->", f"<!-- {name}: end -->"


def placed(page: str, name: str, body: str) -> str:
    """The page with the body between its marks, or at its end if it has none.

    >>> start, end = marks("x")
    >>> placed(f"a {start}old{end} b", "x", "new") == f"a {start}new{end} b"
    True
    """
    start, end = marks(name)
    if start in page and end in page:
        head, _, rest = page.partition(start)
        return head + start + body + end + rest.partition(end)[2]
    return f"{page.rstrip()}\n\n{start}{body}{end}\n"


def write_section(
    page: Path, name: str, text: Sequence[str], pictures: Mapping[str, tuple[str, Any]]
) -> None:
    """Put text and then pictures (by file name: a caption and a chart) into a page's section."""
    from sottovoce.results.plots import save

    folder = page.parent / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    links = []
    for file, (caption, chart) in pictures.items():
        save(chart, str(folder / file))
        links += [f"![{caption}](pictures/{file})", ""]
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    page.write_text(placed(before, name, "\n".join(["", *text, *links, ""])), encoding="utf-8")
