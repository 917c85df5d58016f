"""Packages of others, put into a folder on the path as an installer does."""

from __future__ import annotations

from pathlib import Path


class Site:
    """A folder on the path, and packages in it with entry points of one group."""

    def __init__(self, folder: Path, group: str) -> None:
        self.folder = folder
        self.group = group

    def install(self, package: str, code: str, **brought: str) -> None:
        """``brought``: the class of the code for each name."""
        module = package.replace("-", "_")
        (self.folder / f"{module}.py").write_text(code)
        about = self.folder / f"{module}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {module}:{kind}" for name, kind in brought.items()]
        (about / "entry_points.txt").write_text("\n".join([f"[{self.group}]", *lines]) + "\n")
