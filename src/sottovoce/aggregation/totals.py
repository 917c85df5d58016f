"""Files of totals: an aggregate by itself, as `sottovoce fold` writes it."""

from __future__ import annotations

import os
from pathlib import Path

from sottovoce.aggregation.aggregate import AGGREGATE_MAGIC, Aggregate
from sottovoce.ground.errors import SottovoceError
from sottovoce.ground.files import replacing
from sottovoce.protocol.plan import Plan

ENDING = ".sva"  # of the names of such files


def write_total(path: str | os.PathLike[str], total: Aggregate) -> int:
    """Write an aggregate to a file, whole or not there; how many bytes it has.

    >>> import sottovoce as sv, tempfile
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> total = sv.Aggregate(plan).add(sv.simulate(plan, {"x": [True] * 10}, seed=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_total(f"{folder}/total.sva", total)
    ...     read_total(plan, f"{folder}/total.sva") == total
    True
    """
    data = total.to_bytes()
    with replacing(path) as draft:
        draft.write_bytes(data)
    return len(data)


def read_total(plan: Plan, path: str | os.PathLike[str]) -> Aggregate:
    """The aggregate that :func:`write_total` wrote; refuses damaged files and other plans."""
    try:
        return Aggregate.from_bytes(plan, Path(path).read_bytes())
    except SottovoceError as wrong:
        raise type(wrong)(f"total ({path}): {wrong}") from None


def is_total(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds an aggregate rather than reports: by its name, or by how it begins."""
    if not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        return Path(path).suffix == ENDING or file.read(len(AGGREGATE_MAGIC)) == AGGREGATE_MAGIC
