"""Which reports of a call are new, which are there already, and which contradict what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.device.assignment import ID_BYTES
from sottovoce.ground.errors import SottovoceError, SurveyClosed, UnknownPlan
from sottovoce.protocol.reports import Reports
from sottovoce.store.base import Ids, Outcome, Outcomes, Part

Keys = NDArray[np.bytes_]  # ids as one column that sorts as their bytes do
Content = tuple[int, int, bytes]  # the store's number of the plan, the cohort, the payload
# what cannot be known any more: whoever repeats the id is not told otherwise
DAMAGED: Content = (
    -1,
    -1,
    b"",
)


@dataclass(frozen=True)
class IncomingBatch:
    """A part of a call that its shape does not forbid; ``place`` is where in the call it was."""

    place: int
    number: int  # the store's number of the plan
    ids: Ids
    reports: Reports

    def content(self, row: int) -> Content:
        return self.number, int(self.reports.cohorts[row]), self.reports.payload[row].tobytes()


def admitted(
    parts: Sequence[Part], results: list[Any], survey: Callable[[str], tuple[int, bool] | None]
) -> list[IncomingBatch]:
    """The parts without a result whose survey is open; ``survey``: (number, closed) by plan id."""
    found: dict[str, int | SottovoceError] = {}
    batches = []
    for place, (plan, ids, reports) in enumerate(parts):
        if results[place] is not None:
            continue
        if plan.id not in found:
            found[plan.id] = _open_number(survey(plan.id))
        number = found[plan.id]
        if isinstance(number, SottovoceError):
            results[place] = number
        else:
            batches.append(IncomingBatch(place, number, ids, reports))
    return batches


def _open_number(survey: tuple[int, bool] | None) -> int | SottovoceError:
    if survey is None:
        return UnknownPlan("plan: the store has no plan with this id")
    number, closed = survey
    return SurveyClosed("survey: it is closed and takes no more reports") if closed else number


def keys_of(ids: Ids) -> Keys:
    """Ids as strings of 16 bytes; numpy drops zeros at their ends, which merges none."""
    keys: Keys = np.ascontiguousarray(ids).view(f"S{ID_BYTES}").reshape(-1)
    return keys


def repeated(keys: Keys) -> Keys:
    """The keys that occur more than once."""
    ordered = np.sort(keys)
    again: Keys = ordered[1:][ordered[1:] == ordered[:-1]]
    return again


def settle(batches: Sequence[IncomingBatch], known: Mapping[bytes, Content]) -> list[Outcomes]:
    """The outcomes of batches one after another, given the content of those ids that the store has.

    A batch with a CONFLICT leaves nothing behind that a later one could repeat.
    """
    suspects = np.concatenate([*(keys_of(batch.ids) for batch in batches)])
    suspects = np.concatenate([repeated(suspects), np.array(list(known), f"S{ID_BYTES}")])
    taken = dict(known)
    results = []
    for batch in batches:
        outcomes = np.zeros(len(batch.ids), np.uint8)
        new: dict[bytes, Content] = {}
        for row in np.flatnonzero(np.isin(keys_of(batch.ids), suspects)).tolist():
            key, content = batch.ids[row].tobytes(), batch.content(row)
            other = new.get(key) or taken.get(key)
            if other is None:
                new[key] = content
            else:
                outcomes[row] = (
                    Outcome.DUPLICATE if other in (content, DAMAGED) else Outcome.CONFLICT
                )
        if not (outcomes == Outcome.CONFLICT).any():
            taken |= new
        results.append(outcomes)
    return results


def rows_to_store(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Which rows of a batch go into the store."""
    if (outcomes == Outcome.CONFLICT).any():
        return np.zeros(len(outcomes), np.bool_)
    fresh: NDArray[np.bool_] = outcomes == Outcome.STORED
    return fresh


def by_plan(
    batches: Sequence[IncomingBatch], outcomes: Sequence[Outcomes]
) -> Iterator[tuple[int, Ids, Reports]]:
    """(the store's number of a plan, ids, reports) to store, one a plan, in the call's order."""
    chosen: dict[int, list[tuple[Ids, Reports]]] = {}
    for batch, outcome in zip(batches, outcomes, strict=True):
        ids, reports = batch.ids, batch.reports
        if outcome.any():
            rows: Any = rows_to_store(outcome)
            ids, reports = ids[rows], reports[rows]
        if len(ids):
            chosen.setdefault(batch.number, []).append((ids, reports))
    for number, parts in chosen.items():
        if len(parts) == 1:
            yield number, *parts[0]
        else:
            yield (
                number,
                np.concatenate([ids for ids, _ in parts]),
                Reports.concat(part for _, part in parts),
            )
