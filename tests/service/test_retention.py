"""A collector that runs while its store is damaged, loses a survey, or keeps only sums of one."""

from __future__ import annotations

from pathlib import Path

from sottovoce.store import open_store
from tests.service.collector import PLAN, TABLES, Collector, collecting, device
from tests.service.test_analyst import fill
from tests.store.damage import damage


def _estimating(collector: Collector) -> set[int]:
    """The processes that estimate now."""
    pool = collector.service._estimates._estimating._pool
    return set() if pool is None else set(pool._processes)


def test_a_deleted_survey_is_unknown_at_once_and_forgotten(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/survey.db"
    with collecting(url, (PLAN, TABLES)) as collector:
        fill(collector, PLAN)
        kept = fill(collector, TABLES)
        assert collector.patient(f"/v1/surveys/{PLAN.id}/estimates").json["people"] == 400
        with open_store(url) as operator:
            operator.delete(PLAN)
        answer = collector.post(device(PLAN))
        assert (answer.status, answer.problem) == (404, "unknown-plan")
        assert (
            collector.analyst("GET", f"/v1/surveys/{PLAN.id}/estimates").problem == "unknown-plan"
        )
        held = _estimating(collector)
        collector.service.refresh()  # as it does every few seconds
        assert not held & _estimating(collector)  # the process that held what it had folded of it
        assert collector.ask("GET", f"/v1/plans/{PLAN.id}").problem == "unknown-plan"
        assert PLAN.id not in [plan_id for plan_id, _ in collector.service._estimates._latest]
        assert not list(collector.service._estimates._place().glob(f"{PLAN.id}*"))
        assert collector.post(device(TABLES)).status == 200
        assert collector.service.survey(TABLES.id).people == kept.people + 1
        collector.service.create(PLAN)  # again, from nothing
        assert collector.service.survey(PLAN.id).people == 0
        assert collector.post(device(PLAN)).json == {"stored": 1, "duplicates": 0}


def test_a_survey_made_again_knows_nothing_of_the_deleted_one(tmp_path: Path) -> None:
    """Even if the collector looks away while one is deleted and the other made."""
    url = f"sqlite:///{tmp_path}/survey.db"
    with collecting(url, (PLAN,), refresh_seconds=10_000) as collector:
        fill(collector, PLAN)
        estimates = f"/v1/surveys/{PLAN.id}/estimates"
        assert collector.patient(estimates).json["people"] == 400
        (old,) = collector.service._estimates._place().glob("*.estimate")
        held = _estimating(collector)
        with open_store(url) as operator:
            operator.delete(PLAN)
        assert collector.analyst("POST", "/v1/plans", PLAN.to_json().encode()).status == 201
        assert collector.analyst("GET", estimates).problem == "no-reports"
        assert collector.service.snapshot(collector.service.survey(PLAN.id)).file is None
        collector.service.refresh()
        assert not old.exists()
        assert not held & _estimating(collector)  # the process that held what it had folded of it
        assert collector.analyst("GET", estimates).problem == "no-reports"
        fill(collector, PLAN)  # as many as before
        assert collector.patient(estimates).json["people"] == 400
        (new,) = collector.service._estimates._place().glob("*.estimate")
        assert new != old


def test_an_estimate_under_way_of_a_deleted_survey_is_not_its_successors(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/survey.db"
    with collecting(url, (PLAN,), refresh_seconds=10_000) as collector:
        fill(collector, PLAN)
        survey = collector.service.survey(PLAN.id)
        asked = collector.service.ask(survey)
        assert asked is not None
        asked.result()  # made, and not looked at yet
        with open_store(url) as operator:
            operator.delete(PLAN)
        collector.service.create(PLAN)
        again = collector.service.survey(PLAN.id)
        assert collector.service.last(again).file is None
        assert collector.service.snapshot(again).file is None
        assert collector.service.fresh(again).file is None


def test_sums_answer_as_before_and_nothing_more_is_taken(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/survey.db"
    with collecting(url, (PLAN,)) as collector:
        fill(collector, PLAN)
        before = collector.patient(f"/v1/surveys/{PLAN.id}/estimates").json["tables"]
        with open_store(url) as operator:
            operator.keep_sums(PLAN)
        assert collector.post(device(PLAN)).problem == "survey-closed"
        found = collector.analyst("GET", f"/v1/surveys/{PLAN.id}").json
        assert (found["people"], found["closed"], found["only_sums"]) == (400, True, True)
        assert collector.patient(f"/v1/surveys/{PLAN.id}/estimates").json["tables"] == before
        assert collector.analyst("GET", f"/v1/surveys/{PLAN.id}/export").problem == "invalid-input"


def test_damaged_reports_are_counted_and_stop_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/survey.db"
    with collecting(url, (PLAN,)) as collector:
        fill(collector, PLAN)
    damage(url, "payload", 17)
    with collecting(url, (PLAN,)) as collector:
        found = collector.patient(f"/v1/surveys/{PLAN.id}/estimates").json
        assert (found["people"], found["damaged"], found["problem"]) == (399, 1, None)
        survey = collector.analyst("GET", f"/v1/surveys/{PLAN.id}").json
        assert (survey["people"], survey["damaged"]) == (399, 1)
        assert (
            "\nsottovoce_damaged_reports 1\n" in collector.analyst("GET", "/metrics").data.decode()
        )
        assert collector.analyst("GET", f"/v1/surveys/{PLAN.id}/export").status == 200
