"""Participants are served whatever analysts wait for,
and their page costs one rendering for all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import sottovoce as sv
from sottovoce.service.estimate_cache import Snapshot
from sottovoce.service.problems import Problem
from sottovoce.studio import make_page, take_page
from sottovoce.studio.background_jobs import BackgroundJobs
from sottovoce.studio.take_page import Pages, field_of, fields_of
from tests.studio.collectors import Collector, collecting
from tests.waiting import HANG, until

THREADS = 40  # of the pool in which most requests are answered
FORM = {
    "title": "",
    "learn": "frequencies",
    "epsilon": "1",
    "people": "100",
    "name": "x",
    "kind": "boolean",
}
REST = dict.fromkeys(("values", "low", "high", "bins", "longest", "alphabet"), "")


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Collector]:
    with collecting(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/new/preview"), ("POST", "/new"), ("GET", "/watch/{id}/table.csv?attribute=smoker")],
)
def test_participants_are_served_while_analysts_wait(
    studio: Collector, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    plan = studio.survey(sv.Frequencies("smoker"))
    entered, made = threading.Semaphore(0), Future[Any]()

    def slow(*_: object) -> Future[Any]:
        entered.release()
        return made

    monkeypatch.setattr(make_page, "ask_design", slow)
    monkeypatch.setattr(BackgroundJobs, "submit", slow)
    monkeypatch.setattr(studio.service, "snapshot", lambda _: Snapshot(1, Path("none")))
    url, options = (
        studio.studio + path.format(id=plan.id),
        {"timeout": HANG, "headers": {"Origin": studio.url}},
    )
    if method == "POST":
        options["data"] = FORM | REST
    is_download = method == "GET"
    with ThreadPoolExecutor(THREADS + 4) as threads:
        try:
            asked = [
                threads.submit(httpx.request, method, url, **options) for _ in range(THREADS + 4)
            ]
            for _ in range(4 if is_download else THREADS + 4):
                assert entered.acquire(timeout=HANG)
            if is_download:  # the others are told to come again
                until(lambda: sum(each.done() for each in asked) == THREADS)
            assert httpx.get(f"{studio.studio}/take/{plan.id}", timeout=HANG).status_code == 200
        finally:
            made.set_exception(Problem("no-reports", "nobody"))
        answers = [each.result() for each in asked]
    refused = [answer for answer in answers if answer.status_code == 503]
    assert len(refused) == (THREADS if is_download else 0)
    assert all(answer.headers["retry-after"] for answer in refused)


def test_the_form_plans_where_plans_are_ended(
    studio: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it asks for is made by the planning processes, so that it neither holds up drawings nor
    runs for ever.
    """

    def busy(*_: object) -> Any:
        raise Problem("busy", "planning takes too long", {"Retry-After": "10"})

    monkeypatch.setattr(studio.service.planning, "submit", busy)
    options: Any = {"data": FORM | REST, "headers": {"Origin": studio.url}, "timeout": HANG}
    assert httpx.post(f"{studio.studio}/new/preview", **options).json() == {
        "wrong": "planning takes too long"
    }
    page = httpx.post(f"{studio.studio}/new", **options)
    assert page.status_code == 422
    assert "planning takes too long" in page.text.lower()


def test_large_tables_are_refused_before_they_are_drawn(
    studio: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = studio.survey(sv.Marginals(up_to=1))

    def never(*_: object, **__: object) -> Any:
        raise AssertionError("it is drawn")

    for name in ("latest", "submit"):
        monkeypatch.setattr(BackgroundJobs, name, never)
    monkeypatch.setattr(studio.service, "snapshot", lambda _: Snapshot(1, Path("none")))
    monkeypatch.setattr(studio.service, "most_cells", 3)
    names = "&".join(f"attribute={name}" for name in plan.cohorts.attributes)
    for kind in ("", ".csv", ".parquet", ".png"):
        page = httpx.get(f"{studio.studio}/watch/{plan.id}/table{kind}?{names}", timeout=HANG)
        assert page.status_code == 422
        assert "ask about fewer attributes" in page.text


def test_a_page_is_rendered_once_for_all(
    studio: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = studio.survey(sv.Frequencies("smoker"), title="Once")
    calls: list[str] = []

    def counted(plan: Any) -> Any:
        calls.append(plan.id)
        return fields_of(plan)

    monkeypatch.setattr(take_page, "fields_of", counted)
    page = f"{studio.studio}/take/{plan.id}"
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: httpx.get(page, timeout=HANG), range(32)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert calls == [plan.id]
    assert answers[0].headers["cache-control"] == "no-store"
    assert "form-action 'none'" in answers[0].headers["content-security-policy"]
    studio.service.close(plan.id)
    assert "is closed" in httpx.get(page).text


def test_pages_are_kept_within_bytes() -> None:
    pages = Pages(10)
    pages.put("a", b"1234")
    pages.put("b", b"1234")
    assert pages.get("a") == b"1234"
    pages.put("c", b"1234")  # "b" was asked for longest ago
    assert [pages.get(key) for key in "abc"] == [b"1234", None, b"1234"]
    pages.put("d", b"x" * 11)
    assert all(pages.get(key) is None for key in "abcd")
    pages.put("e", b"1234")
    assert pages.get("e") == b"1234"


def test_a_page_shows_so_many_choices_and_asks_for_the_others_in_words() -> None:
    def listed(size: int) -> sv.Categorical:
        return sv.Categorical([f"v{number}" for number in range(size)])

    schema = sv.Schema(**{f"a{number}": listed(1000) for number in range(6)}, yes=sv.Boolean())
    fields = fields_of(sv.plan(schema, sv.Frequencies(*schema), epsilon=1.0, people=1000))
    assert [field.kind for field in fields] == ["list"] * 4 + ["typed"] * 2 + ["buttons"]
    assert sum(len(field.choices) for field in fields) == 4002
    assert field_of("wide", listed(5000)).kind == "typed"


def test_a_survey_made_again_shows_no_picture_of_the_deleted_one(
    studio: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was drawn is kept under a name that the next survey of the same plan does not have."""
    plan = studio.survey(sv.Frequencies("smoker"))
    asked: list[Any] = []

    def latest(_: BackgroundJobs, key: Any, *__: Any, **___: Any) -> tuple[float, Any]:
        asked.append(key)
        return 0.0, None

    monkeypatch.setattr(BackgroundJobs, "latest", latest)
    monkeypatch.setattr(studio.service, "snapshot", lambda _: Snapshot(1, Path("none")))

    def shown() -> set[Any]:
        asked.clear()
        for path in ("", "/live", "/table?attribute=smoker"):
            assert (
                httpx.get(f"{studio.studio}/watch/{plan.id}{path}", timeout=HANG).status_code == 200
            )
        assert len(asked) == 5
        return set(asked)

    before = shown()
    assert before == shown()
    studio.service.store.delete(plan)
    studio.service.create(plan)
    assert before.isdisjoint(shown())
