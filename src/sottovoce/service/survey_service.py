"""What an analyst can do, over HTTP or not: make surveys, watch and close them, ask for tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter

from sottovoce.api.surveys import Survey as Description
from sottovoce.ground.errors import InvalidInput, MissingLibrary, UnknownPlan
from sottovoce.ground.extras import has_extra
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.texts import NO_TEXTS, Texts
from sottovoce.questions.base import Question
from sottovoce.schema import Schema
from sottovoce.service.concurrency import Turns
from sottovoce.service.estimate_cache import FAILED, EstimateCache, Snapshot
from sottovoce.service.limits import (
    MAX_SURVEY_ATTRIBUTES,
    MAX_SURVEY_TABLE_CELLS,
    MAX_SURVEY_VALUES,
    check_attributes,
    check_query,
    check_table,
    check_values,
)
from sottovoce.service.plan_cache import PlanCache
from sottovoce.service.planning import Planning
from sottovoce.service.problems import Problem
from sottovoce.service.query_answers import QueryAnswers
from sottovoce.service.query_sessions import Form
from sottovoce.service.serialized import next_text, planned_text
from sottovoce.service.streams import Download
from sottovoce.store import Entry, Kept, Store

_PREFIX = re.compile("[0-9a-f]{8,64}")
WAIT = 20.0  # seconds that an answer may wait for an estimate
MOST_DOWNLOADS = 4  # under way at once


@dataclass(frozen=True)
class SurveyStatus:
    """A survey of a store, and how many people it has heard."""

    entry: Entry
    people: int
    kept: Kept

    @classmethod
    def of(cls, store: Store, entry: Entry) -> SurveyStatus:
        """As it stands now."""
        return cls(entry, store.count(entry.plan), store.kept(entry.plan))

    @property
    def plan(self) -> Plan:
        return self.entry.plan

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "id": plan.id,
            "title": self.entry.title,
            "texts": self.entry.texts.to_json(),
            "created": self.entry.created,
            "closed": self.entry.closed,
            "people": self.people,
            "damaged": self.kept.missing,  # reports that were acknowledged and cannot be counted
            "only_sums": self.kept.only_sums,
            "people_expected": plan.people,
            "epsilon": str(plan.epsilon),
            "coin": plan.coin,
            "question": plan.asked["kind"],
            "attributes": list(plan.cohorts.attributes),
            "guarantee": plan.guarantee.to_json(),
        }


class SurveyService:
    """One store's surveys, with their estimates kept at hand."""

    def __init__(
        self,
        store: Store,
        refresh_seconds: float = 2.0,
        most_values: int = MAX_SURVEY_VALUES,
        most_attributes: int = MAX_SURVEY_ATTRIBUTES,
        key: str | None = None,
    ) -> None:
        """``key``: the public one of the collector, if it opens the batches of shufflers."""
        self.store = store
        self.key = key
        self._most_values, self._most_attributes = most_values, most_attributes
        self.most_cells = (
            MAX_SURVEY_TABLE_CELLS  # of a table of several attributes that is asked for
        )
        self.planning = Planning()
        self.downloads = Turns(MOST_DOWNLOADS)
        # threads for what waits, apart from those in which participants are served
        self.waiting = CapacityLimiter(4)
        self.plan_cache = PlanCache(store)
        self._can_estimate = has_extra("analysis")
        self._can_query = has_extra("queries")
        self._estimates = EstimateCache(store.address, refresh_seconds)
        self._queries = QueryAnswers(store.address, refresh_seconds)

    def surveys(self) -> list[SurveyStatus]:
        """All of them, the newest first."""
        entries = sorted(self.store.entries(), key=lambda entry: -entry.created)
        return [SurveyStatus.of(self.store, entry) for entry in entries]

    def damaged(self) -> int:
        """Reports of all surveys that were acknowledged and cannot be counted."""
        return sum(self.store.kept(entry.plan).missing for entry in self.store.entries())

    def survey(self, plan_id: str) -> SurveyStatus:
        """By its id, or by so many of its first digits that it is the only one."""
        entry = self.store.entry(self._whole_id(plan_id))
        return SurveyStatus.of(self.store, entry)

    def entry(self, plan_id: str) -> Entry:
        """By its whole id, as everybody may ask: parts of ids would let strangers search."""
        if len(plan_id) != 64:
            raise UnknownPlan("plan: its id must be 64 hexadecimal digits")
        return self.store.entry(self._whole_id(plan_id))

    def has(self, plan_id: str) -> bool:
        """Whether there is a survey of this plan."""
        return bool(self.store.plan_ids(plan_id))

    def _whole_id(self, plan_id: str) -> str:
        if _PREFIX.fullmatch(plan_id) is None:
            raise UnknownPlan("plan: its id must be 8 to 64 hexadecimal digits")
        if len(plan_id) == 64:
            return plan_id
        found = self.store.plan_ids(plan_id)
        if len(found) != 1:
            raise UnknownPlan(f"plan: {len(found)} plans start with these digits")
        return found[0]

    def check(self, schema: Schema, question: Question) -> None:
        """Refuse what is too large to be made over HTTP, before it is planned."""
        check_attributes(schema, self._most_attributes)
        check_values(schema, question, self._most_values)

    def check_body(self, body: Mapping[str, Any]) -> None:
        """The same for a survey as people describe it."""
        described = Description.parse(body)
        self.check(described.schema, described.question)

    def check_table(self, survey: SurveyStatus, names: Sequence[str]) -> None:
        """Refuse a table that would take too long or too much memory, before it is made."""
        check_table(survey.plan, names, self.most_cells, self._most_values)

    def planned(self, body: Mapping[str, Any]) -> Future[str]:
        """The text of the plan of such a survey, made in another process, as it may take long."""
        self.check_body(body)
        return self.planning.submit(planned_text, dict(body))

    def create(self, plan: Plan, texts: Texts = NO_TEXTS) -> SurveyStatus:
        """Take a plan in; its reports are welcome from now on."""
        self.check(plan.schema, plan.question)
        unheard = why_unheard(hops_of(plan), self.key)
        if unheard is not None:
            raise InvalidInput(f"hops: {unheard}")
        return self._added(plan, texts)

    def _added(self, plan: Plan, texts: Texts) -> SurveyStatus:
        self.store.add_plan(plan, texts)
        self.plan_cache.add(plan)
        return self.survey(plan.id)

    def close(self, plan_id: str) -> SurveyStatus:
        """No more reports."""
        self.store.close_survey(self._whole_id(plan_id))
        return self.survey(plan_id)

    def next_round(self, plan_id: str) -> tuple[SurveyStatus, bool]:
        """(the next round's survey, whether it is new): made from all that this round heard, which
        is closed by it.

        A closed round says the same whenever it is asked, so there is one next round, however often
        it is made.
        """
        survey = self.survey(plan_id)
        if not checked(self.fresh(survey), survey.people).has_next:
            raise Problem("no-next-round", "this survey's estimate is the last word")
        survey = self.close(plan_id)
        snapshot = checked(self.fresh(survey), survey.people)
        people, text = within(self.answer(snapshot, next_text, survey.plan.text), WAIT)
        if people != survey.people:
            raise under_way()
        following = Plan.from_json(text)
        is_new = not self.has(following.id)
        return self._added(following, survey.entry.texts.following(following)), is_new

    # -- estimates

    def snapshot(self, survey: SurveyStatus) -> Snapshot:
        """The latest estimate, at once."""
        self._check_analysis()
        return self._estimates.latest(survey.plan, survey.people, survey.kept.version)

    def ask(self, survey: SurveyStatus) -> Future[Snapshot] | None:
        """Have an estimate of now made; None if there is one."""
        self._check_analysis()
        return self._estimates.ask(survey.plan, survey.people, survey.kept.version)

    def last(self, survey: SurveyStatus) -> Snapshot:
        """The last estimate that was made."""
        return self._estimates.last(survey.plan, survey.people, survey.kept.version)

    def fresh(self, survey: SurveyStatus) -> Snapshot:
        """An estimate of now, if it takes no longer than an answer may."""
        self._check_analysis()
        return self._estimates.fresh(survey.plan, survey.people, survey.kept.version, WAIT)

    def _check_analysis(self) -> None:
        if not self._can_estimate:
            raise MissingLibrary(
                "estimate: this collector keeps reports and estimates nothing; give its store to "
                "`sottovoce estimate` "
                'where there is more: pip install "sottovoce[analysis]"'
            )

    def answer(self, snapshot: Snapshot, work: Callable[..., Any], *args: Hashable) -> Future[Any]:
        """What a function of :mod:`sottovoce.service.serialized` says, in another process."""
        return self._estimates.answer(snapshot, work, *args)

    def query(self, survey: SurveyStatus, sql: str, level: float, form: Form) -> Future[Any]:
        """What ``form`` makes of the answer to SQL, in another process."""
        check_query(survey.plan, survey.people, sql)
        self._check_analysis()
        if not self._can_query:
            raise MissingLibrary(
                "query: this collector answers no SQL; it comes with: "
                'pip install "sottovoce[queries]"'
            )
        if not survey.people:
            raise Problem("no-reports", "nobody was heard yet, so there is nothing to ask about")
        key = (survey.plan.id, survey.kept.version)
        return self._queries.ask(key, survey.plan, sql, level, form)

    def write(
        self, snapshot: Snapshot, work: Callable[..., Any], *args: Any
    ) -> tuple[Download, Future[Any]]:
        """(a file, its writing): the same for an answer that may be large."""
        return self.download(lambda out: self._estimates.submit(work, snapshot.file, *args, out))

    def download(self, start: Callable[[Path], Future[Any]]) -> tuple[Download, Future[Any]]:
        """(a file, its writing), which has a turn until it is sent or dropped; a problem if too
        many are under way.
        """
        download = Download(self.new_file(), self.downloads.take())
        try:
            return download, start(download.path)
        except BaseException:
            download.drop()
            raise

    def new_file(self) -> Path:
        """A place for a file that another process writes."""
        return self._estimates.new_file()

    def refresh(self) -> None:
        """Have estimates made of whatever has changed, and forget what was deleted."""
        surveys = self.surveys()
        self.plan_cache.keep({survey.plan.id for survey in surveys})
        kept = {(survey.plan.id, survey.kept.version) for survey in surveys}
        self._estimates.keep(kept)
        self._queries.keep(kept)
        if not self._can_estimate:
            return
        for survey in surveys:
            self._estimates.latest(survey.plan, survey.people, survey.kept.version)

    def stop(self) -> None:
        """Stop the processes beside the collector; the store stays open."""
        self.planning.stop()
        self._estimates.close()
        self._queries.close()


