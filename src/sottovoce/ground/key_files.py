"""Secret keys in files that only their owner can read."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from sottovoce.ground.errors import InvalidInput

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_key_file(path: Path, head: str, key: bytes, why: str) -> None:
    """Write a key to a new file, durably, behind the words ``head``; ``why``: none is replaced."""
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise InvalidInput(f"output ({path}) must not exist yet: {why}") from None
    except OSError as wrong:
        raise InvalidInput(f"output ({path}) cannot be written ({wrong.strerror})") from None
    with os.fdopen(file, "w", encoding="ascii") as out:
        out.write(f"{head} {key.hex()}\n")
        out.flush()
        os.fsync(out.fileno())


def read_key_file(path: Path, head: str, size: int, command: str) -> bytes:
    """The key of ``size`` bytes in such a file; refuses a file that others can read."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError as wrong:
        raise InvalidInput(f"key ({path}) cannot be read ({wrong.strerror})") from None
    if mode & _OTHERS:
        raise InvalidInput(f"key ({path}) must be for its owner alone; see: chmod 600 {path}")
    found = re.fullmatch(f"{head} ([0-9a-f]{{{2 * size}}})\n", text)
    if found is None:
        raise InvalidInput(f"key ({path}) must be a file that `{command}` wrote")
    return bytes.fromhex(found[1])
