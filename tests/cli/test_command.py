"""The installed command as a process: start-up, help, interruption, pipes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

import sottovoce as sv
from tests.cli.helpers import Command, Files, write_csv

COMMAND = str(Path(sys.executable).with_name("sottovoce"))
COMMANDS = (
    "plan",
    "whisper",
    "estimate",
    "associate",
    "tree",
    "synthesize",
    "audit",
    "advise",
    "oracles",
    "demo",
    "compare oracles",
    "compare marginals",
    "release",
    "compare releases",
    "compare shuffled",
    "amplify",
    "key new",
    "shuffler",
    "spotcheck",
    "check-oracle",
)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, sottovoce.cli; sottovoce.cli.run(['--help']); "
        "print(sorted({'numpy', 'pyarrow', 'pandas', 'altair', 'numba', 'scipy'} & "
        "set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert shown.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(sottovoce: Command, name: str) -> None:
    example = f"sottovoce {name}"
    own = sottovoce(*name.split(), "--help")
    assert own.code == 0
    assert example in own.out
    assert example in sottovoce("--help").out


def test_an_example_is_one_line_that_can_be_copied(sottovoce: Command) -> None:
    shown = sottovoce("compare", "shuffled", "--help").out
    (example,) = (line for line in shown.splitlines() if "Example:" in line)
    assert example.endswith("--methods auto,solh,solh-thesis,sh,rap,aue,central")


def test_version_and_bare_command(sottovoce: Command) -> None:
    assert sottovoce("--version").out == f"sottovoce {sv.__version__}\n"
    assert sottovoce() == sottovoce("--help")


def test_bad_input_of_the_process(tmp_path: Path) -> None:
    ended = subprocess.run(
        [COMMAND, "plan", str(tmp_path / "none.toml")], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr == f"error: {tmp_path / 'none.toml'}: No such file or directory\n"


def _hear_interrupts() -> None:
    """A shell's background job ignores interrupts, and its children with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interruption_leaves_the_good_file(files: Files) -> None:
    good = files.reports.read_bytes()
    crowd = write_csv(files.folder / "crowd.csv", colour=["red"] * 1_000_000)
    arguments = [COMMAND, "whisper", str(files.plan), str(crowd), "-o", str(files.reports)]
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,  # noqa: PLW1509
    )
    while process.poll() is None and not list(files.folder.glob(".reports*")):
        sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert (out, "Traceback" in err) == ("", False)
    assert files.reports.read_bytes() == good
    assert not list(files.folder.glob(".reports*"))


def test_a_reader_that_leaves_early() -> None:
    line = f"{COMMAND} oracles --size 32 --epsilon 1 | head -n 1"
    ended = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr
