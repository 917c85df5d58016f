"""The people of the benchmarks of engines: workers import them from here."""

from __future__ import annotations

from typing import Any

import numpy as np

import sottovoce as sv


def numbers(block: int, rows: int) -> dict[str, Any]:
    """The same for every block of a crowd."""
    return {"x": np.random.default_rng(block).integers(0, 256, rows)}


def plan_of(bits: int) -> sv.Plan:
    """Local hashing of 2^bits values."""
    schema = sv.Schema(x=sv.Integer(bits=bits))
    return sv.plan(schema, sv.Frequencies("x", oracle="olh"), epsilon=1.0, people=10**8)
