"""Every oracle in small and in ordinary shape, for tests that run on all of them."""

from __future__ import annotations

from typing import Any

import sottovoce as sv
from sottovoce.oracles import ORACLES, Oracle, options_of

NAMES = tuple(kind.names[0] for kind in ORACLES)

# options that keep the outputs few enough to list
SMALL: dict[str, dict[str, Any]] = {
    "cms": {"hashes": 2, "width": 4},
    "hcms": {"hashes": 4, "width": 4},
    "rappor": {"cohorts": 2, "buckets": 4},
    "o-rappor": {"cohorts": 2, "buckets": 4},
    "o-rr": {"cohorts": 4},
}
ENUMERABLE = tuple(
    name for name in NAMES if name not in ("she", "olh-seeded", "olh-wide", "olh-sets")
)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)


def sizes(name: str, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that an oracle takes: randomized response has two values."""
    return (2,) if name == "rr" else wanted


def small(name: str, size: int, epsilon: float, **options: Any) -> Oracle:
    """An oracle whose channel can be listed."""
    return sv.oracle(name, size=size, epsilon=epsilon, **SMALL.get(name, {}) | options)


def ordinary(name: str, epsilon: float, size: int = 64, salt: int = 0) -> Oracle:
    """An oracle as a user gets it, with a salt where it takes one."""
    salted = {"salt": salt} if "salt" in options_of(name) else {}
    return sv.oracle(name, size=2 if name == "rr" else size, epsilon=epsilon, **salted)
