"""Files are whole or not there, keep the umask, and hold no formulas."""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sottovoce.ground.errors import InvalidInput
from sottovoce.ground.files import new_folder, replacing, write_csv
from sottovoce.ground.labels import csv_cell, visible_lines


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_what_the_umask_leaves(tmp_path: Path, umask: int) -> None:
    with replacing(tmp_path / "plan.json") as draft:
        draft.write_text("{}")
    assert mode(tmp_path / "plan.json") == 0o666 & ~umask


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    path.chmod(0o640)
    with replacing(path) as draft:
        draft.write_text("new")
    assert (path.read_text(), mode(path)) == ("new", 0o640)


def test_a_private_file_is_its_owners_from_the_start(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "backup.db"
    path.write_text("old")
    path.chmod(0o644)
    with replacing(path, private=True) as draft:
        assert mode(draft) & 0o077 == 0
        draft.write_text("new")
    assert mode(path) == 0o600 & ~umask


def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path) as draft:
        draft.write_bytes("half")  # type: ignore[arg-type]
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]
    assert path.read_text() == "old"
    with (
        pytest.raises(InvalidInput, match="must lie in a folder that exists"),
        replacing(tmp_path / "no" / "x"),
    ):
        pass


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "－1+1", "-", "--1"]
)
def test_formulas_are_defused(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "cell", ["tea", "", "a=b", "-5", "+5", "-0.01", "-1e-05", -5, -0.01, True, None]
)
def test_numbers_and_plain_words_stay(cell: object) -> None:
    assert csv_cell(cell) == cell


def test_heads_and_cells_of_every_csv_are_defused_and_text_is_quoted() -> None:
    """Quoted, because a spreadsheet that separates by ; would find a formula in the middle of a
    word.
    """
    out = io.StringIO()
    write_csv(out, [["=name", "share"], ["@x", -0.25], ["a;=1+1", 1e-7]])
    assert out.getvalue() == '"\'=name","share"\r\n"\'@x",-0.25\r\n"a;=1+1",1e-07\r\n'
    out.seek(0)
    assert list(csv.reader(out))[2] == ["a;=1+1", "1e-07"]


def test_lines_stay_lines() -> None:
    assert visible_lines("a\nb\x1b[2J\x9b\u202e\n") == "a\nb\\x1b[2J\\x9b\\u202e\n"


@pytest.mark.parametrize("making", [replacing, new_folder])
def test_an_interrupt_as_soon_as_a_draft_is_there_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, making: Callable[[Path], Any]
) -> None:
    def interrupted(made: Callable[..., Any]) -> Callable[..., Any]:
        def then_interrupted(*given: Any) -> None:
            made(*given)
            monkeypatch.undo()  # it comes once
            raise KeyboardInterrupt

        return then_interrupted

    monkeypatch.setattr(os, "close", interrupted(os.close))
    monkeypatch.setattr(Path, "mkdir", interrupted(Path.mkdir))
    with pytest.raises(KeyboardInterrupt), making(tmp_path / "out"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_place_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (".", "..", tmp_path):
        with pytest.raises(InvalidInput, match="must be a file, and is a folder"), replacing(place):
            pass
    assert not list(tmp_path.iterdir())
