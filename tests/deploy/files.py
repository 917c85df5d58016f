"""The files of ``deploy/``, read as the programs read them that they are for."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "deploy"
UNIT, SETTINGS = FOLDER / "sottovoce.service", FOLDER / "sottovoce.env"


def variables(path: Path = SETTINGS) -> dict[str, str]:
    """The variables of an environment file."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def directives(name: str) -> list[str]:
    """The values of a directive of the unit."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.M)


@dataclass(frozen=True)
class Instruction:
    """A line of a container file."""

    name: str
    value: str

    @property
    def words(self) -> list[str]:
        """Of the form that no shell reads: ["a", "b"]."""
        return [str(word) for word in json.loads(self.value[self.value.index("[") :])]


def instructions() -> list[Instruction]:
    """Those of the container file, in order."""
    text = re.sub(r"^#.*\n", "", (FOLDER / "Containerfile").read_text(), flags=re.M).replace(
        "\\\n", " "
    )
    return [Instruction(*line.split(None, 1)) for line in text.splitlines() if line.strip()]


def container_environment() -> dict[str, str]:
    """The variables that the image sets."""
    (value,) = (each.value for each in instructions() if each.name == "ENV")
    return dict(pair.split("=", 1) for pair in shlex.split(value))
