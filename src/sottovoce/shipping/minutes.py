"""Folding by the minute: copies of one id share its minute, so each minute is folded by itself.

What is folded is told by names (:mod:`sottovoce.shipping.layout`), and files are written whole, new
ones before old ones are removed. So a run that is killed leaves nothing that the next one does not
put right, and a minute that gets a late file has another name, and is folded again.
"""

from __future__ import annotations

import fcntl
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import local

import numpy as np

from sottovoce.aggregation.aggregate import Aggregate
from sottovoce.aggregation.file_fold import MAX_PARTS_BYTES
from sottovoce.ground.errors import CorruptReport, PlanMismatch, StoreError
from sottovoce.ground.threads import thread_count
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.report_files import parse_with_ids
from sottovoce.protocol.reports import Reports
from sottovoce.shipping.layout import (
    DAMAGED_FOLDER,
    FINISHED,
    LATE_FOLDER,
    DayTotal,
    Listing,
    MinuteTotal,
    Segment,
    day_of,
    digest,
    digest_of_names,
    minute_at,
    plan_folder,
)
from sottovoce.shipping.once import each_once
from sottovoce.shipping.places import Place
from sottovoce.shipping.totals import PartTotal, add_part, read_part
from sottovoce.store.base import Ids
from sottovoce.store.id_index import minutes_of

FOLD_AFTER = 120.0  # seconds after its end until a minute is folded: to spare work, nothing else
FORGET_DAYS = 32  # after which a day is over for good
ASIDE_TIMES = 2  # so many times as long the reports of a segment that was set aside stay
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Folded:
    """What one run did."""

    minutes: int  # folded, or folded again
    days: int  # written
    damaged: tuple[str, ...]  # segments that were set aside, by name
    late: tuple[str, ...]  # the same, because their day was over for good
    finished: tuple[str, ...]  # days that are over for good since now
    waiting: int  # minutes with reports that are not over yet


def fold_minutes(
    plan: Plan,
    place: Place,
    now: float,
    *,
    wait: float | None = FOLD_AFTER,
    forget_days: int | None = FORGET_DAYS,
    advance: Advance | None = None,
) -> Folded:
    """Fold all minutes of a plan that are over, and are new or have got another file.

    Args:
        plan: whose reports were shipped to ``place``.
        place: where they are. One run at a time: in a folder others are refused.
        now: unix time.
        wait: fold a minute so many seconds after its end; None folds those that are not over too.
        forget_days: so many days after its end a day is over for good: its reports with their ids,
            and the totals of its minutes, are deleted, and its own total stays. After twice as long
            the reports of its segments that were set aside are deleted, too, and their names stay.
            None: never.
        advance: gets how many minutes were folded so far.
    """
    with _alone(plan, place):
        return _FoldRun(plan, place, now, wait, forget_days, advance).run()


