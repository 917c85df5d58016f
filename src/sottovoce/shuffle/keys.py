"""A hop's private key in a file that only its owner can read."""

from __future__ import annotations

from pathlib import Path

from sottovoce.device.sealing import X25519_BYTES, PrivateKey
from sottovoce.ground.entropy import Entropy
from sottovoce.ground.key_files import read_key_file, write_key_file

_HEAD = "sottovoce private key 1"


def new_key(path: Path, entropy: Entropy) -> PrivateKey:
    """Draw a key and write it to a new file; refuses to replace one."""
    key = PrivateKey.generate(entropy)
    write_key_file(path, _HEAD, key.raw, "a key that a plan names cannot be drawn again")
    return key


def read_key(path: Path) -> PrivateKey:
    """The key of such a file; refuses a file that others can read."""
    return PrivateKey(read_key_file(path, _HEAD, X25519_BYTES, "sottovoce key new"))
