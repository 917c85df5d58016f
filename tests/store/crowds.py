"""Small plans, their reports, and ids as devices choose them."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.protocol.reports import Reports

MINUTE = 0x0199_0000_0000  # unix milliseconds of some minute, as ids tell it
SCHEMA = sv.Schema(
    a=sv.Categorical(range(3)), b=sv.Categorical(range(40)), c=sv.Categorical(range(2))
)


@cache
def plan(name: str = "x") -> sv.Plan:
    """One attribute through one oracle."""
    asked = sv.Frequencies(name, oracle="grr")
    return sv.plan(sv.Schema(**{name: sv.Categorical(range(5))}), asked, epsilon=1.0, people=1000)


@cache
def marginals(method: str = "marg-rr") -> sv.Plan:
    """Marginals: by ``marg-rr`` in cohorts whose payloads differ in length."""
    return sv.plan(SCHEMA, sv.Marginals(up_to=2, method=method), epsilon=1.0, people=1000)


def reports(count: int, seed: int = 1, of: sv.Plan | None = None) -> Reports:
    """A crowd's reports."""
    asked = of or plan()
    draws = np.random.default_rng(seed)
    return sv.simulate(
        asked,
        {name: draws.integers(0, kind.size, count) for name, kind in asked.schema.items()},
        seed,
    )


def ids(count: int, seed: int = 1, minute: int = 0) -> NDArray[np.uint8]:
    """Ids of one minute."""
    out = np.random.default_rng([seed, minute]).integers(0, 256, (count, 16), dtype=np.uint8)
    out[:, :6] = np.frombuffer((MINUTE + (minute << 16)).to_bytes(6, "big"), np.uint8)
    return out
