"""The tutorials, as they are written: files, commands and code, in order, in an empty folder."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.collector import free_port
from sottovoce.cli import run
from tests.service.processes import COMMAND, environment
from tests.trials.pages import Step, steps_of

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))
PORT = "8700"  # in the pages


@contextmanager
def beside(arguments: list[str]) -> Iterator[None]:
    """A command that goes on until the page ends; it is there once it prints its first line."""
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert process.stdout is not None
    try:
        assert "Listening at" in process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def plain(text: str) -> str:
    """Text as it reads, however wide the terminal is."""
    return re.sub(r"\s+", " ", text)


def command(step: Step, port: str, printed: Callable[[], str], stack: ExitStack) -> None:
    """Run a command of a page, and look for the lines that the page shows."""
    head, *arguments = shlex.split(step.command.replace(PORT, port))
    if head == "python":
        runpy.run_path(arguments[0])
    elif arguments[-1] == "&":
        stack.enter_context(beside(arguments[:-1]))
    else:
        assert head == "sottovoce"
        assert run(arguments) == 0, step.command
    shown = plain(printed())
    for line in step.shown:
        assert plain(line) in shown, f"{step.command}: {line}\n{shown}"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_it_is_written(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    port = str(free_port())

    def printed() -> str:
        said = capsys.readouterr()
        return said.out + said.err

    with ExitStack() as stack:
        for step in steps_of(page):
            if step.file is not None:
                Path(step.file).write_text(step.text, encoding="utf-8")
            elif step.command:
                command(step, port, printed, stack)
            else:
                exec(compile(step.code, page, "exec", dont_inherit=True), space)
                printed()


def test_there_is_one_for_each_reader() -> None:
    assert [page.stem for page in TUTORIALS] == ["engineer", "researcher", "student"]
