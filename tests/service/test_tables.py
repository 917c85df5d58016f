"""Tables that somebody asks for: within a size and a time, kept for who asks again, and their turn
until they are sent.
"""

from __future__ import annotations

import asyncio
import gc
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.service import kept, table_routes
from sottovoce.service.concurrency import Turns
from sottovoce.service.estimate_cache import (
    ANSWER_TOO_LONG,
    LONGEST_ANSWER,
    EstimateCache,
    Snapshot,
)
from sottovoce.service.kept import LATE_SECONDS, MAX_KEPT_ANSWERS, KeptAnswers
from sottovoce.service.limits import MAX_SURVEY_TABLE_CELLS, check_table
from sottovoce.service.problems import Problem
from sottovoce.service.settings import Settings
from sottovoce.service.streams import Download, file_stream
from sottovoce.service.timed import TimedWorkers
from tests.service.collector import Answer, collecting
from tests.service.test_waits import never
from tests.waiting import HANG, until

NAMES = [f"a{number}" for number in range(18)]
MANY = sv.plan(
    sv.Schema(**{name: sv.Boolean() for name in NAMES}),
    sv.Marginals(up_to=2),
    epsilon=2.0,
    people=1000,
)


# -- their size


def test_a_table_beyond_what_its_plan_asks_has_few_cells() -> None:
    wide = sv.Schema(a=sv.Ordinal(0, 999), b=sv.Ordinal(0, 999), c=sv.Boolean())
    plan = sv.plan(wide, sv.Marginals(up_to=2, method="inp-olh"), epsilon=2.0, people=1000)
    listed = sv.Marginals(up_to=2, workload=[["a", "c"]], method="inp-olh")
    other = sv.plan(wide, listed, epsilon=2.0, people=1000)
    check_table(plan, ["a", "b"], 1 << 16, 1 << 20)  # which the plan itself asks for
    check_table(plan, ["a"], 10, 1000)
    check_table(other, ["c", "a"], 10, 2000)
    check_table(MANY, NAMES[:16], MAX_SURVEY_TABLE_CELLS, 1 << 20)
    check_table(plan, ["unknown"], 10, 10)  # which others say
    check_table(plan, [], 10, 10)
    for asked, names, cells in (
        (plan, ["a", "b", "c"], "2,000,000"),
        (plan, ["a", "b"], "1,000,000"),
        (other, ["a", "b"], "1,000,000"),
        (plan, ["a"], "1,000"),
        (MANY, NAMES[:17], "131,072"),
    ):
        most_values = 1 << 20 if asked is not plan or len(names) == 3 else 999
        with pytest.raises(InvalidInput, match=f"would have {cells} cells.*fewer attributes"):
            check_table(asked, names, MAX_SURVEY_TABLE_CELLS, most_values)


@pytest.mark.parametrize("more", ["", "&limit=1", "&format=csv"])
def test_large_tables_are_refused_before_anything_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", (MANY,), most_cells=1 << 12) as collector:
        asked: list[str] = []
        for name in ("ask", "answer", "write"):
            monkeypatch.setattr(collector.service, name, lambda *_, name=name: asked.append(name))
        path = f"/v1/surveys/{MANY.id}/marginals?attributes={','.join(NAMES[:13])}{more}"
        answer = collector.analyst("GET", path)
        assert (answer.status, answer.problem) == (422, "invalid-input")
        assert "8,192 cells, and must have at most 4,096" in answer.json["detail"]
        assert asked == []
    with pytest.raises(InvalidInput, match="most_cells"):
        Settings(most_cells=0)


# -- their time


def test_work_that_takes_too_long_is_ended_and_others_go_on() -> None:
    workers = TimedWorkers(2, 0.3, ANSWER_TOO_LONG, "test")
    try:
        for future in [workers.submit(never) for _ in range(3)]:
            with pytest.raises(Problem, match="fewer attributes"):
                future.result(HANG)
        workers._seconds = HANG
        assert workers.submit(sum, [1, 2]).result(HANG) == 3
    finally:
        workers.stop()


def test_one_process_serves_as_long_as_one_is_enough() -> None:
    workers = TimedWorkers(2, HANG, ANSWER_TOO_LONG, "test")
    try:
        for _ in range(3):
            assert workers.submit(sum, [1, 2]).result(HANG) == 3
        assert sum(each._pool is not None for each in workers._workers) == 1
    finally:
        workers.stop()


