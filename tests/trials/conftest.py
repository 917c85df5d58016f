"""Where trials run that install a package."""

from __future__ import annotations

import os
import sysconfig
import venv
from pathlib import Path

import pytest


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
