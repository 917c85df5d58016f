"""Files that are either whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sottovoce.errors import InvalidInput


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a temporary neighbour; it takes the name ``path`` only if the block ends well."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInput(f"output ({target}) must lie in a folder that exists")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
