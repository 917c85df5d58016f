"""The map of the layers, made from the contract in pyproject.toml: `python -m tests.layers` prints
README's.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH = 24  # columns of a line's names


def layers() -> list[list[str]]:
    """The lines of the contract, from the command line down to the ground; a line's folders are
    neighbours.
    """
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    lines = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [line.split(" | ") for line in lines]


def about(folder: str) -> str:
    """What a folder is for: the first line of its docstring."""
    text = (ROOT / "src" / "sottovoce" / folder / "__init__.py").read_text()
    return (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]


def made() -> str:
    """The map as the README has it."""
    lines = []
    for line in layers():
        told = " | ".join(about(folder).rstrip(".") for folder in line)
        lines.append(f" {' | '.join(line):<{WIDTH}}{told}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(made())
