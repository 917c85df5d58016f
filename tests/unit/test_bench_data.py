"""Measurements find their tables where they are told,
and every table they name is in docs/data.md.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bench import data, marginals, popular

ROOT = Path(__file__).parents[2]
TEXT = (
    ".py",
    ".md",
    ".toml",
    ".js",
    ".ts",
    ".html",
    ".css",
    ".json",
    ".yml",
    ".yaml",
    ".service",
    ".conf",
)
# The home of a person, and the folder of one machine; nothing that is installed stands there.
OWN_PATH = re.compile(r"(?<![\w.])/(?:home|Users|root|mnt|work)/\w")


def tracked() -> list[Path]:
    """Every text file of the project."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = listed.stdout.splitlines()
    if not names:
        pytest.skip("this is not a checkout")
    files = [ROOT / name for name in names]
    return [file for file in files if file.is_file() and (file.suffix in TEXT or not file.suffix)]


def test_no_file_names_a_path_of_one_machine() -> None:
    found = {
        str(file.relative_to(ROOT)): places
        for file in tracked()
        if file != Path(__file__) and (places := OWN_PATH.findall(file.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize("main", [marginals.main, popular.main], ids=["marginals", "popular"])
def test_without_a_folder_the_message_says_how_to_give_one(
    main: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert callable(main)
    monkeypatch.delenv(data.VARIABLE, raising=False)
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "out.jsonl")])
    said = capsys.readouterr().err
    assert "--data FOLDER" in said
    assert data.VARIABLE in said
    monkeypatch.setenv(data.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "out.jsonl")])
    assert "must be a folder that exists" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_every_table_that_is_read_is_on_the_page() -> None:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    text = "".join(
        (ROOT / "bench" / name).read_text()
        for name in ("marginal_sources.py", "popular.py", "findings.py")
    )
    named = set(re.findall(r'"(\w+)\.parquet"', text))
    named |= set(re.findall(r'_(?:top|own|merged)\("(\w+)"', text))
    named |= {task.source for task in popular.TASKS if task.kind != "values"}
    assert len(named) >= 14
    assert {
        name for name in named if f"| `{name}` |" not in page or f"`{name}.parquet`" not in page
    } == set()
