"""Reports in a table that Spark alone may read: a DataFrame, whose partitions are folded as they
come to the workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sottovoce.engine.tasks import plan_of
from sottovoce.ground.errors import InvalidInput, PlanMismatch
from sottovoce.ground.extras import imported
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import STREAM_BATCH, Reports

COHORT, PAYLOAD, PLAN = "cohort", "payload", "plan"
_WHOLE = ("tinyint", "smallint", "int", "bigint")  # in Spark's words
_KINDS = {COHORT: _WHOLE, PAYLOAD: ("binary",), PLAN: ("string",)}


def checked_columns(plan: Plan, types: dict[str, str]) -> list[str]:
    """The columns to read of a DataFrame, by the types of all that it has.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1, people=1000)
    >>> checked_columns(plan, {"cohort": "bigint", "payload": "binary", "day": "date"})
    ['cohort', 'payload']
    """
    if plan.columns:
        raise InvalidInput(
            "reports: a DataFrame is for plans without public columns; write the others as Parquet"
        )
    wanted = [name for name in (COHORT, PAYLOAD, PLAN) if name != PLAN or name in types]
    for name in wanted:
        if types.get(name) not in _KINDS[name]:
            found = types.get(name, "none")
            raise InvalidInput(
                f"reports: the DataFrame must have a column {name!r} of type "
                f"{' or '.join(_KINDS[name])}, and has {found}"
            )
    return wanted


@dataclass(frozen=True)
class FrameRows:
    """Makes a job of the Arrow batches of one partition: they are read once, as they come."""

    plan_text: str
    plan_id: str

    def __call__(self, batches: Iterable[Any]) -> FrameJob:
        return FrameJob((FramePart(plan_of(self.plan_text, self.plan_id), batches),))


@dataclass(frozen=True, eq=False)
class FramePart:
    """The rows of a partition."""

    plan: Plan
    batches: Iterable[Any]

    def stream(self) -> Iterator[Reports]:
        """Its reports, in batches of about ``STREAM_BATCH``, however Spark cut them."""
        held: list[Any] = []
        rows = 0
        for batch in self.batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= STREAM_BATCH:
                yield self._reports(held)
                held, rows = [], 0
        if rows:  # a batch may be empty
            yield self._reports(held)

    def _reports(self, batches: list[Any]) -> Reports:
        table = imported("pyarrow").Table.from_batches(batches)
        if PLAN in table.column_names and table.column(PLAN).unique().to_pylist() != [self.plan.id]:
            raise PlanMismatch("reports: rows of the DataFrame belong to another plan, or to none")
        return Reports.from_columns(self.plan, table.column(COHORT), table.column(PAYLOAD))


@dataclass(frozen=True, eq=False)
class FrameJob:
    """The one part of a partition."""

    parts: tuple[FramePart, ...]
