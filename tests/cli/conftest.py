"""What every test of the command line starts from: a survey, its plan, and a way to run commands in
this process.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sottovoce.cli import run
from tests.cli.helpers import COLOURS, SURVEY, Command, Files, Outcome, write_csv


@pytest.fixture
def sottovoce(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command line here and say how it ended."""

    def command(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return command


@pytest.fixture
def files(tmp_path: Path, well_done: Files) -> Files:
    """A survey that went well, with a fixed seed, to be spoilt."""
    shutil.copytree(well_done.folder, tmp_path, dirs_exist_ok=True)
    return Files(tmp_path)


@pytest.fixture(scope="session")
def well_done(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The same, made once."""
    here = Files(tmp_path_factory.mktemp("survey"))
    here.survey.write_text(SURVEY, encoding="utf-8")
    write_csv(here.people, colour=COLOURS, age=[18 + place % 80 for place in range(len(COLOURS))])
    assert run(["plan", str(here.survey), "-o", str(here.plan)]) == 0
    whispered = [
        "whisper",
        str(here.plan),
        str(here.people),
        "-o",
        str(here.reports),
        "--seed",
        "7",
        "-q",
    ]
    assert run(whispered) == 0
    return here
