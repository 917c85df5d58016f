"""docs/trials/oracle.md, as it is written: an oracle in a package of its own, without network."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.trials.pages import Step, steps_of

PAGE = Path(__file__).parents[2] / "docs" / "trials" / "oracle.md"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A virtual environment of its own, in which all that is installed here is found, too."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/*/site-packages")
    here = sysconfig.get_path("purelib")
    (site / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    command = home / "bin" / "sottovoce"
    command.write_text(f'#!/bin/sh\nexec "{home}/bin/python" -m sottovoce.cli "$@"\n')
    command.chmod(0o755)
    return os.environ | {
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def run(step: Step, folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-c", step.command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = done.stdout + done.stderr
    assert "Traceback" not in shown, shown
    expected = 2 if step.is_refused else 0
    assert done.returncode == expected, f"{step.command}\n{shown}"
    for line in step.shown:
        assert line in re.sub(r"\s+", " ", shown), f"{step.command}\n{shown}"


def test_the_trial_runs_as_it_is_written(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    for step in steps_of(PAGE):
        if step.file is None:
            run(step, folder, environment)
            continue
        path = folder / step.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text)
    for picture in ("errors.svg", "colours.svg"):
        assert (folder / picture).read_text().startswith("<svg")
