"""A PostgreSQL cluster of one's own, for tests and benchmarks: in a temporary folder, on a local
socket.

In a conftest:

    @pytest.fixture(scope="session")
    def cluster():
        with started() as running:       # skips, and says so, where PostgreSQL is not installed
            yield running
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

USERS = ("postgres", "nobody")  # whom root becomes: the server refuses to run as root
QUICK = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB"}


def binaries() -> Path | None:
    """The folder of PostgreSQL's newest binaries, if it is installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: float(place.parent.name)
    )
    return next((place for place in reversed(places) if (place / "initdb").exists()), None)


class Cluster:
    """A running server. Each :meth:`fresh_url` leads to an empty schema of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)
        self.url = f"postgresql://sottovoce@/postgres?host={quote(str(folder), safe='')}"

    def fresh_url(self) -> str:
        """The address of an empty store."""
        import psycopg

        name = f"fresh_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url}&options={quote(f'-csearch_path={name}', safe='')}"


@contextmanager
def started(**settings: str) -> Iterator[Cluster]:
    """Start a cluster and stop it at the end. By default it is quick and would not survive a power
    cut.
    """
    programs = binaries()
    if programs is None:
        pytest.skip(
            "PostgreSQL is not installed (Debian: apt-get install postgresql); its tests are "
            "skipped"
        )
    folder = Path(tempfile.mkdtemp(prefix="sottovoce-pg-"))
    try:
        prefix = _owned(folder)
        data = folder / "data"
        made = [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "sottovoce",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        _run(prefix, folder, *made, "--no-sync")
        options = {
            **QUICK,
            **settings,
            "listen_addresses": "",
            "unix_socket_directories": str(folder),
        }
        words = " ".join(f"-c {name}='{value}'" for name, value in options.items())
        control = [str(programs / "pg_ctl"), "-D", str(data)]
        _run(
            prefix,
            folder,
            *control,
            "-w",
            "-t",
            "120",
            "-l",
            str(folder / "log"),
            "-o",
            words,
            "start",
        )
        try:
            yield Cluster(folder)
        finally:
            _run(prefix, folder, *control, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owned(folder: Path) -> list[str]:
    """What to put before a command so that it does not run as root;
    the folder becomes that user's.
    """
    if os.geteuid() != 0:
        return []
    for name in USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, user.pw_uid, user.pw_gid)
        return ["runuser", "-u", name, "--"]
    pytest.skip(
        "PostgreSQL refuses to run as root, and there is no other user; its tests are skipped"
    )


def _run(prefix: list[str], folder: Path, *command: str) -> None:
    done = subprocess.run(
        [*prefix, *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        log = folder / "log"
        tail = log.read_text()[-2000:] if log.exists() else ""
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stdout[-2000:]}{tail}")
