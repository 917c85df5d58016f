"""SQL over the reports of a store, in a process beside the collector.

The process keeps what it has read and fitted, so that only the first query of a survey is slow. Of
a plan without public columns it reads what the reports add up to; public columns are in the reports
alone, and of those only what came since the last query is read again.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sottovoce.ground.errors import InvalidInput, StoreError
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.reports import Reports
from sottovoce.service.limits import MAX_QUERY_ROWS
from sottovoce.store import Store, open_store

if TYPE_CHECKING:
    from sottovoce.questions.queries.sql.answer import QueryAnswer
    from sottovoce.questions.queries.sql.session import Session

REREAD_FACTOR = 3  # times as long as the last reading took, before there is another one
MAX_REREAD_WAIT = 60.0  # seconds, however long that was
MAX_KEPT_SESSIONS = 4
MAX_KEPT_REPORTS = 4_000_000  # of all sessions that are kept but the last


@dataclass(frozen=True)
class QueryPeople:
    """Of whom an answer is: how many, when they were read, and how many reports are missing."""

    people: int
    made: float  # unix time
    damaged: int


@dataclass
class _KeptSession:
    """A session of a survey as it stood at some moment."""

    session: Session
    of: QueryPeople
    version: int  # of the survey's reports
    reports: Reports | None  # None if sums were enough
    last: int  # sequence number of the last report
    seconds: float  # that it took
    ended: float  # by a clock that nobody sets

    def is_due(self, count: int, refresh_seconds: float) -> bool:
        """Whether there are other reports by now, and reading them again is not too often."""
        pause = max(refresh_seconds, min(REREAD_FACTOR * self.seconds, MAX_REREAD_WAIT))
        return count != self.of.people and time.monotonic() - self.ended > pause


# of the process: by address, and by plan's id with the one that was asked last at the end
_stores: dict[str, Store] = {}
_sessions: OrderedDict[str, _KeptSession] = OrderedDict()

Form = Callable[["QueryAnswer", QueryPeople], Any]


def answered(
    url: str, plan_text: str, sql: str, level: float, refresh_seconds: float, form: Form
) -> Any:
    """What ``form`` makes of the answer to a query."""
    if url not in _stores:
        _stores[url] = open_store(url)
    kept = _current(_stores[url], Plan.from_json(plan_text), refresh_seconds)
    return form(kept.session.ask(sql, level), kept.of)


def query_rows(answer: QueryAnswer, of: QueryPeople) -> bytes:
    """An answer as JSON: its rows, what to know of it, and how it was made."""
    rows = answer.to_rows()
    if len(rows) > MAX_QUERY_ROWS:
        raise InvalidInput(
            f"sql: its answer has {len(rows):,} numbers, and must have at most {MAX_QUERY_ROWS:,} "
            "here; group by fewer values, or add LIMIT"
        )
    body = {
        "people": of.people,
        "made": of.made,
        "damaged": of.damaged,
        "level": answer.level,
        "rows": rows,
        "notes": list(answer.notes),
        "explanation": answer.explanation.to_json(),
    }
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _current(store: Store, plan: Plan, refresh_seconds: float) -> _KeptSession:
    """The session of a plan: the one that is kept, unless it is due to be made again."""
    kept = _sessions.pop(plan.id, None)
    if kept is not None and kept.version != store.kept(plan).version:
        kept.session.close()  # reports were deleted: nothing is built upon what was read before
        kept = None
    if kept is None or kept.is_due(store.count(plan), refresh_seconds):
        older, kept = kept, _read(store, plan, kept)
        if older is not None:
            older.session.close()
    _sessions[plan.id] = kept
    _let_go()
    return kept


def _read(store: Store, plan: Plan, older: _KeptSession | None) -> _KeptSession:
    """A session of now; reports that an older one has read are not read again."""
    from sottovoce.questions.queries.sql import open_session  # the collector loads none of it

    start = time.perf_counter()
    version = store.kept(plan).version
    made = time.time()
    if not plan.columns or store.kept(plan).only_sums:
        reports, last = None, 0
        session = open_session(plan, store.aggregate(plan))
    else:
        reports, last = _reports(store, plan, older)
        session = open_session(plan, reports)
    after = store.kept(plan)
    if after.version != version:
        session.close()
        raise StoreError("store: reports of the survey were deleted while they were read")
    of = QueryPeople(session.source.people, made, after.missing)
    seconds = time.perf_counter() - start
    return _KeptSession(session, of, version, reports, last, seconds, time.monotonic())


def _reports(store: Store, plan: Plan, older: _KeptSession | None) -> tuple[Reports, int]:
    """(all reports, the sequence number of the last)."""
    parts, last = [], 0
    if older is not None and older.reports is not None:
        parts, last = [older.reports], older.last
    for number, _, batch in store.read(plan, last):
        parts.append(batch)
        last = number
    return (Reports.concat(parts) if parts else Reports.empty(plan)), last


def _let_go() -> None:
    """Forget the sessions that were not asked for longest, if they are many or large."""
    size = sum(kept.of.people for kept in _sessions.values() if kept.reports is not None)
    while len(_sessions) > 1 and (len(_sessions) > MAX_KEPT_SESSIONS or size > MAX_KEPT_REPORTS):
        _, oldest = _sessions.popitem(last=False)
        size -= oldest.of.people if oldest.reports is not None else 0
        oldest.session.close()
