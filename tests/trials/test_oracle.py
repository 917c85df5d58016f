"""docs/trials/oracle.md, as it is written: an oracle in a package of its own, without network."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.trials.pages import Step, steps_of

PAGE = Path(__file__).parents[2] / "docs" / "trials" / "oracle.md"


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
