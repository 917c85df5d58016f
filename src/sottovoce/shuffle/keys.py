"""A hop's private key in a file that only its owner can read."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from sottovoce.device.sealing import X25519_BYTES, PrivateKey
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.errors import InvalidInput

_HEAD = "sottovoce private key 1 "
_LINE = re.compile(f"{_HEAD}([0-9a-f]{{{2 * X25519_BYTES}}})\n")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def new_key(path: Path, entropy: Entropy) -> PrivateKey:
    """Draw a key and write it to a new file; refuses to replace one."""
    key = PrivateKey.generate(entropy)
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise InvalidInput(
            f"output ({path}) must not exist yet: a key that a plan names cannot be drawn again"
        ) from None
    except OSError as wrong:
        raise InvalidInput(f"output ({path}) cannot be written ({wrong.strerror})") from None
    with os.fdopen(file, "w", encoding="ascii") as out:
        out.write(f"{_HEAD}{key.raw.hex()}\n")
        out.flush()
        os.fsync(out.fileno())
    return key


def read_key(path: Path) -> PrivateKey:
    """The key of such a file; refuses a file that others can read."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError as wrong:
        raise InvalidInput(f"key ({path}) cannot be read ({wrong.strerror})") from None
    if mode & _OTHERS:
        raise InvalidInput(f"key ({path}) must be for its owner alone; see: chmod 600 {path}")
    found = _LINE.fullmatch(text)
    if found is None:
        raise InvalidInput(f"key ({path}) must be a file that `sottovoce key new` wrote")
    return PrivateKey(bytes.fromhex(found[1]))
