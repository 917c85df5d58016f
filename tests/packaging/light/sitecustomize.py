"""On PYTHONPATH this makes an interpreter, and those that it starts, one without the libraries
named in WITHOUT.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

MISSING = set(os.environ.get("WITHOUT", "").split())


class Without(PathFinder):
    """Finds everything else where it is."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in MISSING:
            return None
        return PathFinder.find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
