"""Interpreters that lack some of the libraries, as after an install with fewer extras."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sottovoce.ground.extras import EXTRAS

ROOT = Path(__file__).parents[2]
LIGHT = Path(__file__).parent / "light"
COMMAND = [sys.executable, "-c", "from sottovoce.cli import main; main()"]


def without(*extras: str) -> dict[str, str]:
    """The environment of an interpreter that has none of the libraries of these extras, nor what
    only they need.
    """
    missing = [library for library, extra in EXTRAS.items() if extra in extras]
    if "analysis" in extras:
        missing += ["joblib", "llvmlite", "narwhals"]
    path = os.pathsep.join([str(LIGHT), str(ROOT / "src"), str(ROOT)])
    return os.environ | {"WITHOUT": " ".join(missing), "PYTHONPATH": path}


def run(
    arguments: Sequence[str], environment: dict[str, str], code: str = ""
) -> subprocess.CompletedProcess[str]:
    """The sottovoce command, or a piece of Python, to its end."""
    started = [sys.executable, "-c", code, *arguments] if code else [*COMMAND, *arguments]
    return subprocess.run(
        started, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )


@dataclass(frozen=True)
class Running:
    """A collector that listens, and what else it prints."""

    url: str
    output: IO[str]

    def login(self) -> str:
        """The link that logs in once, which a studio prints next."""
        return self.output.readline().split()[-1]


@contextmanager
def listening(
    arguments: Sequence[str], environment: dict[str, str], command: Sequence[str] = COMMAND
) -> Iterator[Running]:
    """A collector or a studio in a process of its own; the line it prints says where it listens."""
    with subprocess.Popen(
        [*command, *arguments, "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line.startswith("Listening at "), line or process.communicate()[1]
            yield Running(line.split()[2], process.stdout)
        finally:
            process.terminate()
            process.communicate()
