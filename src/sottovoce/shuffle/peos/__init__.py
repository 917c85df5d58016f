"""Private encrypted oblivious shuffle: several parties permute reports that none of them can read,
and the analyst reads them in an order that none of them knows.

>>> import numpy as np
>>> from sottovoce.ground.entropy import Seeded
>>> shares = split(np.array([7, 9], np.uint64), 3, Seeded(1))
>>> (shares[0] + shares[1] + shares[2]).tolist()
[7, 9]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sottovoce.ground.extras import require_extra

require_extra("peos", "the private encrypted oblivious shuffle")

if TYPE_CHECKING:
    from sottovoce.shuffle.peos.run import PartyStopped, PeosCosts, PeosResult, peos_run
    from sottovoce.shuffle.peos.words import ReportWords

from sottovoce.shuffle.peos.dgk import (  # noqa: E402 - the error above names what to install
    FULL_MODULUS_BITS,
    TEST_MODULUS_BITS,
    DgkPrivateKey,
    DgkPublicKey,
)
from sottovoce.shuffle.peos.oblivious import ObliviousShuffler, shuffle_rounds  # noqa: E402
from sottovoce.shuffle.peos.shares import split  # noqa: E402

__all__ = [
    "FULL_MODULUS_BITS",
    "TEST_MODULUS_BITS",
    "DgkPrivateKey",
    "DgkPublicKey",
    "ObliviousShuffler",
    "PartyStopped",
    "PeosCosts",
    "PeosResult",
    "ReportWords",
    "peos_run",
    "shuffle_rounds",
    "split",
]

# What knows plans: a party's process never needs it, and starts in a fraction of the time.
_LATER = dict.fromkeys(("PartyStopped", "PeosCosts", "PeosResult", "peos_run"), "run") | {
    "ReportWords": "words"
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
