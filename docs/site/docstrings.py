"""A docstring as Markdown: what it says, each parameter, what comes back, an example."""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import dataclass, field
from functools import cache

# headings of a docstring, below which names or sentences are indented
PARTS = ("Args", "Attributes", "Throughout", "Returns", "Raises")
PART = re.compile(rf"^({'|'.join(PARTS)}):\n((?:[ \t]+.*(?:\n|$)|\n)+)", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*):(?:\s+|$)", re.MULTILINE)
ROLE = re.compile(r":\w+:`~?(?:sottovoce\.)?([^`]+)`")
CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
MARKS = re.compile(r"([<*_\[\]|\\])")  # what Markdown would read as a mark


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring, as Markdown."""

    text: str = ""
    described: dict[str, str] = field(default_factory=dict)  # parameters and attributes by name
    throughout: dict[str, str] = field(default_factory=dict)  # of a class: its methods' parameters
    returns: str = ""
    raises: str = ""
    example: str = ""

    @property
    def summary(self) -> str:
        """Its first sentence."""
        first = " ".join(self.text.split("\n\n", maxsplit=1)[0].split())
        return re.split(r"(?<=[.!?]) ", first, maxsplit=1)[0]


def as_markdown(text: str) -> str:
    """Prose with the marks of reStructuredText as Markdown.

    >>> as_markdown("See :class:`sottovoce.Plan`, ``a_b`` and <c>.")
    'See `Plan`, `a_b` and \\\\<c>.'
    """
    pieces = CODE.split(ROLE.sub(r"``\1``", text))
    for place, piece in enumerate(pieces):
        pieces[place] = f"`{piece.strip('`')}`" if place % 2 else MARKS.sub(r"\\\1", piece)
    return "".join(pieces)


def parse(doc: str | None) -> Docstring:
    """The parts of a docstring.

    >>> parsed = parse("Count.\\n\\nArgs:\\n    a, b: ends,\\n        both.\\n\\n>>> 1\\n1\\n")
    >>> parsed.text, parsed.described, parsed.example
    ('Count.', {'a': 'ends, both.', 'b': 'ends, both.'}, '>>> 1\\n1')
    """
    text = inspect.cleandoc(doc or "")
    example = "\n\n".join(found.strip() for found in EXAMPLE.findall(text))
    text = EXAMPLE.sub("", text)
    parts = {kind: textwrap.dedent(body).strip() for kind, body in PART.findall(text)}
    described = entries(parts.get("Args", "")) | entries(parts.get("Attributes", ""))
    return Docstring(
        as_markdown(PART.sub("", text).strip()),
        described,
        entries(parts.get("Throughout", "")),
        as_markdown(parts.get("Returns", "")),
        as_markdown(parts.get("Raises", "")),
        example,
    )


def entries(body: str) -> dict[str, str]:
    """The names that a part describes, each with what it says of them."""
    found: dict[str, str] = {}
    starts = list(ENTRY.finditer(body))
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, [*ends, len(body)], strict=False):
        words = as_markdown(" ".join(body[start.end() : end].split()))
        for name in start.group(1).split(", "):
            found[name.lstrip("*")] = words
    return found


FIELD = re.compile(r"^    (\w+): [^#]*?(?:  # (.*))?$")
REMARK = re.compile(r"^    # (.*)$")


@cache
def field_comments(kind: type) -> dict[str, str]:
    """What comments say of a data class's fields: on the same line, or on the lines above.

    >>> from sottovoce.protocol.plan import Plan
    >>> field_comments(Plan)["asked"]
    'the question, as JSON'
    """
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except OSError:
        return {}
    found: dict[str, str] = {}
    above: list[str] = []
    for line in source.splitlines():
        remark, named = REMARK.match(line), FIELD.match(line)
        if named and (named.group(2) or above):
            found[named.group(1)] = as_markdown(" ".join([*above, named.group(2) or ""]).strip())
        above = [*above, remark.group(1)] if remark else []
    return found
