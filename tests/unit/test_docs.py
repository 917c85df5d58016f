"""The documentation is complete, and what it shows runs."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.accounting.steps import STEP_KINDS
from sottovoce.ground.errors import SottovoceError
from sottovoce.oracles import ORACLES
from sottovoce.postprocessing import METHODS
from sottovoce.shuffle.peos import DgkPublicKey, ObliviousShuffler
from tests import layers, sentences

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MODULES = [
    "sottovoce",
    *(module.name for module in pkgutil.walk_packages(sv.__path__, "sottovoce.")),
]
KEYS = ("Guarantee:", "Assumes:", "Source:", "Checked:")


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


@pytest.mark.parametrize("name", list(sv.__all__))
def test_every_public_name_has_an_example(name: str) -> None:
    thing = getattr(sv, name)
    text = thing.__doc__ or ""
    assert text
    if not (isinstance(thing, type) and issubclass(thing, SottovoceError | Warning)):
        assert ">>>" in text


PARTS = (DgkPublicKey, ObliviousShuffler)  # of a shuffle


@pytest.mark.parametrize("kind", [*ORACLES, *STEP_KINDS, *PARTS], ids=lambda kind: kind.__name__)
def test_the_guarantee_stands_on_the_class_and_in_the_table(kind: type) -> None:
    text = kind.__doc__ or ""
    lines = {key: re.search(rf"{key}\s+(.+)", text) for key in KEYS}
    assert all(lines.values()), kind
    rows = [
        line
        for line in (DOCS / "guarantees.md").read_text().splitlines()
        if f"`{kind.__name__}`" in line
    ]
    assert len(rows) == 1
    checked = lines["Checked:"]
    assert checked is not None
    path = checked.group(1).strip()
    assert (ROOT / path).is_file()
    assert path in rows[0]
    key = lines["Source:"].group(1).split(",")[0].split(".")[0].split(";")[0].strip()  # type: ignore[union-attr]
    assert key in rows[0]
    assert f"**{key}**" in (DOCS / "references.md").read_text()


def test_every_cited_source_is_listed() -> None:
    known = set(re.findall(r"\*\*(\w+)\*\*", (DOCS / "references.md").read_text()))
    cited = set()
    for path in [*(ROOT / "src").rglob("*.py"), *DOCS.glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        cited |= set(re.findall(r"\b([a-z]+(?:19|20)\d\d[a-z]*)\b", path.read_text()))
    assert cited <= known, cited - known


def test_oracles_methods_and_errata_are_documented() -> None:
    oracles = (DOCS / "oracles.md").read_text()
    for kind in ORACLES:
        for name in kind.names:
            assert f"`{name}`" in oracles, name
    for method in METHODS:
        assert f"`{method}`" in (DOCS / "postprocessing.md").read_text(), method
    errata = (DOCS / "errata.md").read_text()
    assert all(re.search(rf"^{number}\. ", errata, re.MULTILINE) for number in range(1, 22))


SHOWN = [
    path
    for path in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    if "```python" in path.read_text()
]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.name)
def test_python_in_the_documents_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
    space: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, path, "exec", dont_inherit=True), space)


def test_links_in_the_documents_lead_somewhere() -> None:
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *DOCS.rglob("*.md"),
    ]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{path.name}: {link}"


PROSE = [
    *sorted(ROOT.glob("*.md")),
    *sorted(path for path in DOCS.rglob("*.md") if path.name != "references.md"),  # citations
    ROOT / "deploy" / "README.md",
    ROOT / "clients" / "js" / "README.md",
]


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_have_a_sentence_a_line(path: Path) -> None:
    assert sentences.faults(path.read_text()) == []


def test_two_sentences_in_a_line_are_found() -> None:
    assert doctest.testmod(sentences).failed == 0
    good = "- It holds at 0.5, e.g. in sec. 3.\n  So does `a. b`.\n\n| one. Two. |\n"
    assert sentences.faults(good) == []
    assert sentences.faults(good.replace("3.\n  So", "3. So")) == ["line 1 holds two sentences"]
    assert sentences.faults(good.replace("at 0.5, ", "at 0.5,\n  ")) == ["line 1 breaks a sentence"]
    assert sentences.faults(f"```\n{good}one. Two.\n```\n") == []


def test_the_map_of_the_readme_is_that_of_the_contract() -> None:
    assert f"```\n{layers.made()}\n```" in (ROOT / "README.md").read_text()
    folders = {path.parent.name for path in (ROOT / "src" / "sottovoce").glob("*/__init__.py")}
    assert {folder for line in layers.layers() for folder in line} == folders


def _rows(text: str) -> list[str]:
    """The rows of the table that says where a new line belongs."""
    table = text.split("| you want to add")[1].split("\n\n", maxsplit=1)[0]
    return table.splitlines()[2:]


@pytest.mark.parametrize("row", _rows((ROOT / "CONTRIBUTING.md").read_text()))
def test_every_row_of_contributing_names_what_is_there(row: str) -> None:
    """A folder or file to put it in; and files that hold the tuple, or the table, that they are
    said to hold.
    """
    _, place, lines = (part.strip() for part in row.strip("|").split(" | "))
    source = ROOT / "src" / "sottovoce"
    for name in re.findall(r"`([\w/.]+)`", place):
        assert (source / name).exists() or (ROOT / name).exists(), name
    found = re.findall(r"`([A-Z]+)` of `([\w/.]+)`", lines)
    assert found
    for name, file in found:
        path = ROOT / file if file.startswith("clients/") else source / file
        assert re.search(rf"^(const )?{name}\b.* = [({{]", path.read_text(), re.MULTILINE), (
            f"{file}: {name}"
        )


def test_no_class_name_stands_for_two_things() -> None:
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    names = re.findall(r"^class (\w+)", text, re.MULTILINE)
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


# one table of methods a folder, and what auto is there: what they do is said by the folder
NAMED_PER_FOLDER = {"METHODS", "DEFAULT"}


def _constants(text: str) -> set[str]:
    """The public names in upper case that a module assigns; type variables are no constants."""
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and "TypeVar(" not in ast.unparse(node):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part for target in targets for part in ast.walk(target)]
            found |= {part.id for part in names if isinstance(part, ast.Name) and part.id.isupper()}
    return {name for name in found if not name.startswith("_")}


def test_no_constant_stands_for_two_things() -> None:
    homes: dict[str, list[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for name in _constants(path.read_text()):
            homes.setdefault(name, []).append(path.name)
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    assert set(twice) == NAMED_PER_FOLDER, twice


def test_every_way_to_assign_a_constant_is_seen() -> None:
    text = "LOW, HIGH = 1, 2\nMOST: int = 3\n_OWN = 4\nT = TypeVar('T')\nALL = ONE, TWO = 6, 7"
    assert _constants(text) == {"LOW", "HIGH", "MOST", "ALL", "ONE", "TWO"}


def test_files_stay_short() -> None:
    for path in [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "bench").rglob("*.py"),
    ]:
        assert len(path.read_text().splitlines()) <= 500, path
