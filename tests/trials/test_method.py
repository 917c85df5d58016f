"""docs/trials/method.md, as it is written: a method and a question in a package of their own."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from sottovoce.cli import run
from sottovoce.questions.marginals.methods.outside import BROUGHT_METHODS
from sottovoce.questions.outside import BROUGHT_QUESTIONS
from tests.trials.pages import Step, steps_of

PAGE = Path(__file__).parents[2] / "docs" / "trials" / "method.md"


def in_a_shell(step: Step, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", "-c", step.command], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def in_this_process(step: Step, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """A command of ours, which finds what is installed in the environment."""
    capsys.readouterr()
    code = run(shlex.split(step.command)[1:])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def test_the_trial_runs_as_it_is_written(
    tmp_path: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (site,) = (tmp_path / "environment").glob("lib/*/site-packages")
    monkeypatch.syspath_prepend(site)
    for step in steps_of(PAGE):
        if step.file is not None:
            path = folder / step.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
            continue
        if step.command.startswith("sottovoce "):
            code, shown = in_this_process(step, capsys)
        else:
            code, shown = in_a_shell(step, environment)
            for brought in (BROUGHT_METHODS, BROUGHT_QUESTIONS):
                monkeypatch.setattr(brought, "_loaded", {})  # as in a new process
        assert code == (2 if step.is_refused else 0), f"{step.command}\n{shown}"
        assert "Traceback" not in shown
        for line in step.shown:
            assert line in re.sub(r"\s+", " ", shown), f"{step.command}\n{shown}"
    assert (folder / "errors.svg").read_text().startswith("<svg")
