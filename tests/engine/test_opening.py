"""Engines that cannot be had: one clear error, before anything is done or written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sottovoce import __version__
from sottovoce.aggregation.pieces import Piece
from sottovoce.engine import shipped
from sottovoce.engine import spark as engine_spark
from sottovoce.ground.errors import ClusterError
from tests.engine.cluster import free_port, needs_spark
from tests.engine.commands import run_command
from tests.engine.plans import plan_of, reports_of, write_files

Refused = Callable[..., None]


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Fold by an engine, and be refused with some words."""
    plan = plan_of("latent")
    write_files(tmp_path, plan, reports_of(plan))
    (tmp_path / "plan.json").write_text(plan.to_json())
    total = tmp_path / "total.sva"

    def fold(words: str, *engine: str) -> None:
        here = (tmp_path / "plan.json", tmp_path, "-o", total)
        code, out, err = run_command(capsys, "fold", *here, "--engine", *engine)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert words in err
        assert not total.exists()

    return fold


@needs_spark
def test_nobody_listens(refused: Refused) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    refused(f"does not answer at {nobody}", "spark", "--master", f"spark://{nobody}")
    refused(f"does not answer at {nobody}", f"sc://{nobody}")
    refused("must be sc://host", "sc://:x")
    refused("must be spark://host", "spark", "--master", "spark://")


@needs_spark
def test_there_is_no_java(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    refused(f"there is no java in JAVA_HOME ({tmp_path})", "spark")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    refused("needs Java 17 or later, and there is no java on the PATH", "spark")


def test_pyspark_is_not_installed(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    refused('pip install "sottovoce[spark]"', "spark")
    refused('pip install "sottovoce[spark]"', "sc://localhost")


@needs_spark
def test_pyspark_is_too_old(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.3")
    refused("pyspark (3.5.3) must be version 4 or later", "spark")
    refused("pyspark (3.5.3) must be version 4 or later", "sc://localhost")


def test_a_worker_has_too_little_memory() -> None:
    """It comes back as a row, which the driver raises once, and not as Spark's four attempts."""

    def work() -> Iterator[Piece]:
        yield Piece(0, b"body")
        raise MemoryError

    whole, wrong = shipped.done_rows(__version__, 3, work)
    assert (whole, wrong[0]) == ((0, b"body"), -4)
    failure = engine_spark._failure(wrong[1])
    assert isinstance(failure, ClusterError)
    assert str(failure) == "a worker has too little memory for its part"