class _FoldRun:
    def __init__(
        self,
        plan: Plan,
        place: Place,
        now: float,
        wait: float | None,
        forget_days: int | None,
        advance: Advance | None,
    ) -> None:
        self._plan, self._place, self._advance = plan, place, advance
        self._folder = plan_folder(plan.id)
        self._listing = Listing.of(place.names(self._folder))
        self._last_days = self._listing.last_days
        # the first minute that is not to be folded yet
        self._stop = None if wait is None else minute_at(max(0.0, now - wait))
        self._last_kept = ""  # the first day that is not over for good
        self._last_aside = ""  # the first of which what was set aside stays
        if forget_days is not None:
            self._last_kept = _day_before(now, forget_days)
            self._last_aside = _day_before(now, ASIDE_TIMES * forget_days)
        self._damaged: list[str] = []
        self._held = local()  # an aggregate in each thread

    def run(self) -> Folded:
        late = self._clear_finished_days()
        by_minute = self._segments()
        known = set(self._listing.minutes)
        folded = {total.minute for total in known}  # once begun, a minute counts
        chosen = {
            minute: segments
            for minute, segments in by_minute.items()
            if self._stop is None or minute < self._stop or minute in folded
        }
        due = [
            (minute, segments)
            for minute, segments in sorted(chosen.items())
            if MinuteTotal.of(minute, segments) not in known
        ]
        totals = {minute: MinuteTotal.of(minute, segments) for minute, segments in chosen.items()}
        for minute, total in zip([minute for minute, _ in due], self._folded(due), strict=True):
            if total is None:
                del totals[minute]
            else:
                totals[minute] = total
        by_day: dict[str, list[MinuteTotal]] = defaultdict(list)
        for minute in sorted(totals):
            by_day[day_of(minute)].append(totals[minute])
        open_days = {day_of(minute) for minute in by_minute.keys() - chosen.keys()}
        days = sum(self._write_day(day, parts) for day, parts in by_day.items())
        self._remove_stale(totals, by_day)
        finished = [day for day in by_day if day < self._last_kept and day not in open_days]
        for day in finished:
            self._finish(day, by_day[day], chosen)
        self._forget_aside()
        return Folded(
            len(due),
            days,
            tuple(self._damaged),
            tuple(late),
            tuple(finished),
            len(by_minute) - len(chosen),
        )

    # -- minutes

    def _segments(self) -> dict[int, list[Segment]]:
        """Those of days that are not over for good, by minute."""
        found: dict[int, list[Segment]] = defaultdict(list)
        for segment in self._listing.segments:
            if not self._is_finished(segment.minute):
                found[segment.minute].append(segment)
        return found

    def _folded(self, due: Sequence[tuple[int, list[Segment]]]) -> Iterator[MinuteTotal | None]:
        """The totals of some minutes, several at once; None where no segment is good."""
        if not due:
            return
        each = max(1, Aggregate(self._plan).counts.most_bytes(self._plan.people))
        threads = max(1, min(thread_count(), len(due), MAX_PARTS_BYTES // each))
        with ThreadPoolExecutor(threads) as pool:
            try:
                for done, total in enumerate(pool.map(lambda pair: self._fold(*pair), due)):
                    if self._advance is not None:
                        self._advance(done + 1)
                    yield total
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _fold(self, minute: int, segments: Sequence[Segment]) -> MinuteTotal | None:
        """Write the total of a minute's segments; damaged ones are set aside before."""
        good: list[tuple[Segment, Ids, Reports]] = []
        for segment in segments:
            try:
                good.append((segment, *self._read(segment)))
            except (CorruptReport, PlanMismatch):
                self._set_aside(segment, DAMAGED_FOLDER)
                self._damaged.append(segment.name)
        if not good:
            return None
        ids = np.concatenate([own for _, own, _ in good])
        reports = Reports.concat(own for _, _, own in good)
        chosen = each_once(self._plan, ids, reports)
        if chosen.is_kept is not None:
            reports = reports[chosen.is_kept]
        total = MinuteTotal.of(minute, [segment for segment, _, _ in good])
        heard = self._cleared().add(reports)
        self._put(total.name, PartTotal(heard, chosen.duplicates, chosen.conflicts))
        return total

    def _cleared(self) -> Aggregate:
        """An aggregate of nobody: this thread's, whose memory serves all of its minutes."""
        held = getattr(self._held, "aggregate", None)
        if held is None:
            held = self._held.aggregate = Aggregate(self._plan)
        return held.clear()

    def _read(self, segment: Segment) -> tuple[Ids, Reports]:
        """The reports of a segment that is as it was shipped, and that its plan can have."""
        data = self._place.read(f"{self._folder}/{segment.name}")
        if digest(data) != segment.digest:
            raise CorruptReport(f"segment ({segment.name}) is not as it was shipped")
        ids, reports = parse_with_ids(data, segment.name)
        if (minutes_of(ids) != segment.minute).any():
            raise CorruptReport(f"segment ({segment.name}) must hold ids of its minute alone")
        return ids, reports.checked(self._plan)

    # -- days

    def _write_day(self, day: str, parts: Sequence[MinuteTotal]) -> bool:
        """Have a day's total say what its minutes' do; whether it did not yet."""
        names = [part.name for part in parts]
        last = self._last_days.get(day)
        if last is not None and last.digest == digest_of_names(names):
            return False
        total = PartTotal(Aggregate(self._plan))
        missing = names
        if last is not None:
            before = self._day(last)
            if before is not None and set(before.parts) <= set(names):
                total, missing = before, sorted(set(names) - set(before.parts))
        for name in missing:
            total = add_part(total, self._place, name)
        generation = 1 if last is None else last.generation + 1
        new = DayTotal(day, False, generation, digest_of_names(names))
        self._put(
            new.name, PartTotal(total.aggregate, total.duplicates, total.conflicts, tuple(names))
        )
        self._last_days[day] = new
        return True

    def _day(self, day: DayTotal) -> PartTotal | None:
        """A day's total; None of a damaged one, which is made again from its minutes."""
        try:
            return read_part(self._plan, self._place, day.name)
        except CorruptReport:
            if day.is_finished:
                raise
            return None

    def _finish(
        self, day: str, parts: Sequence[MinuteTotal], by_minute: dict[int, list[Segment]]
    ) -> None:
        """Let nothing stay of a day but its total."""
        last = self._last_days[day]
        total = read_part(self._plan, self._place, last.name)
        segments = [
            each.name
            for part in parts
            for each in by_minute[part.minute]
            if each.name not in self._damaged
        ]
        new = DayTotal(day, True, last.generation + 1, FINISHED)
        whole = PartTotal(
            total.aggregate, total.duplicates, total.conflicts, segments=tuple(segments)
        )
        self._put(new.name, whole)
        for name in (last.name, *(part.name for part in parts), *segments):
            self._delete(name)

    def _is_finished(self, minute: int) -> bool:
        last = self._last_days.get(day_of(minute))
        return last is not None and last.is_finished

    def _clear_finished_days(self) -> list[str]:
        """Remove what a killed run left of days that are over for good; set aside what came later,
        which cannot be told from what was counted.
        """
        own: dict[str, set[str]] = {}
        late = []
        for segment in self._listing.segments:
            if not self._is_finished(segment.minute):
                continue
            day = self._last_days[day_of(segment.minute)]
            if day.day not in own:
                own[day.day] = set(read_part(self._plan, self._place, day.name).segments)
            if segment.name in own[day.day]:
                self._delete(segment.name)
            else:
                self._set_aside(segment, LATE_FOLDER)
                late.append(segment.name)
        return late

    def _remove_stale(
        self, totals: dict[int, MinuteTotal], by_day: dict[str, list[MinuteTotal]]
    ) -> None:
        """Remove totals that others took the place of."""
        for part in self._listing.minutes:
            if part != totals.get(part.minute):
                self._delete(part.name)
        for day in self._listing.days:
            if day != self._last_days[day.day]:
                self._delete(day.name)
        for each in self._last_days.values():  # all of its segments were set aside
            if not each.is_finished and each.day not in by_day and each in self._listing.days:
                self._delete(each.name)

    def _forget_aside(self) -> None:
        """Delete the reports of what an earlier run set aside, and named, of days long over."""
        for segment in self._listing.aside:
            if day_of(segment.minute) < self._last_aside:
                self._place.put(f"{self._folder}/{segment.forgotten_name}", b"")
                self._place.delete(f"{self._folder}/{segment.name}")

    # -- files

    def _put(self, name: str, total: PartTotal) -> None:
        self._place.put(f"{self._folder}/{name}", total.to_bytes())

    def _delete(self, name: str) -> None:
        self._place.delete(f"{self._folder}/{name}")
        self._place.remove_if_empty(f"{self._folder}/{name.rpartition('/')[0]}")

    def _set_aside(self, segment: Segment, folder: str) -> None:
        target = f"{folder}/{segment.minute:08x}-{segment.file}"
        self._place.move(f"{self._folder}/{segment.name}", f"{self._folder}/{target}")


def _day_before(now: float, days: int) -> str:
    """The day so many days before a unix time; the first of all if there is none."""
    try:
        return (datetime.fromtimestamp(now, UTC) - timedelta(days=days)).strftime("%Y-%m-%d")
    except OverflowError:
        return ""


@contextmanager
def _alone(plan: Plan, place: Place) -> Iterator[None]:
    """Refuse a second run in one folder; object stores have no locks."""
    folder = place.folder
    if folder is None or not (folder / plan_folder(plan.id)).is_dir():
        yield
        return
    with (folder / plan_folder(plan.id) / ".folding").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"place ({place.shown}): another run folds its minutes") from None
        yield
