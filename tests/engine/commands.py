"""Command lines in this process."""

from __future__ import annotations

import pytest

from sottovoce.cli import run


def run_command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """(exit code, output, errors) of a command line."""
    capsys.readouterr()
    code = run([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err
