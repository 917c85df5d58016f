"""Lines for notebooks, in plain HTML that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sottovoce.ground.labels import visible


def facts_html(title: str, lines: Sequence[str]) -> str:
    """A table with a row for each line; what stands before a line's first colon is its head.

    >>> facts_html("Plan", ["People: 10 < 20"])  # doctest: +ELLIPSIS
    '<table><caption>Plan</caption><tr><th>People</th>...</tr></table>'
    """
    return f"<table><caption>{text_html(title)}</caption>{''.join(map(_row, lines))}</table>"


def text_html(words: str) -> str:
    """Text in which nothing is markup, and every character can be seen."""
    return escape(visible(words))


def _row(line: str) -> str:
    head, colon, rest = line.partition(": ")
    if not colon:
        return f'<tr><td colspan="2" style="text-align: left">{text_html(line)}</td></tr>'
    return f'<tr><th>{text_html(head)}</th><td style="text-align: left">{text_html(rest)}</td></tr>'
