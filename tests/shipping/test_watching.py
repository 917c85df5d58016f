"""Totals as surveys: a store, and a collector on it, say what was folded by now."""

from __future__ import annotations

from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput
from sottovoce.service.totals_watcher import TotalsWatcher
from sottovoce.shipping.layout import plan_folder
from sottovoce.shipping.places import Place
from sottovoce.shipping.totals import collected
from sottovoce.shipping.watching import check_totals, take_totals
from sottovoce.store import Store
from tests.service.collector import collecting
from tests.shipping.test_minutes import fold, put
from tests.store.crowds import ids, marginals, plan, reports
from tests.waiting import until


def put_all(place: Place, of: sv.Plan, count: int) -> None:
    """A segment, and the plan beside it, as a collector ships them."""
    put(place, ids(count, 1), reports(count, 1, of))
    place.put(f"{plan_folder(of.id)}/plan.json", of.to_json().encode())


def test_a_store_says_what_was_folded(store: Store, place: Place) -> None:
    put_all(place, plan(), 100)
    put_all(place, marginals(), 80)
    assert take_totals(store, place) == 0  # nothing was folded yet
    fold(place)
    assert (take_totals(store, place), take_totals(store, place)) == (1, 0)
    assert store.aggregate(plan()) == collected(plan(), place).aggregate
    assert (store.count(plan()), store.entry(plan().id).closed) == (100, True)
    before = store.kept(plan())
    assert before.only_sums
    put(place, ids(50, 2), reports(50, 2))
    fold(place)
    fold(place, marginals())
    assert take_totals(store, place) == 2
    assert store.aggregate(plan()) == collected(plan(), place).aggregate
    assert store.aggregate(marginals()).people == 80
    assert store.kept(plan()) == before  # it only grew: what is shown stays until it is replaced
    with pytest.raises(sv.SottovoceError, match="closed"):
        store.append(plan(), ids(5, 9), reports(5, 9))


def test_a_store_says_other_sums_of_as_many_people(store: Store, tmp_path: Path) -> None:
    """A late file can take the place of what counted, and change nothing else."""
    place = Place.at(tmp_path / "collected")
    put_all(place, plan(), 100)
    fold(place)
    take_totals(store, place)
    before = store.aggregate(plan())
    put(place, ids(100, 1), reports(100, 2), store=1)
    fold(place)
    after = collected(plan(), place)
    assert (after.people, after.conflicts > 0, after.aggregate == before) == (100, True, False)
    assert take_totals(store, place) == 1
    assert store.aggregate(plan()) == after.aggregate


def test_a_survey_with_reports_of_its_own_is_not_replaced(store: Store, tmp_path: Path) -> None:
    place = Place.at(tmp_path / "collected")
    put_all(place, plan(), 100)
    fold(place)
    store.add_plan(plan())
    store.append(plan(), ids(5, 9), reports(5, 9))
    with pytest.raises(InvalidInput, match=r"has reports of .* itself"):
        take_totals(store, place)
    assert store.count(plan()) == 5


def test_a_survey_that_cannot_be_taken_is_in_the_way_of_no_other(
    store: Store, tmp_path: Path
) -> None:
    place = Place.at(tmp_path / "collected")
    first, second = sorted((plan(), marginals()), key=lambda each: each.id)
    for of in (first, second):
        put_all(place, of, 100)
        fold(place, of)
    store.add_plan(first)
    store.append(first, ids(5, 9), reports(5, 9, first))
    with pytest.raises(InvalidInput, match=r"has reports of .* itself"):
        take_totals(store, place)
    assert (store.count(first), store.count(second)) == (5, 100)


def test_a_collector_shows_them(tmp_path: Path) -> None:
    address, url = str(tmp_path / "collected"), f"sqlite:///{tmp_path}/totals.db"
    with pytest.raises(InvalidInput, match="holds no plan"):
        check_totals(address)
    place = Place.at(address)
    put_all(place, plan(), 100)
    fold(place)
    check_totals(address)
    with collecting(url, ()) as collector:
        watcher = TotalsWatcher(url, address, seconds=0.05)
        try:
            for people in (100, 150):
                until(lambda people=people: _people(collector.service, people))  # type: ignore[misc]
                put(place, ids(50, 2), reports(50, 2))
                fold(place)
        finally:
            watcher.stop()


def _people(service, people: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether there is an estimate of so many people."""
    surveys = service.surveys()
    return bool(surveys) and service.fresh(surveys[0]).people == people
