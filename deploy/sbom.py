"""``python deploy/sbom.py LOCK -o FILE``: the packages of a lock as a CycloneDX 1.6 bill of
materials.

The same lock gives the same bytes, but for licences: those are read from installed packages of the
same version. The hashes of files stay in the lock, which names all files of a package, one of which
is installed.
"""

from __future__ import annotations

import argparse
import json
import tomllib
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


def locked(text: str) -> Iterator[Requirement]:
    """The pinned packages of a lock."""
    for line in text.splitlines():
        if line and line[0] not in "# ":
            yield Requirement(line.removesuffix("\\").strip())


def version_of(pinned: Requirement) -> str:
    """The one version that a line of a lock admits."""
    (only,) = pinned.specifier
    return only.version


def component(pinned: Requirement) -> dict[str, Any]:
    """One package."""
    name, version = canonicalize_name(pinned.name), version_of(pinned)
    purl = f"pkg:pypi/{name}@{version}"
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }
    licence = _licence(name, version)
    if licence is not None:
        made["licenses"] = [licence]
    if pinned.marker is not None:
        made["properties"] = [{"name": "sottovoce:marker", "value": str(pinned.marker)}]
    return made


def _licence(name: str, version: str) -> dict[str, Any] | None:
    """What the installed package of this version states, if it is installed and states it in one
    line.
    """
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return None
    if found["Version"] != version:
        return None
    if found.get("License-Expression"):
        return {"expression": found["License-Expression"]}
    stated = found.get("License") or ""
    if stated and "\n" not in stated:
        return {"license": {"name": stated}}
    listed = [
        each.rpartition(" :: ")[2]
        for each in found.get_all("Classifier") or []
        if each.startswith("License")
    ]
    return {"license": {"name": ", ".join(listed)}} if listed else None


def bill(lock: str) -> dict[str, Any]:
    """The bill of materials of a lock's text."""
    name, version = PROJECT["name"], PROJECT["version"]
    purl = f"pkg:pypi/{name}@{version}"
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{purl}\n{lock}")
    parts = sorted(
        (component(each) for each in locked(lock)), key=lambda part: str(part["bom-ref"])
    )
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "licenses": [{"expression": PROJECT["license"]}],
            }
        },
        "components": parts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lock", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(
        json.dumps(bill(asked.lock.read_text(encoding="utf-8")), indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
