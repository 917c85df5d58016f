"""What a page asks a reader to do: files to write, commands and code to run, in order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A file to write, a command with lines that it shows, or code."""

    text: str = ""
    file: str | None = None
    command: str = ""
    shown: tuple[str, ...] = ()
    code: str = ""

    @property
    def is_refused(self) -> bool:
        return any(line.startswith("error: ") for line in self.shown)


def steps_of(page: Path) -> list[Step]:
    """The files (blocks with ``file=PATH``), commands (``$`` in ``console``) and code of a page."""
    steps: list[Step] = []
    for kind, file, text in BLOCK.findall(page.read_text()):
        if file:
            steps.append(Step(text, file))
        elif kind == "python":
            steps.append(Step(code=text))
        elif kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *shown = part.strip().splitlines()
                steps.append(Step(command=command, shown=tuple(shown)))
    return steps
