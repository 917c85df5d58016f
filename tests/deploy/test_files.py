"""The unit and the container file: what they say is what there is, and their commands run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import httpx
import pytest
import typer

from sottovoce.cli import app
from tests.deploy.files import (
    FOLDER,
    SETTINGS,
    UNIT,
    container_environment,
    directives,
    instructions,
    variables,
)
from tests.service.processes import environment, running

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(
    ANALYZE is None, reason="systemd is missing: the unit was not verified"
)
KNOWN = ("FROM", "ARG", "COPY", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL")
SAID_TO_THE_ENGINE = ("HEALTHCHECK", "ENTRYPOINT", "CMD")


def known_variables() -> set[str]:
    """Those that ``sottovoce serve`` and ``sottovoce studio`` read, from the command itself."""
    group = typer.main.get_command(app)
    commands = [group.commands[name] for name in ("serve", "studio")]  # type: ignore[attr-defined]
    return {str(each.envvar) for command in commands for each in command.params if each.envvar}


def test_every_variable_is_one_that_the_collector_reads() -> None:
    named = set(variables()) | {
        name for name in container_environment() if name.startswith("SOTTOVOCE_")
    }
    named |= set(
        re.findall(r"SOTTOVOCE_\w+", "".join(path.read_text() for path in FOLDER.iterdir()))
    )
    assert named <= known_variables()


def unit_for_here(folder: Path) -> Path:
    """The unit, with a command and a settings file that exist on this machine."""
    command = Path(sys.executable).with_name("sottovoce")
    text = (
        UNIT.read_text()
        .replace("/opt/sottovoce/bin/sottovoce", str(command))
        .replace("/etc/sottovoce", str(FOLDER))
    )
    path = folder / UNIT.name
    path.write_text(text)
    return path


@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    assert ANALYZE is not None
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", str(unit_for_here(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    (tmp_path / "bad.service").write_text("[Service]\nExecStart=/bin/true\nProtectSysten=yes\n")
    bad = subprocess.run(
        [ANALYZE, "verify", str(tmp_path / "bad.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ProtectSysten" in bad.stderr


@needs_systemd
def test_systemd_finds_the_unit_well_confined(tmp_path: Path) -> None:
    assert ANALYZE is not None
    check = [ANALYZE, "security", "--offline=yes", "--no-pager", "--threshold=20"]  # 2.0 of 10
    done = subprocess.run(
        [*check, str(unit_for_here(tmp_path))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_unit_allows_what_the_collector_does() -> None:
    """Estimates are compiled while they run, and made at a lower priority."""
    assert directives("MemoryDenyWriteExecute") == []
    assert directives("SystemCallFilter") == ["@system-service", "~@privileged"]
    assert directives("User") == ["sottovoce"]
    # and it goes on if a process beside it is ended for that
    assert directives("MemoryMax") == ["75%"]
    assert directives("OOMPolicy") == ["continue"]
    # which the collector takes, at most, to finish
    assert int(directives("TimeoutStopSec")[0]) > 20
    state = f"/var/lib/{directives('StateDirectory')[0]}"
    assert variables()["SOTTOVOCE_STORE"] == f"sqlite:///{state}/survey.db"
    assert directives("WorkingDirectory") == [state]
    assert directives("EnvironmentFile") == [f"/etc/sottovoce/{SETTINGS.name}"]


def test_the_units_command_runs_with_its_settings(tmp_path: Path) -> None:
    (line,) = directives("ExecStart")
    program, *arguments = line.split()
    assert program == "/opt/sottovoce/bin/sottovoce"
    settings = variables() | {
        "SOTTOVOCE_STORE": f"sqlite:///{tmp_path}/survey.db",
        "SOTTOVOCE_PORT": "0",
    }
    with running(arguments, settings) as collector:
        assert httpx.get(f"{collector.url}/healthz").status_code == 200
        assert httpx.get(f"{collector.url}/studio/").status_code == 303
        assert httpx.get(f"{collector.url}/metrics").status_code == 401
    assert (tmp_path / "survey.db").stat().st_mode & 0o077 == 0


def test_the_container_file_is_well_formed() -> None:
    lines = instructions()
    assert {each.name for each in lines} <= {*KNOWN, *SAID_TO_THE_ENGINE}
    assert [each.value.split()[0] for each in lines if each.name == "FROM"] == [
        "docker.io/library/python:3.12-slim"
    ] * 2
    minimum = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["project"][
        "requires-python"
    ]
    assert minimum.startswith(">=3.")
    assert int(minimum.removeprefix(">=3.")) <= 12
    copied = [
        each.value.split()[:-1]
        for each in lines
        if each.name == "COPY" and "--from" not in each.value
    ]
    for source in (source for sources in copied for source in sources):
        assert (FOLDER.parent / source).exists()
    (user,) = (each.value for each in lines if each.name == "USER")
    assert int(user) > 0
    (made,) = (each.value for each in lines if each.name == "RUN" and "useradd" in each.value)
    assert f"--uid {user}" in made
    names = [each.name for each in lines]
    assert names.index("USER") > max(place for place, name in enumerate(names) if name == "RUN")
    variable = container_environment()
    assert variable["SOTTOVOCE_STORE"].startswith("sqlite:////data/")
    assert [each.value for each in lines if each.name == "VOLUME"] == ["/data"]
    assert [each.value for each in lines if each.name == "EXPOSE"] == [variable["SOTTOVOCE_PORT"]]


def test_what_is_copied_into_the_container_is_enough_to_install(tmp_path: Path) -> None:
    """The metadata and the files of the package, made from the copied files alone."""
    for each in instructions():
        if each.name == "COPY" and "--from" not in each.value:
            *sources, target = each.value.split()
            for source in sources:
                place = tmp_path / target / ("" if target == source else Path(source).name)
                copy = shutil.copytree if (FOLDER.parent / source).is_dir() else shutil.copy
                place.parent.mkdir(parents=True, exist_ok=True)
                copy(
                    FOLDER.parent / source,
                    place,
                    **({"symlinks": True} if copy is shutil.copytree else {}),
                )
    make = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-index",
        "--no-build-isolation",
        "--no-deps",
    ]
    make += ["--wheel-dir", "made", "."]
    done = subprocess.run(make, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "made").iterdir()
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
    needed = ("service/app.py", "studio/client/index.js", "studio/static/take.js")
    assert {f"sottovoce/{name}" for name in needed} <= names
    (install,) = (
        each.value for each in instructions() if each.name == "RUN" and "pip install" in each.value
    )
    assert "--require-hashes -r deploy/$LOCK.lock" in install
    assert (FOLDER / "collector.lock").exists()
    assert (FOLDER / "all.lock").exists()


def test_nothing_is_installed_that_no_lock_names() -> None:
    """What builds the package comes from the lock too: pip would fetch the newest setuptools for
    itself.
    """
    for name in ("Containerfile", "README.md"):
        installs = re.findall(r"pip install (.+)", (FOLDER / name).read_text())
        assert len(installs) == 2
        assert "--require-hashes -r deploy/" in installs[0]
        assert installs[1].endswith("--no-build-isolation --no-deps .")


def test_the_containers_command_and_health_check_run(tmp_path: Path) -> None:
    words = {each.name: each.words for each in instructions() if each.name in SAID_TO_THE_ENGINE}
    assert words["ENTRYPOINT"] == ["sottovoce"]
    assert words["HEALTHCHECK"][0] == "python"
    settings = {
        name: value
        for name, value in container_environment().items()
        if name.startswith("SOTTOVOCE_")
    }
    settings |= {"SOTTOVOCE_STORE": f"sqlite:///{tmp_path}/survey.db", "SOTTOVOCE_PORT": "0"}
    check = [sys.executable, *words["HEALTHCHECK"][1:]]
    with running(words["CMD"], settings) as collector:
        healthy = subprocess.run(
            check, env=environment(SOTTOVOCE_PORT=str(collector.port)), check=False
        )
        assert healthy.returncode == 0
        port = str(collector.port)
    gone = subprocess.run(
        check, env=environment(SOTTOVOCE_PORT=port), check=False, capture_output=True
    )
    assert gone.returncode != 0