def hops_of(plan: Plan) -> Sequence[str] | None:
    """The public keys that a shuffled plan names; None of another plan."""
    return None if plan.shuffling is None else plan.shuffling.hops


def why_unheard(hops: Sequence[str] | None, key: str | None) -> str | None:
    """Why no report that is sealed for these keys would ever reach a collector with this public
    key, or with none; None if it would, or if reports are not shuffled.
    """
    if hops is None:
        return None
    if not hops:
        return (
            "a shuffled survey that people are to answer needs the public keys of its shufflers "
            "and of the collector: without them no report is sealed, and none is taken unsealed"
        )
    if key is None:
        return (
            "the survey is shuffled, and this collector has no key to open its reports: start it "
            "with --key FILE"
        )
    if hops[-1] != key:
        return f"the last key must be this collector's, {key}"
    return None


def checked(snapshot: Snapshot, people: int) -> Snapshot:
    """A snapshot that has an estimate, or the problem that there is none."""
    if snapshot.file is not None:
        return snapshot
    if not people:
        raise Problem("no-reports", "nobody was heard yet, so there is nothing to estimate")
    if snapshot.problem == FAILED:
        raise Problem("estimate-failed", FAILED, {"Retry-After": "60"})
    if snapshot.problem is not None:
        raise InvalidInput(snapshot.problem)
    raise under_way()


def under_way() -> Problem:
    """The answer to whoever must come again."""
    return Problem(
        "estimate-under-way", "the estimate is being made; ask again", {"Retry-After": "2"}
    )


def within(future: Future[Any], seconds: float) -> Any:
    """What another process makes, if it takes no longer than an answer may."""
    try:
        return future.result(seconds)
    except TimeoutError:
        raise Problem("busy", "it takes long; ask again", {"Retry-After": "10"}) from None
