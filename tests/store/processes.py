"""Start child collectors and read what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(work: str, url: str, seed: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.child", work, url, str(seed)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(child: subprocess.Popen[str]) -> list[str]:
    """The lines of a child that must end well."""
    out, errors = child.communicate()
    assert child.returncode == 0, errors
    return out.splitlines()
