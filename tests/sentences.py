"""Prose in Markdown: which lines of a document are prose, and where sentences begin in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r"\s*(```|~~~)")
NOT_PROSE = re.compile(r"\s*(#|\||<|---|\[[^\]]+\]: |$)")
PREFIX = re.compile(r"\s*(> )*((?:[-*+]|\d+\.) +)?")
MASKED = re.compile(r"(`+)(?:(?!\1).)+\1|!?\[[^\]]*\]\([^)]*\)|<[^>]+>")
CLOSERS = r"[\"')*_]*"
# a full stop behind these ends no sentence
ABBREVIATIONS = ("e.g", "i.e", "etc", "eq", "eqs", "sec", "fig", "cf", "vs", "al", "no", "p", "pp")
END = re.compile(rf"(?<![.\s])[.!?](?!\*\*){CLOSERS}(?=\s)")
IS_WHOLE = re.compile(rf"[.!?]{CLOSERS}$")


def _masked(text: str) -> str:
    """The text with code, links and addresses blotted out, as long as it was."""
    return MASKED.sub(lambda found: "x" * len(found.group()), text)


def _is_short(word: str) -> bool:
    """Whether a full stop behind the word shortens it: an abbreviation, or somebody's initial."""
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper())


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph.

    >>> sentences("It holds, e.g. at 0.5 (eq. 3). `a. b` does too.")
    ['It holds, e.g. at 0.5 (eq. 3).', '`a. b` does too.']
    >>> sentences("**A label.** What it says, see [x. y](z. w) and so on ... to the end.")
    ['**A label.** What it says, see [x. y](z. w) and so on ... to the end.']
    """
    masked = _masked(text)
    found, start = [], 0
    for end in END.finditer(masked):
        word = re.search(r"[\w.]*$", masked[: end.start()])
        if end.group().startswith(".") and word and _is_short(word.group()):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def paragraphs(text: str) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines) of each paragraph and list item, not of code or tables."""
    lines: list[str] = []
    first, is_code = 0, False
    for number, line in enumerate(text.splitlines(), 1):
        is_fence = FENCE.match(line) is not None
        is_prose = not (is_code or is_fence or NOT_PROSE.match(line))
        marker = PREFIX.match(line)
        is_start = not is_prose or (marker is not None and marker.group(2) is not None)
        if is_start and lines:
            yield first, lines
            lines = []
        if is_prose:
            first = first if lines else number
            lines.append(line)
        is_code ^= is_fence
    if lines:
        yield first, lines


def faults(text: str) -> list[str]:
    """Lines of prose that hold two sentences, or that break one."""
    found = []
    for first, lines in paragraphs(text):
        for number, line in enumerate(lines, first):
            prefix = PREFIX.match(line)
            assert prefix is not None
            if len(sentences(line[prefix.end() :])) > 1:
                found.append(f"line {number} holds two sentences")
            if number < first + len(lines) - 1 and not IS_WHOLE.search(_masked(line)):
                found.append(f"line {number} breaks a sentence")
    return found
