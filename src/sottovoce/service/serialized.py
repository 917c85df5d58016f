"""What an estimate says, as it is sent: rows in JSON, tables in CSV, the next round's plan.

All of it runs in a process beside the collector, which passes on bytes and never holds a table.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sottovoce.api.planning import next_plan
from sottovoce.api.surveys import Survey
from sottovoce.protocol.plan import Plan
from sottovoce.results.estimate import Estimate
from sottovoce.results.spreadsheets import LARGEST_FIRST, csv_parts, ordered


@dataclass(frozen=True)
class KeptEstimate:
    """An estimate as the estimating process keeps it, in a file of its own."""

    estimate: Estimate
    people: int
    made: float  # unix time
    damaged: int = 0  # reports that were acknowledged and are not in it


def keep(kept: KeptEstimate, path: Path) -> None:
    """Write it; who reads sees the one before or this one, never a part."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        pickle.dump(kept, file, pickle.HIGHEST_PROTOCOL)
    os.replace(partial, path)


def kept_in(path: Path) -> KeptEstimate:
    """The estimate in a file that :func:`keep` wrote."""
    with path.open("rb") as file:
        kept = pickle.load(file)
    assert isinstance(kept, KeptEstimate)
    return kept


@dataclass(frozen=True)
class Page:
    """Which rows of an answer: ``limit`` of them after the first ``offset``, the largest first or
    as in the schema.
    """

    limit: int
    offset: int = 0
    order: str = LARGEST_FIRST

    def to_json(self, total: int) -> dict[str, Any]:
        """What an answer says of its rows."""
        return {"total": total, "offset": self.offset, "limit": self.limit, "order": self.order}


def estimates_page(path: Path, problem: str | None, level: float, page: Page) -> bytes:
    """Rows of all tables that are listed, one table after the other."""
    kept = kept_in(path)
    estimate = kept.estimate
    body: dict[str, Any] = {"people": kept.people, "made": kept.made, "problem": problem}
    body["damaged"] = kept.damaged
    body["has_next"] = estimate.next is not None
    tables: list[dict[str, Any]] = []
    before = 0  # rows of the tables before
    for table in estimate.tables.values():
        count = len(table.values)
        rows = range(max(page.offset - before, 0), min(page.offset + page.limit - before, count))
        before += count
        if rows:
            told = estimate.page(table, ordered(table, page.order)[rows.start : rows.stop], level)
            tables.append(told.pop("tables")[0] | {"total": count, "offset": rows.start})
            body |= told
    return _json(body | page.to_json(before) | {"tables": tables})


def marginal_page(path: Path, names: tuple[str, ...], level: float, page: Page) -> bytes:
    """Rows of the table of these attributes."""
    table = kept_in(path).estimate.marginal(*names)
    places = ordered(table, page.order)[page.offset : page.offset + page.limit]
    return _json(table.at(places).to_json(level) | page.to_json(len(table.values)))


def write_table(path: Path, names: Sequence[str], level: float, order: str, out: Path) -> None:
    """The whole table of these attributes, into a file."""
    table = kept_in(path).estimate.marginal(*names)
    with out.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_parts(table, level, order))


def next_text(path: Path, plan_text: str) -> tuple[int, str | None]:
    """(people heard, the plan of the next round if there is one)"""
    kept = kept_in(path)
    following = next_plan(Plan.from_json(plan_text), kept.estimate)
    return kept.people, None if following is None else following.to_json()


def planned_text(body: Mapping[str, Any]) -> str:
    """The plan of a survey as people describe it."""
    return Survey.parse(body).plan().to_json()


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
