"""Each id once, whatever was sent how often, and by whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.store.base import Ids
from sottovoce.store.sqlite_parts import COHORT_BYTES


@dataclass(frozen=True)
class Chosen:
    """Which of many reports count."""

    is_kept: NDArray[np.bool_] | None  # None: all of them
    duplicates: int  # reports that do not count: their id does already
    conflicts: int  # ids under which there are different contents


def each_once(plan: Plan, ids: Ids, reports: Reports) -> Chosen:
    """One report of each id: of different ones that whose bytes are the smallest.

    The bytes are those of the cohort (four, the highest first), of the payload and of the public
    values as a store keeps them. So the choice does not depend on who came first, and where.

    >>> import sottovoce as sv
    >>> plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1.0, people=1000)
    >>> some = sv.simulate(plan, {"x": [True, False]}, seed=1)
    >>> each_once(plan, np.zeros((2, 16), np.uint8), some).duplicates
    1
    """
    # the bytes that chance alone wrote tell nearly all ids apart, in one sort
    ends = np.ascontiguousarray(ids[:, 8:]).view(">u8").reshape(-1).astype(np.uint64)
    order = np.argsort(ends)
    ordered = ends[order]
    is_equal = ordered[1:] == ordered[:-1]
    if not is_equal.any():
        return Chosen(None, 0, 0)
    is_suspect = np.zeros(len(ids), bool)
    is_suspect[1:] |= is_equal
    is_suspect[:-1] |= is_equal
    suspects = order[is_suspect]
    starts = np.ascontiguousarray(ids[suspects, :8]).view(">u8").reshape(-1).astype(np.uint64)
    ranks = _ranks(plan, reports[suspects])
    inner = np.lexsort((ranks, ends[suspects], starts))
    suspects, starts, ranks = suspects[inner], starts[inner], ranks[inner]
    own = ends[suspects]
    is_first = np.ones(len(suspects), bool)
    is_first[1:] = (starts[1:] != starts[:-1]) | (own[1:] != own[:-1])
    group = np.cumsum(is_first) - 1
    is_other = ranks != ranks[is_first][group]  # than the smallest of its id
    is_kept = np.ones(len(ids), bool)
    is_kept[suspects[~is_first]] = False
    conflicts = len(np.unique(group[is_other]))
    return Chosen(is_kept, int(np.count_nonzero(~is_first)), conflicts)


def _ranks(plan: Plan, reports: Reports) -> NDArray[np.int64]:
    """The place of each report's bytes among all of them, the smallest first."""
    count = len(reports)
    cohorts = reports.cohorts.astype(">u4").view(np.uint8).reshape(count, COHORT_BYTES)
    parts = [cohorts, reports.payload]
    if plan.columns:
        parts.append(plan.public.to_rows(reports.public, count))
    rows = np.ascontiguousarray(np.concatenate(parts, axis=1))
    # strings of one length sort as their bytes do; numpy drops zeros at their ends: merges none
    ranks: NDArray[np.int64] = np.unique(
        rows.view(f"S{rows.shape[1]}").reshape(-1), return_inverse=True
    )[1]
    return ranks
