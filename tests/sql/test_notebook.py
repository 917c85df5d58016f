"""The cell magic of notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.questions.queries.sql import SqlError
from sottovoce.questions.queries.sql.notebook import answer_cell
from tests.sql.plans import plan, reports

COUNT = "SELECT COUNT(*) FROM people\nWHERE age > 50"


def variables() -> dict[str, Any]:
    return {"made": plan("tree", 2.0), "heard": reports("tree", 2.0)}


def test_a_cell_is_answered_as_a_query(tmp_path: Path) -> None:
    names = variables()
    expected = sv.query(names["made"], names["heard"], COUNT, level=0.9).to_rows()
    assert answer_cell("made heard --level 0.9 --into old", COUNT, names).to_rows() == expected
    assert names["old"].to_rows() == expected
    assert names["old"]._repr_html_().startswith("<")
    names["heard"].write(tmp_path / "reports.parquet")
    read = answer_cell(f"made {tmp_path}/reports.parquet --level 0.9", COUNT, names)
    assert read.to_rows() == expected


def test_bad_cells_are_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no variable 'plan'"):
        answer_cell("plan heard", COUNT, variables())
    with pytest.raises(InvalidInput, match="the following arguments are required: reports"):
        answer_cell("made", COUNT, variables())
    with pytest.raises(InvalidInput, match="argument --level: invalid float value"):
        answer_cell("made heard --level much", COUNT, variables())
    with pytest.raises(SqlError, match="no column 'agee'"):
        answer_cell("made heard", "SELECT COUNT(*) FROM people WHERE agee > 3", variables())


def test_the_extension_is_where_notebooks_look_for_it() -> None:
    class Shell:
        """What the extension uses of a shell."""

        def __init__(self) -> None:
            self.user_ns = variables()
            self.magics: dict[str, Any] = {}

        def register_magic_function(self, magic: Any, magic_kind: str, magic_name: str) -> None:
            self.magics[f"{magic_kind} {magic_name}"] = magic

    shell = Shell()
    sv.load_ipython_extension(shell)
    answer = shell.magics["cell sottovoce"]("made heard", COUNT)
    assert answer.to_rows() == sv.query(plan("tree", 2.0), reports("tree", 2.0), COUNT).to_rows()