def test_answers_have_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks hears that it takes too long; who asks again hears it at once, and nothing is
    started anew.
    """
    with collecting(f"sqlite:///{tmp_path}/s.db", (MANY,)) as collector:
        service: Any = collector.service
        assert service._estimates._answering._seconds == LONGEST_ANSWER
        service._estimates._answering._seconds = 0.3
        monkeypatch.setattr(table_routes, "marginal_page", never_page)
        monkeypatch.setattr(service, "ask", lambda _: None)
        monkeypatch.setattr(service, "last", lambda _: Snapshot(1, tmp_path, number=1))
        started: list[Any] = []
        submit = service._estimates._answering.submit
        monkeypatch.setattr(
            service._estimates._answering,
            "submit",
            lambda *given: started.append(given) or submit(*given),
        )
        monkeypatch.setattr(kept, "LATE_SECONDS", HANG)

        def ask() -> Answer:
            answer = collector.analyst("GET", f"/v1/surveys/{MANY.id}/marginals?attributes=a1,a2")
            assert (answer.status, answer.problem) == (503, "busy")
            assert answer.headers["retry-after"]
            return answer

        # at the first time, unless the machine is very busy
        until(lambda: ask().json["detail"] == ANSWER_TOO_LONG)
        assert ask().json["detail"] == ANSWER_TOO_LONG
        assert len(started) == 1


def never_page(*_: Any) -> bytes:
    """A page that is never made."""
    never()
    return b""


# -- kept for who asks again


def test_who_asks_again_gets_the_answer() -> None:
    answers, started = KeptAnswers(), list[Future[Any]]()

    def start() -> Future[Any]:
        started.append(Future())
        return started[-1]

    first = answers.ask("a", start)
    assert answers.ask("a", start) is first  # under way
    first.set_result(b"x")
    assert answers.ask("a", start) is first  # done
    for wrong in (
        ValueError("of another kind"),
        None,
    ):  # what failed, or nobody needed, is made anew
        future = answers.ask("b", start)
        if wrong is None:
            future.cancel()
        else:
            future.set_exception(wrong)
    assert answers.ask("b", start) is started[-1]
    assert len(started) == 4
    answers.clear()
    assert answers.ask("a", start) is not first


def test_what_takes_too_long_is_known_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    answers = KeptAnswers()
    late = answers.ask("a", Future)
    late.set_exception(Problem("busy", ANSWER_TOO_LONG))
    now[0] += LATE_SECONDS
    assert answers.ask("a", Future) is late
    now[0] += 1
    assert answers.ask("a", Future) is not late


def test_so_many_answers_are_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = KeptAnswers()

    def done(size: int) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(bytes(size))
        return future

    futures = [answers.ask(number, lambda: done(1)) for number in range(MAX_KEPT_ANSWERS + 1)]
    assert len(answers._done) == MAX_KEPT_ANSWERS
    assert answers.ask(MAX_KEPT_ANSWERS, lambda: done(1)) is futures[-1]
    monkeypatch.setattr(kept, "MOST_KEPT_BYTES", 10)
    large = answers.ask("large", lambda: done(11))
    assert list(answers._done) == ["large"]  # the last one always
    assert answers.ask("large", lambda: done(1)) is large


def test_answers_of_a_deleted_survey_are_let_go_of(tmp_path: Path) -> None:
    snapshots = EstimateCache(f"sqlite:///{tmp_path}/s.db", 1.0)
    try:
        snapshots._latest["id", 1] = Snapshot(1)
        snapshots._answers.ask("a", Future).set_result(b"rows")
        snapshots.keep({("id", 1)})
        assert len(snapshots._answers._done) == 1
        snapshots.keep(set())
        assert not snapshots._answers._done
    finally:
        snapshots.close()


# -- their turn


def test_a_download_has_its_turn_until_it_is_sent(tmp_path: Path) -> None:
    turns = Turns(1)
    seen: list[str] = []

    def is_taken() -> bool:
        try:
            turns.take().end()
        except Problem:
            return True
        return False

    async def send(message: Any) -> None:
        seen.append(f"{message['type']} {is_taken()}")

    async def receive() -> Any:
        await asyncio.Event().wait()

    def stream() -> Any:
        path = tmp_path / "out"
        path.write_bytes(b"rows")
        made = file_stream(Download(path, turns.take()), "text/csv")
        assert not path.exists()
        return made

    scope = {"type": "http", "asgi": {"spec_version": "2.3"}, "method": "GET"}
    asyncio.run(stream()(scope, receive, send))
    assert seen == [
        "http.response.start True",
        "http.response.body True",
        "http.response.body True",
    ]
    assert not is_taken()

    async def gone(_: Any) -> None:
        raise OSError

    with pytest.raises((OSError, ExceptionGroup)):
        asyncio.run(stream()(scope, receive, gone))
    assert not is_taken()
    stream()  # and never sent
    gc.collect()
    assert not is_taken()
    with pytest.raises(FileNotFoundError):
        file_stream(Download(tmp_path / "nothing", turns.take()), "text/csv")
    assert not is_taken()
