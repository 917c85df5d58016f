"""The locks satisfy pyproject.toml and name every file by its hash; the bill of materials says the
same.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from sottovoce.ground.extras import EXTRAS

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD = SETTINGS["project"], SETTINGS["build-system"]["requires"]
LOCKS = {"collector": ("collector", "postgres"), "all": ("all",)}
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
IMPORTED_AS = {
    "dp-accounting": "dp_accounting",
    "scikit-learn": "sklearn",
    "vl-convert-python": "vl_convert",
}


def wanted(*extras: str) -> Iterator[Requirement]:
    """What an install with these extras requires directly."""
    yield from map(Requirement, PROJECT["dependencies"])
    for extra in extras:
        for each in map(Requirement, PROJECT["optional-dependencies"][extra]):
            if canonicalize_name(each.name) == PROJECT["name"]:
                yield from wanted(*each.extras)
            else:
                yield each


def pinned(name: str) -> dict[str, list[Version]]:
    """The versions of a lock, for one platform or another, by the name of the package."""
    found: dict[str, list[Version]] = {}
    for line in (ROOT / "deploy" / f"{name}.lock").read_text(encoding="utf-8").splitlines():
        if line[0] not in "# ":
            requirement = Requirement(line.removesuffix("\\").strip())
            (only,) = requirement.specifier
            assert only.operator == "=="
            found.setdefault(canonicalize_name(requirement.name), []).append(Version(only.version))
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_the_lock_satisfies_the_requirements(name: str) -> None:
    versions = pinned(name)
    for requirement in (*wanted(*LOCKS[name]), *map(Requirement, BUILD)):
        chosen = versions[canonicalize_name(requirement.name)]
        assert all(version in requirement.specifier for version in chosen), requirement


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_is_a_version_or_a_hash(name: str) -> None:
    lines = (ROOT / "deploy" / f"{name}.lock").read_text(encoding="utf-8").splitlines()
    assert not [
        line
        for line in lines
        if "://" in line or line.lstrip().startswith(("--index", "--extra", "--find"))
    ]
    for before, line in zip(lines, [*lines[1:], ""], strict=True):
        if before[0] not in "# ":
            assert before.endswith(" \\")
            assert HASH.fullmatch(line), before
        elif before[0] == " ":
            assert HASH.fullmatch(before), before


def test_a_collector_is_locked_without_the_analysis_libraries() -> None:
    heavy = {
        canonicalize_name(Requirement(each).name)
        for each in PROJECT["optional-dependencies"]["analysis"]
    }
    assert heavy.isdisjoint(pinned("collector"))
    assert heavy <= set(pinned("all"))


def test_every_library_of_an_extra_can_be_named_by_an_error() -> None:
    for extra in (
        "accounting",
        "analysis",
        "queries",
        "collector",
        "peos",
        "postgres",
        "spark",
        "studio",
    ):
        names = {
            canonicalize_name(Requirement(each).name)
            for each in PROJECT["optional-dependencies"][extra]
        }
        names -= {
            PROJECT["name"],
            "httptools",
            "uvloop",
        }  # uvicorn does without these two, only more slowly
        libraries = {IMPORTED_AS.get(name, name) for name in names}
        assert libraries == {library for library, of in EXTRAS.items() if of == extra} - {
            "pydantic"
        }  # by fastapi


@pytest.mark.parametrize("name", LOCKS)
def test_the_bill_of_materials_lists_what_is_locked(name: str, tmp_path: Path) -> None:
    made = []
    for number in range(2):
        out = tmp_path / f"{number}.json"
        lock = ROOT / "deploy" / f"{name}.lock"
        subprocess.run([sys.executable, ROOT / "deploy" / "sbom.py", lock, "-o", out], check=True)
        made.append(out.read_bytes())
    assert made[0] == made[1]
    bill = json.loads(made[0])
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert bill["metadata"]["component"]["name"] == PROJECT["name"]
    listed = sorted((part["name"], Version(part["version"])) for part in bill["components"])
    assert listed == sorted(
        (package, version) for package, versions in pinned(name).items() for version in versions
    )
    assert len({part["bom-ref"] for part in bill["components"]}) == len(listed)
    assert any("licenses" in part for part in bill["components"])
